#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: count pktgen's frames on a host that does not send them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pktgen_sink
short_description: Count the test frames that M(crossover.lab.pktgen) sends from another host
version_added: 0.1.0
description:
  - V(started) makes an exact filter of each stream on the ingress hook of its device, where the
    frames are counted and dropped, and remembers the device's counters. V(stopped) waits for the
    last frames, returns what has arrived, and removes the filters.
  - Without nftables in the kernel the device's own counters are returned, and the reason.
author: Crossover developers
options:
  state:
    description: V(absent) removes what V(started) has made and counts nothing.
    type: str
    choices: [started, stopped, absent]
    default: started
  streams:
    description: The streams that arrive on this host, each on a device of its own.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: Device on which the stream arrives.
        type: str
        required: true
      ipv4_source:
        description: Source address of its frames.
        type: str
        required: true
      ipv4_destination:
        description: Destination address of its frames.
        type: str
        required: true
  frame_bytes:
    description: Size of a frame with its frame check sequence.
    type: int
    default: 64
  flows:
    description: Flows of each stream, told apart by UDP source port.
    type: int
    default: 1
  udp_port:
    description: UDP destination port.
    type: int
    default: 9
  udp_source_port:
    description: UDP source port of the first flow.
    type: int
    default: 1024
  drain_s:
    description: For V(stopped), seconds that the last frames have to arrive.
    type: float
    default: 2
attributes:
  check_mode:
    support: none
    description: A measurement cannot be predicted.
  diff_mode:
    support: none
    description: Nothing lasting is changed.
"""

EXAMPLES = r"""
- name: Count what comes through the router
  crossover.lab.pktgen_sink:
    streams:
      - {device: eth1, ipv4_source: 198.18.0.1, ipv4_destination: 198.19.0.1}
    frame_bytes: 1518

- name: See what has arrived
  crossover.lab.pktgen_sink:
    state: stopped
"""

RETURN = r"""
watches:
  description: >-
    For each stream its C(device), the C(packets) that the device had received before (since it was
    made), and the C(reason) why there is no filter (null when there is one).
  type: list
  elements: dict
  returned: for O(state=started)
received:
  description: >-
    For each stream its C(device), C(received) frames as C(received_by) says, C(filter),
    C(filter_reason), C(settled), C(far_driver) and C(counters), as M(crossover.lab.pktgen) returns
    them for a receiving port.
  type: list
  elements: dict
  returned: for O(state=stopped)
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_sink
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run

ARGUMENTS = {
    "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
    "streams": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "device": {"type": "str", "required": True},
            "ipv4_source": {"type": "str", "required": True},
            "ipv4_destination": {"type": "str", "required": True},
        },
    },
    "frame_bytes": {"type": "int", "default": 64},
    "flows": {"type": "int", "default": 1},
    "udp_port": {"type": "int", "default": 9},
    "udp_source_port": {"type": "int", "default": 1024},
    "drain_s": {"type": "float", "default": 2},
}


def _apply(module):
    state = module.params["state"]
    if state == "started":
        streams = pktgen_sink.read_streams(module.params)
        module.exit_json(changed=True, watches=pktgen_sink.start(streams, run))
    if state == "stopped":
        received = pktgen_sink.stop(module.params["drain_s"], run)
        module.exit_json(changed=True, received=received)
    module.exit_json(changed=pktgen_sink.forget(run))


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=False)
    try:
        _apply(module)
    except HostError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

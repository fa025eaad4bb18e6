#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: one trial by kernel pktgen."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pktgen
short_description: Send test frames by kernel pktgen for one trial, and count those that arrive
version_added: 0.1.0
description:
  - Configures pktgen through C(/proc/net/pktgen), lets it send, waits until it has stopped and the
    last frames have arrived, and only then reads the counters. Everything that was counted is
    returned; nothing is judged.
  - Test frames are UDP over IPv4. Sizes count the four bytes of the frame check sequence, as
    RFC 2544 does. Rates are frames a second and direction.
  - Frames that arrive are matched exactly on O(ports[].receive_device) (nftables' ingress hook,
    which also drops them there; a packet socket where the kernel does not have it). Where they
    arrive on another host, leave O(ports[].receive_device) out and let
    M(crossover.lab.pktgen_sink) count there.
  - Nothing goes on sending when the module is interrupted or killed, and what a killed call left
    behind is removed by the next one or by O(state=stopped). Devices that somebody else has given
    to pktgen are never touched; they are an error.
  - Needs the kernel module pktgen loaded; the role C(forwarding) does that.
author: Crossover developers
options:
  state:
    description: V(run) is a trial; V(stopped) ends one and removes what it left.
    type: str
    choices: [run, stopped]
    default: run
  ports:
    description: One entry a direction. Wanted for O(state=run), one or two.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: Device that sends.
        type: str
        required: true
      mac_destination:
        description: MAC address of the device under test at the other end of O(ports[].device).
        type: str
        required: true
      ipv4_source:
        description: Source address of the test frames.
        type: str
        required: true
      ipv4_destination:
        description: Destination address of the test frames.
        type: str
        required: true
      receive_device:
        description: Device of this host on which they arrive; without it nothing is counted here.
        type: str
  frame_bytes:
    description: Size of a frame with its frame check sequence, 64 or more.
    type: int
    default: 64
  rate_fps:
    description: Frames a second and direction; without it as fast as the generator can.
    type: float
  duration_s:
    description: Seconds that a trial lasts.
    type: float
    default: 10
  frames:
    description: Frames of each direction, at most so many as O(duration_s) allows. The default is
      O(rate_fps) times O(duration_s), or without a rate as many as can be sent.
    type: int
  flows:
    description: Flows of each direction, told apart by UDP source port, used in turn.
    type: int
    default: 1
  queues:
    description: Transmit queues of each direction, each by a generator thread of one CPU.
    type: int
    default: 1
  cpus:
    description: CPUs whose threads send, taken in turn; the default is all.
    type: list
    elements: int
    default: []
  drain_s:
    description: Seconds between the end of the traffic and the reading of the counters.
    type: float
    default: 2
  lead_s:
    description: Seconds between being ready to send and sending; so long another host, that
      follows, has to get ready as well.
    type: float
    default: 0
  follow:
    description:
      - Begins to send when the first frame arrives of another host that sends to this one what the
        first of O(ports) sends to it. If none comes for O(follow.limit_s), sending begins then.
    type: dict
    suboptions:
      device:
        description: Device on which they arrive.
        type: str
        required: true
      packets:
        description: What the device had received before the other host could begin, as
          M(crossover.lab.pktgen_sink) returns it.
        type: int
        required: true
      limit_s:
        description: Seconds to wait.
        type: float
        default: 10
  udp_port:
    description: UDP destination port.
    type: int
    default: 9
  udp_source_port:
    description: UDP source port of the first flow.
    type: int
    default: 1024
  udp_checksum:
    description: Whether frames carry a UDP checksum. IPv4's header checksum is always right.
    type: bool
    default: false
  clone:
    description: How often a packet is sent again before another is made; not every driver can.
    type: int
    default: 0
  burst:
    description: Frames that are handed to the driver at once; not every driver can.
    type: int
    default: 1
attributes:
  check_mode:
    support: none
    description: A measurement cannot be predicted.
  diff_mode:
    support: none
    description: Nothing lasting is changed.
"""

EXAMPLES = r"""
- name: Send both ways through the device under test at 10,000 frames a second
  crossover.lab.pktgen:
    ports:
      - device: eth1
        mac_destination: "02:00:00:00:01:02"
        ipv4_source: 198.18.0.1
        ipv4_destination: 198.19.0.1
        receive_device: eth2
      - device: eth2
        mac_destination: "02:00:00:00:02:02"
        ipv4_source: 198.19.0.1
        ipv4_destination: 198.18.0.1
        receive_device: eth1
    frame_bytes: 64
    rate_fps: 10000
    duration_s: 10
"""

RETURN = r"""
trial:
  description: >-
    What was declared (C(frame_bytes), C(duration_s), C(intended_fps), and C(configured_fps), the
    rate that whole nanoseconds between frames allow), C(started_at) in UTC, and C(directions).
    With O(follow), C(followed) says C(how) sending began - C(in time), C(lag_s) seconds after the
    other host's first frame had arrived; C(late) when frames had arrived before this host was
    ready; C(never) when none arrived.
    Rates are frames a second. A count that is not known is null.
  type: dict
  returned: for O(state=run)
  contains:
    directions:
      description: >-
        One for each of O(ports), in order. C(sent) frames were handed to the driver, C(errors)
        were not taken by it, in C(elapsed_s) from the first start to the last stop, so
        C(offered_fps). C(idle_s) is the time that the busiest of its threads waited for a frame's
        turn; at a set rate, hardly any means that the generator is at its limit. C(received) is
        what C(received_by) says (C(filter) or C(port)); C(filter) is C(nft), C(packet) or C(none),
        and C(filter_reason) why no better one. C(settled) says whether frames had ceased to
        arrive. C(senders) has each queue's thread, C(port_driver) and C(far_driver) those of the
        drivers' own counters that moved.
      type: list
      elements: dict
      contains:
        counters:
          description: >-
            Increases over the trial - C(pktgen_sofar), C(pktgen_errors); of the sending port
            C(port_tx), C(port_tx_bytes), C(port_tx_errors), C(port_tx_dropped); of the receiving
            port C(far_rx), C(far_rx_bytes), C(far_rx_errors), C(far_rx_dropped) (no room, here or
            in the card); of the filter C(far_rx_filter), C(far_rx_filter_bytes) and
            C(far_rx_other), frames on the port that are not of the stream. Bytes are without the
            frame check sequence.
          type: dict
left:
  description: Whether something was there to be removed.
  type: bool
  returned: for O(state=stopped)
"""

import contextlib
import signal
import threading

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_measure
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_run import Generator, alone
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_trial import read_trial

ARGUMENTS = {
    "state": {"type": "str", "choices": ["run", "stopped"], "default": "run"},
    "ports": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "device": {"type": "str", "required": True},
            "mac_destination": {"type": "str", "required": True},
            "ipv4_source": {"type": "str", "required": True},
            "ipv4_destination": {"type": "str", "required": True},
            "receive_device": {"type": "str"},
        },
    },
    "frame_bytes": {"type": "int", "default": 64},
    "rate_fps": {"type": "float"},
    "duration_s": {"type": "float", "default": 10},
    "frames": {"type": "int"},
    "flows": {"type": "int", "default": 1},
    "queues": {"type": "int", "default": 1},
    "cpus": {"type": "list", "elements": "int", "default": []},
    "drain_s": {"type": "float", "default": 2},
    "lead_s": {"type": "float", "default": 0},
    "follow": {
        "type": "dict",
        "options": {
            "device": {"type": "str", "required": True},
            "packets": {"type": "int", "required": True},
            "limit_s": {"type": "float", "default": 10},
        },
    },
    "udp_port": {"type": "int", "default": 9},
    "udp_source_port": {"type": "int", "default": 1024},
    "udp_checksum": {"type": "bool", "default": False},
    "clone": {"type": "int", "default": 0},
    "burst": {"type": "int", "default": 1},
}


def _end(number, _frame):
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _ended_in_order():
    """Being ended is an exception, so that nothing goes on sending and no filter stays.

    The interpreter may go on to run other modules, so the old ways come back. Only the main thread
    can be told of signals; elsewhere the time limit of the start has to do.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _apply(module):
    generator = Generator()
    if module.params["state"] == "stopped":
        with alone():
            removed = pktgen_measure.remove_left(run)
            left = generator.clear() or removed
        module.exit_json(changed=left, left=left)
    trial = read_trial(module.params)
    generator.require()
    pktgen_measure.check_devices(trial)
    with alone():
        found = pktgen_measure.measure(trial, generator, run)
    module.exit_json(changed=False, trial=found)


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=False)
    try:
        with _ended_in_order():
            _apply(module)
    except HostError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

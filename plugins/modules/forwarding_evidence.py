#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: state and counters of a host that forwards."""

from __future__ import annotations

DOCUMENTATION = r"""
module: forwarding_evidence
short_description: What a host that forwards says of itself, and what it counted over a trial
version_added: 0.1.0
description:
  - Reads the state that M(crossover.lab.forwarding) sets as the kernel has it, and the counters
    that show where frames went - of the ports and their queues, of the CPUs that took them in, of
    the IPv4 stack, and the interrupts.
author: Crossover developers
options:
  devices:
    description: Devices of the test network.
    type: list
    elements: str
    required: true
  since:
    description: RV(evidence) of an earlier call in this boot; the increases since are returned.
    type: dict
attributes:
  check_mode:
    support: full
    description: Only reads.
  diff_mode:
    support: none
    description: Changes nothing.
"""

EXAMPLES = r"""
- name: Read the device under test before the trial
  crossover.lab.forwarding_evidence:
    devices: [eth1, eth2]
  register: before

- name: Read where its frames went
  crossover.lab.forwarding_evidence:
    devices: [eth1, eth2]
    since: "{{ before.evidence }}"
"""

RETURN = r"""
evidence:
  description: The counters, for O(since) of a later call.
  type: dict
  returned: always
state:
  description: >-
    C(devices) by name (C(forwards), permanent C(neighbours), C(irq) affinities, C(offloads),
    C(channels)), C(ipv6_forwarding), C(base_chains) of nftables as family, table and chain,
    C(iptables) tables (null where the kernel has none) and C(cpus).
  type: dict
  returned: always
grown:
  description: >-
    Increases over C(seconds). C(devices) by name - C(rx), C(tx) and C(driver) counters,
    C(queue_dropped) (frames that the queueing discipline had no room for, null where not counted)
    and C(interrupts) by number and CPU; C(softnet) by CPU - C(processed), C(dropped), C(squeezed);
    C(ip), the counters of C(/proc/net/snmp) that moved, such as C(ForwDatagrams).
  type: dict
  returned: with O(since)
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_evidence
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "required": True},
            "since": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    devices, since = module.params["devices"], module.params["since"]
    try:
        counters = forwarding_evidence.read_counters(devices, run)
        found = {"evidence": counters, "state": forwarding_evidence.read_state(devices, run)}
        if since:
            found["grown"] = forwarding_evidence.between(since, counters)
        module.exit_json(changed=False, **found)
    except HostError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

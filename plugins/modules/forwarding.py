#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: a host of a forwarding test, the device under test or the tester, as a whole."""

from __future__ import annotations

DOCUMENTATION = r"""
module: forwarding
short_description: Forwarding, addresses, static neighbours, interrupts and empty packet filters
version_added: 0.1.0
description:
  - Takes the whole declared state of a host in a forwarding test, makes what differs and reads it
    back. Sets only what is declared.
  - The value before the first change is recorded in C(/run/crossover). What is declared no more
    goes back to it; what others have made is left alone. If a setting cannot be made, those of the
    same task are taken back.
  - Cannot cut SSH. The device that carries the connection is refused, as are addresses and routes
    that cover its peer, and IPv6 forwarding on a host that has learnt its default route from an
    advertisement.
  - IPv4 is forwarded from the declared devices only; the rest of the host need not forward.
author: Crossover developers
options:
  state:
    description: V(absent) puts back everything that this module has changed.
    type: str
    choices: [present, absent]
    default: present
  devices:
    description: Devices of the test network; each is set up.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the device.
        type: str
        required: true
      mac:
        description: Its MAC address. Another one is an error, for frames are sent to it blindly.
        type: str
      mtu:
        description: Its MTU, which is two lengths below a frame (18 bytes).
        type: int
      addresses:
        description: Addresses with their lengths that it has beside others.
        type: list
        elements: str
      forwards:
        description: Whether IPv4 packets that arrive on it are forwarded.
        type: bool
      ipv6:
        description: Whether it does IPv6. V(false) keeps it from sending anything by itself; its
          addresses come back in the end.
        type: bool
      offloads:
        description: Features by the names of C(ethtool -K) or C(ethtool -k), each true or false.
        type: dict
      channels:
        description: Numbers of queues (C(combined), C(rx), C(tx)), as C(ethtool -L) takes them.
        type: dict
  ipv6_forwarding:
    description: Whether IPv6 packets are forwarded, by all devices of the host; the kernel knows
      no other way.
    type: bool
  neighbours:
    description: Permanent neighbours, so that nobody is asked for an address during a trial.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: One of O(devices).
        type: str
        required: true
      address:
        description: IP address of the neighbour.
        type: str
        required: true
      mac:
        description: MAC address of the neighbour.
        type: str
        required: true
  routes:
    description: Static routes to networks that no device has an address of.
    type: list
    elements: dict
    default: []
    suboptions:
      destination:
        description: Network with its length.
        type: str
        required: true
      gateway:
        description: IP address of the next hop.
        type: str
        required: true
      device:
        description: One of O(devices).
        type: str
        required: true
  irq:
    description: V(pinned) gives each interrupt of O(devices) one CPU; V(default) leaves them.
    type: str
    choices: [pinned, default]
    default: default
  irq_cpus:
    description: CPUs that pinned interrupts go to in turn; the default is all.
    type: list
    elements: int
    default: []
  rules:
    description: >-
      V(empty) has packets pass packet filters without a rule; V(none) no packet filter. Chains or
      rules of somebody else are an error with either. Not looked at if not given.
    type: str
    choices: [none, empty]
  rules_by:
    description: >-
      Packet filters that V(empty) means. V(nft) is a base chain at each of the five hooks, for
      IPv4 and IPv6; V(iptables) is the table filter of the kernel's iptables (C(iptables-legacy)).
    type: list
    elements: str
    choices: [nft, iptables]
    default: [nft]
  modules:
    description: Kernel modules that are loaded, such as C(pktgen) on the tester.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Says what would change.
  diff_mode:
    support: full
    description: Settings before and after.
"""

EXAMPLES = r"""
- name: Ensure the device under test forwards between its two ports
  crossover.lab.forwarding:
    devices:
      - {name: eth1, mac: "02:00:00:00:01:02", addresses: [198.18.0.2/24], forwards: true}
      - {name: eth2, mac: "02:00:00:00:02:02", addresses: [198.19.0.2/24], forwards: true}
    neighbours:
      - {device: eth1, address: 198.18.0.1, mac: "02:00:00:00:01:01"}
      - {device: eth2, address: 198.19.0.1, mac: "02:00:00:00:02:01"}
    irq: pinned
    rules: empty

- name: Ensure the host is as it was
  crossover.lab.forwarding:
    state: absent
"""

RETURN = r"""
settings:
  description: The declared settings, by key.
  type: dict
  returned: always
previous:
  description: What is recorded, by key.
  type: dict
  returned: always
by_hand:
  description: >-
    The shell commands that make of the host, as it was before, what is declared, in order.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_apply
from ansible_collections.crossover.lab.plugins.module_utils.host import record, settings
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "devices": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "mac": {"type": "str"},
            "mtu": {"type": "int"},
            "addresses": {"type": "list", "elements": "str"},
            "forwards": {"type": "bool"},
            "ipv6": {"type": "bool"},
            "offloads": {"type": "dict"},
            "channels": {"type": "dict"},
        },
    },
    "ipv6_forwarding": {"type": "bool"},
    "neighbours": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "device": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "mac": {"type": "str", "required": True},
        },
    },
    "routes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "destination": {"type": "str", "required": True},
            "gateway": {"type": "str", "required": True},
            "device": {"type": "str", "required": True},
        },
    },
    "irq": {"type": "str", "choices": ["pinned", "default"], "default": "default"},
    "irq_cpus": {"type": "list", "elements": "int", "default": []},
    "rules": {"type": "str", "choices": ["none", "empty"]},
    "rules_by": {
        "type": "list",
        "elements": "str",
        "choices": ["nft", "iptables"],
        "default": ["nft"],
    },
    "modules": {"type": "list", "elements": "str", "default": []},
}


def _apply(module):
    path = record.scope_file(record.RUN, "forwarding", "host")
    prepared = forwarding_apply.prepare(module.params, path, run)
    changes = list(prepared.plan.changes)
    if not module.check_mode:
        first = forwarding_apply.channels_first(prepared)
        if first is not None:
            forwarding_apply.carry_out(forwarding_apply.with_plan(prepared, first), path, run)
            prepared = forwarding_apply.prepare(module.params, path, run)
            changes = [*first.changes, *prepared.plan.changes]
        forwarding_apply.carry_out(prepared, path, run)
        for warning in forwarding_apply.doubts(prepared, run):
            module.warn(warning)
    for key in prepared.plan.lost:
        module.warn(f"{key}: is gone and cannot be put back to {prepared.recorded[key]}")
    module.exit_json(
        changed=bool(changes),
        settings=prepared.declared,
        previous=prepared.plan.record,
        by_hand=prepared.by_hand(),
        diff=settings.diff(changes),
    )


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        _apply(module)
    except HostError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

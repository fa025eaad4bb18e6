#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: offloads, queues, interrupts, clocks and services of a measured host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: quiet_host
short_description: Offloads, queues, interrupts, clocks and services of a measured host
version_added: 0.1.0
description:
  - Sets only what is declared and reads it back. Settings are part of what is measured, so nothing
    here has a default that changes a host. M(crossover.lab.provenance) records all of them.
  - The value before the first change is recorded in C(/run/crossover). What a scope no longer
    declares goes back to its recorded value.
author: Crossover developers
options:
  state:
    description: C(restored) puts back everything that the scope has recorded.
    type: str
    choices: [present, restored]
    default: present
  scope:
    description: Whose settings these are. Scopes remember apart from each other; end an inner one
      (a cell) before an outer one (the role).
    type: str
    default: bench_host
  devices:
    description: Settings of network devices.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the device.
        type: str
        required: true
      offloads:
        description: Features by the names of C(ethtool -K) or C(ethtool -k), each true or false.
        type: dict
      channels:
        description: Numbers of queues (C(combined), C(rx), C(tx)), as C(ethtool -L) takes them.
        type: dict
      rings:
        description: Ring sizes (C(rx), C(tx)), as C(ethtool -G) takes them.
        type: dict
      coalescing:
        description: Interrupt moderation, as C(ethtool -C) takes it.
        type: dict
      irq_cpus:
        description: CPUs that take the device's interrupts, one each in turn.
        type: list
        elements: int
  governor:
    description: Governor of every clock policy, for example C(performance).
    type: str
  boost:
    description: Whether CPUs may exceed their nominal clock.
    type: bool
  units_stopped:
    description: Units of systemd that do not run, for example C(irqbalance.service) and timers.
    type: list
    elements: str
    default: []
  units_masked:
    description: Units that are stopped and cannot be started until the next boot.
    type: list
    elements: str
    default: []
  modules_absent:
    description: Kernel modules that are not loaded, for example C(nf_conntrack).
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
- name: Ensure the test device does not merge or cut packets
  crossover.lab.quiet_host:
    devices:
      - name: eth1
        offloads: {gro: false, gso: false}
    units_stopped: [irqbalance.service, apt-daily.timer]
"""

RETURN = r"""
settings:
  description: The declared settings, by key.
  type: dict
  returned: always
previous:
  description: What the scope has recorded, by key.
  type: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import quiet, record, settings
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def _apply(module):
    params = module.params
    declared = quiet.declare(params) if params["state"] == "present" else {}
    path = record.scope_file(record.RUN, "quiet_host", params["scope"])
    recorded = record.recorded_values(path)
    current = quiet.current([*recorded, *declared], run)
    quiet.require(current, declared)
    plan = settings.plan(current, declared, recorded)
    if not module.check_mode:
        # Written before the first change, so that an end in the middle can be undone.
        record.save_values(path, {**recorded, **plan.record})
        quiet.apply(plan.changes, run)
        record.save_values(path, plan.record)
        for warning in quiet.doubts(declared, run):
            module.warn(warning)
    for key in plan.lost:
        module.warn(f"{key}: is gone and cannot be put back to {recorded[key]}")
    module.exit_json(
        changed=plan.changed,
        settings=declared,
        previous=plan.record,
        diff=settings.diff(plan.changes),
    )


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
            "scope": {"type": "str", "default": "bench_host"},
            "devices": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "offloads": {"type": "dict"},
                    "channels": {"type": "dict"},
                    "rings": {"type": "dict"},
                    "coalescing": {"type": "dict"},
                    "irq_cpus": {"type": "list", "elements": "int"},
                },
            },
            "governor": {"type": "str"},
            "boost": {"type": "bool"},
            "units_stopped": {"type": "list", "elements": "str", "default": []},
            "units_masked": {"type": "list", "elements": "str", "default": []},
            "modules_absent": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        _apply(module)
    except HostError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

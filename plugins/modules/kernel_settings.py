#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: kernel parameters and modules as one declared set."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Kernel parameters and kernel modules as one declared set
version_added: 0.1.0
description:
  - Loads modules, then writes parameters under C(/proc/sys), then reads everything back.
  - The value before the first change is recorded in C(/run/crossover). What a scope no longer
    declares goes back to its recorded value, so one task moves a host from one measured
    configuration to the next.
  - Settings last until the next boot, as does the record. If one cannot be made, those of the same
    task are taken back.
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
    default: kernel
  sysctls:
    description:
      - Parameters and values, in the notation of sysctl(8). Blanks between numbers do not matter.
      - A parameter that the kernel does not have is an error.
    type: dict
    default: {}
  modules:
    description: Kernel modules that are loaded (or built in), by their own names.
    type: list
    elements: str
    default: []
  modules_absent:
    description: Kernel modules that are not loaded. One that is in use is an error.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: A parameter that appears with a module still to be loaded counts as a change.
  diff_mode:
    support: full
    description: Parameters and modules before and after.
"""

EXAMPLES = r"""
- name: Ensure the CIPSO cache is off for this cell
  crossover.lab.kernel_settings:
    scope: cell
    sysctls:
      net.ipv4.cipso_cache_enable: 0

- name: Ensure the cell's parameters are as they were
  crossover.lab.kernel_settings:
    scope: cell
    state: restored
"""

RETURN = r"""
sysctls:
  description: The declared parameters as the kernel has them now.
  type: dict
  returned: always
previous:
  description: What the scope has recorded, by key.
  type: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    kernel_settings,
    record,
    settings,
    sysctl,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def _apply(module):
    params = module.params
    declared = {}
    if params["state"] == "present":
        declared = kernel_settings.declaration(
            params["sysctls"], params["modules"], params["modules_absent"]
        )
    path = record.scope_file(record.RUN, "kernel_settings", params["scope"])
    recorded = record.recorded_values(path)
    current = kernel_settings.current([*recorded, *declared])
    kernel_settings.require(current, declared)
    plan = settings.plan(current, declared, recorded)
    kernel_settings.require_own(plan)
    record_after = plan.record
    if not module.check_mode:
        record_after = kernel_settings.apply(plan, recorded, path, run)
    for key in plan.lost:
        module.warn(f"{key}: is gone and cannot be put back to {recorded[key]}")
    module.exit_json(
        changed=plan.changed,
        sysctls={
            key: sysctl.read(key)
            for key in sysctl.wanted_values(params["sysctls"] if declared else {})
        },
        previous=record_after,
        diff=settings.diff(plan.changes),
    )


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
            "scope": {"type": "str", "default": "kernel"},
            "sysctls": {"type": "dict", "default": {}},
            "modules": {"type": "list", "elements": "str", "default": []},
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

#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: SELinux mode, policy type, booleans and policy modules as one declared state."""

from __future__ import annotations

DOCUMENTATION = r"""
module: selinux_state
short_description: SELinux mode, policy type, booleans and policy modules as one declared state
version_added: 0.1.0
description:
  - Only what is declared is changed. What was there before is recorded under
    C(/var/lib/crossover); what a scope no longer declares goes back to it.
  - Policy modules are compared by the checksum of their source, so one that is loaded already is
    no change, and all that change are one transaction.
  - Beginning to enforce can cut the management connection. It is guarded, so a host that cannot be
    reached over a new connection goes back to permissive by itself.
  - SELinux is switched on or off, and the policy type changed, by a reboot only. The module
    prepares it (configuration, relabelling) and says so; after the reboot, run it again.
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
    default: selinux
  mode:
    description: Mode that SELinux runs in.
    type: str
    choices: [enforcing, permissive, disabled]
  persistent:
    description: Whether O(mode) also holds at the next boot.
    type: bool
    default: true
  type:
    description: Policy type (C(SELINUXTYPE)), for example C(default), C(targeted) or C(mls).
    type: str
  booleans:
    description: Booleans of the policy, by name. They hold until the policy is loaded anew.
    type: dict
    default: {}
  modules:
    description: Policy modules.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the module.
        type: str
        required: true
      state:
        description: Whether it is in the policy.
        type: str
        choices: [present, absent]
        default: present
      priority:
        description: Priority in the store; 400 is that of modules a host's owner adds.
        type: int
        default: 400
      content:
        description: Its source in CIL.
        type: str
      path:
        description: A C(.cil) or C(.pp) file on the host, in place of O(modules[].content).
        type: path
extends_documentation_fragment:
  - crossover.lab.guard
attributes:
  check_mode:
    support: full
    description: Says what would change and whether it needs a reboot.
  diff_mode:
    support: full
    description: Settings before and after; modules by checksum.
"""

EXAMPLES = r"""
- name: Ensure the policy lets labelled packets pass, and is enforced
  crossover.lab.selinux_state:
    mode: enforcing
    modules:
      - name: crossover_netlabel
        content: "{{ lookup('ansible.builtin.file', 'crossover_netlabel.cil') }}"
"""

RETURN = r"""
mode:
  description: The mode that SELinux runs in now.
  type: str
  returned: always
reboot_required:
  description: Whether the declared state needs a reboot; then run the module again after it.
  type: bool
  returned: always
reboot_reason:
  description: Why.
  type: str
  returned: when a reboot is required
previous:
  description: What the scope has recorded, by key.
  type: dict
  returned: always
guard:
  description: The armed guard, or null.
  type: dict
  returned: always
guard_rolled_back:
  description: Whether the guard had to undo the change.
  type: bool
  returned: failure
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import guard
from ansible_collections.crossover.lab.plugins.module_utils.host import (
    record,
    selinux,
    selinux_state,
    settings,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run

LSM = Path("/sys/kernel/security/lsm")
# A rebuild of the policy takes most of a minute in an emulated guest.
SEMODULE_LIMIT_S = 600


def _run(argv):
    return run(argv, SEMODULE_LIMIT_S)


def _reboot(plan):
    """Why a reboot is needed, or None. HostError when it would not help, or not come back."""
    reason = selinux_state.needs_reboot(plan.changes, selinux.mode())
    wanted = next((c.after for c in plan.changes if c.key in ("mode", "config SELINUX")), None)
    if reason and wanted:
        lsm = LSM.read_text() if LSM.exists() else ""
        problem = selinux_state.boot_problem(selinux.CMDLINE.read_text(), lsm, wanted)
        if problem:
            raise HostError(f"{reason}, but {problem}")
    return reason


def _require_booleans(plan, reboot):
    for change in plan.changes:
        if change.key.startswith("boolean ") and change.before is None and not reboot:
            raise HostError(f"SELinux {change.key}: the policy has none of this name")


def _arm(wanted):
    """Undo the mode, and the configuration that would bring it back at the next boot."""
    operations = [guard.WriteFile(str(selinux.FS / "enforce"), "0")]
    if selinux.CONFIG.exists():
        operations.append(
            guard.WriteFile(str(selinux.CONFIG), selinux.CONFIG.read_text(), mode=0o644)
        )
    return guard.arm(wanted["token"], wanted["timeout"], operations)


def _make(changes, declared, reboot, wanted_guard):
    """Carry the changes out; returns the armed guard or None."""
    selinux_state.make_modules(changes, declared.sources, _run)
    armed = None
    try:
        if not reboot and selinux_state.cuts_access(changes):
            armed = _arm(wanted_guard)
            guard.begin(armed)
        selinux_state.make_config(changes)
        if reboot:
            if selinux_state.needs_relabel(changes):
                selinux_state.AUTORELABEL.touch()
            return None
        selinux_state.make_booleans(changes)
        for change in changes:
            if change.key == "mode":
                if armed is not None:
                    guard.check(armed)
                selinux.set_mode(change.after)
        if armed is not None:
            guard.finish(armed)
    except (HostError, OSError, guard.FiredError):
        if armed is not None:
            guard.roll_back(armed)
        raise
    return armed


def _apply(module):
    params = module.params
    declared = selinux_state.Declared({})
    if params["state"] == "present":
        declared = selinux_state.declare(params)
    path = record.scope_file(record.LIB, "selinux_state", params["scope"])
    recorded = (record.load(path) or {}).get("values", {})
    current = selinux_state.current([*recorded, *declared.values], _run)
    plan = settings.plan(current, declared.values, recorded)
    reboot = _reboot(plan)
    _require_booleans(plan, reboot)
    armed = None
    if plan.changed and not module.check_mode:
        for warning in guard.settle():
            module.warn(warning)
        record.save(path, {"values": {**recorded, **plan.record}})
        armed = _make(plan.changes, declared, reboot, params["guard"] or {"timeout": 30})
    if not module.check_mode:
        # What waits for the reboot stays recorded until the module has seen it done.
        remembered = {**recorded, **plan.record} if reboot else plan.record
        if remembered:
            record.save(path, {"values": remembered})
        else:
            record.forget(path)
    for key in plan.lost:
        module.warn(f"SELinux {key}: is gone and cannot be put back to {recorded[key]}")
    module.exit_json(
        changed=plan.changed,
        mode=selinux.mode(),
        reboot_required=reboot is not None,
        **({"reboot_reason": reboot} if reboot else {}),
        previous=plan.record,
        guard=armed.as_result() if armed else None,
        diff=settings.diff(plan.changes),
    )


def main() -> None:
    """Entry point of the module."""
    modes = ["enforcing", "permissive", "disabled"]
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
            "scope": {"type": "str", "default": "selinux"},
            "mode": {"type": "str", "choices": modes},
            "persistent": {"type": "bool", "default": True},
            "type": {"type": "str"},
            "booleans": {"type": "dict", "default": {}},
            "modules": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "state": {
                        "type": "str",
                        "choices": ["present", "absent"],
                        "default": "present",
                    },
                    "priority": {"type": "int", "default": 400},
                    "content": {"type": "str"},
                    "path": {"type": "path"},
                },
            },
            "guard": guard.ARGUMENT,
        },
        supports_check_mode=True,
    )
    try:
        _apply(module)
    except (HostError, guard.GuardError, OSError) as error:
        # Nothing is armed any more: the change has been undone, or never began.
        fired = isinstance(error, guard.FiredError)
        module.fail_json(msg=str(error), guard=None, guard_rolled_back=fired)


if __name__ == "__main__":
    main()

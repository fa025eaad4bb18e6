#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: one run at a time on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_lock
short_description: One run at a time on a measured host
version_added: 0.1.0
description:
  - The lock is a folder under C(/run/crossover), so it ends with the boot. Taking it is one step of
    the file system.
  - A host that another owner holds is an error with exit code 75 that names the owner.
author: Crossover developers
options:
  state:
    description: C(released) gives back a lock of O(owner); another owner's is left alone.
    type: str
    choices: [held, released]
    default: held
  owner:
    description: Who holds the lock, for example the name of the run and its controller.
    type: str
    required: true
  force:
    description: Take the lock from another owner that is known to be dead.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says whether the lock would be taken.
  diff_mode:
    support: none
    description: A lock has no readable difference.
"""

EXAMPLES = r"""
- name: Ensure nobody else measures here
  crossover.lab.host_lock:
    owner: run-20260101-1 on controller.example.org
"""

RETURN = r"""
owner:
  description: Who holds the lock now; null when nobody does.
  type: str
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host import lock
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError

EX_TEMPFAIL = 75


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["held", "released"], "default": "held"},
            "owner": {"type": "str", "required": True},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    owner, dry = module.params["owner"], module.check_mode
    try:
        if module.params["state"] == "held":
            changed = lock.hold(owner, time.time(), force=module.params["force"], dry=dry)
        else:
            changed = lock.release(owner, dry=dry)
        held = lock.holder()
        module.exit_json(changed=changed, owner=held.owner if held else None)
    except HostError as error:
        code = EX_TEMPFAIL if isinstance(error, BusyError) else 1
        module.fail_json(msg=str(error), exit_code=code)


if __name__ == "__main__":
    main()

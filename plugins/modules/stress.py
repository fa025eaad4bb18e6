#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the stress program of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: stress
short_description: Keep streams running on a host for hours, by a program that needs no controller
version_added: 0.1.0
description:
  - C(started) lays the program out in a folder of its own and starts it as a transient unit of
    systemd; it goes on when the connection and the controller are gone, and ends by itself.
  - C(polled) brings home what it has noted since; C(stopped) ends it before its time; C(absent)
    ends it and removes its folder.
  - The program judges nothing. Its lines are described in docs/data-format.md.
author: Crossover developers
options:
  state:
    description: What is to be done.
    type: str
    choices: [started, polled, stopped, absent]
    default: polled
  id:
    description: Name of the run.
    type: str
    required: true
  plan:
    description: For C(started), what the program does; see the role bench_stress.
    type: dict
  limit:
    description: For C(started), seconds after which systemd ends the program at the latest.
    type: int
  offset:
    description: For C(polled) and C(stopped), the offset that the last call returned.
    type: int
    default: 0
attributes:
  check_mode:
    support: none
    description: What will be noted cannot be predicted.
  diff_mode:
    support: none
    description: Nothing lasting is changed.
"""

EXAMPLES = r"""
- name: Ensure what the host noted is known
  crossover.lab.stress:
    id: stress-C_FlCat-20260101-100000
    offset: 48213
"""

RETURN = r"""
lines:
  description: What the program noted since O(offset), as JSON texts.
  type: list
  elements: str
  returned: unless absent
offset:
  description: Where to go on.
  type: int
  returned: unless absent
more:
  description: Whether there is more than one answer holds; ask again.
  type: bool
  returned: unless absent
active:
  description: Whether the program runs.
  type: bool
  returned: unless absent
words:
  description: What the program said beside its samples, empty if all is well.
  type: str
  returned: unless absent
time:
  description: The host's clock, seconds since 1970.
  type: float
  returned: unless absent
identity:
  description: Kernel, boot id and context of the host.
  type: dict
  returned: unless absent
clock:
  description: >-
    The host's clock against this machine's, C(offset_s) and C(uncertainty_s), as the action plugin
    read it.
  type: dict
  returned: when polled or stopped
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError
from ansible_collections.crossover.lab.plugins.module_utils.host_identity import identity
from ansible_collections.crossover.lab.plugins.module_utils.stress_unit import Unit

EX_TEMPFAIL = 75


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["started", "polled", "stopped", "absent"],
                "default": "polled",
            },
            "id": {"type": "str", "required": True},
            "plan": {"type": "dict"},
            "limit": {"type": "int"},
            "offset": {"type": "int", "default": 0},
        },
        required_if=[("state", "started", ("plan", "limit"))],
    )
    wanted = module.params
    changed = wanted["state"] == "started"
    try:
        unit = Unit(wanted["id"])
        if wanted["state"] == "started":
            unit.start(wanted["plan"], wanted["limit"])
        if wanted["state"] in ("stopped", "absent"):
            changed = unit.stop()
        if wanted["state"] == "absent":
            module.exit_json(changed=unit.forget() or changed)
        active = unit.process() is not None  # looked up first: a line written later comes later
        found = unit.read(wanted["offset"])
    except HostError as error:
        code = EX_TEMPFAIL if isinstance(error, BusyError) else 1
        module.fail_json(msg=str(error), exit_code=code)
    module.exit_json(
        changed=changed,
        active=active,
        words=unit.words(),
        time=time.time(),
        identity=identity(),
        **found,
    )


if __name__ == "__main__":
    main()

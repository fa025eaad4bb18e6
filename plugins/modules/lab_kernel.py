#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: which kernel the guests of a running lab are booted into."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_kernel
short_description: Boot the guests of a running lab into a kernel
version_added: 0.2.0
description:
  - Runs on the controller. Everything else stays as it was asked for when the lab was started.
  - A kernel's first boot is a real one and takes as long; its state is saved, and coming back to it
    takes seconds.
  - The guests' connections end with the change. Reset them afterwards.
author: Crossover developers
options:
  name:
    description: Name of the lab.
    type: str
    default: default
  kernel:
    description: Folder of a built kernel; without it the guests boot the image's own.
    type: path
  boot:
    description: Which boot of the kernel.
    type: int
    default: 0
attributes:
  check_mode:
    support: full
    description: Says whether the guests would be booted.
  diff_mode:
    support: full
    description: Shows kernel and boot before and after.
"""

EXAMPLES = r"""
- name: Boot the guests into a kernel
  crossover.lab.lab_kernel:
    kernel: "{{ kernel.path }}"
  delegate_to: localhost
  run_once: true

- name: Forget the connections to the guests as they were
  ansible.builtin.meta: reset_connection
"""

RETURN = r"""
lab:
  description: The lab's state file.
  type: dict
  returned: always
"""

import signal
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.lab import guest_kernel, instance, state
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError

EX_TEMPFAIL = 75


def _end(number: int, _frame: Any) -> None:
    """Being ended is an exception, so that half-started guests are taken down again."""
    raise SystemExit(128 + number)


def _words(kernel: Optional[str], boot: int) -> str:
    return f"{kernel or 'the kernel of the image'}, boot {boot + 1}\n"


def main() -> None:
    """Entry point of the module."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "default"},
            "kernel": {"type": "path"},
            "boot": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    name, boot = module.params["name"], module.params["boot"]
    folder = Path(module.params["kernel"]) if module.params["kernel"] else None
    try:
        before = state.load(name)
        if before is None or not before.running():
            raise LabError(f"lab {name} does not run; start it first")
        facts: Dict[str, Any] = {"name": None, "identity": None}
        if folder is not None:
            facts = guest_kernel.read_facts(folder)
        wanted = (facts["identity"], boot)
        result: Dict[str, Any] = {
            "changed": (before.kernel_identity, before.boot) != wanted,
            "lab": asdict(before),
            "diff": {
                "before": _words(before.kernel, before.boot),
                "after": _words(facts["name"], boot),
            },
        }
        if result["changed"] and not module.check_mode:
            _changed, lab = instance.switch(name, folder, boot)
            result["lab"] = asdict(lab)
        module.exit_json(**result)
    except LabError as error:
        module.fail_json(msg=str(error), exit_code=EX_TEMPFAIL if error.busy else 1)


if __name__ == "__main__":
    main()

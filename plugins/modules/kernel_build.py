#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: a kernel by its entry, fetched or compiled."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_build
short_description: Fetch or compile a kernel
version_added: 0.2.0
description:
  - Runs on the controller as an ordinary user. A kernel is kept under the XDG cache by the hash of
    everything that goes in; a second run with the same inputs changes nothing.
  - Compiling one takes minutes (docs/performance.md); a variant of a source that was compiled
    before takes less.
author: Crossover developers
options:
  name:
    description: Name of the entry, as C(crossover kernel list) shows it.
    type: str
    required: true
  entry:
    description:
      - What the kernel is made of, as in docs/data-format.md, with absolute paths and without
        C(like). By default that of the entry files under O(name).
    type: dict
  refresh:
    description: Whether to take a newer version of a package, if there is one.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says whether the kernel would be made.
  diff_mode:
    support: none
    description: A kernel has no readable difference.
"""

EXAMPLES = r"""
- name: Ensure the kernel is there
  crossover.lab.kernel_build:
    name: debian-6.1
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
path:
  description: Folder of the built kernel.
  type: str
  returned: when it is there
kernel:
  description: Its C(entry.json), see docs/data-format.md.
  type: dict
  returned: when it is there
"""

from dataclasses import asdict
from typing import Any, Dict, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.kernels import build
from ansible_collections.crossover.lab.plugins.module_utils.kernels.entry import read_entry
from ansible_collections.crossover.lab.plugins.module_utils.kernels.errors import KernelError


def _silent(_what: str, _done: int, _total: Optional[int]) -> None:
    """A task has no line to show progress on."""


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "entry": {"type": "dict"},
            "refresh": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    name = module.params["name"]
    try:
        if module.params["entry"] is None:
            raise KernelError(f"kernel {name}: found no entry; wanted one, or a name of the files")
        entry = read_entry(name, module.params["entry"], "entry")
        if module.check_mode:
            known = build.status(entry)
            module.exit_json(changed=known.artifact is None, **_result(known.artifact))
        made, found = build.ensure(entry, _silent, module.params["refresh"])
        module.exit_json(changed=made, **_result(found))
    except KernelError as error:
        module.fail_json(msg=str(error))


def _result(found: Optional[build.Artifact]) -> Dict[str, Any]:
    return {} if found is None else {"path": str(found.folder), "kernel": asdict(found)}


if __name__ == "__main__":
    main()

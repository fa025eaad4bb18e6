#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the STT kernel module and iproute2 plugin of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: stt_driver
short_description: Build, install and remove the STT kernel module of a host
version_added: 0.2.0
description:
  - Builds the kernel module and the iproute2 plugin for STT from the sources that lie in
    C(/usr/src/crossover-stt-1.0), for the running kernel.
  - Uses DKMS where the host has it, so that the module follows the host's kernels; plain make
    otherwise.
  - A module that came with the system is used as it is, and never removed.
author: Crossover developers
options:
  state:
    description: C(absent) removes what this module has installed.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    support: full
    description: Says what would be done.
  diff_mode:
    support: full
    description: Whether the module is there, before and after.
"""

EXAMPLES = r"""
- name: Ensure the STT module is there
  crossover.lab.stt_driver:
"""

RETURN = r"""
release:
  description: The running kernel.
  type: str
  returned: always
method:
  description: How it was installed (C(dkms), C(kbuild)), null if it came with the system.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils import stt_driver
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def _slow(argv):
    return run(argv, timeout_s=stt_driver.BUILD_LIMIT_S)


def _words(found):
    if not found.available:
        return f"STT for {found.release}: not there\n"
    origin = f"sources {found.recorded['digest']}" if found.recorded else "the system"
    return f"STT for {found.release}: from {origin}\n"


def _apply(module):
    found = stt_driver.observe(run)
    before = _words(found)
    present = module.params["state"] == "present"
    changed = stt_driver.needs_build(found) if present else found.recorded is not None
    if changed and not module.check_mode:
        if present:
            stt_driver.install(found, _slow)
        else:
            stt_driver.remove(found, _slow)
        found = stt_driver.observe(run)
    module.exit_json(
        changed=changed,
        release=found.release,
        method=(found.recorded or {}).get("method"),
        diff={"before": before, "after": _words(found)},
    )


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}
        },
        supports_check_mode=True,
    )
    try:
        _apply(module)
    except (HostError, OSError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()

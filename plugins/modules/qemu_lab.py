#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the embedded lab of QEMU guests."""

from __future__ import annotations

DOCUMENTATION = r"""
module: qemu_lab
short_description: Start and stop the embedded lab of QEMU guests
version_added: 0.1.0
description:
  - Runs on the controller as an ordinary user; needs the Python library qemu.qmp there.
  - The first start boots the guests and saves their state, later starts restore it. A changed
    kernel, image or command line boots anew.
author: Crossover developers
options:
  name:
    description: Name of the lab. Labs of different names run side by side.
    type: str
    default: default
  state:
    description: C(absent) also forgets the saved state, keys and disks.
    type: str
    choices: [up, down, absent]
    default: up
  topology:
    description: The topology, as in the role's C(files/topologies). Required for C(up).
    type: dict
  image:
    description: Folder of a baked image (see M(crossover.lab.guest_image)).
    type: path
  cloud_image:
    description: An existing cloud image (qcow2 with cloud-init) in place of the baked one.
    type: path
  cloud_packages:
    description: Packages that cloud-init installs; needs O(restrict=false).
    type: list
    elements: str
    default: []
  accelerator:
    description: C(auto) tries KVM with a real boot and falls back to emulation.
    type: str
    choices: [auto, kvm, tcg]
    default: auto
  memory_mib:
    description: Memory of a guest in MiB.
    type: int
    default: 768
  cpus:
    description: Virtual CPUs of a guest.
    type: int
    default: 1
  selinux:
    description: SELinux mode that the guests boot in.
    type: str
    choices: [enforcing, permissive, disabled]
    default: enforcing
  append:
    description: Further words of the kernel command line.
    type: str
    default: ""
  restrict:
    description: Whether guests can reach nothing but each other.
    type: bool
    default: true
  kernel:
    description:
      - Folder of a built kernel (see M(crossover.lab.kernel_build)) that the guests boot in place
        of the image's own. Not for cloud images.
    type: path
  boot:
    description: Which boot of the kernel; each is a real one with a saved state of its own.
    type: int
    default: 0
  boot_timeout:
    description: Seconds until the first login of a booting guest.
    type: int
    default: 600
attributes:
  check_mode:
    support: partial
    description: Says only whether the lab runs now.
  diff_mode:
    support: none
    description: A lab has no readable difference.
"""

EXAMPLES = r"""
- name: Ensure the lab is up
  crossover.lab.qemu_lab:
    topology: "{{ lookup('ansible.builtin.file', 'topologies/pair.yml') | from_yaml }}"
    image: "{{ image.path }}"
"""

RETURN = r"""
lab:
  description: The lab's state file.
  type: dict
  returned: when the lab is up
"""

import signal
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.lab import instance, state
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError
from ansible_collections.crossover.lab.plugins.module_utils.lab.wish import Wish

EX_TEMPFAIL = 75


def _wish(module: AnsibleModule) -> Wish:
    wanted = module.params
    image = wanted["cloud_image"] or wanted["image"]
    if not wanted["topology"]:
        raise LabError("topology: found nothing; wanted a topology for state=up")
    if not image or not Path(image).exists():
        raise LabError(f"image: found {image!r}; wanted a baked image's folder or a qcow2 file")
    return Wish(
        name=wanted["name"],
        topology=wanted["topology"],
        image=Path(image),
        cloud=bool(wanted["cloud_image"]),
        cloud_packages=tuple(wanted["cloud_packages"]),
        accelerator=wanted["accelerator"],
        memory_mib=wanted["memory_mib"],
        cpus=wanted["cpus"],
        selinux=wanted["selinux"],
        append=wanted["append"],
        restrict=wanted["restrict"],
        boot_timeout_s=wanted["boot_timeout"],
        kernel=Path(wanted["kernel"]) if wanted["kernel"] else None,
        boot=wanted["boot"],
    )


def _end(number: int, _frame: Any) -> None:
    """Being ended is an exception, so that a half-started lab is taken down again."""
    raise SystemExit(128 + number)


def main() -> None:
    """Entry point of the module."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "default"},
            "state": {"type": "str", "choices": ["up", "down", "absent"], "default": "up"},
            "topology": {"type": "dict"},
            "image": {"type": "path"},
            "cloud_image": {"type": "path"},
            "cloud_packages": {"type": "list", "elements": "str", "default": []},
            "accelerator": {"type": "str", "choices": ["auto", "kvm", "tcg"], "default": "auto"},
            "memory_mib": {"type": "int", "default": 768},
            "cpus": {"type": "int", "default": 1},
            "selinux": {
                "type": "str",
                "choices": ["enforcing", "permissive", "disabled"],
                "default": "enforcing",
            },
            "append": {"type": "str", "default": ""},
            "restrict": {"type": "bool", "default": True},
            "kernel": {"type": "path"},
            "boot": {"type": "int", "default": 0},
            "boot_timeout": {"type": "int", "default": 600},
        },
        mutually_exclusive=[("image", "cloud_image")],
        supports_check_mode=True,
    )
    name, wanted = module.params["name"], module.params["state"]
    try:
        if module.check_mode:
            found = state.load(name)
            running = found is not None and found.running()
            module.exit_json(changed=running != (wanted == "up"))
        if wanted == "up":
            changed, lab = instance.up(_wish(module))
            module.exit_json(changed=changed, lab=asdict(lab))
        module.exit_json(changed=instance.down(name, forget=wanted == "absent"))
    except LabError as error:
        module.fail_json(msg=str(error), exit_code=EX_TEMPFAIL if error.busy else 1)


if __name__ == "__main__":
    main()

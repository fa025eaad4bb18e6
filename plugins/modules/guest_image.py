#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible module: the image that lab guests boot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: guest_image
short_description: Bake the image that lab guests boot
version_added: 0.1.0
description:
  - Makes a Debian image with kernel, initramfs and SELinux labels, as an ordinary user.
  - The image is kept under the XDG cache by the hash of everything that goes in. A second run
    with the same inputs changes nothing.
author: Crossover developers
options:
  suite:
    description: Debian suite of the guests.
    type: str
    required: true
  components:
    description: Components of the archive that the packages come from.
    type: list
    elements: str
    required: true
  packages:
    description: Packages beside the base system.
    type: list
    elements: str
    required: true
  masked_units:
    description: systemd units that a lab guest must not start.
    type: list
    elements: str
    default: []
  selinux_type:
    description: SELinux policy of the image.
    type: str
    default: default
  selinux_modules:
    description: Policy modules (CIL files on the controller) that are part of the image.
    type: list
    elements: path
    default: []
  init:
    description: The initramfs's first process (a busybox script on the controller).
    type: path
    required: true
  loader:
    description: C(grub) makes a disk that boots by itself; C(none) a file system whose kernel is
      handed to the guest from outside.
    type: str
    choices: [none, grub]
    default: none
  stt_sources:
    description:
      - Folder of the STT module's sources (see the role C(tunnel)). The module and its iproute2
        plugin are then built for the image's kernel.
    type: path
  size_mib:
    description: Size of the root file system in MiB; the file is sparse.
    type: int
    default: 1536
  mirror:
    description: URI of a Debian archive; by default the one that the host's own apt uses.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
    description: Says whether the image would be made.
  diff_mode:
    support: none
    description: An image has no readable difference.
"""

EXAMPLES = r"""
- name: Ensure the guest image exists
  crossover.lab.guest_image:
    suite: trixie
    components: [main]
    packages: [linux-image-cloud-amd64, openssh-server]
    init: "{{ role_path }}/files/image/init"
"""

RETURN = r"""
identity:
  description: Hash of the image's inputs.
  type: str
  returned: always
path:
  description: Folder of the image.
  type: str
  returned: always
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.crossover.lab.plugins.module_utils.lab import image
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError
from ansible_collections.crossover.lab.plugins.module_utils.lab.paths import images_dir


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "suite": {"type": "str", "required": True},
            "components": {"type": "list", "elements": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "masked_units": {"type": "list", "elements": "str", "default": []},
            "selinux_type": {"type": "str", "default": "default"},
            "selinux_modules": {"type": "list", "elements": "path", "default": []},
            "init": {"type": "path", "required": True},
            "loader": {"type": "str", "choices": ["none", "grub"], "default": "none"},
            "stt_sources": {"type": "path"},
            "size_mib": {"type": "int", "default": 1536},
            "mirror": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    recipe = image.Recipe(
        suite=wanted["suite"],
        components=tuple(wanted["components"]),
        packages=tuple(wanted["packages"]),
        masked_units=tuple(wanted["masked_units"]),
        selinux_type=wanted["selinux_type"],
        selinux_modules=tuple(Path(path) for path in wanted["selinux_modules"]),
        init=Path(wanted["init"]),
        size_mib=wanted["size_mib"],
        loader=wanted["loader"],
        stt_sources=Path(wanted["stt_sources"]) if wanted["stt_sources"] else None,
    )
    try:
        identity = recipe.identity()
        changed = image.present(identity) is None
        if changed and not module.check_mode:
            image.bake(recipe, wanted["mirror"])
    except (LabError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, identity=identity, path=str(images_dir() / identity))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible inventory: the nodes of the embedded lab."""

from __future__ import annotations

DOCUMENTATION = r"""
name: qemu_lab
short_description: The nodes of the embedded lab as an inventory
version_added: 0.1.0
description:
  - Hosts and groups come from the lab's topology, so the inventory is the same whether the lab
    runs or not. Ports and keys stand in the SSH configuration that the lab writes when it starts.
author: Crossover developers
options:
  plugin:
    description: Marks the file as this plugin's.
    required: true
    choices: [crossover.lab.qemu_lab]
extends_documentation_fragment: crossover.lab.lab_inventory
"""

EXAMPLES = r"""
# inventories/qemu/lab.yml
plugin: crossover.lab.qemu_lab
topology: pair
"""

from typing import Any

from ansible_collections.crossover.lab.plugins.module_utils.lab import paths
from ansible_collections.crossover.lab.plugins.plugin_utils.lab_inventory import LabInventory


class InventoryModule(LabInventory):
    """Guests that are reached by SSH."""

    NAME = "crossover.lab.qemu_lab"

    def common_vars(self, lab: str) -> dict[str, Any]:
        """The same for every node of the lab."""
        return {
            "ansible_user": "root",
            "ansible_ssh_common_args": f"-F {paths.ssh_config(lab)}",
            "ansible_control_path": f"{paths.runtime_dir(lab)}/ssh-%%n",
            "ansible_python_interpreter": "/usr/bin/python3",
            "lab_kind": "guests",
            "lab_name": lab,
        }

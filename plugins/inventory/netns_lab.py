# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible inventory: the hosts of the lab of network namespaces."""

from __future__ import annotations

DOCUMENTATION = r"""
name: netns_lab
short_description: The hosts of the lab of network namespaces as an inventory
version_added: 0.1.0
description:
  - Hosts and groups come from the lab's topology, so the inventory is the same whether the lab
    runs or not.
author: Crossover developers
options:
  plugin:
    description: Marks the file as this plugin's.
    required: true
    choices: [crossover.lab.netns_lab]
extends_documentation_fragment: crossover.lab.lab_inventory
"""

EXAMPLES = r"""
# inventories/netns/lab.yml
plugin: crossover.lab.netns_lab
topology: pair
"""

from typing import Any

from ansible_collections.crossover.lab.plugins.module_utils.lab import paths
from ansible_collections.crossover.lab.plugins.plugin_utils.lab_inventory import LabInventory


class InventoryModule(LabInventory):
    """Hosts that are reached by the connection plugin of the same lab."""

    NAME = "crossover.lab.netns_lab"

    def common_vars(self, lab: str) -> dict[str, Any]:
        """The same for every host of the lab."""
        return {
            "ansible_connection": "crossover.lab.netns",
            "ansible_python_interpreter": "/usr/bin/python3",
            "lab_kind": "netns",
            "lab_name": paths.check_name(lab),
            # A host has the programs that the lab was started with; /usr is not its own.
            "bench_host_install": False,
            "bench_host_labels": False,
        }

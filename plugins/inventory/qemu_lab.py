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
  lab:
    description: Name of the lab.
    type: str
    default: default
    env:
      - name: CROSSOVER_LAB
  topology:
    description: Name of a topology of the role C(lab_qemu).
    type: str
    default: pair
    env:
      - name: CROSSOVER_TOPOLOGY
"""

EXAMPLES = r"""
# inventories/qemu/lab.yml
plugin: crossover.lab.qemu_lab
topology: pair
"""

from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.crossover.lab.plugins.module_utils.lab import paths, topology
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError

TOPOLOGIES = Path(__file__).resolve().parents[2] / "roles" / "lab_qemu" / "files" / "topologies"


class InventoryModule(BaseInventoryPlugin):  # type: ignore[misc]
    """Reads the topology; never looks at the guests."""

    NAME = "crossover.lab.qemu_lab"

    def verify_file(self, path: str) -> bool:
        """A YAML file that names this plugin is checked further by Ansible."""
        return bool(super().verify_file(path)) and path.endswith((".yml", ".yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory with hosts, groups and their variables."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        lab, name = self.get_option("lab"), self.get_option("topology")
        source = TOPOLOGIES / f"{name}.yml"
        try:
            if not source.is_file():
                known = ", ".join(sorted(file.stem for file in TOPOLOGIES.glob("*.yml")))
                raise LabError(f"topology {name!r}; wanted one of {known}")
            plan = topology.read_topology(yaml.safe_load(source.read_text()))
            config = paths.ssh_config(lab)
            control = paths.runtime_dir(lab)
        except LabError as error:
            raise AnsibleParserError(f"{path}: {error}") from error
        inventory.add_group("measured")
        for node, groups in plan.nodes.items():
            inventory.add_host(node, group="measured")
            for group in groups:
                inventory.add_group(group)
                inventory.add_host(node, group=group)
            values = {
                "ansible_user": "root",
                "ansible_ssh_common_args": f"-F {config}",
                "ansible_control_path": f"{control}/ssh-%%n",
                "ansible_python_interpreter": "/usr/bin/python3",
                "lab_kind": "guests",
                "lab_name": lab,
                **plan.host_vars(node, lab),
            }
            for key, value in values.items():
                inventory.set_variable(node, key, value)

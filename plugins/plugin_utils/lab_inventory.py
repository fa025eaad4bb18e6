# SPDX-License-Identifier: GPL-2.0-or-later
"""Base of the inventory plugins whose hosts are the nodes of a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.crossover.lab.plugins.module_utils.lab import topology
from ansible_collections.crossover.lab.plugins.module_utils.lab.errors import LabError

TOPOLOGIES = Path(__file__).resolve().parents[2] / "roles" / "lab_qemu" / "files" / "topologies"


class LabInventory(BaseInventoryPlugin):  # type: ignore[misc]
    """Reads the topology; never looks at the hosts. Options: lab, topology."""

    def common_vars(self, lab: str) -> dict[str, Any]:
        """Variables that every host of the lab has. Raises LabError."""
        raise NotImplementedError

    def verify_file(self, path: str) -> bool:
        """A YAML file that names this plugin is checked further by Ansible."""
        return bool(super().verify_file(path)) and path.endswith((".yml", ".yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory with hosts, groups and their variables."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        try:
            plan = _read(self.get_option("topology"))
            common = self.common_vars(self.get_option("lab"))
        except LabError as error:
            raise AnsibleParserError(f"{path}: {error}") from error
        inventory.add_group("measured")
        for node, groups in plan.nodes.items():
            inventory.add_host(node, group="measured")
            for group in groups:
                inventory.add_group(group)
                inventory.add_host(node, group=group)
            for key, value in {**common, **plan.host_vars(node, self.get_option("lab"))}.items():
                inventory.set_variable(node, key, value)


def _read(name: str) -> topology.Topology:
    source = TOPOLOGIES / f"{name}.yml"
    if not source.is_file():
        known = ", ".join(sorted(file.stem for file in TOPOLOGIES.glob("*.yml")))
        raise LabError(f"topology {name!r}; wanted one of {known}")
    return topology.read_topology(yaml.safe_load(source.read_text()))

# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: measure a forwarding group from the tester, trial by trial, with the module pktgen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable

PKTGEN = "crossover.lab.pktgen"
EVIDENCE = "crossover.lab.forwarding_evidence"


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the searches on the controller; only trials run on the host."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Returns ``forwarding`` (what was measured), and the tester's ``boot_id`` before that."""
        from collector.errors import CrossoverError
        from collector.forwarding.bench import Bench
        from collector.forwarding.path import find_path
        from collector.run.forwarding_group import Raw, known_capacity, remember_capacity

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "run_folder": {"type": "path", "required": True},
                "group": {"type": "dict", "required": True},
                "tester_cpus": {"type": "int", "required": True},
                "tester_devices": {"type": "dict", "default": {}},
                "dut_devices": {"type": "dict", "default": {}},
            }
        )
        group, folder = wanted["group"], Path(wanted["run_folder"])
        try:
            path = find_path(
                group["tester"], group["dut"], wanted["tester_devices"], wanted["dut_devices"]
            )
            devices = {"devices": [path.first.device, path.second.device]}
            before = str(self._module(EVIDENCE, devices, task_vars)["evidence"]["boot_id"])
            bench = Bench(
                path,
                lambda asked: self._module(PKTGEN, asked, task_vars)["trial"],
                Raw(folder, group["block"], group["cells"]).keep,
                known_capacity(folder, before),
                receives_apart=wanted["tester_cpus"] > 1,
            )
            result["forwarding"] = bench.measure(group)
            remember_capacity(folder, before, bench.capacity)
        except CrossoverError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(changed=True, boot_id=before)
        return result

    def _module(self, name: str, arguments: Mapping[str, Any], task_vars: Any) -> Mapping[str, Any]:
        found: dict[str, Any] = self._execute_module(
            module_name=name, module_args=dict(arguments), task_vars=task_vars
        )
        if found.get("failed"):
            raise AnsibleActionFail(f"{name}: {found.get('msg', 'failed without a word')}")
        return found

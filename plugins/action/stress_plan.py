# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: plan a stress run, or take up one that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs on the controller alone; its arguments: see ``collector.stress.run.open_run``."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Returns what the tasks of the role bench_stress need."""
        from collector.errors import CrossoverError
        from collector.stress.run import open_run

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "runs": {"type": "path", "required": True},
                "run": {"type": "str"},
                "matrix": {"type": "str"},
                "configuration": {"type": "str"},
                "run_id": {"type": "str"},
                "duration_s": {"type": "float"},
                "interval_s": {"type": "float", "default": 60.0},
                "chunk_s": {"type": "float", "default": 60.0},
                "lab": {"type": "dict"},
                "client": {"type": "dict"},
                "server": {"type": "dict"},
            },
            required_one_of=[["run", "matrix"]],
            required_by={"matrix": ["duration_s", "lab", "client", "server"]},
        )
        runs = Path(wanted.pop("runs"))
        try:
            result.update(changed=wanted["run"] is None, **open_run(runs=runs, **wanted))
        except CrossoverError as error:
            raise AnsibleActionFail(str(error)) from error
        return result

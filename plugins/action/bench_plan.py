# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: plan a run, or take up an unfinished one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs on the controller alone; returns the run folder and the groups that are left."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """See the role bench_run for the arguments."""
        from collector.errors import CrossoverError
        from collector.run.campaign import open_campaign

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "matrix": {"type": "str", "required": True},
                "form": {"type": "str", "choices": ["short", "full"], "default": "short"},
                "runs": {"type": "path", "required": True},
                "resume": {"type": "str"},
                "run_id": {"type": "str"},
                "blocks": {"type": "int"},
                "seed": {"type": "int"},
                "configurations": {"type": "str"},
                "tests": {"type": "str"},
                "lab": {"type": "dict", "required": True},
                "client": {"type": "dict", "required": True},
                "server": {"type": "dict", "required": True},
                "testers": {"type": "dict", "default": {}},
                "duts": {"type": "dict", "default": {}},
                "missing": {"type": "dict", "default": {}},
                "kernels": {"type": "str"},
                "build": {"type": "bool", "default": False},
            }
        )
        try:
            campaign = open_campaign(
                matrix=wanted["matrix"],
                form=wanted["form"],
                runs=Path(wanted["runs"]),
                resume=wanted["resume"],
                run_id=wanted["run_id"],
                blocks=wanted["blocks"],
                seed=wanted["seed"],
                configurations=wanted["configurations"],
                tests=wanted["tests"],
                lab={key: str(value) for key, value in wanted["lab"].items()},
                client=wanted["client"],
                server=wanted["server"],
                testers=wanted["testers"],
                duts=wanted["duts"],
                missing=wanted["missing"],
                kernels=wanted["kernels"],
                compile_=wanted["build"],
            )
        except CrossoverError as error:
            raise AnsibleActionFail(str(error)) from error
        result.update(changed=True, **campaign)
        return result

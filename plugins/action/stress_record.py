# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: write what a stress run brought home into its folder."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs on the controller alone; its arguments are those of ``collector.stress.run.record``."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Fails for a configuration that is not proven."""
        from collector.errors import CrossoverError
        from collector.stress.run import record

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "run_folder": {"type": "path", "required": True},
                "event": {
                    "type": "str",
                    "choices": ["provenance", "proven", "started", "polled", "stopped"],
                    "required": True,
                },
                "hosts": {"type": "dict", "default": {}},
            }
        )
        try:
            result.update(changed=True, **record(**wanted))
        except CrossoverError as error:
            raise AnsibleActionFail(str(error)) from error
        return result

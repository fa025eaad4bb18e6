# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: judge a group's proof and write what it brought home into the run folder."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs on the controller alone; its arguments: see ``collector.run.campaign.record``."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Returns the status of each cell."""
        from collector.errors import CrossoverError
        from collector.run import campaign

        result: dict[str, Any] = super().run(tmp, task_vars)
        _, wanted = self.validate_argument_spec(
            {
                "run_folder": {"type": "path", "required": True},
                "group": {"type": "dict", "required": True},
                "event": {
                    "type": "str",
                    "choices": ["begin", "measured", "provenance", "changed", "end"],
                    "required": True,
                },
                "hosts": {"type": "dict", "default": {}},
            }
        )
        try:
            result["cells"] = campaign.record(**wanted)
        except CrossoverError as error:
            raise AnsibleActionFail(str(error)) from error
        result["changed"] = True
        return result

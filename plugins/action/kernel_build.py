# SPDX-License-Identifier: GPL-2.0-or-later
"""Action: look an entry up by its name, then let the module of the same name make the kernel."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


class ActionModule(ActionBase):  # type: ignore[misc]
    """The entries are YAML files on the controller, which only control code reads."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """See the module for the arguments."""
        from collector.errors import CrossoverError
        from collector.run.kernel_entries import entry_document

        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if arguments.get("entry") is None and arguments.get("name"):
            try:
                arguments["entry"] = entry_document(str(arguments["name"]))
            except CrossoverError as error:
                raise AnsibleActionFail(str(error)) from error
        result.update(
            self._execute_module(
                module_name="crossover.lab.kernel_build",
                module_args=arguments,
                task_vars=task_vars,
            )
        )
        return result

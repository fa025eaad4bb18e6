# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the stress module, and how the host's clock stands to this machine's."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.plugin_utils.clock import (
    COMMAND,
    clock_offset,
    read_seconds,
)

READ_CLOCK = ("polled", "stopped")


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's documentation."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module, then the clock over the connection that is warm by then."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(
            self._execute_module(
                "crossover.lab.stress", module_args=dict(self._task.args), task_vars=task_vars
            )
        )
        if result.get("failed") or self._task.args.get("state", "polled") not in READ_CLOCK:
            return result
        before = time.time()
        answer = self._low_level_execute_command(COMMAND, in_data=b"\n")
        after = time.time()
        try:
            there = read_seconds(answer)
        except ValueError as error:
            raise AnsibleError(str(error)) from None
        offset_s, uncertainty_s = clock_offset(before, after, there)
        result["clock"] = {
            "offset_s": round(offset_s, 6),
            "uncertainty_s": round(uncertainty_s, 6),
        }
        return result

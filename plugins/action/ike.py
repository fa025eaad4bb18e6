# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the ike module under the guard against lock-out."""

from __future__ import annotations

from typing import Any

from ansible_collections.crossover.lab.plugins.module_utils.ike_apply import DEFAULT_WAIT_S
from ansible_collections.crossover.lab.plugins.plugin_utils.guarded import GuardedAction


class ActionModule(GuardedAction):
    """See the module's documentation."""

    subject = "ike"

    def _timeout(self, given: Any) -> int:
        """The guard's time begins before the module waits for SAs, and ends after it."""
        wait = self._task.args.get("wait")
        return super()._timeout(given) + int(DEFAULT_WAIT_S if wait is None else wait)

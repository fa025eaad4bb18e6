# SPDX-License-Identifier: GPL-2.0-or-later
"""The seed of a run's keys, made on the controller and kept in memory only.

An action plugin that makes one returns ``seed`` (32 random bytes, base64) and ``generation`` (a
random name for it, no secret). Its result is never shown or logged, whether or not the task says
no_log.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any

from ansible.plugins.action import ActionBase

SEED_BYTES = 32


class SeedAction(ActionBase):  # type: ignore[misc]
    """Takes no argument and contacts no host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Make a seed."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.validate_argument_spec({})
        seed = base64.b64encode(secrets.token_bytes(SEED_BYTES)).decode()
        result.update(
            changed=False, seed=seed, generation=secrets.token_hex(8), _ansible_no_log=True
        )
        return result

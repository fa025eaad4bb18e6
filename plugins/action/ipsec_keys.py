# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: the seed of a run's IPsec keys, made on the controller and kept in memory only.

Returns ``seed`` (32 random bytes, base64) and ``generation`` (a random name for it, no secret).
The result is never shown or logged, whether or not the task says no_log.
"""

from __future__ import annotations

import base64
import secrets
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.crossover.lab.plugins.module_utils.ipsec_build import SEED_BYTES


class ActionModule(ActionBase):  # type: ignore[misc]
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

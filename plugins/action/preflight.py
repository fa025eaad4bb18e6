# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible action: whether a host can be worked on, and how its clock stands to this machine's."""

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

# What sudo says when it wants a terminal, which there is none of with pipelining.
TERMINAL_WANTED = {
    "you must have a tty to run sudo": "requiretty",
    "a terminal is required to read the password": "!visiblepw",
    "no tty present and no askpass program specified": "!visiblepw",
}


def explain_become(host: str, text: str) -> str | None:
    """The cause and remedy for what sudo said on a host; None when it is something else."""
    for words, setting in TERMINAL_WANTED.items():
        if words in text:
            return (
                f"sudoers {setting} with pipelining on host {host}: sudo wants a terminal; set "
                f"ANSIBLE_PIPELINING=False, or let sudoers exempt the user (Defaults:USER "
                f"{'visiblepw' if setting == '!visiblepw' else '!requiretty'})"
            )
    return None


def clock_warning(host: str, offset_s: float, uncertainty_s: float, limit_s: float) -> str | None:
    """A warning when the clock is certainly further away than the limit."""
    if abs(offset_s) - uncertainty_s <= limit_s:
        return None
    return (
        f"clock of {host}: {offset_s:+.3f} s (± {uncertainty_s:.3f} s) from this machine's; "
        f"wanted at most {limit_s:g} s, so times of several hosts cannot be put together"
    )


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's documentation."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """One trivial command with privileges, then the module that looks for the tools."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = str((task_vars or {}).get("inventory_hostname", "this host"))
        arguments = dict(self._task.args)
        limit_s = float(arguments.pop("clock_limit", 0.5))
        try:
            offset_s, uncertainty_s = self._clock()
        except AnsibleError as error:
            return {**result, "failed": True, "msg": explain_become(host, str(error)) or str(error)}
        done: dict[str, Any] = self._execute_module(
            "crossover.lab.preflight", module_args=arguments, task_vars=task_vars
        )
        said = f"{done.get('msg', '')} {done.get('module_stderr', '')}"
        if done.get("failed") and explain_become(host, said):
            return {**done, "msg": explain_become(host, said)}
        warning = clock_warning(host, offset_s, uncertainty_s, limit_s)
        if warning:
            done.setdefault("warnings", []).append(warning)
        done["clock_offset_s"] = round(offset_s, 6)
        done["clock_uncertainty_s"] = round(uncertainty_s, 6)
        return done

    def _clock(self) -> tuple[float, float]:
        """Read the host's clock as modules are run: with input, so without a terminal."""
        before = time.time()
        answer = self._low_level_execute_command(COMMAND, in_data=b"\n")
        after = time.time()
        try:
            return clock_offset(before, after, read_seconds(answer))
        except ValueError as error:
            raise AnsibleError(str(error)) from None

# SPDX-License-Identifier: GPL-2.0-or-later
"""The controller's side of the guard: run a module, then confirm over a new connection.

An action plugin of a guarded module is a subclass that names its subject. The module takes
``guard`` (``timeout``, ``token``) and always returns ``guard``: the armed guard, or None.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.crossover.lab.plugins.module_utils import guard
from ansible_collections.crossover.lab.plugins.plugin_utils.asking import Ask, AskingAction
from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import (
    Answer,
    RouteError,
)

# A rollback that is done is waited for this much longer than its timer says.
RETURN_LIMIT_S = 60.0
ATTEMPT_S = 10.0
PAUSE_S = 0.5
# What shells exit with when their script is not there.
NO_SCRIPT = (2, 127)


class Confirmation:
    """Confirms one change, or sees its rollback through. Knows nothing of Ansible.

    ``ask`` runs a command (argv) on the host over a new connection within some seconds;
    ``clock`` and ``sleep`` are the monotonic time and a pause.
    """

    def __init__(
        self,
        subject: str,
        host: str,
        token: str,
        timeout: int,
        ask: Ask,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.subject, self.host, self.timeout = subject, host, timeout
        self._script = str(guard.GUARD_FOLDER / token / "script")
        self._ask, self._clock, self._sleep = ask, clock, sleep
        self._said = "no answer"
        self._gone = False

    def confirm(self) -> dict[str, Any]:
        """Disarm the guard over a new connection, for as long as it has not fired.

        Returns what the task's result gains: ``guard_confirmed_after`` (seconds), or the failure.
        """
        start = self._clock()
        limit = start + self.timeout
        lost = False
        while self._clock() < limit:
            answer = self._ask(
                ["/bin/sh", self._script, "disarm"], min(ATTEMPT_S, limit - self._clock())
            )
            state, failures = self._read(answer)
            # Only disarming removes the script unasked. So when it is gone after an attempt whose
            # answer was lost, that attempt had come through.
            if state == guard.DISARMED or (lost and answer.reached and _is_missing(answer)):
                return {"guard_confirmed_after": round(self._clock() - start, 3)}
            if state == guard.ROLLED_BACK:
                return self._rolled_back(failures)
            if state == guard.ROLLING_BACK:
                break
            lost = lost or not answer.reached
            self._sleep(PAUSE_S)
        return self.await_rollback()

    def await_rollback(self) -> dict[str, Any]:
        """The change cut the host off: wait until it has undone it, and say so."""
        limit = self._clock() + self.timeout + RETURN_LIMIT_S
        while self._clock() < limit:
            state, failures = self._talk("collect", ATTEMPT_S)
            if state == guard.ROLLED_BACK:
                return self._rolled_back(failures)
            self._sleep(PAUSE_S)
        return {
            "failed": True,
            "guard_rolled_back": False,
            "msg": (
                f"{self.subject} on {self.host} cut management access, and the host has not come "
                f"back {RETURN_LIMIT_S:.0f} s after its rollback was due: {self._said}"
            ),
        }

    def abandon(self, reason: str) -> dict[str, Any] | None:
        """The module's answer is lost: undo what it may have done.

        None when the host has no guard of this change, so nothing was changed.
        """
        limit = self._clock() + self.timeout + RETURN_LIMIT_S
        while self._clock() < limit:
            answer = self._ask(["/bin/sh", self._script, "rollback"], ATTEMPT_S)
            if not answer.reached:
                self._said = answer.said or self._said
                self._sleep(PAUSE_S)
                continue
            if _is_missing(answer):
                return None
            state, failures = self._talk("collect", ATTEMPT_S)
            if state == guard.ROLLED_BACK:
                return self._failure(f"{self.subject} on {self.host}: {reason}", failures)
            self._sleep(PAUSE_S)
        return self.await_rollback()

    def _talk(self, verb: str, limit_s: float) -> tuple[str, tuple[str, ...]]:
        return self._read(self._ask(["/bin/sh", self._script, verb], limit_s))

    def _read(self, answer: Answer) -> tuple[str, tuple[str, ...]]:
        if answer.said:
            self._said = answer.said
        return guard.read_report(answer.out) if answer.reached else (guard.UNKNOWN, ())

    def _rolled_back(self, failures: tuple[str, ...]) -> dict[str, Any]:
        text = f"{self.subject} on {self.host} cut management access"
        return self._failure(text, failures, f" after {self.timeout} s")

    def _failure(self, text: str, failures: tuple[str, ...], after: str = "") -> dict[str, Any]:
        # If this does not come through, the next change clears the rollback away and tells of it.
        self._ask(["/bin/sh", self._script, "forget"], ATTEMPT_S)
        text += f"; rolled back{after}"
        if failures:
            text += f", except: {'; '.join(failures)}"
        return {
            "failed": True,
            "changed": bool(failures),
            "guard_rolled_back": True,
            "guard_failures": list(failures),
            "msg": text,
        }


def _is_missing(answer: Answer) -> bool:
    """Whether the shell found no script: 127 (POSIX) or 2 (dash), and nothing printed."""
    return answer.code in (2, 127) and not answer.out.strip()


class GuardedAction(AskingAction):
    """Base of the action plugins of guarded modules."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    # ``subject`` is the module's name within the collection, too.

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module under a guard; confirm, or report the rollback."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        try:
            timeout = self._timeout(arguments.get("guard"))
            token = secrets.token_hex(6)
            guard.check_request(timeout, token)
            # Before anything is changed: whether a new connection can be made at all.
            asking = None if self._task.check_mode else self._way()
        except (guard.GuardError, RouteError) as error:
            return {**result, "failed": True, "msg": str(error)}
        arguments["guard"] = {"timeout": timeout, "token": token}
        host = task_vars.get("inventory_hostname", "this host")
        module = f"crossover.lab.{self.subject}"
        if asking is None:
            return self._execute_module(module, module_args=arguments, task_vars=task_vars)
        confirmation = Confirmation(self.subject, host, token, timeout, asking)
        try:
            done = self._execute_module(module, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            lost = confirmation.abandon(f"the connection was lost during the change ({error})")
            if lost is None:
                raise
            return {**result, **lost}
        if done.get("failed") and "guard" not in done:
            reason = str(done.get("msg", "no message")).strip()
            lost = confirmation.abandon(f"the module ended without a result ({reason})")
            return {**done, **lost} if lost is not None else done
        if not done.get("guard"):
            return done
        outcome = confirmation.confirm()
        return {**done, **outcome}

    @staticmethod
    def _timeout(given: Any) -> int:
        if not isinstance(given or {}, dict):
            raise guard.GuardError(f"guard.timeout: {given!r}, wanted a dictionary with timeout")
        value = (given or {}).get("timeout")
        try:
            return guard.DEFAULT_TIMEOUT_S if value is None else int(value)
        except (TypeError, ValueError):
            raise guard.GuardError(f"guard.timeout: {value!r}, wanted seconds") from None

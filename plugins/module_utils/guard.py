# SPDX-License-Identifier: GPL-2.0-or-later
"""The guard against lock-out: a rollback that is armed on the host before a risky change.

A module that can cut its own management connection arms the guard, makes its change, and returns
the token. The controller disarms over a new connection; when none comes, the host undoes the
change by itself. The rollback is a timer of systemd, so neither the death of the connection nor
that of the controller stops it, and it needs no network. On a host without systemd a process in a
session of its own sleeps in the timer's place.

A guard is a folder under :data:`GUARD_FOLDER` (in memory, readable by root only):

- ``script``: ``rollback`` undoes, ``disarm`` calls it off, ``collect`` says what happened,
  ``forget`` clears away a rollback that was told (an answer can be lost on its way, so the one
  does not include the other);
- ``deadline``: the monotonic time at which the timer fires;
- ``claimed``: a folder that whoever acts first makes, so that disarming and firing exclude
  each other;
- ``busy``: the number of the process that makes the change, while it does;
- ``sleeper``: the number of the process that stands for the timer, without systemd;
- ``fired``: there once the rollback is complete; ``failures``: what it could not undo.

A change that is slower than its guard must not go on behind the rollback's back. So a module
says that it begins (:func:`begin`), looks before each step (:func:`check`) and at the end
(:func:`finish`) whether the guard has fired, and the rollback waits until the module has stopped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Tuple

from .guard_script import (
    ARMED,
    COMMAND_LIMIT_S,
    DISARMED,
    ROLLED_BACK,
    ROLLING_BACK,
    SEARCH,
    UNKNOWN,
    Command,
    Operation,
    RemoveFile,
    WriteFile,
    read_report,
    render,
)

__all__ = [
    "ARGUMENT",
    "ARMED",
    "DISARMED",
    "ROLLED_BACK",
    "ROLLING_BACK",
    "UNKNOWN",
    "Armed",
    "Command",
    "FiredError",
    "GuardError",
    "Operation",
    "RemoveFile",
    "WriteFile",
    "arm",
    "begin",
    "check",
    "check_request",
    "finish",
    "forget",
    "prepare",
    "read_report",
    "roll_back",
    "settle",
]

GUARD_FOLDER = Path("/run/crossover/guard")
SYSTEMD = Path("/run/systemd/system")
UNIT_PREFIX = "crossover-guard-"
DEFAULT_TIMEOUT_S = 30
LEAST_TIMEOUT_S = 3
MOST_TIMEOUT_S = 3600
# How long a rollback may take from its timer to its end before another change gives up on it.
GRACE_S = 30.0
# The option of a guarded module; plugins/doc_fragments/guard.py documents it.
ARGUMENT = {
    "type": "dict",
    "options": {
        "timeout": {"type": "int", "default": DEFAULT_TIMEOUT_S},
        "token": {"type": "str", "no_log": False},
    },
}
_TOKEN = re.compile(r"[0-9a-f]{8,32}")


class GuardError(Exception):
    """The guard cannot do its work; the text says what was found and what was wanted."""


@dataclass(frozen=True)
class Armed:
    """An armed guard, as the controller gets it."""

    token: str
    timeout: int
    unit: str
    script: str

    def as_result(self) -> Dict[str, object]:
        """For the module's result."""
        return {
            "token": self.token,
            "timeout": self.timeout,
            "unit": self.unit,
            "script": self.script,
        }


# --- on the host ------------------------------------------------------------------------------


def check_request(timeout: int, token: str) -> None:
    """Raises :class:`GuardError` when a guard cannot be named or timed like this."""
    if not LEAST_TIMEOUT_S <= timeout <= MOST_TIMEOUT_S:
        raise GuardError(
            f"guard.timeout: {timeout}, wanted {LEAST_TIMEOUT_S} to {MOST_TIMEOUT_S} seconds"
        )
    if not _TOKEN.fullmatch(token):
        raise GuardError(f"guard.token: {token!r}, wanted 8 to 32 hexadecimal digits")


def prepare(
    token: str, timeout: int, operations: Sequence[Operation], folder: Path = GUARD_FOLDER
) -> Armed:
    """Write the rollback without its timer, for a change that cannot cut the connection.

    Such a change still needs :func:`roll_back` when it fails half-way. Raises
    :class:`GuardError`.
    """
    check_request(timeout, token)
    own, unit = folder / token, UNIT_PREFIX + token
    script = own / "script"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    try:
        own.mkdir(mode=0o700)
    except FileExistsError:
        raise GuardError(f"guard.token: {token} is in use already; wanted a new one") from None
    script.touch(mode=0o600)
    script.write_text(render(own, unit, operations, SEARCH))
    (own / "deadline").write_text(f"{time.monotonic() + timeout:.1f}\n")
    return Armed(token, timeout, unit, str(script))


def forget(armed: Armed) -> None:
    """Remove what :func:`prepare` wrote, when the change has come out well."""
    shutil.rmtree(Path(armed.script).parent, ignore_errors=True)


def arm(
    token: str,
    timeout: int,
    operations: Sequence[Operation],
    folder: Path = GUARD_FOLDER,
    systemd: Path = SYSTEMD,
) -> Armed:
    """Arm a rollback that runs ``operations`` after ``timeout`` seconds.

    Raises :class:`GuardError`, and then nothing is armed.
    """
    if not systemd.is_dir():
        return _arm_sleeper(token, timeout, operations, folder)
    runner = shutil.which("systemd-run", path=SEARCH)
    if runner is None:
        raise GuardError(
            "guard: this host runs systemd and has no systemd-run; wanted it, because the "
            "rollback must outlive the connection"
        )
    armed = prepare(token, timeout, operations, folder)
    argv = [
        runner,
        "--quiet",
        "--collect",
        f"--on-active={timeout}s",
        # Otherwise systemd gathers timers and may be a minute late.
        "--timer-property=AccuracySec=100ms",
        f"--unit={armed.unit}",
        f"--description=Crossover rollback {token}",
        "/bin/sh",
        armed.script,
        "rollback",
    ]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT_S,
        )
        complaint = done.stderr.strip() if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        complaint = str(error)
    if complaint is not None:
        forget(armed)
        raise GuardError(f"guard: systemd-run could not start {armed.unit}.timer: {complaint}")
    return armed


def _arm_sleeper(token: str, timeout: int, operations: Sequence[Operation], folder: Path) -> Armed:
    """The timer of a host without systemd: nothing there ends processes with their session."""
    armed = prepare(token, timeout, operations, folder)
    argv = ["/bin/sh", "-c", f'sleep {timeout}; exec /bin/sh "$0" rollback', armed.script]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    variables = {"PATH": SEARCH, "LC_ALL": "C"}
    try:
        pid = os.posix_spawn("/bin/sh", argv, variables, file_actions=actions, setsid=True)
    except OSError as error:
        forget(armed)
        raise GuardError(f"guard: the rollback's process does not start: {error}") from error
    (Path(armed.script).parent / "sleeper").write_text(f"{pid}\n")
    return armed


class FiredError(GuardError):
    """The guard fired while the change was still being made."""

    def __init__(self, armed: Armed) -> None:
        super().__init__(
            f"the guard's {armed.timeout} s were over before the change was complete; wanted a "
            "longer guard.timeout or a host with less to do"
        )


def begin(armed: Armed) -> None:
    """This process starts to make the change; a rollback from now on waits for :func:`finish`."""
    (Path(armed.script).parent / "busy").write_text(f"{os.getpid()}\n")


def check(armed: Armed) -> None:
    """Before each step of a change. Raises :class:`FiredError` when the guard has fired."""
    if (Path(armed.script).parent / "claimed").exists():
        raise FiredError(armed)


def finish(armed: Armed) -> None:
    """The change is complete. Raises :class:`FiredError` when the guard has fired before."""
    (Path(armed.script).parent / "busy").unlink(missing_ok=True)
    check(armed)


def roll_back(armed: Armed, poll: float = 0.2) -> Tuple[str, ...]:
    """Undo at once, on the host, because the change failed half-way; or await the timer's undoing.

    Returns what could not be undone. Raises :class:`GuardError` if the rollback does not end.
    """
    (Path(armed.script).parent / "busy").unlink(missing_ok=True)
    _call(armed, "rollback")
    limit = time.monotonic() + GRACE_S
    while True:
        done = _call(armed, "collect")
        state, failures = read_report(done.stdout)
        if state == ROLLED_BACK:
            _call(armed, "forget")
            return failures
        if state != ROLLING_BACK or time.monotonic() > limit:
            raise GuardError(
                f"guard: {armed.script}: {state} ({done.stderr.strip() or 'nothing said'}); "
                f"wanted {ROLLED_BACK}"
            )
        time.sleep(poll)


def _call(armed: Armed, verb: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            ["/bin/sh", armed.script, verb],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GuardError(f"guard: {armed.script} {verb}: {error}") from error


def settle(
    folder: Path = GUARD_FOLDER, grace: float = GRACE_S, poll: float = 0.2
) -> Tuple[str, ...]:
    """Let earlier guards come to their end, and clear away those that have fired.

    A guard whose controller died is still armed: changing the host under it would mix two
    rollbacks. Returns a warning for each that had fired. Raises :class:`GuardError` for one that
    is overdue.
    """
    if not folder.is_dir():
        return ()
    warnings: List[str] = []
    for own in sorted(folder.iterdir()):
        limit = _deadline(own) + grace
        while own.is_dir() and not (own / "fired").exists():
            if time.monotonic() > limit:
                raise GuardError(
                    f"guard: an earlier rollback, {own.name}, is overdue; see `systemctl status "
                    f"{UNIT_PREFIX}{own.name}.timer`, then remove {own}"
                )
            time.sleep(poll)
        if not own.is_dir():
            continue  # disarmed meanwhile
        failures = _lines(own / "failures")
        said = f"; it could not undo: {'; '.join(failures)}" if failures else ""
        warnings.append(
            f"guard: an earlier change was never confirmed and has been rolled back{said}"
        )
        shutil.rmtree(own, ignore_errors=True)
    return tuple(warnings)


def _deadline(own: Path) -> float:
    try:
        return float((own / "deadline").read_text())
    except (OSError, ValueError):
        return time.monotonic()


def _lines(path: Path) -> Tuple[str, ...]:
    return tuple(path.read_text().splitlines()) if path.exists() else ()

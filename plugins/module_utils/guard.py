# SPDX-License-Identifier: GPL-2.0-or-later
"""The guard against lock-out: a rollback that is armed on the host before a risky change.

A module that can cut its own management connection arms the guard, makes its change, and returns
the token. The controller disarms over a new connection; when none comes, the host undoes the
change by itself. The rollback is a timer of systemd, so neither the death of the connection nor
that of the controller stops it, and it needs no network.

A guard is a folder under :data:`GUARD_FOLDER` (in memory, readable by root only):

- ``script``: ``rollback`` undoes, ``disarm`` forgets, ``collect`` says what happened;
- ``deadline``: the monotonic time at which the timer fires;
- ``claimed``: a folder that whoever acts first makes, so that disarming and firing exclude
  each other;
- ``fired``: there once the rollback is complete; ``failures``: what it could not undo.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple, Union

GUARD_FOLDER = Path("/run/crossover/guard")
SYSTEMD = Path("/run/systemd/system")
UNIT_PREFIX = "crossover-guard-"
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_TIMEOUT_S = 30
LEAST_TIMEOUT_S = 3
MOST_TIMEOUT_S = 3600
# How long a rollback may take from its timer to its end before another change gives up on it.
GRACE_S = 30.0
# A command of a rollback that does not end must not keep the others from running.
COMMAND_LIMIT_S = 20
DISARMED, ROLLED_BACK, ROLLING_BACK, ARMED, UNKNOWN = (
    "disarmed",
    "rolled back",
    "rolling back",
    "armed",
    "unknown",
)
_TOKEN = re.compile(r"[0-9a-f]{8,32}")


class GuardError(Exception):
    """The guard cannot do its work; the text says what was found and what was wanted."""


@dataclass(frozen=True)
class Command:
    """A command of the rollback.

    ``stdin`` never shows in a process list, so keys go there. A failure is tried again up to
    ``tries`` times, a second apart, and is none when the output contains ``tolerate``.
    """

    argv: Tuple[str, ...]
    stdin: Optional[str] = None
    tries: int = 1
    tolerate: str = ""


@dataclass(frozen=True)
class WriteFile:
    """A file of the rollback: replaced as a whole with ``mode``, or, without, written in place.

    In place is for the kernel's files (``/proc/sys``).
    """

    path: str
    content: str
    mode: Optional[int] = None


@dataclass(frozen=True)
class RemoveFile:
    """A file that the rollback removes."""

    path: str


Operation = Union[Command, WriteFile, RemoveFile]


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


# --- the script -------------------------------------------------------------------------------

_SCRIPT = """\
#!/bin/sh
# Undoes a change that may have cut the management connection.
# Arguments: rollback (the timer's), disarm and collect (the controller's).
PATH={search}
LC_ALL=C
export PATH LC_ALL
umask 077
folder={folder}
unit={unit}

attempt() {{
    tries=$1 tolerate=$2 name=$3
    shift 3
    until "$@" >"$folder/output" 2>&1; do
        if [ -n "$tolerate" ] && grep -qF -e "$tolerate" "$folder/output"; then
            return
        fi
        tries=$((tries - 1))
        if [ "$tries" -le 0 ]; then
            echo "$name: $(head -c 300 "$folder/output" | tr '\\n' ' ')" >>"$folder/failures"
            return
        fi
        sleep 1
    done
}}

undo() {{
    :
{body}
}}

report() {{
    if [ ! -e "$folder/claimed" ]; then
        echo armed
    elif [ ! -e "$folder/fired" ]; then
        echo 'rolling back'
    else
        echo 'rolled back'
        if [ -e "$folder/failures" ]; then
            cat "$folder/failures"
        fi
    fi
}}

case $1 in
rollback)
    mkdir "$folder/claimed" 2>/dev/null || exit 0
    undo
    : >"$folder/fired"
    ;;
disarm)
    if mkdir "$folder/claimed" 2>/dev/null; then
        if systemctl stop "$unit.timer"; then
            rm -rf "$folder"
            echo disarmed
        else
            rmdir "$folder/claimed"
            exit 1
        fi
    else
        report
    fi
    ;;
collect)
    report
    if [ -e "$folder/fired" ]; then
        systemctl stop "$unit.timer" 2>/dev/null
        rm -rf "$folder"
    fi
    ;;
*)
    echo "$0: '$1', wanted rollback, disarm or collect" >&2
    exit 2
    ;;
esac
"""


def render(folder: Path, unit: str, operations: Sequence[Operation]) -> str:
    """The rollback as a POSIX shell script; the operations run in their order."""
    body: List[str] = []
    for index, operation in enumerate(operations):
        body += _rendered(operation, f"operation_{index}")
    indented = "\n".join(f"    {line}" for line in body)
    return _SCRIPT.format(
        search=SEARCH, folder=shlex.quote(str(folder)), unit=shlex.quote(unit), body=indented
    )


def _rendered(operation: Operation, function: str) -> List[str]:
    if isinstance(operation, Command):
        words = " ".join(shlex.quote(word) for word in operation.argv)
        name = shlex.quote(" ".join(operation.argv)[:200])
        run = f"timeout {COMMAND_LIMIT_S} {words}"
        options = f"{operation.tries} {shlex.quote(operation.tolerate)} {name}"
        if operation.stdin is None:
            return [f"attempt {options} {run} </dev/null"]
        text = shlex.quote(operation.stdin)
        return [f"{function}() {{ printf %s {text} | {run}; }}", f"attempt {options} {function}"]
    path = shlex.quote(operation.path)
    if isinstance(operation, RemoveFile):
        return [f"attempt 1 '' 'remove '{path} rm -f {path}"]
    text = shlex.quote(operation.content)
    if operation.mode is None:
        action = f"printf %s {text} >{path}"
    else:
        new = shlex.quote(operation.path + ".rollback")
        action = (
            f"printf %s {text} >{new} && chmod {operation.mode:04o} {new} && mv -f {new} {path}"
        )
    return [f"{function}() {{ {action}; }}", f"attempt 1 '' 'write '{path} {function}"]


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
    script.write_text(render(own, unit, operations))
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
    runner = shutil.which("systemd-run", path=SEARCH)
    if runner is None or not systemd.is_dir():
        raise GuardError(
            "guard: this host has no running systemd with systemd-run; wanted one, because the "
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


def roll_back(armed: Armed) -> Tuple[str, ...]:
    """Undo at once, on the host, because the change failed half-way.

    Returns what could not be undone. Raises :class:`GuardError` if the script does not end.
    """
    for verb in ("rollback", "collect"):
        try:
            done = subprocess.run(
                ["/bin/sh", armed.script, verb],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=MOST_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GuardError(f"guard: {armed.script} {verb}: {error}") from error
    state, failures = read_report(done.stdout)
    if state != ROLLED_BACK:
        raise GuardError(
            f"guard: {armed.script}: {state} ({done.stderr.strip() or 'nothing said'}); wanted "
            f"{ROLLED_BACK}"
        )
    return failures


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


# --- on the controller ------------------------------------------------------------------------


def read_report(text: str) -> Tuple[str, Tuple[str, ...]]:
    """What ``disarm`` or ``collect`` printed, as (state, failures of the rollback)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if line in (DISARMED, ROLLED_BACK, ROLLING_BACK, ARMED):
            return line, tuple(lines[index + 1 :])
    return UNKNOWN, ()

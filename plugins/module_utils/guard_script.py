# SPDX-License-Identifier: GPL-2.0-or-later
"""The rollback of a guard as a POSIX shell script: what it is made of, and what it prints. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple, Union

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A command of a rollback that does not end must not keep the others from running.
COMMAND_LIMIT_S = 20
DISARMED, ROLLED_BACK, ROLLING_BACK, ARMED, UNKNOWN = (
    "disarmed",
    "rolled back",
    "rolling back",
    "armed",
    "unknown",
)


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


_SCRIPT = """\
#!/bin/sh
# Undoes a change that may have cut the management connection.
# Arguments: rollback (the timer's); disarm, collect and forget (the controller's).
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

stop_timer() {{
    if [ -e "$folder/sleeper" ]; then
        # A session of its own, so a group; it sleeps still, for it has not claimed.
        kill -TERM "-$(cat "$folder/sleeper")"
    else
        systemctl stop "$unit.timer"
    fi
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
    left={limit}
    while [ -e "$folder/busy" ] && [ -d "/proc/$(cat "$folder/busy")" ] && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        sleep 1
    done
    undo
    : >"$folder/fired"
    ;;
disarm)
    if mkdir "$folder/claimed" 2>/dev/null; then
        if stop_timer; then
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
    ;;
forget)
    if [ -e "$folder/fired" ]; then
        # A sleeper that is left finds no script when it wakes.
        [ -e "$folder/sleeper" ] || systemctl stop "$unit.timer" 2>/dev/null
        rm -rf "$folder"
    fi
    ;;
*)
    echo "$0: '$1', wanted rollback, disarm, collect or forget" >&2
    exit 2
    ;;
esac
"""


def render(folder: Path, unit: str, operations: Sequence[Operation], search: str = SEARCH) -> str:
    """The rollback as a POSIX shell script; the operations run in their order."""
    body: List[str] = []
    for index, operation in enumerate(operations):
        body += _rendered(operation, f"operation_{index}")
    indented = "\n".join(f"    {line}" for line in body)
    return _SCRIPT.format(
        search=search,
        folder=shlex.quote(str(folder)),
        unit=shlex.quote(unit),
        limit=COMMAND_LIMIT_S,
        body=indented,
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


def read_report(text: str) -> Tuple[str, Tuple[str, ...]]:
    """What ``disarm`` or ``collect`` printed, as (state, failures of the rollback)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if line in (DISARMED, ROLLED_BACK, ROLLING_BACK, ARMED):
            return line, tuple(lines[index + 1 :])
    return UNKNOWN, ()

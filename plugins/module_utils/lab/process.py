"""Processes told apart by pid *and* start time: a stale pid file never hits a stranger."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process that was started by the lab. ``started`` is field 22 of /proc/PID/stat, ticks."""

    pid: int
    started: int

    def alive(self) -> bool:
        """Whether exactly this process still runs (a zombie does not)."""
        return _start_ticks(self.pid) == self.started

    def end(self, patience_s: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after ``patience_s`` seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.alive():
                return
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + patience_s
            while self.alive() and time.monotonic() < deadline:
                time.sleep(0.05)


def _start_ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


def with_argument(flag: str, folder: Path) -> Iterator[Process]:
    """This user's processes whose command line has ``flag`` followed by a path in ``folder``.

    Finds what no state file knows of, because whoever started it was killed before writing one.
    """
    start = f"{folder}/".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            own = entry.stat().st_uid == os.getuid()
        except OSError:  # it ended, or is hidden from us
            continue
        at = words.index(flag.encode()) + 1 if flag.encode() in words else len(words)
        if own and at < len(words) and words[at].startswith(start):
            found = identify(int(entry.name))
            if found is not None:
                yield found


def identify(pid: int) -> Process | None:
    """The process that has this pid now, None if there is none."""
    ticks = _start_ticks(pid)
    return None if ticks is None else Process(pid, ticks)

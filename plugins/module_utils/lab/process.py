"""Processes told apart by pid *and* start time: a stale pid file never hits a stranger."""

from __future__ import annotations

import os
import signal
import time
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


def identify(pid: int) -> Process | None:
    """The process that has this pid now, None if there is none."""
    ticks = _start_ticks(pid)
    return None if ticks is None else Process(pid, ticks)

"""Processes as ``/proc`` shows them: identity over time, groups, labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional, Tuple

PROC = Path("/proc")


@dataclass(frozen=True)
class Stat:
    """Fields of ``/proc/PID/stat`` (proc_pid_stat(5)); ``start_ticks`` counts since the boot."""

    pid: int
    state: str
    group: int
    session: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Whether it still runs: a zombie only waits for its parent."""
        return self.state not in ("Z", "X")


def parse_stat(text: str) -> Optional[Stat]:
    """Read a stat line; the command in parentheses may hold blanks and parentheses itself."""
    head, closing, tail = text.rpartition(")")
    words = tail.split()
    if not closing or len(words) < 20:
        return None
    return Stat(
        pid=int(head.split("(", 1)[0]),
        state=words[0],
        group=int(words[2]),
        session=int(words[3]),
        start_ticks=int(words[19]),
    )


def stat(pid: int, proc: Path = PROC) -> Optional[Stat]:
    """The process's stat, or None when there is no such process."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def every(proc: Path = PROC) -> Iterator[Stat]:
    """The stat of each process there is; those that end meanwhile are left out."""
    for item in proc.iterdir():
        if item.name.isdecimal():
            found = stat(int(item.name), proc)
            if found is not None:
                yield found


def session_members(session: int, since_ticks: int, proc: Path = PROC) -> Tuple[int, ...]:
    """Running processes of a session, none of them older than its leader.

    The kernel does not give a number out again while a session of that number has members.
    """
    return tuple(
        found.pid
        for found in every(proc)
        if found.session == session and found.alive and found.start_ticks >= since_ticks
    )


def _text(pid: int, name: str, proc: Path) -> str:
    try:
        return (proc / str(pid) / name).read_bytes().decode(errors="replace")
    except OSError:
        return ""


def command(pid: int, proc: Path = PROC) -> str:
    """The command line in one line; of a kernel thread or one that hides it, its short name."""
    words = _text(pid, "cmdline", proc).split("\0")
    return " ".join(word for word in words if word) or _text(pid, "comm", proc).strip() or "unknown"


def label(pid: int, proc: Path = PROC) -> Optional[str]:
    """The security context; None without SELinux (or when it may not be read)."""
    return _text(pid, "attr/current", proc).rstrip("\0\n") or None


def unit(pid: int, proc: Path = PROC) -> Optional[str]:
    """The systemd unit of the process's control group (``netperf.service``), else None."""
    for line in _text(pid, "cgroup", proc).splitlines():
        for part in reversed(line.split("/")):
            if part.endswith((".service", ".scope")):
                return part
    return None

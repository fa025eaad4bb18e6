"""Starting many copies of a measuring command at once, and bringing home what each wrote."""

from __future__ import annotations

import base64
import json
import math
import os
import resource
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

# Words of a command line that each session gets its own value for.
WAIT, LENGTH = "@wait", "@length"
# Processes that a host needs beside the sessions, roughly.
OTHER_PROCESSES = 100
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Session:
    """One copy. ``started_at`` is this host's clock, seconds since 1970; ``rc`` is negative for a
    signal."""

    number: int  # from 1
    rc: int
    timed_out: bool
    started_at: float
    stdout: str
    stderr: str
    wait_s: int = 0


@dataclass(frozen=True)
class Timing:
    """``start_s`` seconds are given to all sessions to set up; none sends before. Each then runs
    ``run_s`` seconds, or until it is told to end (``interrupt``). ``start_s`` zero: each begins by
    itself, at once."""

    start_s: int
    run_s: int
    interrupt: bool = False


def own_argv(argv: Sequence[str], wait_s: int, timing: Timing) -> List[str]:
    """The command line of a session that is to wait so long between its set-up and its test.

    netperf's ``-s`` makes its own end wait; the server's end counts its time from the set-up and
    closes some seconds after the length (tried with netperf 2.7.1). So the length covers the wait,
    and a test that its own end times is told to end before that (SIGINT, on which netperf finishes
    as if its time were up). TCP_MAERTS is timed by the server and ends by itself.
    """
    values = {WAIT: str(wait_s), LENGTH: str(wait_s + timing.run_s)}
    return [values.get(word, word) for word in argv]


def wait_for(timing: Timing, since_s: float) -> int:
    """The wait of a session that is started ``since_s`` seconds after the first: whole seconds, as
    netperf takes them, at least one."""
    return max(1, math.ceil(timing.start_s - since_s)) if timing.start_s else 0


def launch(
    argv: Sequence[str], count: int, timeout_s: float, folder: str, timing: Timing
) -> List[Session]:
    """Start ``count`` copies as fast as they can be started and wait for all.

    Setting up many control connections is slow beside sessions that already send, so all wait
    (``-s @wait``) until those started last are ready too. Output goes to files in ``folder`` first,
    so that none waits for a reader. Whoever has not ended ``timeout_s`` after the last one was
    started is killed. Raises OSError if the program cannot be started at all; the copies that
    already run are killed then.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    children: List[subprocess.Popen[bytes]] = []
    started: Dict[int, float] = {}
    waits: Dict[int, int] = {}
    began = time.monotonic()
    try:
        for number in range(1, count + 1):
            with _open(folder, number, "out") as out, _open(folder, number, "err") as err:
                started[number] = time.time()
                waits[number] = wait_for(timing, time.monotonic() - began)
                with _interrupt_heard():
                    child = subprocess.Popen(
                        own_argv(argv, waits[number], timing),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        env=environment,
                    )
                children.append(child)
        if timing.start_s and timing.interrupt:
            time.sleep(max(0.0, began + timing.start_s + timing.run_s - time.monotonic()))
            _interrupt(children)
        hung = _wait(children, timeout_s)
    finally:
        for child in children:
            if child.returncode is None:
                child.kill()
                child.wait()
    return [
        Session(
            number=number,
            rc=child.returncode,
            timed_out=number in hung,
            started_at=round(started[number], 3),
            stdout=_text(folder, number, "out"),
            stderr=_text(folder, number, "err"),
            wait_s=waits[number],
        )
        for number, child in enumerate(children, start=1)
    ]


@contextmanager
def _interrupt_heard() -> Iterator[None]:
    """Start children that can be told to end: a shell has its background jobs ignore SIGINT, and
    they would inherit that. Only the main thread may change it; another leaves it as it is."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Tell those that still run to end; one that has ended meanwhile is left alone."""
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)


def _wait(children: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> List[int]:
    """Wait for all; the numbers of those that were killed because they did not end.

    One is waited for after the other: a loop over all of them would take time from what is
    measured.
    """
    deadline = time.monotonic() + timeout_s
    hung = []
    for number, child in enumerate(children, start=1):
        try:
            child.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            hung.append(number)
    return hung


def _open(folder: str, number: int, end: str) -> Any:
    return open(os.path.join(folder, f"{number}.{end}"), "wb")


def _text(folder: str, number: int, end: str) -> str:
    with open(os.path.join(folder, f"{number}.{end}"), "rb") as handle:
        return handle.read().decode(errors="replace")


def pack(sessions: Sequence[Session]) -> str:
    """The sessions as one text: 200 sessions write megabytes, nine tenths of it the same words."""
    document = json.dumps([asdict(one) for one in sessions]).encode()
    return base64.b64encode(zlib.compress(document)).decode()


def unpack(text: str) -> List[Session]:
    """The sessions of :func:`pack`."""
    return [Session(**item) for item in json.loads(zlib.decompress(base64.b64decode(text)))]


def room_for(count: int, limits: Optional[Dict[str, Optional[int]]] = None) -> Optional[str]:
    """Why this host cannot run ``count`` more processes, as a sentence; None if nothing is known
    against it. ``limits`` are those of this process by name (None: no limit)."""
    found = process_limits() if limits is None else limits
    for name, value in found.items():
        if value is not None and value < count + OTHER_PROCESSES:
            return (
                f"{name} is {value}; wanted at least {count + OTHER_PROCESSES} for {count} sessions"
            )
    return None


def process_limits(
    cgroup_file: Path = Path("/proc/self/cgroup"), root: Path = CGROUP
) -> Dict[str, Optional[int]]:
    """How many processes this one's user and control groups allow, by the limit's name."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NPROC)
    found: Dict[str, Optional[int]] = {
        # The kernel does not hold root to it.
        "RLIMIT_NPROC": None if soft == resource.RLIM_INFINITY or os.getuid() == 0 else soft
    }
    try:
        lines = cgroup_file.read_text().splitlines()
    except OSError:
        return found
    group = next((line[3:] for line in lines if line.startswith("0::")), "/")
    folder = root / group.lstrip("/")
    while folder != root and root in folder.parents:
        try:
            text = (folder / "pids.max").read_text().strip()
        except OSError:
            text = "max"
        if text.isdecimal():
            found[f"pids.max of {folder.name}"] = int(text)
        folder = folder.parent
    return found

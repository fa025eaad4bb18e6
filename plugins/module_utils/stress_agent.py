"""The stress program: keeps streams running on a host for hours and notes how the host fares.

It runs by itself, without the controller and without a connection: in a unit of its own, until
its time is over or it is told to end (SIGTERM). It is started with its folder, which holds
``plan.json``, and appends to ``samples.jsonl`` there, one JSON object a line, each on disk before
the next is begun. docs/data-format.md has the fields. It judges nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

from ansible_collections.crossover.lab.plugins.module_utils import stress_health as health
from ansible_collections.crossover.lab.plugins.module_utils.host_identity import identity

PLAN_FILE = "plan.json"
SAMPLES_FILE = "samples.jsonl"
SCHEMA = 1
SECONDS = "@seconds"  # stands in a command line for the length of the chunk
TICK_S = 0.2
SHORTEST_S = 1.0
END_S = 5.0
# A stream whose chunk failed is begun anew after this pause, so that a dead peer fills no disk.
PAUSE_S = 5.0
GRACE_S = 30.0
MOST_TEXT = 4000


class Writer:
    """Appends lines that are on disk when the call returns."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._began = time.monotonic()
        self._next = 0

    def elapsed(self) -> float:
        """Seconds since the program began, on a clock that nobody sets."""
        return time.monotonic() - self._began

    def write(self, event: str, **details: Any) -> None:
        """One line."""
        line = {
            "schema": SCHEMA,
            "event": event,
            "seq": self._next,
            "time": round(time.time(), 3),
            "elapsed_s": round(self.elapsed(), 3),
            **details,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)
        self._next += 1


class Stream:
    """One command that is run again and again, a chunk at a time."""

    def __init__(self, plan: Dict[str, Any], chunk_s: float, folder: str) -> None:
        self.name = str(plan["name"])
        self._argv: List[str] = plan["argv"]
        self._chunk_s = chunk_s
        self._paths = [os.path.join(folder, f"{self.name}.{end}") for end in ("out", "err")]
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._began = self._seconds = self._not_before = 0.0

    @property
    def running(self) -> bool:
        """Whether a chunk is under way."""
        return self._child is not None

    def begin(self, now: float, left_s: float) -> None:
        """Begin a chunk that ends within ``left_s``, unless too little is left or it must wait."""
        seconds = int(min(self._chunk_s, left_s))
        if seconds < SHORTEST_S or now < self._not_before:
            return
        argv = [str(seconds) if word == SECONDS else word for word in self._argv]
        with open(self._paths[0], "wb") as out, open(self._paths[1], "wb") as err:
            self._child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, "LC_ALL": "C"},
            )
        self._began, self._seconds = now, float(seconds)

    def finished(self, now: float) -> Optional[Dict[str, Any]]:
        """The chunk if it ended, or was ended because it hung; None while it runs."""
        if self._child is None:
            return None
        code = self._child.poll()
        hung = code is None and now - self._began > self._seconds * 1.5 + GRACE_S
        if code is None and not hung:
            return None
        if hung:
            self._child.kill()
            code = self._child.wait()
        self._child = None
        if code:
            self._not_before = now + PAUSE_S
        texts = [(health.read_text(path) or "")[:MOST_TEXT] for path in self._paths]
        return {
            "stream": self.name,
            "began_s": round(self._began, 3),
            "took_s": round(now - self._began, 3),
            "seconds": self._seconds,
            "rc": code,
            "timed_out": hung,
            "stdout": texts[0],
            "stderr": texts[1],
        }

    def end(self) -> None:
        """End a chunk that is under way; it leaves no result."""
        _end(self._child)
        self._child = None


def _end(child: Optional[subprocess.Popen[bytes]]) -> None:
    if child is None or child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


class Agent:
    """The program: streams (on the client), netserver (on the server), samples (on both)."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, PLAN_FILE), encoding="utf-8") as handle:
            self._plan: Dict[str, Any] = json.load(handle)
        self._writer = Writer(os.path.join(folder, SAMPLES_FILE))
        chunk = float(self._plan["chunk_s"])
        self._streams = [Stream(item, chunk, folder) for item in self._plan["streams"]]
        self._chunks: List[Dict[str, Any]] = []
        self._log = health.KernelLog()
        self._denials = health.Denials()
        self._netserver: Optional[subprocess.Popen[bytes]] = None
        self._folder = folder
        self._told_to_end = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def run(self) -> int:
        """Until the time is over; returns the exit code of the program."""
        self._start_netserver()
        self._writer.write("begin", pid=os.getpid(), identity=identity())
        self._sample()
        reason = "told to end"
        try:
            if self._loop():
                reason = "time is over"
        finally:
            for stream in self._streams:
                stream.end()
            self._sample()
            _end(self._netserver)
            self._writer.write("end", reason=reason)
        return 0

    def _start_netserver(self) -> None:
        argv = self._plan["netserver"]
        if not argv:
            return
        with open(os.path.join(self._folder, "netserver.log"), "wb") as sink:
            self._netserver = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )

    def _loop(self) -> bool:
        """True when the time is over, False when told to end before."""
        duration, interval = float(self._plan["duration_s"]), float(self._plan["interval_s"])
        due = interval
        while not self._told_to_end:
            now = self._writer.elapsed()
            for stream in self._streams:
                done = stream.finished(now)
                if done is not None:
                    self._chunks.append(done)
                if not stream.running:
                    stream.begin(now, duration - now)
            if now >= due:
                self._sample()
                due = (now // interval + 1) * interval
            if now >= duration and not any(stream.running for stream in self._streams):
                return True
            time.sleep(TICK_S)
        return False

    def _sample(self) -> None:
        lines, lost = self._log.since()
        chunks, self._chunks = self._chunks, []
        netserver = None
        if self._plan["netserver"]:
            netserver = self._netserver is not None and self._netserver.poll() is None
        self._writer.write(
            "sample",
            boot_id=identity()["boot_id"],
            memory_kib=health.memory(health.read_text("/proc/meminfo") or ""),
            xfrm=health.counters(health.read_text("/proc/net/xfrm_stat")),
            device=health.device(str(self._plan["device"])),
            sas=health.sas() if self._plan["ipsec"] else None,
            kernel_log=lines,
            kernel_log_lost=lost,
            denials=self._denials.since(),
            chunks=chunks,
            netserver=netserver,
        )


def main(argv: List[str]) -> int:
    """Entry point of the program; its one argument is the folder."""
    return Agent(argv[0]).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

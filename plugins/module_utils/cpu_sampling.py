"""Starting and ending the CPU sampler of this host."""

from __future__ import annotations

import os
import subprocess
import time
from typing import List

from . import cpu_sampler, labelled
from .sessions.cpu import Reading, read_samples

SAMPLES = "cpu.jsonl"
START_SECONDS = 15.0


def samples_file() -> str:
    """Where the samples of this host are."""
    return os.path.join(labelled.RUN_DIR, SAMPLES)


def start(period_s: float, lifetime_s: float) -> "subprocess.Popen[bytes]":
    """Start it; returns when the first sample is there. Raises OSError with its own words."""
    program = labelled.placed(cpu_sampler)
    path = samples_file()
    if os.path.exists(path):
        os.unlink(path)
    log = os.path.join(labelled.RUN_DIR, "cpu.log")
    argv = ["/usr/bin/python3", "-I", "-S", program, path, str(period_s), str(lifetime_s)]
    with open(log, "wb") as sink:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_SECONDS
    while not (os.path.exists(path) and os.path.getsize(path)):
        if child.poll() is not None or time.monotonic() > deadline:
            child.kill()
            child.wait()
            with open(log, encoding="utf-8", errors="replace") as handle:
                words = handle.read().strip() or "no word from it"
            raise OSError(f"the sampler of the CPU does not start: {words}")
        time.sleep(0.02)
    return child


def collect() -> List[Reading]:
    """The samples so far."""
    with open(samples_file(), encoding="utf-8") as handle:
        return read_samples(handle)

"""How a host fares, read from the kernel: memory, counters, its log, denials, SAs.

Used by the stress program on the host, which judges nothing: what cannot be read is None, and text
that has a reader elsewhere stays text.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from ansible_collections.crossover.lab.plugins.module_utils import audit

MEMORY = ("MemAvailable", "SUnreclaim", "SReclaimable")
DEVICE = (
    "rx_bytes",
    "tx_bytes",
    "rx_packets",
    "tx_packets",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
)
WARNING = 4  # include/linux/kern_levels.h; lower is worse
# Thousands of SAs would fill the disk once a minute; then only the size is kept.
MOST_SA_TEXT = 64 * 1024
MOST_LINES = 200
COMMAND_LIMIT_S = 20.0


def read_text(path: str) -> Optional[str]:
    """A file of the kernel, None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return None


def memory(text: str) -> Dict[str, Optional[int]]:
    """The fields of MEMORY out of ``/proc/meminfo``, KiB."""
    found: Dict[str, Optional[int]] = dict.fromkeys(MEMORY)
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0])
    return found


def counters(text: Optional[str]) -> Optional[Dict[str, int]]:
    """``NAME COUNT`` lines (``/proc/net/xfrm_stat``); None where the kernel has none."""
    if text is None:
        return None
    pairs = (line.split() for line in text.splitlines() if line.strip())
    return {name: int(count) for name, count in pairs}


def device(name: str, root: str = "/sys/class/net") -> Dict[str, Optional[int]]:
    """The counters of DEVICE; None where the device or the counter is not there."""
    found: Dict[str, Optional[int]] = {}
    for key in DEVICE:
        text = read_text(os.path.join(root, name, "statistics", key))
        found[key] = None if text is None else int(text)
    return found


def sas() -> Dict[str, Any]:
    """``{text, bytes, error}``: the SAs as ``ip`` prints them, without keys."""
    argv = ["ip", "-s", "xfrm", "state", "list", "nokeys"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=COMMAND_LIMIT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"text": None, "bytes": None, "error": str(error)}
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        return {"text": None, "bytes": None, "error": words or f"ip ended with {done.returncode}"}
    text = done.stdout.decode(errors="replace")
    short = text if len(done.stdout) <= MOST_SA_TEXT else None
    return {"text": short, "bytes": len(done.stdout), "error": None}


def kernel_line(record: str, worst: int = WARNING) -> Optional[str]:
    """``LEVEL SECONDS TEXT`` of a record of ``/dev/kmsg`` of level ``worst`` or worse, else None.

    Format: Linux Documentation/ABI/testing/dev-kmsg; the priority holds the facility above bit 2.
    Records of other facilities than the kernel's own (0) were written by programs.
    """
    head, _, rest = record.partition(";")
    fields = head.split(",")
    priority = int(fields[0])
    if priority >> 3 or priority & 7 > worst:
        return None
    return f"{priority & 7} {int(fields[2]) / 1e6:.3f} {rest.splitlines()[0] if rest else ''}"


class KernelLog:
    """The kernel's log from now on."""

    def __init__(self, path: str = audit.KERNEL_RING) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._file, 0, os.SEEK_END)

    def since(self) -> Tuple[List[str], bool]:
        """Lines of level warning or worse since the last call, and whether some were lost. Lines
        beyond MOST_LINES count as lost: the first ones tell the cause."""
        lines: List[str] = []
        lost = False
        while True:
            try:
                record = os.read(self._file, 8192).decode(errors="replace")
            except BlockingIOError:
                return lines[:MOST_LINES], lost or len(lines) > MOST_LINES
            except BrokenPipeError:
                lost = True  # the ring went past us
                continue
            line = kernel_line(record)
            if line is not None:
                lines.append(line)


class Denials:
    """AVC denials from now on."""

    def __init__(self) -> None:
        self._from = audit.position()
        self._before: List[str] = []

    def since(self) -> List[str]:
        """Those since the last call, at most MOST_LINES. What is written while the end of the log
        is looked for is read twice, and then told once."""
        start, self._from = self._from, audit.position()
        seen = audit.denials_since(start)
        fresh = [line for line in seen if line not in self._before]
        self._before = seen
        return fresh[:MOST_LINES]

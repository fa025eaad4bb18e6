"""AVC messages since a moment, from auditd's log or, without auditd, from the kernel's ring."""

from __future__ import annotations

import os
from typing import Dict, List, Union

AUDIT_LOG = "/var/log/audit/audit.log"
KERNEL_RING = "/dev/kmsg"

Position = Dict[str, Union[str, int]]


def position() -> Position:
    """Where the log ends now, to be handed to :func:`denials_since` later."""
    try:
        facts = os.stat(AUDIT_LOG)
        return {"source": AUDIT_LOG, "inode": facts.st_ino, "offset": facts.st_size}
    except FileNotFoundError:
        return {"source": KERNEL_RING, "inode": 0, "offset": _last_sequence()}


def denials_since(start: Position) -> List[str]:
    """The raw lines of AVC denials that were written after ``start``."""
    if start["source"] == AUDIT_LOG:
        return [line for line in _audit_lines(start) if "avc:  denied" in line]
    return [
        text
        for sequence, text in _ring()
        if sequence > int(start["offset"]) and "avc:  denied" in text
    ]


def _audit_lines(start: Position) -> List[str]:
    lines: List[str] = []
    # A rotation in between leaves the rest of the old file beside the new one.
    for path in (AUDIT_LOG + ".1", AUDIT_LOG):
        try:
            with open(path, "rb") as handle:
                inode = os.fstat(handle.fileno()).st_ino
                same = inode == start["inode"]
                if path == AUDIT_LOG and same:
                    lines = []
                elif path != AUDIT_LOG and not same:
                    continue
                handle.seek(int(start["offset"]) if same else 0)
                lines += handle.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            continue
    return lines


def _ring() -> List[tuple[int, str]]:
    found = []
    handle = os.open(KERNEL_RING, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            try:
                head, _, text = os.read(handle, 8192).decode(errors="replace").partition(";")
            except BlockingIOError:
                return found
            except BrokenPipeError:
                continue  # the ring went past us: go on with the oldest that is left
            found.append((int(head.split(",")[1]), text.strip()))
    finally:
        os.close(handle)


def _last_sequence() -> int:
    entries = _ring()
    return entries[-1][0] if entries else -1

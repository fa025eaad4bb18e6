"""Which boot of which kernel a host is in: what must not change during a measurement."""

from __future__ import annotations

import os
from typing import Dict, Optional


def read_line(path: str) -> Optional[str]:
    """The first line of a file, None if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.readline().rstrip("\0\n")
    except OSError:
        return None


def identity() -> Dict[str, Optional[str]]:
    """Kernel release, boot id and this process's SELinux context."""
    return {
        "kernel": os.uname().release,
        "boot_id": read_line("/proc/sys/kernel/random/boot_id"),
        "context": read_line("/proc/self/attr/current") or None,
    }

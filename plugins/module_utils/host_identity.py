"""Which boot of which kernel a host is in: what must not change during a measurement."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Dict, Optional


def read_line(path: str) -> Optional[str]:
    """The first line of a file, None if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.readline().rstrip("\0\n")
    except OSError:
        return None


def config_file() -> Optional[Path]:
    """Where the running kernel's configuration can be read: the kernel's own copy, else the file
    that its package or its modules brought; None if there is neither."""
    release = os.uname().release
    for name in (
        "/proc/config.gz", f"/boot/config-{release}", f"/lib/modules/{release}/config"
    ):  # fmt: skip
        if os.path.exists(name):
            return Path(name)
    return None


def config_sha256() -> Optional[str]:
    """The hexadecimal SHA-256 of the running kernel's configuration, None if it is nowhere."""
    path = config_file()
    if path is None:
        return None
    data = path.read_bytes()
    return hashlib.sha256(gzip.decompress(data) if path.suffix == ".gz" else data).hexdigest()


def identity() -> Dict[str, Optional[str]]:
    """Kernel release, boot id and this process's SELinux context."""
    return {
        "kernel": os.uname().release,
        "boot_id": read_line("/proc/sys/kernel/random/boot_id"),
        "context": read_line("/proc/self/attr/current") or None,
    }


def booted() -> Dict[str, Optional[str]]:
    """``identity`` and what tells builds of one release apart: ``uname -v`` and the hash of the
    running configuration."""
    return {**identity(), "version": os.uname().version, "config_sha256": config_sha256()}

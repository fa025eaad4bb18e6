"""The lab's own initramfs: a static busybox, the few modules the root needs, one script.

The guests' distribution initramfs probes for hardware that a lab has not, which takes longer than
the rest of the boot. This one loads virtio, takes the node's identity from the seed disk, sets
the addresses and hands over. The archive format is "newc" (Linux,
Documentation/driver-api/early-userspace/buffer-format.rst).
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable

from .errors import LabError

# virtio_net needs the two before it; insmod does not resolve dependencies.
MODULES = ("virtio_blk", "failover", "net_failover", "virtio_net")


def _entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    raw_name = name.encode() + b"\0"
    numbers = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw_name), 0)
    head = b"070701" + b"".join(b"%08X" % value for value in numbers) + raw_name
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def archive(directories: Iterable[str], files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A newc cpio archive of directories and ``(name, permissions, content)`` files."""
    parts = [_entry(i, name, 0o40755, b"") for i, name in enumerate(directories, start=1)]
    for name, permissions, data in files:
        parts.append(_entry(len(parts) + 1, name, 0o100000 | permissions, data))
    parts.append(_entry(0, "TRAILER!!!", 0, b""))
    return b"".join(parts)


def plain_module(name: str, data: bytes) -> bytes:
    """A kernel module's ELF bytes, whatever compression its file name tells."""
    if name.endswith(".ko"):
        return data
    if name.endswith(".ko.xz"):
        return lzma.decompress(data)
    if name.endswith(".ko.gz"):
        return gzip.decompress(data)
    raise LabError(f"kernel module {name}: wanted .ko, .ko.xz or .ko.gz")


def build(busybox: bytes, init: bytes, modules: dict[str, bytes]) -> bytes:
    """The initramfs of the lab. ``modules`` maps a module's name to its ELF bytes; a module that
    the kernel has built in is simply absent."""
    files = [("bin/busybox", 0o755, busybox), ("init", 0o755, init)]
    files += [(f"modules/{name}.ko", 0o644, data) for name, data in modules.items()]
    order = "".join(f"{name}\n" for name in MODULES if name in modules)
    files.append(("modules/order", 0o644, order.encode()))
    return archive(["bin", "dev", "proc", "root", "seed", "modules"], files)

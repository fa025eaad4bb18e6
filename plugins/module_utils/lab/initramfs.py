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

# What the root file system, the seed and the network need, as far as the kernel has not built it
# in. ext4 asks the kernel's crypto layer for crc32c by name, which no dependency shows.
MODULES = ("virtio_pci", "crc32c_generic", "ext4", "virtio_blk", "virtio_net")


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


def load_order(dependencies: str, wanted: Iterable[str] = MODULES) -> list[str]:
    """The module files to load, each after what it needs, for insmod resolves nothing.

    ``dependencies`` is the text of ``modules.dep`` (kmod, depmod(8)): ``file: file ...``, what a
    module needs listed in reverse order of loading. A wanted module that it has not is built in.
    """
    needs = {}
    for line in dependencies.splitlines():
        file, _, others = line.partition(":")
        needs[module_name(file)] = [*reversed(others.split()), file]
    order: dict[str, None] = {}
    for name in wanted:
        order.update(dict.fromkeys(needs.get(name, ())))
    return list(order)


def module_name(file: str) -> str:
    """The name of a module by its file's; the kernel takes ``-`` and ``_`` for the same."""
    return file.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_")


def build(busybox: bytes, init: bytes, modules: dict[str, bytes]) -> bytes:
    """The initramfs of the lab. ``modules`` maps a module's name to its ELF bytes, in the order of
    loading."""
    files = [("bin/busybox", 0o755, busybox), ("init", 0o755, init)]
    files += [(f"modules/{name}.ko", 0o644, data) for name, data in modules.items()]
    order = "".join(f"{name}\n" for name in modules)
    files.append(("modules/order", 0o644, order.encode()))
    return archive(["bin", "dev", "proc", "root", "seed", "modules"], files)

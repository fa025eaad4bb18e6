"""A built kernel made ready for the guests of an image: an initramfs of the lab's own and a disk
with its modules, kept beside the image by the kernel's identity.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import initramfs, labels
from .errors import LabError
from .paths import tool_environment

# Without these a guest never reaches its root, its console or its network, and the lab would wait
# in vain for a login.
NEEDED = (
    "BLK_DEV_INITRD", "DEVTMPFS", "EXT4_FS", "SERIAL_8250_CONSOLE", "UNIX", "VIRTIO_BLK",
    "VIRTIO_NET", "VIRTIO_PCI",
)  # fmt: skip
# Bytes that a file takes in a file system beyond its content, and the file system's own.
PER_FILE, AT_LEAST = 8192, 4 << 20


@dataclass(frozen=True)
class GuestKernel:
    """What a guest boots. ``facts`` is the kernel's ``entry.json``."""

    vmlinuz: Path
    initrd: Path
    modules: Path  # an ext4 image that is mounted on /lib/modules/RELEASE
    facts: dict[str, Any]


def read_facts(kernel: Path) -> dict[str, Any]:
    """The ``entry.json`` of a built kernel. LabError if the folder holds none."""
    try:
        found = json.loads((kernel / "entry.json").read_text(encoding="utf-8"))
        if found["schema"] != 1:
            raise KeyError("schema 1")
        for key in ("name", "identity", "release"):
            str(found[key])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabError(f"kernel {kernel}: {error}; wanted the folder of a built kernel") from error
    assert isinstance(found, dict)
    return found


def missing(config: str) -> list[str]:
    """What a configuration lacks that a guest needs."""
    on = set(re.findall(r"^CONFIG_(\w+)=[ym]$", config, re.MULTILINE))
    return [name for name in NEEDED if name not in on]


def prepare(image: Path, kernel: Path) -> GuestKernel:
    """Make the initramfs and the disk of modules unless they are there. LabError for a kernel that
    cannot boot a guest."""
    facts = read_facts(kernel)
    final = image / "kernels" / str(facts["identity"])
    made = GuestKernel(kernel / "vmlinuz", final / "initrd", final / "modules.ext4", facts)
    if made.modules.is_file():
        return made
    lacks = missing((kernel / "config").read_text(encoding="utf-8"))
    if lacks:
        raise LabError(
            f"kernel {facts['name']}: no guest can boot it: CONFIG_{lacks[0]} is off; wanted"
            f" {', '.join(lacks)} built in or as modules"
        )
    final.parent.mkdir(exist_ok=True)
    folder = final.with_name(f".{final.name}.{os.getpid()}")
    folder.mkdir()
    try:
        with tarfile.open(kernel / "modules.tar") as tar:
            (folder / "initrd").write_bytes(_initrd(image, tar, str(facts["release"])))
        _disk(image, kernel / "modules.tar", str(facts["release"]), folder)
        try:
            folder.rename(final)
        except OSError:  # another start was quicker
            if not made.modules.is_file():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return made


def _initrd(image: Path, tar: tarfile.TarFile, release: str) -> bytes:
    base = f"lib/modules/{release}/"

    def content(name: str) -> bytes:
        handle = tar.extractfile(base + name)
        if handle is None:
            raise LabError(f"modules of {release}: {name} is no file")
        return handle.read()

    try:
        order = initramfs.load_order(content("modules.dep").decode())
        modules = {
            initramfs.module_name(file): initramfs.plain_module(file, content(file))
            for file in order
        }
    except KeyError as error:
        raise LabError(f"modules of {release}: {error}") from error
    return initramfs.build((image / "busybox").read_bytes(), (image / "init").read_bytes(), modules)


def _disk(image: Path, archive: Path, release: str, folder: Path) -> None:
    """Write ``modules.ext4``: the content of ``lib/modules/RELEASE``, labelled as the image's
    policy has it."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
    size = AT_LEAST + sum(member.size + PER_FILE for member in members)
    disk = folder / "modules.ext4"
    script = (
        'tar -xpf "$1" -C "$2" --numeric-owner && '
        'mke2fs -q -t ext4 -O ^has_journal -N "$6" -d "$2/lib/modules/$3" "$4" "$5"'
        ' && rm -rf "$2"'
    )
    tree = folder / "tree"
    tree.mkdir()
    words = [
        str(archive),
        str(tree),
        release,
        str(disk),
        f"{size // 1024}k",
        str(len(members) + 64),
    ]
    command = ["sh", "-c", script, "modules", *words]
    done = subprocess.run(
        command if os.getuid() == 0 else ["fakeroot", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=tool_environment(),
    )
    if done.returncode:
        raise LabError(f"modules of {release}: {done.stderr.strip() or done.stdout.strip()}")
    labeller = labels.Labeller(image / "contexts" / "file_contexts")
    base = f"lib/modules/{release}"
    labelled = [
        (member.name[len(base) :] or "/", (0o040000 if member.isdir() else 0o100000) | member.mode)
        for member in members
        if f"{member.name}/".startswith(f"{base}/")
    ]
    labels.write_labels(disk, labels.debugfs_commands(labelled, labeller, f"/usr/{base}"))

"""The artifact: a kernel ready to be booted or installed, a folder that appears whole or not.

``built/<identity>/`` holds ``vmlinuz``, ``config``, ``entry.json``, ``modules.tar`` and, where the
entry brings one, ``initrd``. docs/data-format.md describes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Optional

from .errors import KernelError
from .paths import built_dir

SCHEMA = 1
DOCUMENT = "entry.json"


@dataclass(frozen=True)
class Artifact:
    """What ``entry.json`` says. ``version`` is what ``uname -v`` prints under this kernel;
    ``made_of`` what went in, by kind; ``build_s`` None where nothing was compiled."""

    name: str
    about: str
    identity: str
    kind: str
    release: str
    version: str
    config_sha256: str
    vmlinuz_sha256: str
    modules: int
    initrd: bool
    compiler: Optional[str]
    made_of: dict[str, Any]
    built_at: str
    build_s: Optional[float]
    schema: int = SCHEMA

    @property
    def folder(self) -> Path:
        """The folder that holds it."""
        return built_dir() / self.identity


def read(folder: Path) -> Artifact:
    """The artifact in a folder. KernelError if it is none, or of a newer schema."""
    file = folder / DOCUMENT
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KernelError(f"{folder}: no {DOCUMENT}; wanted the folder of a built kernel") from None
    except ValueError as error:
        raise KernelError(f"{file}: {error}; wanted a JSON document") from error
    known = {item.name for item in fields(Artifact)}
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or set(data) != known:
        raise KernelError(f"{file}: not a document of schema {SCHEMA}; build the kernel again")
    return Artifact(**data)


def find(identity: str) -> Optional[Artifact]:
    """The artifact of that identity, None if it was never built."""
    folder = built_dir() / identity
    return read(folder) if (folder / DOCUMENT).is_file() else None


@contextlib.contextmanager
def being_made(identity: str) -> Iterator[Path]:
    """A folder to fill; it takes its place when the block ends well, and is gone otherwise. What
    killed processes left is removed too."""
    built_dir().mkdir(parents=True, exist_ok=True)
    for left in built_dir().glob(".*.*"):
        process = left.name.rpartition(".")[2]
        if process == str(os.getpid()) or not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = built_dir() / f".{identity}.{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
        final = built_dir() / identity
        try:
            folder.rename(final)
        except OSError:  # another build of the same was quicker
            if not (final / DOCUMENT).is_file():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(folder: Path, artifact: Artifact) -> None:
    """Write ``entry.json``: the last file of a folder that is being made."""
    text = json.dumps(asdict(artifact), indent=2, ensure_ascii=False)
    (folder / DOCUMENT).write_text(text + "\n", encoding="utf-8")


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def image_version(vmlinuz: Path) -> tuple[str, str]:
    """``(release, version)`` as the kernel in a bzImage will say them (``uname -r``, ``uname -v``).

    Linux, Documentation/arch/x86/boot.rst: at 0x202 the magic ``HdrS``, at 0x20e the offset of a
    text, less 0x200: ``RELEASE (BUILDER) VERSION``. KernelError for any other file.
    """
    with vmlinuz.open("rb") as handle:
        head = handle.read(0x8000)
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        raise KernelError(f"{vmlinuz}: no x86 boot header; wanted a bzImage")
    start = struct.unpack_from("<H", head, 0x20E)[0] + 0x200
    text = head[start : head.find(b"\0", start)].decode("ascii", "replace")
    release, _, rest = text.partition(" (")
    builder, hash_sign, version = rest.partition(") #")
    if not (release and builder and hash_sign):
        raise KernelError(
            f"{vmlinuz}: boot header says {text!r}; wanted RELEASE (BUILDER) #VERSION"
        )
    return release, "#" + version

"""The saved states of a lab, side by side: one folder a kernel and boot, with the nodes' disks.

Each costs some hundred megabytes a node, so only the ``KEPT`` used last are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional

from .paths import lab_dir

KEPT = 6
# Not a name that a kernel can have.
OWN = "_own"


@dataclass(frozen=True)
class Saved:
    """A saved state. ``kernel`` is an entry's name, None for the image's own; ``signature`` what
    the state depends on; ``used_at`` seconds since 1970."""

    kernel: Optional[str]
    boot: int
    signature: str
    used_at: float


def folder(lab: str, kernel: Optional[str], boot: int) -> Path:
    """Where the disks of a kernel's boot are."""
    return lab_dir(lab) / "states" / f"{kernel or OWN}.{boot}"


def read(place: Path) -> Optional[Saved]:
    """The state in a folder, None if none was saved (or its description is damaged)."""
    try:
        return Saved(**json.loads((place / "saved.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write(place: Path, state: Saved) -> None:
    """Note that the disks in the folder hold this state, or that it was used."""
    temporary = place / f".saved.{os.getpid()}"
    temporary.write_text(json.dumps(asdict(state)) + "\n")
    temporary.rename(place / "saved.json")


def used(place: Path) -> None:
    """Note that the state in the folder was restored now."""
    found = read(place)
    if found is not None:
        write(place, Saved(found.kernel, found.boot, found.signature, time.time()))


def forget(place: Path) -> None:
    """Note that the disks in the folder hold no state any more."""
    (place / "saved.json").unlink(missing_ok=True)


def everything(lab: str) -> list[tuple[Saved, int]]:
    """All saved states with the bytes that they take on disk, the one used last first."""
    found = []
    for place in (lab_dir(lab) / "states").glob("*"):
        state = read(place)
        if state is not None:
            size = sum(file.stat().st_blocks * 512 for file in place.iterdir())
            found.append((state, size))
    return sorted(found, key=lambda pair: -pair[0].used_at)


def prune(lab: str) -> None:
    """Delete the states beyond those used last, and disks without one."""
    kept = {folder(lab, state.kernel, state.boot) for state, _size in everything(lab)[:KEPT]}
    for place in (lab_dir(lab) / "states").glob("*"):
        if place not in kept:
            shutil.rmtree(place)

"""A lock on a host: a folder that only one can make, with its owner's name inside."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import record
from .errors import BusyError

FOLDER = record.RUN / "lock"


@dataclass(frozen=True)
class Holder:
    """Who holds the lock, and since when (Unix time); None while it is being taken."""

    owner: Optional[str]
    since: Optional[float]


def holder(folder: Path = FOLDER) -> Optional[Holder]:
    """Who holds the lock; None when nobody does."""
    if not folder.is_dir():
        return None
    data = record.load(folder / "owner.json") or {}
    return Holder(data.get("owner"), data.get("since"))


def hold(
    owner: str, now: float, *, force: bool = False, dry: bool = False, folder: Path = FOLDER
) -> bool:
    """Take the lock; returns whether it was not held before. BusyError when another holds it."""
    found = holder(folder)
    if found is not None and found.owner == owner:
        return False
    if found is not None and not force:
        raise _busy(found)
    if dry:
        return True
    if found is not None:
        shutil.rmtree(folder)
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise _busy(holder(folder) or Holder(None, None)) from None
    record.save(folder / "owner.json", {"owner": owner, "since": now})
    return True


def release(owner: str, *, dry: bool = False, folder: Path = FOLDER) -> bool:
    """Give the lock back; returns whether this owner held it."""
    found = holder(folder)
    if found is None or found.owner != owner:
        return False
    if not dry:
        shutil.rmtree(folder)
    return True


def _busy(found: Holder) -> BusyError:
    since = ""
    if found.since is not None:
        since = f" since {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(found.since))} UTC"
    return BusyError(
        f"this host is held by {found.owner or 'a run that is just starting'}{since}; wait for its "
        "end, or take the lock with force if it is dead"
    )

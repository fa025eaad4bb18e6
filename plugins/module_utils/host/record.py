"""Small JSON files that remember, on the host, what was there before and what was started.

Files under ``/run/crossover`` vanish with the boot, as do the settings that they are about. What
outlives a boot is remembered under ``/var/lib/crossover``.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Optional

from .errors import HostError

RUN = Path("/run/crossover")
LIB = Path("/var/lib/crossover")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SCHEMA = 1
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def boot_id() -> str:
    """The kernel's identity of this boot."""
    return BOOT_ID.read_text().strip()


def scope_file(folder: Path, subject: str, scope: str) -> Path:
    """Where a scope's record of a subject stands. HostError on a scope that is no plain name."""
    if not _SCOPE.fullmatch(scope):
        raise HostError(
            f"scope: found {scope!r}; wanted letters, digits, '_', '.' or '-', at most 64"
        )
    return folder / f"{subject}-{scope}.json"


def load(path: Path) -> Optional[Dict[str, Any]]:
    """The record at ``path``; None when there is none. HostError on one that cannot be read."""
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HostError(
            f"{path}: cannot be read ({error}); wanted a record of this collection"
        ) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise HostError(f"{path}: found another format; wanted a record with schema {SCHEMA}")
    return data


def save(path: Path, data: Dict[str, Any]) -> None:
    """Write the record in one step, readable by its owner only."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump({"schema": SCHEMA, **data}, stream)
        stream.write("\n")
    part.replace(path)


def forget(path: Path) -> None:
    """Remove the record; nothing happens when there is none."""
    path.unlink(missing_ok=True)


def recorded_values(path: Path) -> Dict[str, str]:
    """The recorded settings (key to value before) of this boot; empty when there are none."""
    data = load(path)
    if data is None or data.get("boot_id") != boot_id():
        return {}
    values = data.get("values")
    if not isinstance(values, dict):
        raise HostError(f"{path}: found no 'values'; wanted a record of settings")
    return {str(key): str(value) for key, value in values.items()}


def save_values(path: Path, values: Dict[str, str]) -> None:
    """Remember settings for this boot; an empty set leaves no file behind."""
    if values:
        save(path, {"boot_id": boot_id(), "values": values})
    else:
        forget(path)

"""What is remembered between builds: which identity a name has, how long its build took."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from .paths import kernels_dir, names_dir

SCHEMA = 1


@dataclass(frozen=True)
class Known:
    """What a name was built as last: the hash of its declaration then, and the artifact."""

    definition: str
    identity: str


@dataclass(frozen=True)
class Effort:
    """A full build: steps of make, and seconds."""

    steps: int
    seconds: float


def _load(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.pop("schema", None) == SCHEMA else {}


def _store(file: Path, document: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"schema": SCHEMA, **document}, indent=2) + "\n")
    temporary.rename(file)


def remembered(name: str) -> Optional[Known]:
    """What the name was built as last, None for never."""
    try:
        return Known(**_load(names_dir() / f"{name}.json"))
    except TypeError:
        return None


def note(name: str, definition: str, identity: str) -> None:
    """Remember what a name is now."""
    _store(names_dir() / f"{name}.json", asdict(Known(definition, identity)))


def effort_of(name: str) -> Optional[Effort]:
    """The last full build of that entry on this machine; of another one if it had none yet (most
    share a configuration), None if nothing was ever built."""
    known = _load(kernels_dir() / "efforts.json")
    found = known.get(name) or (list(known.values())[-1] if known else None)
    return Effort(**found) if found else None


def note_effort(name: str, effort: Effort) -> None:
    """Remember a full build."""
    file = kernels_dir() / "efforts.json"
    known = {key: value for key, value in _load(file).items() if key != name}
    _store(file, {**known, name: asdict(effort)})

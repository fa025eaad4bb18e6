"""The kernels by name: the project's and the user's own. docs/data-format.md has the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from collector import yaml_text
from collector.errors import InputError, UsageError
from collector.files import write_whole
from collector.kernels.entry import SCHEMA, Entry, expanded, raw_entries, read_entry
from collector.kernels.errors import KernelError
from collector.kernels.paths import user_entries

OWN = Path(__file__).resolve().parents[2] / "playbooks" / "kernels" / "kernels.yml"


def _decoded(file: Path) -> Any:
    try:
        return yaml_text.load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(file), str(error), "a file of kernel entries") from error
    except yaml.YAMLError as error:
        raise yaml_text.fault(str(file), error, "kernel entries in YAML") from error


def _documents(own: Any, mine: Any) -> dict[str, tuple[dict[str, Any], Path]]:
    """Each entry's document and file, of the two decoded files; the user's (None: no file) may be
    ``like`` the project's. Raises KernelError; a name in both is one, because a run would measure
    one kernel under the other's name."""
    file = user_entries()
    raw = raw_entries(own, OWN)
    where = dict.fromkeys(raw, OWN)
    for name, item in (raw_entries(mine, file) if mine is not None else {}).items():
        if name in raw:
            raise KernelError(f"{file}: {name}: the project has a kernel of that name")
        raw[name], where[name] = item, file
    return {name: (expanded(name, raw, str(where[name])), where[name]) for name in raw}


def _entries(own: Any, mine: Any) -> dict[str, Entry]:
    try:
        documents = _documents(own, mine)
        return {name: read_entry(name, item, str(file)) for name, (item, file) in documents.items()}
    except KernelError as error:
        raise UsageError(str(error)) from error


def _both() -> tuple[Any, Any]:
    file = user_entries()
    return _decoded(OWN), _decoded(file) if file.is_file() else None


def load_entries() -> dict[str, Entry]:
    """All entries, the project's first. Raises CrossoverError."""
    return _entries(*_both())


def entry_document(name: str) -> dict[str, Any]:
    """An entry as a document that needs no other: absolute paths, no ``like``. CrossoverError."""
    find_entry(name)
    return _documents(*_both())[name][0]


def find_entry(name: str) -> Entry:
    """An entry by name. Raises UsageError that names those there are."""
    entries = load_entries()
    if name not in entries:
        raise UsageError(f"kernel {name!r}: no such entry; wanted one of {', '.join(entries)}")
    return entries[name]


def add_entry(name: str, document: dict[str, Any]) -> Path:
    """Write an entry into the user's file and return the file. Raises CrossoverError for a name
    that is taken or an entry that is not as described; the file is then as it was."""
    if name in load_entries():
        raise UsageError(f"kernel {name!r}: there is one of that name; wanted another name")
    file = user_entries()
    mine: Any = _decoded(file) if file.is_file() else {"schema": SCHEMA, "kernels": {}}
    mine["kernels"][name] = document
    _entries(_decoded(OWN), mine)
    try:
        write_whole(file, yaml.safe_dump(mine, sort_keys=False, allow_unicode=True))
    except OSError as error:
        raise InputError(str(file), str(error), "a file that can be written") from error
    return file

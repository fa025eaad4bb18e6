"""Strict reading of decoded JSON or YAML: every error names file, key, what came, what was wanted.

top = Shape(document, "runs/x/plan.json")
name = top.text("name")
top.done()          # raises for any key that nobody asked for
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from collector.errors import InputError

T = TypeVar("T")
_REQUIRED: Any = object()


def read_json(file: Path) -> Any:
    """Decode a JSON file; raises InputError with the line for text that is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(file), error.strerror or str(error), "a readable file") from error
    except UnicodeDecodeError as error:
        raise InputError(str(file), "bytes that are not UTF-8", "JSON text") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}", f"no JSON ({error.msg})", "JSON") from error


def show(value: Any) -> str:
    """A found value for an error message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Shape:
    """One mapping of a document, read key by key."""

    def __init__(self, value: Any, where: str, path: str = "") -> None:
        self.where = where
        self.path = path
        if not isinstance(value, dict):
            raise InputError(self.at(""), show(value), "a mapping")
        self._rest = dict(value)

    def at(self, key: str) -> str:
        """``file: path.to.key``, as errors name it."""
        full = ".".join(part for part in (self.path, key) if part)
        return f"{self.where}: {full}" if full else self.where

    def _take(self, key: str, kinds: tuple[type, ...], wanted: str, default: Any) -> Any:
        if key not in self._rest:
            if default is _REQUIRED:
                raise InputError(self.at(key), "nothing", wanted)
            return default
        value = self._rest.pop(key)
        if value is None and default is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InputError(self.at(key), show(value), wanted)
        return value

    def has(self, key: str) -> bool:
        """Whether the key is there and was not asked for yet."""
        return key in self._rest

    def schema(self, newest: int, key: str = "schema") -> int:
        """The version of the document; raises InputError for one newer than this program."""
        version = self.integer(key)
        if version > newest:
            raise InputError(
                self.at(key),
                f"{version}, written by a newer version of Crossover",
                f"at most {newest} (update Crossover to read it)",
            )
        if version < 1:
            raise InputError(self.at(key), str(version), f"1 to {newest}")
        return version

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        """A string."""
        value: str = self._take(key, (str,), "a string", default)
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None where it is absent or null."""
        value: str | None = self._take(key, (str,), "a string or null", None)
        return value

    def date(self, key: str) -> str | None:
        """A day as ISO 8601 text, or None where it is absent; YAML reads it as a date itself."""
        value = self._take(key, (str, datetime.date), "a date (YYYY-MM-DD)", None)
        if value is None:
            return None
        try:
            return datetime.date.fromisoformat(str(value)).isoformat()
        except ValueError as error:
            raise InputError(self.at(key), show(value), "a date (YYYY-MM-DD)") from error

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """A required string out of ``choices``."""
        value = self.text(key)
        if value not in choices:
            raise InputError(self.at(key), show(value), f"one of {', '.join(choices)}")
        return value

    def boolean(self, key: str, default: Any = _REQUIRED) -> bool:
        """True or false."""
        value: bool = self._take(key, (bool,), "true or false", default)
        return value

    @overload
    def integer(self, key: str) -> int: ...
    @overload
    def integer(self, key: str, default: T) -> int | T: ...
    def integer(self, key: str, default: Any = _REQUIRED) -> Any:
        """A whole number."""
        return self._take(key, (int,), "a whole number", default)

    def within(self, key: str, low: int, high: int, default: Any = _REQUIRED) -> int:
        """A whole number from ``low`` to ``high``."""
        value: int = self.integer(key, default=default)
        if not low <= value <= high:
            raise InputError(self.at(key), str(value), f"{low} to {high}")
        return value

    @overload
    def number(self, key: str) -> float: ...
    @overload
    def number(self, key: str, default: T) -> float | T: ...
    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """A finite number, as float."""
        value = self._take(key, (int, float), "a number", default)
        if isinstance(value, (int, float)) and not math.isfinite(value):
            raise InputError(self.at(key), show(value), "a finite number")
        return None if value is None else float(value)

    def texts(self, key: str, default: Any = _REQUIRED) -> dict[str, str]:
        """A mapping of strings to strings."""
        value = self._take(key, (dict,), "a mapping of strings", default)
        for name, item in value.items():
            if not isinstance(name, str) or not isinstance(item, str):
                raise InputError(self.at(f"{key}.{name}"), show(item), "a string")
        return dict(value)

    def anything(self, key: str, default: Any = _REQUIRED) -> dict[str, Any]:
        """A mapping whose inside belongs to somebody else."""
        value: dict[str, Any] = self._take(key, (dict,), "a mapping", default)
        return dict(value)

    def take_any(self, key: str, kinds: tuple[type, ...], wanted: str, default: Any) -> Any:
        """A value of one of ``kinds``; ``wanted`` says so in the error."""
        return self._take(key, kinds, wanted, default)

    def strings(self, key: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """A list of strings."""
        value = self._take(key, (list,), "a list of strings", default)
        for number, item in enumerate(value):
            if not isinstance(item, str):
                raise InputError(self.at(f"{key}[{number}]"), show(item), "a string")
        return tuple(value)

    def shape(self, key: str) -> Shape:
        """A required mapping, to be read on."""
        value = self._take(key, (dict,), "a mapping", _REQUIRED)
        return Shape(value, self.where, ".".join(part for part in (self.path, key) if part))

    def shapes(self, key: str, default: Any = _REQUIRED) -> list[Shape]:
        """A list of mappings."""
        value = self._take(key, (list,), "a list", default)
        base = ".".join(part for part in (self.path, key) if part)
        return [Shape(item, self.where, f"{base}[{number}]") for number, item in enumerate(value)]

    def rest(self) -> dict[str, Any]:
        """Everything that was not asked for; the shape is then done."""
        taken, self._rest = self._rest, {}
        return taken

    def done(self) -> None:
        """Raises InputError for the first key that nobody asked for."""
        for key in self._rest:
            raise InputError(self.at(key), "an unknown field", "only fields of docs/data-format.md")

"""Kernel configurations: fragments merged, and what did not survive the kernel's own resolution.

Kconfig drops an option whose dependencies do not hold without a word; a fragment that asks for it
would then measure something else than it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import KernelError

_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")


@dataclass(frozen=True)
class Wanted:
    """One option as a fragment wants it: ``y``, ``m``, ``n`` or a literal value; ``where`` is
    ``FILE:LINE``."""

    value: str
    where: str


def parse(text: str, where: str) -> dict[str, Wanted]:
    """The options of a fragment or of a ``.config``. KernelError for a line that is none."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        match = _SET.fullmatch(stripped)
        if match:
            found[match[1]] = Wanted(match[2], f"{where}:{number}")
            continue
        match = _UNSET.fullmatch(stripped)
        if match:
            found[match[1]] = Wanted("n", f"{where}:{number}")
        elif stripped and not stripped.startswith("#"):
            raise KernelError(
                f"{where}:{number}: found {stripped!r}; wanted CONFIG_NAME=VALUE or a comment"
            )
    return found


def read(file: Path) -> dict[str, Wanted]:
    """The options of a file; KernelError if it cannot be read."""
    try:
        return parse(file.read_text(encoding="utf-8"), file.name)
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{file}: {error}; wanted a kernel configuration") from error


def merged(parts: Sequence[Mapping[str, Wanted]]) -> dict[str, Wanted]:
    """All options, a later part winning."""
    result: dict[str, Wanted] = {}
    for part in parts:
        result.update(part)
    return result


def as_text(options: Mapping[str, Wanted]) -> str:
    """The lines that Kconfig reads."""
    return "".join(
        f"# {name} is not set\n" if wanted.value == "n" else f"{name}={wanted.value}\n"
        for name, wanted in options.items()
    )


def lost(wanted: Mapping[str, Wanted], final: Mapping[str, Wanted]) -> dict[str, str]:
    """Options that are not as wanted, with what they are (``n`` for one that is not there)."""
    result = {}
    for name, wish in wanted.items():
        found = final[name].value if name in final else "n"
        if found != wish.value:
            result[name] = found
    return result

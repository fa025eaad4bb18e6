"""Security contexts and MLS levels.

A context is ``user:role:type[:range]``; only the first three colons separate, the range has
colons, dots, commas and a dash of its own (``s0-s0:c0.c1023``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import FrozenSet, List, Optional, Tuple

_LEVEL = re.compile(r"s([0-9]+)(?::(.+))?")
_CATEGORIES = re.compile(r"c([0-9]+)(?:\.c([0-9]+))?")
_PART = re.compile(r"[A-Za-z0-9_.-]+")
_RANGE = re.compile(r"[A-Za-z0-9_.,:-]+")
MAX_CATEGORY = 65534


class LabelError(ValueError):
    """A label or level that cannot be read, or that cannot go into a packet."""


@dataclass(frozen=True)
class SecurityContext:
    """A security context in its parts; ``range`` is None under a policy without MLS."""

    user: str
    role: str
    type: str
    range: Optional[str]

    def __str__(self) -> str:
        parts = [self.user, self.role, self.type]
        return ":".join(parts if self.range is None else [*parts, self.range])


def parse_context(text: str) -> SecurityContext:
    """Split a context. Raises :class:`LabelError` when it has fewer than three parts."""
    parts = text.strip().split(":", 3)
    if len(parts) < 3 or not all(_PART.fullmatch(part) for part in parts[:3]):
        raise LabelError(f"context {text!r}: wanted user:role:type or user:role:type:range")
    label_range = parts[3] if len(parts) == 4 else None
    if label_range is not None and not _RANGE.fullmatch(label_range):
        raise LabelError(f"context {text!r}: range {label_range!r} is not a level or a range")
    return SecurityContext(parts[0], parts[1], parts[2], label_range)


def parse_level(text: str) -> Tuple[int, FrozenSet[int]]:
    """``s0:c0.c239,c5`` as (sensitivity, categories). Raises :class:`LabelError`."""
    match = _LEVEL.fullmatch(text.strip())
    if match is None:
        raise LabelError(f"level {text!r}: wanted sN or sN:cA.cB,cC")
    categories: List[int] = []
    for item in match.group(2).split(",") if match.group(2) else []:
        part = _CATEGORIES.fullmatch(item)
        if part is None:
            raise LabelError(f"level {text!r}: {item!r} is not a category (cN) or a span (cN.cM)")
        first = int(part.group(1))
        last = int(part.group(2)) if part.group(2) else first
        if last < first or last > MAX_CATEGORY:
            raise LabelError(
                f"level {text!r}: span {item!r} must go up, to at most c{MAX_CATEGORY}"
            )
        categories.extend(range(first, last + 1))
    return int(match.group(1)), frozenset(categories)


def low_level(label_range: str) -> Tuple[int, FrozenSet[int]]:
    """The lower level of ``low[-high]``: the one that NetLabel sends. Raises LabelError."""
    low, dash, high = label_range.partition("-")
    if dash:
        parse_level(high)
    return parse_level(low)


def spans(categories: FrozenSet[int]) -> List[Tuple[int, int]]:
    """Categories as ascending (first, last) spans without gaps."""
    found: List[Tuple[int, int]] = []
    for category in sorted(categories):
        if found and found[-1][1] == category - 1:
            found[-1] = (found[-1][0], category)
        else:
            found.append((category, category))
    return found


def format_level(level: int, categories: FrozenSet[int]) -> str:
    """The usual spelling: spans of three or more with a dot, e.g. ``s0:c0.c2,c5``."""
    items: List[str] = []
    for first, last in spans(categories):
        if last - first >= 2:
            items.append(f"c{first}.c{last}")
        else:
            items.extend(f"c{number}" for number in range(first, last + 1))
    return f"s{level}:{','.join(items)}" if items else f"s{level}"

# SPDX-License-Identifier: GPL-2.0-or-later
"""What declarations of any subject have in common: faults that are told all at once, and two ends
of which one is this host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, List


class DeclarationError(ValueError):
    """A declaration that cannot be meant. Its text names each item and key at fault."""


class Faults:
    """Collects the errors of one declared item; ``where`` names it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.texts: List[str] = []

    def add(self, key: str, came: object, wanted: str) -> None:
        """Note that ``key`` holds what it may not."""
        self.texts.append(f"{self.where}.{key}: {came!r}, wanted {wanted}")

    def read(self, key: str, came: Any, reader: Callable[[Any], Any], wanted: str) -> Any:
        """What ``reader`` makes of a value; None, and a fault, where it refuses it."""
        try:
            return reader(came)
        except (ValueError, TypeError):
            self.add(key, came, wanted)
            return None


def own_end(where: str, ends: Sequence[str], local: Sequence[bool]) -> int:
    """0 or 1: which of two ends this host is. ``local`` says of each whether its address is this
    host's. Raises :class:`DeclarationError`."""
    if list(local) == [True, False]:
        return 0
    if list(local) == [False, True]:
        return 1
    found = "both are" if all(local) else "neither is"
    raise DeclarationError(
        f"{where}.ends: {' and '.join(ends)}, {found} an address of this host; wanted exactly one"
    )

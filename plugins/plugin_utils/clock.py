# SPDX-License-Identifier: GPL-2.0-or-later
"""How a host's clock stands to this machine's, by one round trip of ``date +%s.%N``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COMMAND = "date +%s.%N"


def clock_offset(before: float, after: float, there: float) -> tuple[float, float]:
    """Offset of a remote clock that was read between two local times, and its uncertainty.

    Seconds; positive when the remote clock is ahead. The reading happened at some moment of the
    round trip, so the offset is known to half of it.
    """
    return there - (before + after) / 2, (after - before) / 2


def read_seconds(answer: Mapping[str, Any]) -> float:
    """The seconds in what a low-level COMMAND returned. ValueError with what came instead."""
    try:
        return float(answer["stdout"].split()[-1])
    except (ValueError, IndexError):
        said = answer.get("stderr") or answer["stdout"] or f"rc {answer['rc']}"
        raise ValueError(f"{COMMAND}: found {said.strip()!r}; wanted seconds") from None

# SPDX-License-Identifier: GPL-2.0-or-later
"""When a generator begins that is ready: at once, after a while, or when another host has begun.

Clocks of two hosts agree to milliseconds at best, and a call of a module takes longer than that to
arrive. So of two hosts that are to send at the same time one waits for the other's first frame.
How far it was behind is known from one clock, its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .host.errors import HostError

IN_TIME, LATE, NEVER = "in time", "late", "never"
LONGEST_S = 600.0


@dataclass(frozen=True)
class Follow:
    """The device on which another host's frames arrive, how many it had received before that host
    could begin, and how long to wait for the first."""

    device: str
    packets: int
    limit_s: float


@dataclass(frozen=True)
class Begin:
    """``lead_s`` is waited first, then for ``follow``."""

    lead_s: float = 0.0
    follow: Optional[Follow] = None

    @property
    def longest_s(self) -> float:
        """How long it takes at most."""
        return self.lead_s + (self.follow.limit_s if self.follow else 0.0)


@dataclass(frozen=True)
class Seen:
    """What was seen of the other host, and when its first frame arrived, by the monotonic clock;
    None where that is not known."""

    how: str
    at_s: Optional[float]


@dataclass(frozen=True)
class Begun:
    """How sending began, ``lag_s`` seconds after the other's first frame had arrived."""

    how: str
    lag_s: Optional[float]


AT_ONCE = Begin()


def read_begin(lead_s: float, follow: Optional[Mapping[str, Any]]) -> Begin:
    """Check the parameters. HostError that names the key."""
    _seconds("lead_s", lead_s)
    if follow is None:
        return Begin(float(lead_s))
    _seconds("follow.limit_s", follow["limit_s"])
    if follow["packets"] < 0:
        raise HostError(f"follow.packets: found {follow['packets']}; wanted a count")
    wanted = Follow(str(follow["device"]), int(follow["packets"]), float(follow["limit_s"]))
    return Begin(float(lead_s), wanted)


def _seconds(name: str, value: float) -> None:
    if not 0 <= value <= LONGEST_S:
        raise HostError(f"{name}: found {value:g}; wanted 0 to {LONGEST_S:g}")


def begun(seen: Seen, first_s: float) -> Begun:
    """How it began, given when the first own frame was sent (monotonic)."""
    return Begun(seen.how, None if seen.at_s is None else max(0.0, first_s - seen.at_s))

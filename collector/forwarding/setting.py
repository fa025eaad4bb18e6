"""What a search starts from, and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.forwarding.judge import Bottleneck
from collector.forwarding.trial import Trial

# Loads are searched up to this share of what the generator can do, so that a trial's own noise
# does not make the generator miss the offered load.
HEADROOM = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stays the same over a search. Rates are frames a second and direction; ``capacity_fps``
    is what the generator can do without a device in the way, None if that is not known.
    ``keeps_pace``: whether only the device can slow it down; else it sends slower with a device in
    the way, whatever the device does (``collector.run.forwarding_pace``)."""

    frame_bytes: int
    line_fps: float
    capacity_fps: float | None
    duration_s: float
    keeps_pace: bool = True

    @property
    def top_fps(self) -> float:
        """The highest load of a search: line rate, or what the generator surely reaches."""
        if self.capacity_fps is None:
            return self.line_fps
        return min(self.line_fps, HEADROOM * self.capacity_fps)

    @property
    def top_bottleneck(self) -> Bottleneck:
        """What bounds a search that found no loss at ``top_fps``."""
        return Bottleneck.LINE if self.top_fps >= self.line_fps else Bottleneck.GENERATOR

    def trial(self, rate_fps: float | None, duration_s: float | None = None) -> Trial:
        """A trial of this setting; ``duration_s`` None: the setting's own."""
        return Trial(
            self.frame_bytes, rate_fps, self.duration_s if duration_s is None else duration_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a loss curve: offered load as a share of ``line_fps`` in per cent, offered and
    forwarded frames a second and direction, and the loss ratio."""

    offered_pct: float
    offered_fps: float
    forwarded_fps: float
    loss_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a search found. ``values``: frames a second and direction by name (``back_to_back``:
    frames of a burst); None where there is none. ``bottleneck``: what bounded them; of values
    that something else bounded, what, by name (``apart``)."""

    values: Mapping[str, float | None]
    bottleneck: Bottleneck
    apart: Mapping[str, Bottleneck] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    details: Mapping[str, float | None] = field(default_factory=dict)

"""The samples of the CPU sampler that lie in a window, as they were read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Dict, List

from .window import Window

# A clock that was set meanwhile has moved against the monotonic one by more than this. NTP slews
# what is less than 0.128 s, and a busy host may take some hundredths between reading the two.
STEP_S = 0.128
# Fewer of the window than this, and its ends are not those of the window any more.
LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Reading:
    """``/proc/stat`` at one moment: ``at`` in seconds since 1970 by the host's own clock,
    ``monotonic`` in seconds, ``stat`` the text."""

    at: float
    monotonic: float
    stat: str


@dataclass(frozen=True)
class Span:
    """The first and the last reading within a window."""

    first: Reading
    last: Reading

    @property
    def seconds(self) -> float:
        """Time between them, by the clock that nobody sets."""
        return self.last.monotonic - self.first.monotonic

    def as_dict(self) -> Dict[str, Any]:
        """For a module's result and for ``cpu.json``."""
        return asdict(self)


class SpanError(ValueError):
    """Samples that say nothing of the window."""


def read_samples(lines: Iterable[str]) -> List[Reading]:
    """The sampler's lines; one that was cut off while it was written is left out."""
    found = []
    for line in lines:
        if line.endswith("\n"):
            found.append(Reading(**json.loads(line)))
    return found


def span_of(document: Mapping[str, Any]) -> Span:
    """The span of :meth:`Span.as_dict`."""
    return Span(Reading(**document["first"]), Reading(**document["last"]))


def within(samples: Sequence[Reading], window: Window, uncertainty_s: float = 0.0) -> Span:
    """The longest span of samples that certainly lies in the window.

    The window is by the clock of the samples, known to ``uncertainty_s`` either way. Nothing is
    interpolated: the load is steady in the window, so a span that is a sample's period shorter at
    either end shows the same shares. Raises :class:`SpanError` for fewer than two samples, for a
    span of less than half the window, and for a clock that was set meanwhile.
    """
    inside = [
        one
        for one in samples
        if window.start + uncertainty_s <= one.at <= window.end - uncertainty_s
    ]
    if len(inside) < 2:
        raise SpanError(
            f"{len(inside)} of {len(samples)} samples of the CPU lie in the window; wanted two"
        )
    span = Span(inside[0], inside[-1])
    if span.seconds < LEAST_SHARE * window.seconds:
        raise SpanError(
            f"samples of the CPU span {span.seconds:.2f} s of the window's {window.seconds:.2f} s"
        )
    moved = abs((span.last.at - span.first.at) - span.seconds)
    if moved > STEP_S:
        raise SpanError(f"the clock was set by {moved:.2f} s within the window")
    return span

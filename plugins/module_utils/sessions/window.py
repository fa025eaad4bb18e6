"""Interim results of netperf, and the window that all sessions of a cell share.

With ``-D`` netperf prints how much it did since its last such line, and when that interval ended.
In key=value output an interim result is four lines (netperf src/netlib.c, demo_interval_display)::

    NETPERF_INTERIM_RESULT[0]=61923.69
    NETPERF_UNITS[0]=Trans/s
    NETPERF_INTERVAL[0]=0.301
    NETPERF_ENDING[0]=1796051635.702

Times are the sending host's own clock, seconds since 1970. Sessions never start and end together,
so a sum of their means is a sum over different times (netperf manual, "Using Netperf to Measure
Aggregate Performance"): here each contributes what it did within the common window.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import List, Tuple

_LINE = re.compile(r"NETPERF_(INTERIM_RESULT|UNITS|INTERVAL|ENDING)\[([0-9]+)\]=(.*)")
_KEYS = ("INTERIM_RESULT", "UNITS", "INTERVAL", "ENDING")
# Interval and ending are printed in milliseconds: what follows each other may seem this far apart.
ROUNDING_S = 0.003
# Share of a window by which a session's results may miss or overlap each other: a process that
# loses the CPU between doing something and reading the clock states the time late.
LATE = 0.05


class WindowError(ValueError):
    """Sessions that have no window in common, or interim results that cannot be used."""


@dataclass(frozen=True)
class Interim:
    """``rate`` units a second from ``start`` to ``end`` (seconds since 1970)."""

    rate: float
    unit: str
    start: float
    end: float


@dataclass(frozen=True)
class Window:
    """A time that all sessions ran through, seconds since 1970 on the sending host's clock."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def is_interim(line: str) -> bool:
    """Whether a line belongs to an interim result."""
    return _LINE.fullmatch(line.strip()) is not None


def without_interims(text: str) -> str:
    """The output without its interim results: what netperf says at the end."""
    return "".join(line for line in text.splitlines(keepends=True) if not is_interim(line))


def read_interims(text: str) -> Tuple[Interim, ...]:
    """The interim results of one session in order. Raises :class:`WindowError`."""
    found: List[Interim] = []
    held: List[str] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        key, number, value = match.groups()
        if key != _KEYS[len(held)] or int(number) != len(found):
            raise WindowError(
                f"interim results: found NETPERF_{key}[{number}]; wanted "
                f"NETPERF_{_KEYS[len(held)]}[{len(found)}]"
            )
        held.append(value)
        if len(held) == len(_KEYS):
            found.append(_interim(held))
            held = []
    if held:
        raise WindowError("interim results: the last one is cut off")
    return tuple(found)


def _interim(held: Sequence[str]) -> Interim:
    rate, unit, interval, ending = held
    try:
        numbers = [float(text) for text in (rate, interval, ending)]
    except ValueError:
        numbers = [math.nan]
    if not all(math.isfinite(number) for number in numbers) or numbers[0] < 0 or numbers[1] < 0:
        raise WindowError(
            f"interim results: found {rate} {unit} over {interval} s ending at {ending}; "
            "wanted numbers"
        )
    return Interim(numbers[0], unit, numbers[2] - numbers[1], numbers[2])


def common_window(series: Sequence[Sequence[Interim]], settle_s: float, wanted_s: float) -> Window:
    """The window of ``wanted_s`` seconds that begins ``settle_s`` after the last session began.

    Raises :class:`WindowError` if a session has no interim result, or one ended before the
    window's end: the message says how far apart they started and what there was in common.
    """
    for number, one in enumerate(series, start=1):
        if not one:
            raise WindowError(f"session {number} of {len(series)} gave no interim result")
    if not series:
        raise WindowError("no session ran")
    starts = [one[0].start for one in series]
    ends = [one[-1].end for one in series]
    window = Window(max(starts) + settle_s, max(starts) + settle_s + wanted_s)
    if window.end > min(ends) + ROUNDING_S:
        common = max(0.0, min(ends) - max(starts))
        raise WindowError(
            f"the {len(series)} sessions began within {max(starts) - min(starts):.1f} s and had "
            f"{common:.1f} s in common; wanted {settle_s + wanted_s:.1f} s (start_s of the test "
            "gives them longer to start)"
        )
    return window


def skew(series: Sequence[Sequence[Interim]]) -> float:
    """Seconds between the first and the last session's first data."""
    starts = [one[0].start for one in series if one]
    return max(starts) - min(starts) if starts else 0.0


def amount(series: Sequence[Interim], window: Window) -> float:
    """What one session did within the window, in its unit times seconds.

    Each interim result counts with the share of it that lies in the window. Raises
    :class:`WindowError` where the results leave part of the window open.
    """
    total, covered = _within(series, window)
    slack = ROUNDING_S * (2 + sum(1 for one in series if window.start < one.end <= window.end))
    if abs(covered - window.seconds) > slack + LATE * window.seconds:
        raise WindowError(
            f"interim results cover {covered:.3f} s of the window's {window.seconds:.3f} s"
        )
    return total * window.seconds / covered if covered else 0.0


def _within(series: Sequence[Interim], window: Window) -> Tuple[float, float]:
    """What was done in the window, and the seconds of it that the results account for."""
    total = covered = 0.0
    for one in series:
        overlap = min(one.end, window.end) - max(one.start, window.start)
        if overlap > 0:
            total += one.rate * overlap
            covered += overlap
    return total, covered


def whole_amount(series: Sequence[Interim]) -> float:
    """What one session did over all its interim results, in its unit times seconds."""
    return sum(one.rate * (one.end - one.start) for one in series)


def unit_of(series: Sequence[Sequence[Interim]]) -> str:
    """The one unit of all interim results. Raises :class:`WindowError` for several."""
    units = sorted({one.unit for each in series for one in each})
    if len(units) != 1:
        raise WindowError(f"interim results in {' and '.join(units) or 'no unit'}; wanted one unit")
    return units[0]


def left_open(series: Sequence[Interim], window: Window) -> float:
    """How much of :func:`amount` is left open, at the most: by the results that the window cuts,
    and by the time that is missing between results or in two of them.

    netperf prints no result while a send or a transaction waits. When within a result things were
    done is not known: all of it may have been on either side of the cut.
    """
    done, covered = _within(series, window)
    total = abs(covered - window.seconds) * done / covered if covered else 0.0
    for one in series:
        for edge in (window.start, window.end):
            if one.start < edge < one.end:
                total += one.rate * min(edge - one.start, one.end - edge)
    return total

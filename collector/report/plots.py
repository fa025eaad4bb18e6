"""Strip plots as inline SVG: every sample a dot, the median a line, its interval a band.

Horizontal positions are percentages of the width and vertical ones pixels, so the plot fills any
width while text and dots keep their size; a telephone shows the same plot as a desk. Colours come
from the page's style sheet through classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from collector.stats.paired import bootstrap_median

_ROW = 52  # pixels a configuration: its name above, its samples below
_STRIP = 29  # centre of the samples below the top of their row
_TOP = 4
_JITTER = (0, -5, 5, -2, 3, -4, 4, 1, -1, 2)  # pixels, by block, so that equal values stay apart
_DOT = 3.2
# A value axis starts at zero unless all values lie in the upper part of it.
_CLUSTERED = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One row: a configuration's valid samples by block (in the printed unit), or why none.

    ``result`` is the text at the right end; ``baseline`` emphasises the row everything is
    compared with.
    """

    label: str
    values: tuple[float | None, ...]
    result: str
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Where a value axis starts and ends, and its ticks; all in the printed unit."""

    start: float
    end: float
    ticks: tuple[float, ...]

    def position(self, value: float) -> float:
        """Per cent of the width."""
        return 100 * (value - self.start) / (self.end - self.start)

    @property
    def sentence(self) -> str:
        """Where the axis starts, in words."""
        if self.start == 0:
            return "The axis starts at zero."
        return f"The axis starts at {number(float(f'{self.start:.3g}'))}, not at zero."


def axis_for(values: Sequence[float]) -> Axis:
    """An axis with round ticks for at least one finite, non-negative value.

    It starts at zero, unless the smallest value is above 60 % of the largest. Tick steps are 1,
    2, 2.5 or 5 times a power of ten. Raises ValueError without values.
    """
    if not values:
        raise ValueError("axis: found no values; wanted at least one")
    low, high = min(values), max(values)
    if high <= 0:
        return Axis(start=0.0, end=1.0, ticks=(0.0, 1.0))
    start, end = 0.0, 1.04 * high  # room for a dot's radius
    if low > _CLUSTERED * high and low < high:
        # At least 1 % of the value wide, so that ticks differ in the digits they are given.
        span = max(high - low, 0.01 * high)
        middle = (low + high) / 2
        start, end = max(0.0, middle - 0.65 * span), middle + 0.65 * span
    step = _round_step((end - start) / 4)
    first = math.ceil(round(start / step, 9))
    last = math.floor(round(end / step, 9))
    return Axis(start=start, end=end, ticks=tuple(step * i for i in range(first, last + 1)))


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5 or 5 times a power of ten that is not below 80 % of ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= 0.8 * least)


def number(value: float) -> str:
    """A tick's text: thousands separated by a thin space, no needless decimals."""
    text = f"{value:,.6g}" if abs(value) < 1_000_000 else f"{value:,.0f}"
    return text.replace(",", "\u202f")


def strip_plot(
    *, identity: str, title: str, unit: str, strips: Sequence[Strip], resamples: int, seed: int
) -> tuple[str, str]:
    """(SVG, sentence about its axis). ``identity`` makes ids unique on the page.

    The band is the 95 % bootstrap interval of the median. Without any value the SVG is empty and
    the sentence says so.
    """
    everything = [v for strip in strips for v in strip.values if v is not None]
    if not everything:
        return "", "No configuration has a valid sample."
    axis = axis_for(everything)
    height = _TOP + _ROW * len(strips)
    parts = [
        f'<svg class="plot" role="img" aria-labelledby="{identity}-t {identity}-d" '
        f'width="100%" height="{height + 34}">',
        f'<title id="{identity}-t">{escape(title)}</title>',
        f'<desc id="{identity}-d">{escape(_description(strips, unit))} {axis.sentence}</desc>',
        *_grid(axis, height, unit),
        *(
            element
            for index, strip in enumerate(strips)
            for element in _strip(strip, axis, _TOP + index * _ROW, resamples, seed)
        ),
        "</svg>",
    ]
    return "\n".join(parts), axis.sentence


def _description(strips: Sequence[Strip], unit: str) -> str:
    rows = "; ".join(f"{strip.label} {strip.result}" for strip in strips)
    return f"Every sample by configuration, in {unit}, with the median at the right: {rows}."


def _grid(axis: Axis, height: int, unit: str) -> list[str]:
    parts = []
    for index, tick in enumerate(axis.ticks):
        x = axis.position(tick)
        anchor = "start" if x < 4 else "end" if x > 94 else "middle"
        zero = " zero" if tick == 0 else ""
        parts.append(
            f'<line class="grid{zero}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_TOP}" y2="{height}"/>'
        )
        # On a narrow screen every other label would collide; the style sheet hides the odd ones.
        odd = ' class="odd"' if index % 2 else ""
        parts.append(
            f'<text{odd} x="{x:.2f}%" y="{height + 14}" text-anchor="{anchor}">'
            f"{number(tick)}</text>"
        )
    parts.append(
        f'<text class="unit" x="100%" y="{height + 31}" text-anchor="end">{escape(unit)}</text>'
    )
    return parts


def _strip(strip: Strip, axis: Axis, top: int, resamples: int, seed: int) -> list[str]:
    name = "label base" if strip.baseline else "label"
    y = top + _STRIP
    parts = [
        f'<text class="{name}" x="7" y="{top + 13}">{escape(strip.label)}</text>',
        f'<text class="result" x="100%" y="{top + 13}" text-anchor="end">'
        f"{escape(strip.result)}</text>",
        f'<line class="track" x1="0" x2="100%" y1="{y}" y2="{y}"/>',
    ]
    known = [v for v in strip.values if v is not None]
    if not known:
        return parts
    if len(known) >= 2:
        low, high = bootstrap_median(np.asarray(known, dtype=float), resamples=resamples, seed=seed)
        left, right = axis.position(low), axis.position(high)
        parts.append(
            f'<rect class="band" x="{left:.2f}%" y="{y - 9}" width="{right - left:.2f}%" '
            'height="18"/>'
        )
    for block, value in enumerate(strip.values):
        if value is not None:
            cy = y + _JITTER[block % len(_JITTER)]
            parts.append(
                f'<circle class="dot" cx="{axis.position(value):.2f}%" cy="{cy}" r="{_DOT}"/>'
            )
    median = axis.position(float(np.median(known)))
    parts.append(
        f'<line class="median" x1="{median:.2f}%" x2="{median:.2f}%" y1="{y - 11}" y2="{y + 11}"/>'
    )
    return parts

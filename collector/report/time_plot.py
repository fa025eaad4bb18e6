"""Plots over time as inline SVG: lines on one value axis, and marks where something happened.

As in ``plots``, horizontal positions are per cent of the width and vertical ones pixels; the lines
themselves lie in an inner SVG that is stretched, with strokes that are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from collector.report.plots import Axis, axis_for, number

_HEIGHT = 150
_TOP = 16  # room for the highest label
_BELOW = 34
_UNITS = 1000  # of the inner picture, in both directions
# Longer runs are thinned for the picture: the lowest and highest value of each stretch stay.
_MOST_POINTS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line: its name and (seconds, value) points in the printed unit."""

    label: str
    points: tuple[tuple[float, float], ...]


def time_plot(
    *,
    identity: str,
    title: str,
    unit: str,
    series: Sequence[Series],
    end_s: float,
    marks: Sequence[float] = (),
) -> tuple[str, str]:
    """(SVG, sentence about its axis). ``marks`` are moments in seconds; ``end_s`` is the right end
    of the time axis. Without any point the SVG is empty and the sentence says so."""
    values = [value for line in series for _, value in line.points]
    if not values or end_s <= 0:
        return "", "Nothing was recorded."
    axis = axis_for(values)
    divisor, word = (3600.0, "hours") if end_s >= 3 * 3600 else (60.0, "minutes")
    times = Axis(start=0.0, end=end_s / divisor, ticks=axis_for([end_s / divisor]).ticks)
    bottom = _TOP + _HEIGHT
    description = escape(f"{_description(series, unit, word)} {axis.sentence}")
    parts = [
        f'<svg class="plot time" role="img" aria-labelledby="{identity}-t {identity}-d" '
        f'width="100%" height="{bottom + _BELOW}">',
        f'<title id="{identity}-t">{escape(title)}</title>',
        f'<desc id="{identity}-d">{description}</desc>',
        *_value_grid(axis),
        *_time_ticks(times, bottom, word),
        f'<svg y="{_TOP}" width="100%" height="{_HEIGHT}" viewBox="0 0 {_UNITS} {_UNITS}" '
        'preserveAspectRatio="none">',
        *(_mark(at / end_s) for at in marks if 0 <= at <= end_s),
        *(_line(line, index, axis, end_s) for index, line in enumerate(series) if line.points),
        "</svg>",
        *_value_labels(axis),
        "</svg>",
    ]
    return "\n".join(parts), axis.sentence


def _description(series: Sequence[Series], unit: str, word: str) -> str:
    rows = "; ".join(
        f"{line.label} from {number(round(line.points[0][1], 3))} to "
        f"{number(round(line.points[-1][1], 3))}, lowest "
        f"{number(round(min(v for _, v in line.points), 3))}, highest "
        f"{number(round(max(v for _, v in line.points), 3))}"
        for line in series
        if line.points
    )
    return f"In {unit} over {word}: {rows}."


def _value_grid(axis: Axis) -> list[str]:
    parts = []
    for tick in axis.ticks:
        y = _TOP + _HEIGHT * (1 - axis.position(tick) / 100)
        zero = " zero" if tick == 0 else ""
        parts.append(f'<line class="grid{zero}" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
    return parts


def _value_labels(axis: Axis) -> list[str]:
    """Drawn after the lines, so that they stay readable where a line begins."""
    return [
        f'<text class="value" x="2" y="{_TOP + _HEIGHT * (1 - axis.position(tick) / 100) - 3:.1f}">'
        f"{number(float(f'{tick:.6g}'))}</text>"
        for tick in axis.ticks
    ]


def _time_ticks(times: Axis, bottom: int, word: str) -> list[str]:
    parts = []
    for index, tick in enumerate(times.ticks):
        x = times.position(tick)
        if x > 100:
            continue
        anchor = "start" if x < 4 else "end" if x > 94 else "middle"
        odd = ' class="odd"' if index % 2 else ""
        parts.append(
            f'<text{odd} x="{x:.2f}%" y="{bottom + 14}" text-anchor="{anchor}">'
            f"{number(float(f'{tick:.6g}'))}</text>"
        )
    parts.append(f'<text class="unit" x="100%" y="{bottom + 31}" text-anchor="end">{word}</text>')
    return parts


def _mark(share: float) -> str:
    x = f"{_UNITS * share:.1f}"
    return f'<line class="event" x1="{x}" x2="{x}" y1="0" y2="{_UNITS}"/>'


def _line(series: Series, index: int, axis: Axis, end_s: float) -> str:
    points = " ".join(
        f"{_UNITS * at / end_s:.1f},{_UNITS * (1 - axis.position(value) / 100):.1f}"
        for at, value in thinned(series.points)
    )
    return f'<polyline class="series s{index}" points="{points}"/>'


def thinned(
    points: Sequence[tuple[float, float]], most: int = _MOST_POINTS
) -> list[tuple[float, float]]:
    """At most ``most`` points of many: of each stretch the lowest and the highest, in order, so
    that no outlier disappears."""
    if len(points) <= most:
        return list(points)
    stretch = -(-len(points) * 2 // most)
    kept = []
    for start in range(0, len(points), stretch):
        part = points[start : start + stretch]
        low, high = min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])
        kept += sorted({low, high})
    return kept

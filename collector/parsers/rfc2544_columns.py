"""What the columns of a table of forwarding results hold, by their titles.

Titles of TRex's and NFVbench's tables, MoonGen's and vsperf's CSV files, the testers' own exports
and published tables. A title that is not known is kept as printed and never used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0,
          "sec": 1.0}  # fmt: skip
_RATE_UNIT = re.compile(
    r"(?<![a-z])([kmgt]?)(pps|fps|pkts/s(?:ec)?|packets/s(?:ec)?|frames/s(?:ec)?"
    r"|bps|bits?/s(?:ec)?)(?![a-z])"
)
_TIME_UNIT = re.compile(r"(?<![a-zµ])(ns|us|µs|usec|msec|ms|sec|s)(?![a-z])")
_SIZE = re.compile(
    r"^(?:l[12][ _-])?(?:frame|packet|pkt)[ _-]?(?:size|len(?:gth)?)\b|^(?:size|framesize)\b"
)
_INTENDED = re.compile(r"\b(?:requested|intended|target|configured)\b")
_OFFERED = re.compile(r"\b(?:tx|transmit(?:ted)?|sent|offered)\b")
_RATE_WORDS = re.compile(r"\b(?:rate|throughput|load|ndr|pdr|mrr)\b")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``quantity`` is ``rate``, ``share``, ``loss``, ``latency``, ``count``, ``size``
    or ``aside`` (kept as printed); ``field`` is the record's field, for a rate without the unit's
    ending; ``unit`` is that of the title, lower case, None if it must stand in the cells;
    ``factor`` makes the number one of that unit.
    """

    label: str
    quantity: str
    field: str = ""
    unit: str | None = None
    wire: bool = False
    factor: float = 1.0


def column_of(label: str) -> Column:
    """The column under a title."""
    low = re.sub(r"[_\s]+", " ", label.lower()).strip()
    percent = "%" in low or "percent" in low
    if low == "percent of link rate":
        # MoonGen's frameloss.lua writes the fraction that it multiplies the link's rate with.
        return Column(label, "share", "intended_pct", "%", factor=100.0)
    if _SIZE.match(low):
        return Column(label, "size")
    if re.search(r"\b(?:threshold|tolera\w*|allowed)\b|\bmax(?:imum)? loss\b", low):
        return Column(label, "loss", "tolerated_loss_pct", "%") if percent else _aside(label)
    if re.search(r"latency|delay", low):
        return _latency(label, low)
    if re.search(r"loss|lost|\bdrop", low):
        counted = re.search(r"\b(?:packets|frames|pkts|count)\b", low)
        return _aside(label) if counted else Column(label, "loss", "loss_pct", "%")
    if re.search(r"\bduration\b", low) and _TIME_UNIT.search(low):
        return Column(label, "count", "trial_s")
    if (count := _count(low)) is not None:
        return Column(label, "count", count)
    if percent and re.search(r"\bforward", low):
        return Column(label, "share", "forwarded_pct", "%")
    return _rate(label, low, percent)


def _aside(label: str) -> Column:
    return Column(label, "aside")


def _latency(label: str, low: str) -> Column:
    if re.search(r"jitter|std ?dev|variation|percentile|\bp\d", low):
        return _aside(label)
    field = "latency_s"
    if re.search(r"\bmin", low):
        field = "latency_min_s"
    elif re.search(r"\bmax", low):
        field = "latency_max_s"
    unit = _TIME_UNIT.search(low)
    return Column(label, "latency", field, unit[1] if unit else None)


def _count(low: str) -> str | None:
    """Numbers of packets; not rates, which have a unit."""
    if _RATE_UNIT.search(low):
        return None
    if re.fullmatch(
        r"(?:spkts|(?:sent|tx|transmitted) (?:packets|frames|pkts)|(?:packets|frames) (?:sent|tx))"
        r"(?: ?\(.*\))?",
        low,
    ):
        return "packets_sent"
    if re.fullmatch(
        r"(?:rpkts|(?:received|rx) (?:packets|frames|pkts)|(?:packets|frames) (?:received|rx))"
        r"(?: ?\(.*\))?",
        low,
    ):
        return "packets_received"
    return None


def _rate(label: str, low: str, percent: bool) -> Column:
    unit = _RATE_UNIT.search(low)
    side = ""
    if _INTENDED.search(low):
        side = "intended_"
    elif _OFFERED.search(low):
        side = "offered_"
    if percent:
        if not (_RATE_WORDS.search(low) or "line" in low or "link" in low):
            return _aside(label)
        return Column(label, "share", f"{side}pct" if side else "line_rate_pct", "%")
    if not unit and not _RATE_WORDS.search(low):
        return _aside(label)
    if re.search(r"\bmax(?:imum)?\b|\btheoretical\b|\bline[ -]rate\b", low) and not side:
        packets = unit is not None and unit[2].startswith(("p", "f"))
        return Column(label, "rate", "max_", unit[0]) if packets and unit else _aside(label)
    wire = re.search(r"\bl1\b|\bwire\b|\bframing\b", low) is not None
    return Column(label, "rate", side, unit[0] if unit else None, wire)


def rate_unit(unit: str) -> tuple[str, float] | None:
    """``("bps" or "pps", factor)`` of a rate's unit; None for another unit.

    ``kpps`` and ``Gbit/s`` alike are powers of 1000.
    """
    match = _RATE_UNIT.fullmatch(unit.lower())
    if match is None:
        return None
    return "bps" if match[2].startswith("b") else "pps", _SCALES[match[1]]


def time_unit(unit: str) -> float | None:
    """Seconds of a unit of time; None for another unit."""
    return _TIMES.get(unit.lower())

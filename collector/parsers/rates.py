"""Numbers with units as the traffic tools print them, and whether two printed numbers agree.

Only a point is a decimal sign: ``985,3`` is no number here, so that a table printed under another
locale becomes a problem and never 9853 or 985. Commas that group thousands are taken off only
where the text itself shows that they do (:func:`commas_group`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
"""A number without sign, for use inside a larger pattern."""

_NUMBER = re.compile(rf"-?{NUMBER}\Z")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as printed: its value and half a unit of its last digit, both in ``unit``."""

    value: float
    half: float
    text: str

    def scaled(self, factor: float) -> Printed:
        """The same number in a unit that is ``factor`` times smaller."""
        return Printed(self.value * factor, self.half * factor, self.text)

    @property
    def low(self) -> float:
        """The smallest value that prints like this."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """The largest value that prints like this."""
        return self.value + self.half


def printed(text: str) -> Printed:
    """Read a plain decimal number. Raises ValueError for anything else (comma, nan, blanks)."""
    if not _NUMBER.match(text):
        raise ValueError(f"{text!r} is not a number with a decimal point")
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5 * 10.0 ** (-decimals) * 10.0 ** (int(exponent) if exponent else 0)
    return Printed(float(text), half, text)


_GROUPED = r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)"
_GROUPS = re.compile(
    r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3}){2,}(?![\d,])|(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+\.\d"
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?![\d,])")
_POINT = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")


def commas_group(text: str) -> bool:
    """Whether commas between digits group thousands in ``text``, beyond doubt.

    Some number must have two groups, or a comma and a point, or a line must hold a number with a
    comma and another with a decimal point; and none may look like one with a decimal comma.
    """
    lines = text.splitlines()
    shown = any(
        _GROUPS.search(line) or (re.search(_GROUPED, line) and _POINT.search(line))
        for line in lines
    )
    return shown and not any(_DECIMAL_COMMA.search(line) for line in lines)


def ungroup(text: str) -> str:
    """``text`` without the commas that group thousands; see :func:`commas_group`."""
    return re.sub(_GROUPED, lambda match: match[0].replace(",", ""), text)


def unit_factor(unit: str) -> float:
    """Factor from a unit of iperf (``MBytes``, ``Gbits/sec``) to bytes or bits per second.

    Both iperfs print bytes in powers of 1024 and bits in powers of 1000 (unit_snprintf in
    iperf3's units.c and byte_snprintf in iperf 2's stdio.c). Rates in bytes become bits here.
    Raises ValueError for an unknown unit.
    """
    match = re.fullmatch(r"([KMGTPEkmgtpe]?)(bits|Bytes?|bytes?)(/sec)?", unit)
    if not match:
        raise ValueError(f"{unit!r} is not a unit of bits or bytes")
    power = _POWERS[match[1].upper()]
    if match[2] == "bits":
        return float(1000**power)
    return float(1024**power) * (8 if match[3] else 1)


def rate_agrees(size: Printed, rate: Printed, start: Printed, end: Printed) -> bool:
    """Whether ``size`` bytes from ``start`` to ``end`` seconds can be ``rate`` bit/s.

    All four are rounded, so ranges are compared, with 1 % on top: the tools take the time of a
    rate and of its printed interval at slightly different moments.
    """
    shortest, longest = end.low - start.high, end.high - start.low
    if longest <= 0:
        return rate.low <= 0
    lowest = 8 * max(size.low, 0.0) / longest * 0.99
    highest = 8 * size.high / shortest * 1.01 if shortest > 0 else float("inf")
    return lowest <= rate.high and rate.low <= highest


def sum_agrees(total: Printed, parts: list[Printed]) -> bool:
    """Whether ``parts`` can add up to ``total``, both as printed, with 1 % on top."""
    low, high = sum(part.low for part in parts), sum(part.high for part in parts)
    return low * 0.99 <= total.high and total.low <= high * 1.01


def share_agrees(part: int, whole: int, share: str) -> bool:
    """Whether ``share`` (in %, printed with two digits) can be ``part`` of ``whole``.

    With 5 % on top: old versions divide by one datagram more or less.
    """
    said = printed(share)
    percent = 100.0 * part / whole
    slack = 0.05 * percent
    return said.low - slack <= percent <= said.high + slack


def loss(
    lost: int | None, total: int | None, where: str = ""
) -> tuple[int | None, int | None, float | None, list[str]]:
    """Check loss counters: ``(lost, total, loss in %, warnings)``.

    A negative count, more lost than sent, or a total of 2^31-1 (a counter at its end) is no
    measurement: what is doubtful becomes None, with a warning that says why. Without datagrams
    there is no loss ratio.
    """
    prefix = f"{where}: " if where else ""
    if total is not None and total >= _INT32_MAX:
        return (
            None,
            None,
            None,
            [
                f"{prefix}the datagram counter stands at its limit {_INT32_MAX} (saturated); "
                "loss is unknown"
            ],
        )
    if total is not None and total < 0:
        return None, None, None, [f"{prefix}negative number of datagrams {total}; loss is unknown"]
    if lost is not None and lost < 0:
        return (
            None,
            total,
            None,
            [f"{prefix}negative loss {lost} of {total} (iperf3 does so with --omit); unknown"],
        )
    if lost is not None and total is not None and lost > total:
        return None, total, None, [f"{prefix}{lost} lost of only {total}; loss is unknown"]
    if lost is None or not total:
        return lost if total else None, total, None, []
    return lost, total, 100.0 * lost / total, []

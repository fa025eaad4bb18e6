"""Numbers and units exactly as netperf prints them. Anything else is no number.

Fixed decimals are the guard against cut and foreign-locale figures: ``562.0`` where netperf
prints ``%7.2f`` has lost a digit, ``22,87`` is of another locale; both are refused, not repaired.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

INTEGER = re.compile(r"-?[0-9]{1,19}\Z")
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf|infinity)\Z", re.IGNORECASE)
_GENERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
# netlib.c, format_units and calc_thruput: capital letters are bytes in powers of 2^10, small
# letters bits in powers of 10^3.
_UNITS = {
    "Bytes": 8.0,
    "KBytes": 8.0 * 2**10,
    "MBytes": 8.0 * 2**20,
    "GBytes": 8.0 * 2**30,
    # Tried with 2.7.1: -f b prints bytes a second under this label (no division by 1/8).
    "10^0bits": 8.0,
    "10^3bits": 1e3,
    "10^6bits": 1e6,
    "10^9bits": 1e9,
}
_LETTERS = {
    "B": "Bytes",
    "K": "KBytes",
    "M": "MBytes",
    "G": "GBytes",
    "b": "10^0bits",
    "k": "10^3bits",
    "m": "10^6bits",
    "g": "10^9bits",
}
MISLABELLED = "10^0bits"
TRANSACTIONS = "Trans"
UNIT_PATTERN = r"[KMG]?Bytes|10\^[0369]bits"


def integer(text: str) -> int:
    """Read ``%d``. Raises ValueError."""
    if not INTEGER.match(text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def fixed(text: str, decimals: int) -> float | None:
    """Read ``%.<decimals>f``; nan and inf are None. Raises ValueError for any other form."""
    if _NOT_FINITE.match(text):
        return None
    if not re.fullmatch(rf"-?[0-9]+\.[0-9]{{{decimals}}}", text):
        raise ValueError(f"{text!r} has not {decimals} decimals after a point")
    return float(text)


def general(text: str) -> float | None:
    """Read ``%g`` or any plain number; nan and inf are None. Raises ValueError."""
    if _NOT_FINITE.match(text):
        return None
    if not _GENERAL.match(text) or not math.isfinite(float(text)):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def unit_factor(unit: str) -> float | None:
    """Factor from a unit of netperf (``MBytes``, ``10^6bits``, with or without ``/s``) to bit/s.

    None for a unit that is no rate of data (``Trans``).
    """
    return _UNITS.get(unit.removesuffix("/sec").removesuffix("/s").strip())


def scaled(rate: float, factor: float) -> float:
    """``rate × factor`` of the decimal figures, so that 67941.1 × 10^6 is 67941100000."""
    return float(Decimal(repr(rate)) * Decimal(repr(factor)))


def unit_of_letter(letter: str) -> str:
    """The unit that ``-f letter`` makes netperf print. ``x`` is ``Trans``, unknown is KBytes."""
    return TRANSACTIONS if letter == "x" else _LETTERS.get(letter, "KBytes")


def measured(value: float | None) -> float | None:
    """netperf prints -1 for what it did not measure; no quantity of its tables is negative."""
    return None if value is None or value < 0 else value

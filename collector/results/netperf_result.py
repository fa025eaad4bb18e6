"""One netperf's answer: read strictly, and why it is no number where it is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collector.errors import InputError
from collector.parsers.netperf import read_omni_keyval
from collector.results.netperf_command import SELECTORS

__all__ = ["UNITS", "check_output", "keys", "number", "read_omni_keyval", "value_of"]

Values = Mapping[str, str | int | float | None]
# netperf names the unit of THROUGHPUT itself; factors to the sample's unit.
UNITS = {"10^6bits/s": ("bit/s", 1e6), "10^3bits/s": ("bit/s", 1e3), "Trans/s": ("1/s", 1.0)}


def keys() -> tuple[str, ...]:
    """The selectors that every run asks for."""
    return tuple(SELECTORS.split(","))


def check_output(
    rc: int,
    timed_out: bool,
    elapsed_s: float | None,
    stdout: str,
    stderr: str,
    settings: Mapping[str, Any],
    zero_is_some: bool = False,
) -> str | None:
    """Why a netperf that ended so has no number at all; None if it has one. Zero is none, but for
    one of several sessions, whose datagrams may all be lost (``zero_is_some``)."""
    if timed_out:
        after = "" if elapsed_s is None else f" after {elapsed_s:.0f} s"
        return f"netperf hung and was ended{after}"
    if rc != 0:
        text = (stderr or stdout).strip().splitlines()
        return f"netperf ended with {rc}: {text[-1] if text else 'silently'}"
    try:
        values = read_omni_keyval(stdout, keys())
        if not (zero_is_some and number(values, "THROUGHPUT") == 0):
            value_of(values, settings)
    except InputError as error:
        return str(error)
    return None


def number(values: Values, key: str) -> float | None:
    """A numeric value; None where netperf says that it has none (negative or not a number)."""
    value = values[key]
    return value if isinstance(value, (int, float)) and value >= 0 else None


def value_of(values: Values, settings: Mapping[str, Any]) -> tuple[float, str]:
    """The headline value and its unit. Raises InputError for none, zero or a strange unit."""
    unit = str(values["THROUGHPUT_UNITS"])
    if unit not in UNITS:
        raise InputError("netperf THROUGHPUT_UNITS", repr(unit), f"one of {', '.join(UNITS)}")
    value = number(values, "THROUGHPUT")
    if not value:
        raise InputError(
            f"netperf {settings['netperf']} THROUGHPUT", str(values["THROUGHPUT"]), "more than 0"
        )
    name, factor = UNITS[unit]
    return value * factor, name

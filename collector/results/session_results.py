"""Sessions that ran at once: whether each has a result, and what they did together.

Throughput is summed over the window that all sessions share. Latency is merged as far as what
netperf prints allows: its percentiles are each session's own, and no percentile of all follows
from them, so their range over the sessions is kept, never a mean of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.errors import InputError
from collector.matrix.tests import STREAMS
from collector.proof.findings import Finding, equal
from collector.results.netperf_command import window_s
from collector.results.netperf_result import UNITS, check_output, keys, number, read_omni_keyval
from collector.sessions.launch import Session
from collector.sessions.window import (
    Window,
    WindowError,
    amount,
    left_open,
    read_interims,
    skew,
    unit_of,
    whole_amount,
    without_interims,
)

Values = Mapping[str, str | int | float | None]
PERCENTILES = (50, 90, 99)
# Interim results are rounded to 1 ms and two decimals; what they leave out besides is an error. A
# process that loses the CPU between two readings of the clock may be further off by itself (200
# sessions on two CPUs: one by 22 %), which the sum of all does not notice.
SUM_TOLERANCE = 0.05
SESSION_TOLERANCE = 0.5
# A bound, reached only if all that the cut results hold was done on the wrong side of the cut.
MOST_OPEN = 0.25


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds over all transactions of all sessions, their whole run. ``percentiles`` has the
    lowest and the highest session's own value."""

    mean: float
    stddev: float | None
    lowest: float | None
    highest: float | None
    percentiles: dict[int, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Together:
    """What the sessions did in the window. ``value`` is what arrived, ``sent`` what was sent, in
    ``unit``; ``low`` and ``high`` are the slowest and the fastest session."""

    value: float
    sent: float
    unit: str
    low: float
    high: float
    skew_s: float
    latency: Latency | None


def check_sessions(
    sessions: Sequence[Session],
    window: Window | None,
    window_error: str | None,
    settings: Mapping[str, Any],
    expected_mss: int | None,
    hints: Sequence[str] = (),
) -> list[Finding]:
    """Findings that must all hold before the sum counts: every session has a whole result over the
    wanted segments, its interim results add up to it, and there is a window in common.

    ``hints`` are what the hosts know against so many sessions; they stand beside a failure.
    """
    count = len(sessions)
    findings = [equal("sessions that ran", settings["sessions"], count)]
    sizes: set[int | None] = set()
    sums: list[tuple[float, float, float]] = []
    for one in sessions:
        values, why = _read(one, settings)
        if why is None and values is not None:
            why = _adds_up(one, values, settings, sums)
            if values["PROTOCOL"] == "TCP":
                size = number(values, "TRANSPORT_MSS")
                sizes.add(None if size is None else int(size))
        if why is not None:
            told = "; ".join([why, *hints])
            findings.append(Finding(f"session {one.number} of {count}", "a result", told, False))
    if expected_mss is not None and sizes:
        found = ", ".join(sorted(str(size) for size in sizes))
        good = sizes == {expected_mss}
        findings.append(Finding("TCP segment size of the sessions", str(expected_mss), found, good))
    if all(finding.ok for finding in findings):
        findings.append(_sum_finding(sums))
        findings.append(_window_finding(window, window_error, settings))
    if window is not None and all(finding.ok for finding in findings):
        findings.append(_cut_finding(sessions, window))
    return findings


def _cut_finding(sessions: Sequence[Session], window: Window) -> Finding:
    """Whether the interim results are fine enough for the window's ends."""
    series = [read_interims(one.stdout) for one in sessions]
    try:
        total = sum(amount(one, window) for one in series)
    except WindowError as error:
        return Finding("interim results over the window", "whole", str(error), False)
    share = sum(left_open(one, window) for one in series) / total if total else 0.0
    return Finding(
        "share of the sum that interim results leave open at the window's ends",
        f"at most {MOST_OPEN:.0%}",
        f"{share:.1%}",
        share <= MOST_OPEN,
    )


def _window_finding(
    window: Window | None, error: str | None, settings: Mapping[str, Any]
) -> Finding:
    wanted = f"{window_s(settings):g} s"
    found = str(error) if window is None else f"{window.seconds:.2f} s"
    return Finding("window that all sessions share", wanted, found, window is not None)


def _read(one: Session, settings: Mapping[str, Any]) -> tuple[Values | None, str | None]:
    """What netperf said at the end of a session, or why that is no result."""
    text = without_interims(one.stdout)
    lossy = settings["netperf"] == "UDP_STREAM" and settings["sessions"] > 1
    why = check_output(one.rc, one.timed_out, None, text, one.stderr, settings, lossy)
    return (None, why) if why is not None else (read_omni_keyval(text, keys()), None)


def _adds_up(
    one: Session,
    values: Values,
    settings: Mapping[str, Any],
    sums: list[tuple[float, float, float]],
) -> str | None:
    """Why a session's interim results are not those of its result; None if they add up to it
    roughly, and then both are noted in ``sums``."""
    try:
        series = read_interims(one.stdout)
        if not series:
            return "no interim result: this netperf was built without demo mode (--enable-demo)"
        unit = unit_of([series])
    except WindowError as error:
        return str(error)
    if unit not in UNITS:
        return f"interim results in {unit}; wanted one of {', '.join(UNITS)}"
    name, factor = UNITS[unit]
    done = whole_amount(series) * factor
    whole = _whole(values, settings, name)
    if whole is None or abs(done - whole) > SESSION_TOLERANCE * whole + _step(settings, values):
        return f"interim results add up to {done:.0f} of {whole or 0:.0f} ({name} times s)"
    sums.append((done, whole, _step(settings, values)))
    return None


def _sum_finding(sums: Sequence[tuple[float, float, float]]) -> Finding:
    """Whether the interim results of all sessions are what all of them did; ``sums`` has both, and
    one message or transaction, of each."""
    done, whole, steps = (sum(one[i] for one in sums) for i in range(3))
    off = abs(done - whole)
    return Finding(
        "interim results of all sessions against their whole runs",
        f"within {SUM_TOLERANCE:.0%}",
        f"{done / whole - 1:+.1%}" if whole else "nothing done",
        bool(whole) and off <= SUM_TOLERANCE * whole + steps,
    )


def _whole(values: Values, settings: Mapping[str, Any], unit: str) -> float | None:
    """What the session's own end did in its whole run: bits, or transactions."""
    if unit == "bit/s":
        side = "RECVD" if settings["netperf"] == "TCP_MAERTS" else "SENT"
        moved = number(values, f"LOCAL_BYTES_{side}")
        return None if moved is None else moved * 8
    rate, elapsed = number(values, "THROUGHPUT"), number(values, "ELAPSED_TIME")
    return None if rate is None or elapsed is None else rate * elapsed


def _step(settings: Mapping[str, Any], values: Values) -> float:
    """One message or transaction, which may stand on either side of the end."""
    if settings["netperf"] not in STREAMS:
        return 1.0
    end = "RECV" if settings["netperf"] == "TCP_MAERTS" else "SEND"
    return (number(values, f"LOCAL_{end}_SIZE") or 0.0) * 8


def together(sessions: Sequence[Session], window: Window, settings: Mapping[str, Any]) -> Together:
    """What checked sessions did in their window. Raises InputError for what cannot be summed.

    netperf's interim results are of its own end. A stream of datagrams that are lost counts as
    what arrived: each session's sum is scaled by the share of its bytes that did over its run.
    """
    read = [read_omni_keyval(without_interims(one.stdout), keys()) for one in sessions]
    series = [read_interims(one.stdout) for one in sessions]
    try:
        name, factor = UNITS[unit_of(series)]
        sent = [amount(one, window) / window.seconds * factor for one in series]
    except (WindowError, KeyError) as error:
        raise InputError("sessions", str(error), "interim results over the window") from error
    arrived = [rate * _delivered(values, settings) for rate, values in zip(sent, read, strict=True)]
    if sum(arrived) <= 0:
        raise InputError("sessions", "nothing done in the window", "more than 0")
    return Together(
        value=sum(arrived),
        sent=sum(sent),
        unit=name,
        low=min(arrived),
        high=max(arrived),
        skew_s=skew(series),
        latency=None if settings["netperf"] in STREAMS else merge_latency(read),
    )


def _delivered(values: Values, settings: Mapping[str, Any]) -> float:
    if settings["netperf"] != "UDP_STREAM":
        return 1.0
    sent, received = number(values, "LOCAL_BYTES_SENT"), number(values, "REMOTE_BYTES_RECVD")
    return received / sent if sent and received is not None else 0.0


def merge_latency(read: Sequence[Values]) -> Latency | None:
    """The latency of all transactions, from each session's own statistics; None if one lacks them.

    Mean and variance merge exactly, weighted by transactions (T. Chan, G. Golub, R. LeVeque 1979,
    "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", eq. 2.1 for many
    groups); minimum and maximum are those of all.
    """
    groups = []
    for values in read:
        rate, elapsed = number(values, "THROUGHPUT"), number(values, "ELAPSED_TIME")
        mean = number(values, "MEAN_LATENCY")
        if rate is None or elapsed is None or mean is None:
            return None
        groups.append((rate * elapsed, mean, number(values, "STDDEV_LATENCY")))
    total = sum(weight for weight, _, _ in groups)
    if total <= 0:
        return None
    mean = sum(weight * own for weight, own, _ in groups) / total
    stddev = None
    if all(own is not None for _, _, own in groups):
        squares = sum(
            weight * ((own or 0.0) ** 2 + (group - mean) ** 2) for weight, group, own in groups
        )
        stddev = math.sqrt(squares / total)
    return Latency(
        mean=mean,
        stddev=stddev,
        lowest=_extreme(min, read, "MIN_LATENCY"),
        highest=_extreme(max, read, "MAX_LATENCY"),
        percentiles=_ranges(read),
    )


def _extreme(of: Any, read: Sequence[Values], key: str) -> float | None:
    found = [number(values, key) for values in read]
    known = [value for value in found if value is not None]
    return float(of(known)) if known and len(known) == len(found) else None


def _ranges(read: Sequence[Values]) -> dict[int, tuple[float, float]]:
    ranges = {}
    for percent in PERCENTILES:
        low = _extreme(min, read, f"P{percent}_LATENCY")
        high = _extreme(max, read, f"P{percent}_LATENCY")
        if low is not None and high is not None:
            ranges[percent] = (low, high)
    return ranges

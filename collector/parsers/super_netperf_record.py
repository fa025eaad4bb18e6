"""The records of super_netperf, and the statistics of its few repeats."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from .base import Record, Source, Status

TOOL = "super_netperf"
LEVEL_PCT = 95.0

_UNITS = {"k": ("10^3bits/s", 1e3), "m": ("10^6bits/s", 1e6), "g": ("10^9bits/s", 1e9)}
_BYTE_UNITS = {"K": ("KBytes/s", 2.0**10), "M": ("MBytes/s", 2.0**20), "G": ("GBytes/s", 2.0**30)}
_TRANSACTIONS = re.compile(r"_(?:RR|CRR|CC)$")
_STREAMS = re.compile(r"_(?:STREAM|MAERTS|SENDFILE)$")
_FOLLOWS = "no command line right above"
_LOOP = re.compile(
    r"\bfor\s+\w+\s+in\s+(?:\{(?P<first>\d+)\.\.(?P<last>\d+)\}"
    r"|(?:\$\(|`)\s*seq\s+(?:1\s+)?(?P<count>\d+)\s*[)`]|(?P<words>\d+(?:\s+\d+)*)\s*;)"
)
_BASE_WORDS = r"\b(?:before|without|w/o|unpatched|old|base(?:line)?|vanilla|off|disabled)(?!\w)"
_OTHER_WORDS = r"\b(?:after|with(?!out)|w/(?!o)|patched|new|on|enabled)(?!\w)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperNetperfResult(Record):
    """One printed sum (``sum``), a single netperf's value beside a load (``value``), the
    description of the repeats under one heading (``repeats``), two conditions compared
    (``change``), or the sum over instance files (``instances``).

    ``value`` is in ``unit`` as netperf prints it for that test; ``throughput_bps`` or
    ``transactions_per_second`` is the same in SI units. For ``repeats``, ``mean``, ``sd`` (sample)
    and ``half_width`` (95 %, Student's t with n-1 degrees of freedom) are in ``unit``.
    ``comparable`` is False for a sum that lacks instances.
    """

    condition: str | None = None
    command: str | None = None
    instances: int | None = None
    instances_expected: int | None = None
    instances_parsed: int | None = None
    instances_failed: int | None = None
    comparable: bool | None = None
    test: str | None = None
    unit: str | None = None
    value: float | None = None
    throughput_bps: float | None = None
    transactions_per_second: float | None = None
    requested_s: float | None = None
    background: str | None = None
    background_covers: bool | None = None
    n: int | None = None
    values: tuple[float, ...] = ()
    mean: float | None = None
    sd: float | None = None
    half_width: float | None = None
    half_width_pct: float | None = None
    level_pct: float | None = None
    base_condition: str | None = None
    change_pct: float | None = None
    change_half_width_pct: float | None = None
    p_value: float | None = None
    verdict: str | None = None
    p99_latency_min_s: float | None = None
    p99_latency_median_s: float | None = None
    p99_latency_max_s: float | None = None
    rt_latency_s: float | None = None
    retransmits: int | None = None


def unit_of(test: str | None, letter: str | None) -> str | None:
    """The unit in which netperf prints a test's result, with its global ``-f`` letter."""
    if test is None:
        return None
    if _TRANSACTIONS.search(test):
        return "Trans/s"
    if not _STREAMS.search(test):
        return None
    found = _UNITS.get(letter or "m") or _BYTE_UNITS.get(letter or "")
    return found[0] if found else None


def to_si(value: float, unit: str | None) -> tuple[float | None, float | None]:
    """``(bit/s, transactions/s)`` of a value in netperf's unit; zero is no measurement."""
    if not value or unit is None:
        return None, None
    if unit == "Trans/s":
        return None, value
    for name, factor in _UNITS.values():
        if unit == name:
            return value * factor, None
    for name, factor in _BYTE_UNITS.values():
        if unit == name:
            return value * factor * 8, None
    return None, None


def half_width(values: list[float]) -> float | None:
    """Half-width of the 95 % confidence interval of the mean: t(0.975, n-1) · s / √n."""
    if len(values) < 2:
        return None
    from scipy import stats

    t = float(stats.t.ppf(0.5 + LEVEL_PCT / 200, len(values) - 1))
    return t * statistics.stdev(values) / math.sqrt(len(values))


def _promised(group: list[SuperNetperfResult]) -> int | None:
    """How many values the shell loops in the command lines of a group promise; None if none is.

    A record whose command stood right above it is the first of its loop.
    """
    match = _LOOP.search(group[0].command or "")
    if match is None:
        return None
    if match["last"]:
        each = int(match["last"]) - int(match["first"]) + 1
    else:
        each = int(match["count"] or 0) or len((match["words"] or "").split())
    loops = sum(not any(_FOLLOWS in warning for warning in one.warnings) for one in group)
    return each * loops


def describe(
    file: str,
    label: str | None,
    group: list[SuperNetperfResult],
    stated: tuple[str, float] | None = None,
) -> SuperNetperfResult:
    """Describe the repeats under one heading. One value alone has no interval.

    ``stated`` is a mean that the text gives, with its label: it is checked, never used.
    """
    values = [one.value for one in group if one.value is not None]
    first = group[0]
    warnings = []
    if len(values) < len(group):
        warnings.append(f"{len(group) - len(values)} of {len(group)} values are no measurement")
    promised = _promised(group)
    if promised is not None and promised != len(group):
        warnings.append(f"expected {promised} values of the loop, got {len(group)}")
    width = half_width(values)
    mean = statistics.fmean(values) if values else None
    if stated and mean is not None and abs(stated[1] - mean) > 0.001 * mean:
        warnings.append(f"the text says {stated[0]} {stated[1]:g}, the values give {mean:g}")
    doubtful = len(values) < len(group) or promised not in {None, len(group)}
    if width is None:
        warnings.append("fewer than two values: no interval")
    elif len(values) < 6:
        warnings.append(f"only {len(values)} repeats: the interval is wide and its shape unknown")
    return SuperNetperfResult(
        tool=TOOL,
        kind="repeats",
        status=Status.OK if width is not None and not doubtful else Status.SUSPECT,
        source=Source(file, first.source.line, group[-1].source.last_line),
        warnings=tuple(warnings),
        condition=label,
        command=first.command,
        instances=first.instances,
        test=first.test,
        unit=first.unit,
        requested_s=first.requested_s,
        background=first.background,
        background_covers=first.background_covers,
        n=len(values),
        values=tuple(values),
        mean=mean,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        half_width=width,
        half_width_pct=100 * width / mean if width is not None and mean else None,
        level_pct=LEVEL_PCT if width is not None else None,
    )


def _pair_key(label: str) -> tuple[str, bool] | None:
    """The condition without its base/other word, and whether it is the base."""
    low = label.lower()
    for pattern, is_base in ((_BASE_WORDS, True), (_OTHER_WORDS, False)):
        if re.search(pattern, low):
            return " ".join(re.sub(pattern, " ", low).split()), is_base
    return None


def changes(file: str, repeats: list[SuperNetperfResult]) -> Iterator[SuperNetperfResult]:
    """Compare conditions whose headings differ in before/after, without/with and the like."""
    bases: dict[str, SuperNetperfResult] = {}
    for one in repeats:
        key = _pair_key(one.condition) if one.condition else None
        if key is None:
            continue
        if key[1]:
            bases[key[0]] = one
        elif key[0] in bases:
            yield compare(file, bases[key[0]], one)


def compare(file: str, base: SuperNetperfResult, other: SuperNetperfResult) -> SuperNetperfResult:
    """Compare two conditions by Welch's t test of their repeats (unequal variances).

    "no significant difference" is not "no difference": the warning gives the 95 % interval of the
    difference, in percent of the base mean.
    """
    a, b = list(base.values), list(other.values)
    warnings: list[str] = []
    change = p_value = width = None
    verdict = "not enough data"
    if base.unit != other.unit or base.test != other.test:
        warnings.append(f"{base.test} and {other.test} cannot be compared")
    elif base.mean and other.mean:
        change = 100 * (other.mean / base.mean - 1)
        if len(a) > 1 and len(b) > 1 and statistics.stdev(a) + statistics.stdev(b) > 0:
            from scipy import stats

            test = stats.ttest_ind(b, a, equal_var=False)
            interval = test.confidence_interval(LEVEL_PCT / 100)
            p_value = float(test.pvalue)
            width = 100 * float(interval.high - interval.low) / 2 / base.mean
            verdict = "different" if p_value < 0.05 else "no significant difference"
    if verdict == "no significant difference":
        warnings.append(
            f"no significant difference is not the same as no difference: the interval of the "
            f"change is +/-{width:.0f} %, that of the base mean +/-{base.half_width_pct or 0:.0f} %"
        )
    if change is not None:
        warnings.append(f"n = {len(a)} and {len(b)}; the repeats were not interleaved")
    return SuperNetperfResult(
        tool=TOOL,
        kind="change",
        status=Status.OK if p_value is not None else Status.SUSPECT,
        source=Source(
            file,
            min(base.source.line, other.source.line),
            max(base.source.last_line, other.source.last_line),
        ),
        warnings=tuple(warnings),
        condition=other.condition,
        base_condition=base.condition,
        test=other.test,
        unit=other.unit,
        instances=other.instances,
        n=min(len(a), len(b)),
        change_pct=change,
        change_half_width_pct=width,
        p_value=p_value,
        level_pct=LEVEL_PCT if p_value is not None else None,
        verdict=verdict,
    )

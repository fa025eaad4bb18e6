"""The verdict of a stress run, from its plan and timeline. Pure; docs/methodology.md has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy import stats

from collector.duration import duration
from collector.stress.checks import Failure, failures, notes, rekeys
from collector.stress.log import Sample, Timeline, received
from collector.stress.plan import ROLES, StressPlan

# The beginning does not count for trends: caches fill, and slabs with them.
WARM_UP_SHARE = 0.1
WARM_UP_MOST_S = 900.0
FEWEST_POINTS = 8
# A slope an hour out of less than this would be made of noise.
SHORTEST_SPAN_H = 5 / 60
LEVEL = 0.95
# Less than this over the whole run is the ordinary coming and going of caches.
LEAST_LEAK_MIB = 4.0
_MIB_KIB = 1024.0


class Outcome(Enum):
    """How a stress run ended; the worst that holds."""

    RUNNING = "running"
    COMPLETED = "completed"
    DEGRADED = "degraded"
    LEAKED = "leaked"
    FAILED = "failed"


EXIT_CODES = {
    Outcome.RUNNING: 0,
    Outcome.COMPLETED: 0,
    Outcome.DEGRADED: 10,
    Outcome.LEAKED: 10,
    Outcome.FAILED: 40,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A quantity over the run. ``slope`` an hour with its 95 % interval; ``change_pct`` is the
    slope over the observed span in per cent of the median. All three are None where there are too
    few points or the run is too short for a slope to mean anything."""

    host: str
    quantity: str
    unit: str
    median: float
    points: int
    span_h: float
    slope: float | None = None
    low: float | None = None
    high: float | None = None

    def over_run(self, slope: float | None) -> float | None:
        """A slope as the change over the observed span, in the quantity's unit."""
        return None if slope is None else slope * self.span_h

    def percent(self, slope: float | None) -> float | None:
        """A slope as the change over the observed span, per cent of the median."""
        change = self.over_run(slope)
        return None if change is None or not self.median else 100 * change / self.median


@dataclass(frozen=True, slots=True, kw_only=True)
class StressVerdict:
    """The verdict: outcome, one sentence, everything that led to it."""

    outcome: Outcome
    sentence: str
    failures: tuple[Failure, ...]
    findings: tuple[str, ...]  # what is worse than its limit, without being a failure
    trends: tuple[Trend, ...]
    notes: tuple[str, ...]
    ran_s: float
    chunks: int
    new_spis: dict[str, int]

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return EXIT_CODES[self.outcome]


def warm_up_s(plan: StressPlan) -> float:
    """The part of the run that trends leave out, seconds."""
    return min(WARM_UP_SHARE * plan.duration_s, WARM_UP_MOST_S)


def trend(
    host: str, quantity: str, unit: str, points: Sequence[tuple[float, float]]
) -> Trend | None:
    """Median and slope of ``(seconds, value)`` points; None without any.

    The slope is the median of the slopes of all pairs (Theil 1950; Sen 1968, whose rank interval
    is given): a single outlier, or a third of them, does not move it.
    """
    if not points:
        return None
    hours = np.array([at for at, _ in points]) / 3600
    values = np.array([value for _, value in points])
    span = float(hours[-1] - hours[0])
    made = Trend(
        host=host,
        quantity=quantity,
        unit=unit,
        median=float(np.median(values)),
        points=len(points),
        span_h=span,
    )
    if len(points) < FEWEST_POINTS or span < SHORTEST_SPAN_H:
        return made
    slope, _, low, high = stats.theilslopes(values, hours, alpha=LEVEL)
    return Trend(
        host=host,
        quantity=quantity,
        unit=unit,
        median=made.median,
        points=made.points,
        span_h=span,
        slope=float(slope),
        low=float(low),
        high=float(high),
    )


def memory_points(
    samples: Sequence[Sample], value: Callable[[Sample], float | None], after_s: float = 0.0
) -> list[tuple[float, float]]:
    """``(seconds, value)`` of the samples from ``after_s`` on that have the value."""
    found = []
    for sample in samples:
        known = value(sample)
        if known is not None and sample.elapsed_s >= after_s:
            found.append((sample.elapsed_s, known))
    return found


def mib(name: str) -> Callable[[Sample], float | None]:
    """A field of memory of a sample, MiB; None where the host did not say it."""

    def value(sample: Sample) -> float | None:
        kib = (sample.memory_kib or {}).get(name)
        return None if kib is None else kib / _MIB_KIB

    return value


def trends(plan: StressPlan, timeline: Timeline) -> list[Trend]:
    """Throughput of each stream, then memory of each host."""
    after = warm_up_s(plan)
    found = [
        trend(
            "client",
            stream,
            "10^6 bit/s",
            [(at, rate / 1e6) for at, rate in received(timeline.chunks, stream) if at >= after],
        )
        for stream in plan.streams
    ]
    for host in ROLES:
        for name in ("MemAvailable", "SUnreclaim"):
            points = memory_points(timeline.samples[host], mib(name), after)
            found.append(trend(host, name, "MiB", points))
    return [item for item in found if item is not None]


def drifted(item: Trend, limit_pct: float) -> str | None:
    """The sentence if a throughput fell by more than the limit over the run, surely falling."""
    change = item.percent(item.slope)
    if change is None or item.high is None or item.high >= 0 or -change <= limit_pct:
        return None
    return (
        f"{item.quantity} throughput fell by {-change:.1f} % over the run "
        f"(95 % interval {_span(item.percent(item.low), item.percent(item.high), '+.1f')} %; "
        f"allowed {limit_pct:g} %)"
    )


def leaked(item: Trend, limit_mib_h: float) -> str | None:
    """The sentence if memory was lost faster than the limit, surely so."""
    if item.slope is None or item.low is None or item.high is None:
        return None
    available = item.quantity == "MemAvailable"
    lost = -item.slope if available else item.slope
    sure = item.high < 0 if available else item.low > 0
    total = abs(item.over_run(item.slope) or 0.0)
    if not sure or lost <= limit_mib_h or total < LEAST_LEAK_MIB:
        return None
    how = "fell" if available else "grew"
    return (
        f"{item.host}: {item.quantity} {how} by {lost:.1f} MiB/h "
        f"(95 % interval {_span(item.low, item.high, '+.1f')} MiB/h; allowed {limit_mib_h:g})"
    )


def _span(low: float | None, high: float | None, form: str) -> str:
    return f"{low or 0:{form}} to {high or 0:{form}}"


def judge(plan: StressPlan, timeline: Timeline, *, final: bool) -> StressVerdict:
    """The verdict. Without ``final`` a run without a failure is ``running``, whatever its trends:
    they are judged over the whole run."""
    bad = failures(plan, timeline, final=final)
    found = trends(plan, timeline)
    drifts = [
        s for item in found if item.unit != "MiB" if (s := drifted(item, plan.limits.drift_pct))
    ]
    leaks = [
        s for item in found if item.unit == "MiB" if (s := leaked(item, plan.limits.leak_mib_h))
    ]
    short = not found or any(item.slope is None for item in found)
    ran = max((s.elapsed_s for host in ROLES for s in timeline.samples[host]), default=0.0)
    ran = min(ran, plan.duration_s)
    name = f"{plan.configuration} of {plan.matrix}"
    if bad:
        outcome = Outcome.FAILED
        sentence = f"{name} failed in minute {bad[0].minute} because of {bad[0]}"
    elif not final:
        outcome = Outcome.RUNNING
        sentence = f"{name} has run for {duration(ran)} of {duration(plan.duration_s)}"
    elif leaks:
        outcome, sentence = Outcome.LEAKED, f"{name} leaked memory: {leaks[0]}"
    elif drifts:
        outcome, sentence = Outcome.DEGRADED, f"{name} degraded: {drifts[0]}"
    else:
        outcome = Outcome.COMPLETED
        sentence = f"{name} completed {duration(ran)} of constant streams without a failure"
        if not short:
            sentence += ", without loss of throughput and without loss of memory"
    told = notes(plan, timeline)
    if short and final and outcome is not Outcome.FAILED:
        told.insert(0, "Too short for a trend: whether anything is lost was not looked for.")
    return StressVerdict(
        outcome=outcome,
        sentence=sentence + ".",
        failures=tuple(bad),
        findings=tuple(leaks + drifts),
        trends=tuple(found),
        notes=tuple(told),
        ran_s=ran,
        chunks=len(timeline.chunks),
        new_spis={host: rekeys(timeline, host) for host in ROLES} if plan.keying == "ike" else {},
    )

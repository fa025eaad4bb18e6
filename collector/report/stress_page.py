"""The report of a stress run: text for a mail, and one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from collector.duration import duration
from collector.report.html import moment
from collector.report.layout import Table, columns, paragraph
from collector.report.model import CommandGroup
from collector.report.templating import render
from collector.report.time_plot import Series, time_plot
from collector.report.words import command_line, lab_sentence
from collector.stress.checks import Failure
from collector.stress.log import Sample, Timeline, received
from collector.stress.plan import ROLES, StressPlan
from collector.stress.verdict import (
    Outcome,
    StressVerdict,
    Trend,
    memory_points,
    mib,
    warm_up_s,
)

_MOST_LISTED = 20
_NUMBER = re.compile(r"[0-9]+")
_DROPS = ("rx_dropped", "tx_dropped", "rx_errors", "tx_errors")


def text(plan: StressPlan, timeline: Timeline, verdict: StressVerdict) -> str:
    """The report as text, the verdict first."""
    table = trend_table(plan, verdict)
    return render(
        "stress.txt.j2",
        verdict=paragraph(f"{verdict.outcome.value}: {verdict.sentence}"),
        findings=list(verdict.findings),
        failures=listed_failures(verdict),
        facts=[
            paragraph(f"{name}: {value}", hanging="  ")
            for name, value in facts(plan, timeline, verdict)
        ],
        caption=paragraph(table.caption),
        table=columns([table.head, *table.rows]),
        table_notes=table.notes,
        notes=list(verdict.notes),
        lab=_lab(plan),
    )


def html_page(
    plan: StressPlan,
    timeline: Timeline,
    verdict: StressVerdict,
    setup: Sequence[CommandGroup] = (),
) -> str:
    """The page: verdict, figures, plots over time, commands; ``setup`` builds the configuration by
    hand. No script, no outside resource."""
    return render(
        "stress.html.j2",
        html=True,
        plan=plan,
        started_at=moment(plan.created_at[:19] + "Z"),
        outcome=verdict.outcome.value,
        tone="plain" if verdict.outcome in (Outcome.COMPLETED, Outcome.RUNNING) else "doubt",
        verdict=verdict,
        failures=listed_failures(verdict),
        facts=facts(plan, timeline, verdict),
        table=trend_table(plan, verdict),
        plots=plots(plan, timeline, verdict),
        commands=[command_line(argv) for argv in plan.streams.values()],
        setup=setup,
        lab=_lab(plan),
    )


def _lab(plan: StressPlan) -> str:
    """What the lab's kind means for the figures; empty for hardware."""
    if plan.lab.kind == "hardware":
        return ""
    return lab_sentence(plan.lab.kind, plan.lab.accelerator)


def listed_failures(verdict: StressVerdict) -> list[str]:
    """The failures in words; those that differ in numbers alone once, the first ones if many."""
    alike: dict[str, list[Failure]] = {}
    for failure in verdict.failures:
        alike.setdefault(_NUMBER.sub("#", str(failure)), []).append(failure)
    found = []
    for same in alike.values():
        again = f" ({len(same)} times, last in minute {same[-1].minute})" if same[1:] else ""
        found.append(f"minute {same[0].minute}, {same[0]}{again}")
    more = len(found) - _MOST_LISTED
    return found[:_MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])


def facts(plan: StressPlan, timeline: Timeline, verdict: StressVerdict) -> list[tuple[str, str]]:
    """(name, value) of what was run and counted."""
    counts = {stream: len(received(timeline.chunks, stream)) for stream in plan.streams}
    found = [
        ("Configuration", f"{plan.configuration} of {plan.matrix}: {plan.about}"),
        ("Ran", f"{duration(verdict.ran_s)} of {duration(plan.duration_s)}"),
        ("Chunks", ", ".join(f"{count} {stream}" for stream, count in counts.items())),
        ("Samples", ", ".join(f"{_count(timeline, host)} {host}" for host in ROLES)),
    ]
    for host in ROLES:
        last = _last(timeline, host)
        if last is not None:
            found.append((f"Counters on the {host}", _counters(timeline, host, last)))
    if verdict.new_spis:
        words = ", ".join(f"{count} {host}" for host, count in verdict.new_spis.items())
        found.append(("New SPIs since the begin", words))
    return found


def _count(timeline: Timeline, host: str) -> int:
    return sum(sample.event == "sample" for sample in timeline.samples[host])


def _last(timeline: Timeline, host: str) -> Sample | None:
    return timeline.of(host, "sample")


def _counters(timeline: Timeline, host: str, last: Sample) -> str:
    first = next(sample for sample in timeline.samples[host] if sample.event == "sample")
    errors = _grown(first.xfrm, last.xfrm)
    parts = [
        "no xfrm statistics in this kernel"
        if errors is None
        else f"xfrm errors {sum(errors.values())}"
    ]
    for name, grown in (_grown(first.device, last.device, _DROPS) or {}).items():
        parts.append(f"{name} {grown}")
    denials = sum(len(sample.denials) for sample in timeline.samples[host])
    parts.append(f"AVC denials {denials}")
    parts.append(
        f"kernel log lines {sum(len(sample.kernel_log) for sample in timeline.samples[host])}"
    )
    return ", ".join(parts)


def _grown(
    before: Mapping[str, int | None] | None,
    after: Mapping[str, int | None] | None,
    names: tuple[str, ...] | None = None,
) -> dict[str, int] | None:
    if before is None or after is None:
        return None
    found = {}
    for name in names or tuple(after):
        first, last = before.get(name, 0), after.get(name)
        if first is not None and last is not None:
            found[name] = last - first
    return found


def trend_table(plan: StressPlan, verdict: StressVerdict) -> Table:
    """Median and slope of each quantity beside its limit."""
    return Table(
        caption=f"Quantities after the first {duration(warm_up_s(plan))}; slopes by Theil and Sen, "
        "with their 95 % intervals",
        head=("Quantity", "Median", "An hour", "95 % interval", "Over run"),
        rows=tuple(_trend_row(item) for item in verdict.trends),
        notes=(
            f"allowed: throughput −{plan.limits.drift_pct:g} % over the run, "
            f"memory {plan.limits.leak_mib_h:g} MiB/h",
        ),
    )


def _trend_row(item: Trend) -> tuple[str, ...]:
    name = f"{item.host} {item.quantity}, {item.unit}"
    if item.slope is None or item.low is None or item.high is None:
        return (name, f"{item.median:.2f}", "-", "-", "-")
    change = item.percent(item.slope)
    over = (
        f"{item.over_run(item.slope):+.1f} MiB"
        if item.unit == "MiB"
        else "-"
        if change is None
        else f"{change:+.1f} %"
    )
    return (
        name,
        f"{item.median:.2f}",
        f"{item.slope:+.2f}",
        f"{item.low:+.2f} to {item.high:+.2f}",
        over,
    )


def plots(plan: StressPlan, timeline: Timeline, verdict: StressVerdict) -> list[dict[str, object]]:
    """The plots over time: throughput a stream, memory, slab, errors and drops."""
    end = max(plan.duration_s if verdict.outcome is not Outcome.RUNNING else 0.0, verdict.ran_s)
    marks = [failure.elapsed_s for failure in verdict.failures]
    found = []
    for stream in plan.streams:
        points = tuple((at, rate / 1e6) for at, rate in received(timeline.chunks, stream))
        series = [Series(label=f"{stream} received", points=points)]
        found.append((f"{stream.upper()} throughput", "10^6 bit/s", series))
    for title, name in (
        ("Available memory", "MemAvailable"),
        ("Unreclaimable slab", "SUnreclaim"),
        ("Reclaimable slab", "SReclaimable"),
    ):
        found.append((title, "MiB", _by_host(timeline, mib(name))))
    found.append(("Packets dropped by IPsec since the begin", "packets", _errors(timeline)))
    found.append(("Drops and errors of the test device", "packets", _drops(timeline)))
    made: list[dict[str, object]] = []
    for index, (title, unit, series) in enumerate(found):
        svg, axis = time_plot(
            identity=f"plot-{index}",
            title=f"{title} over time",
            unit=unit,
            series=series,
            end_s=end,
            marks=marks,
        )
        labels = [line.label for line in series if line.points]
        made.append({"name": title, "unit": unit, "svg": svg, "axis": axis, "labels": labels})
    return made


def _by_host(timeline: Timeline, value: Callable[[Sample], float | None]) -> list[Series]:
    return [
        Series(label=host, points=tuple(memory_points(timeline.samples[host], value)))
        for host in ROLES
    ]


def _since_begin(timeline: Timeline, total: Callable[[Sample], float | None]) -> list[Series]:
    made = []
    for host in ROLES:
        points = memory_points(timeline.samples[host], total)
        start = points[0][1] if points else 0.0
        made.append(Series(label=host, points=tuple((at, value - start) for at, value in points)))
    return made


def _errors(timeline: Timeline) -> list[Series]:
    return _since_begin(timeline, lambda s: None if s.xfrm is None else float(sum(s.xfrm.values())))


def _drops(timeline: Timeline) -> list[Series]:
    def total(sample: Sample) -> float | None:
        known = [(sample.device or {}).get(name) for name in _DROPS]
        numbers = [value for value in known if value is not None]
        return float(sum(numbers)) if numbers else None

    return _since_begin(timeline, total)

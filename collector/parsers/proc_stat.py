"""``/proc/stat``: one record a snapshot, and one for the window between two that follow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from collector.kernel_state.errors import StateError
from collector.kernel_state.proc_stat import CpuUse, ProcStat, parse_proc_stat, use_between
from collector.parsers.base import Document, Line, Reading, Record, Status
from collector.parsers.kernel_text import numbered, problem, source

TOOL = "proc_stat"
_TOTAL = re.compile(r"\s*cpu\s+[0-9]+(?:\s+[0-9]+){3,}\s*")
_MEMBER = re.compile(
    r"\s*(?:cpu[0-9]+|intr|ctxt|btime|processes|procs_running|procs_blocked|softirq)\s.*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcStatRecord(Record):
    """A snapshot: ticks of USER_HZ since boot by kind, for all CPUs and for each."""

    total_ticks: Mapping[str, int]
    cpu_ticks: Mapping[int, Mapping[str, int]]
    boot_time_s: int | None
    interrupts: int | None
    context_switches: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUseRecord(Record):
    """Shares of the window between two snapshots, in percent of the CPUs' own time."""

    cpu_busy_pct: float
    cpu_pct: Mapping[str, float]
    each_cpu_busy_pct: Mapping[int, float]
    window_ticks: int


def recognise(document: Document) -> bool:
    """Whether a line is the first of a snapshot."""
    return any(_TOTAL.fullmatch(line.text) for line in document.lines)


def _blocks(document: Document) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    inside = False
    for line in document.lines:
        if _TOTAL.fullmatch(line.text):
            blocks.append([line])
            inside = True
        elif inside and _MEMBER.fullmatch(line.text):
            blocks[-1].append(line)
        else:
            inside = False
    return blocks


def parse(document: Document) -> Reading:
    """Read every snapshot, and the shares between each and the next of the same boot."""
    reading = Reading()
    previous: ProcStat | None = None
    for lines in _blocks(document):
        reading.claimed.update(line.number for line in lines)
        try:
            found = parse_proc_stat(numbered(lines))
            use = None if previous is None else use_between(previous, found)
        except StateError as error:
            reading.problems.append(problem(document, error, lines[0].number))
            previous = None
            continue
        reading.records.append(_snapshot(document, lines, found))
        if use is not None:
            reading.records.append(_window(document, lines, *use))
        previous = found
    return reading


def _snapshot(document: Document, lines: list[Line], found: ProcStat) -> ProcStatRecord:
    return ProcStatRecord(
        tool=TOOL,
        kind="snapshot",
        status=Status.OK,
        source=source(document, lines),
        total_ticks=dict(found.total),
        cpu_ticks={cpu: dict(ticks) for cpu, ticks in found.cpus.items()},
        boot_time_s=found.boot_time_s,
        interrupts=found.interrupts,
        context_switches=found.context_switches,
    )


def _window(
    document: Document, lines: list[Line], total: CpuUse, each: dict[int, CpuUse]
) -> CpuUseRecord:
    return CpuUseRecord(
        tool=TOOL,
        kind="cpu_use",
        status=Status.OK,
        source=source(document, lines),
        cpu_busy_pct=total.busy,
        cpu_pct=dict(total.percent),
        each_cpu_busy_pct={cpu: use.busy for cpu, use in each.items()},
        window_ticks=total.ticks,
    )

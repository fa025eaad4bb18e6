"""``/proc/stat``: where the time of each CPU went.

Format: Linux fs/proc/stat.c. Numbers are ticks of USER_HZ (100 a second unless the kernel was
built otherwise; ``getconf CLK_TCK``). ``guest`` is contained in ``user``, ``guest_nice`` in
``nice``: neither is added again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from .errors import StateError, Text, decimal, number_lines

KINDS = (
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice",
)  # fmt: skip
_COUNTED = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_IDLE = ("idle", "iowait")
_CPU = re.compile(r"cpu([0-9]*)\s+([0-9].*)")
_SINGLE = ("ctxt", "btime", "processes", "procs_running", "procs_blocked")


@dataclass(frozen=True)
class ProcStat:
    """A snapshot. ``total`` and ``cpus`` (by CPU number; offline ones are absent) hold ticks by
    kind; kinds that an old kernel does not print are absent. ``interrupts`` is the sum since
    boot, ``boot_time_s`` in seconds since 1970."""

    total: Mapping[str, int]
    cpus: Mapping[int, Mapping[str, int]]
    interrupts: Optional[int]
    context_switches: Optional[int]
    boot_time_s: Optional[int]
    forks: Optional[int]
    running: Optional[int]
    blocked: Optional[int]


@dataclass(frozen=True)
class CpuUse:
    """Shares of a window in percent of the CPU's own time. ``busy`` is all but idle and iowait.

    ``percent`` has every kind both snapshots print (guest kinds are part of user and nice).
    ``ticks`` is the window's length in ticks of this CPU (of all CPUs together for the total).
    """

    percent: Mapping[str, float]
    busy: float
    ticks: int


def parse_proc_stat(text: Text) -> ProcStat:
    """Read a snapshot. Raises :class:`StateError` on other text, a CPU listed twice or none."""
    total: Dict[str, int] = {}
    cpus: Dict[int, Dict[str, int]] = {}
    single: Dict[str, int] = {}
    for number, line in number_lines(text):
        match = _CPU.fullmatch(line.strip())
        if match is not None:
            ticks = _ticks(match.group(2).split(), number)
            if match.group(1) == "":
                if total:
                    raise StateError(number, "a second cpu line", "one line for all CPUs")
                total = ticks
            elif int(match.group(1)) in cpus:
                raise StateError(number, f"cpu{match.group(1)} a second time", "each CPU once")
            else:
                cpus[int(match.group(1))] = ticks
            continue
        words = line.split()
        if not words:
            continue
        if words[0] == "intr" and len(words) > 1:
            _once(single, "intr", words[1], number)
        elif words[0] in _SINGLE and len(words) == 2:
            _once(single, words[0], words[1], number)
        elif words[0] not in ("softirq", "page", "swap", "disk_io:"):
            raise StateError(number, repr(line[:60]), "a line of /proc/stat")
    if not total or not cpus:
        raise StateError(
            1,
            f"{len(cpus)} CPUs and {'a' if total else 'no'} cpu line",
            "the cpu line and one line a CPU",
        )
    _consistent(total, cpus)
    return ProcStat(
        total, cpus, single.get("intr"), single.get("ctxt"), single.get("btime"),
        single.get("processes"), single.get("procs_running"), single.get("procs_blocked"),
    )  # fmt: skip


def _ticks(words: List[str], number: int) -> Dict[str, int]:
    if not 4 <= len(words) <= len(KINDS):
        raise StateError(number, f"{len(words)} numbers for a CPU", f"4 to {len(KINDS)}")
    return {kind: decimal(words[at], number, kind) for at, kind in enumerate(KINDS[: len(words)])}


def _once(single: Dict[str, int], name: str, text: str, number: int) -> None:
    if name in single:
        raise StateError(number, f"{name} a second time", "it once")
    single[name] = decimal(text, number, name)


def _consistent(total: Mapping[str, int], cpus: Mapping[int, Mapping[str, int]]) -> None:
    """The first line is the sum over all possible CPUs, so no sum of listed ones exceeds it.

    Idle and iowait are read again for the per-CPU lines and rounded for each CPU, so they may
    differ by some ticks.
    """
    for kind in total:
        listed = sum(cpu.get(kind, 0) for cpu in cpus.values())
        slack = len(cpus) * (100 if kind in _IDLE else 2)
        if listed > total[kind] + slack:
            raise StateError(
                1, f"{listed} ticks of {kind} over the CPUs", f"at most the {total[kind]} of cpu"
            )


def use_between(before: ProcStat, after: ProcStat) -> Tuple[CpuUse, Dict[int, CpuUse]]:
    """The shares between two snapshots of one boot: for all CPUs together, and by CPU.

    Only CPUs online in both are given. Raises :class:`StateError` when the boot differs, a
    counter went back (iowait and idle may by a little: they count as 0 then), or no time passed.
    """
    first, second = before.boot_time_s, after.boot_time_s
    # btime is computed from the clock and moves with it by a second or so.
    if first is not None and second is not None and abs(first - second) > 2:
        raise StateError(1, f"btime {first} and then {second}", "one boot")
    each = {
        cpu: _use(before.cpus[cpu], after.cpus[cpu], f"cpu{cpu}")
        for cpu in before.cpus
        if cpu in after.cpus
    }
    return _use(before.total, after.total, "cpu"), each


def _use(before: Mapping[str, int], after: Mapping[str, int], name: str) -> CpuUse:
    spent: Dict[str, int] = {}
    for kind in before:
        if kind not in after:
            continue
        delta = after[kind] - before[kind]
        if delta < 0 and kind not in _IDLE:
            raise StateError(
                1,
                f"{name} {kind} {before[kind]} and then {after[kind]}",
                "counters that do not go back",
            )
        spent[kind] = max(delta, 0)
    ticks = sum(spent.get(kind, 0) for kind in _COUNTED)
    if ticks <= 0:
        raise StateError(1, f"no time between the two snapshots of {name}", "a later second one")
    percent = {kind: 100.0 * count / ticks for kind, count in spent.items()}
    idle = sum(spent.get(kind, 0) for kind in _IDLE)
    return CpuUse(percent, 100.0 * (ticks - idle) / ticks, ticks)

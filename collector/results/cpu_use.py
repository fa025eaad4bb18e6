"""Where the CPU time of a host went over a window, and what a unit of work cost of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collector.errors import CrossoverError
from collector.kernel_state.errors import StateError
from collector.kernel_state.proc_stat import CpuUse, parse_proc_stat, use_between
from collector.sessions.cpu import span_of

# Time that the host itself spent. Steal is time that it wanted and another guest had; the guest
# kinds are contained in user and nice.
SPENT = ("user", "nice", "system", "irq", "softirq")
BYTES_OF_KB = 1024


class CpuError(CrossoverError):
    """Readings that say nothing of the window."""


@dataclass(frozen=True, slots=True)
class HostCpu:
    """Shares of a window in percent of all CPUs' time. ``kinds`` has every kind that /proc/stat
    prints; ``each`` the share spent by CPU number; ``each_kinds`` all kinds by CPU number."""

    cpus: int
    seconds: float
    spent_pct: float
    kinds: dict[str, float]
    each: dict[str, float]
    each_kinds: dict[str, dict[str, float]]

    def demand_us(self, units_a_second: float) -> float | None:
        """Service demand: microseconds of CPU time that a unit cost; None where nothing was done.

        As netperf defines it (netperf manual, "Service Demand"): the time spent by all CPUs over
        the units of work, here in one and the same window.
        """
        if units_a_second <= 0:
            return None
        return self.spent_pct / 100 * self.cpus * 1e6 / units_a_second


def host_cpu(document: Mapping[str, Any]) -> HostCpu:
    """The use of a host between the two readings that a module returned (``first``, ``last``).

    Raises CpuError where there are none (the module's own reason), for text that is no
    /proc/stat, counters that went back, and CPUs that came or went within the window.
    """
    if "error" in document:
        raise CpuError(str(document["error"]))
    span = span_of(document)
    try:
        before, after = parse_proc_stat(span.first.stat), parse_proc_stat(span.last.stat)
        total, each = use_between(before, after)
    except StateError as error:
        raise CpuError(f"/proc/stat over the window: {error}") from error
    changed = sorted(set(before.cpus) ^ set(after.cpus))
    if changed:
        names = ", ".join(str(cpu) for cpu in changed)
        raise CpuError(f"CPU {names} came or went within the window")
    return HostCpu(
        cpus=len(each),
        seconds=span.seconds,
        spent_pct=spent(total),
        kinds={kind: round(share, 3) for kind, share in total.percent.items()},
        each={str(cpu): round(spent(use), 3) for cpu, use in sorted(each.items())},
        each_kinds={
            str(cpu): {kind: round(share, 3) for kind, share in use.percent.items()}
            for cpu, use in sorted(each.items())
        },
    )


def spent(use: CpuUse) -> float:
    """The share that the host itself spent, percent."""
    return sum(use.percent.get(kind, 0.0) for kind in SPENT)


def work_units(value: float, unit: str) -> float:
    """The units of service demand in a value: KB a second of ``bit/s``, transactions of ``1/s``."""
    return value / 8 / BYTES_OF_KB if unit == "bit/s" else value

"""``/proc/interrupts``: how often each interrupt was taken by each CPU.

Format: Linux kernel/irq/proc.c and arch/*/kernel/irq.c. The heading names the CPUs that are
online; rows are numbered (device) or named (``LOC``, ``RES``; ``ERR`` and ``MIS`` have one
number for the machine).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Dict, List, Tuple

from .errors import StateError, Text, decimal, number_lines

_NAME = re.compile(r"[0-9]+|[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Interrupt:
    """One row. ``counts`` by CPU number; a row of the whole machine has ``{}`` and ``total``.

    ``description`` is the rest of the row as printed: chip, hardware number, trigger, devices.
    """

    name: str
    counts: Mapping[int, int]
    total: int
    description: str


@dataclass(frozen=True)
class Interrupts:
    """The CPUs of the heading and the rows in order."""

    cpus: Tuple[int, ...]
    rows: Tuple[Interrupt, ...]

    def of_device(self, device: str) -> Tuple[Interrupt, ...]:
        """Rows whose devices include this one or a queue of it (``eth0``, ``eth0-TxRx-3``)."""
        pattern = re.compile(rf"(?:^|[\s,@]){re.escape(device)}(?:$|[\s,@:.-])")
        return tuple(row for row in self.rows if pattern.search(row.description))


def parse_interrupts(text: Text) -> Interrupts:
    """Read the table. Raises :class:`StateError` on other text, a row twice, or a short row."""
    lines = [(number, line) for number, line in number_lines(text) if line.strip()]
    cpus = _heading(lines[0][1]) if lines else ()
    if not cpus:
        raise StateError(lines[0][0] if lines else 1, "no heading", "CPU0 CPU1 …")
    rows: Dict[str, Interrupt] = {}
    for number, line in lines[1:]:
        row = _row(line, number, cpus)
        if row.name in rows:
            raise StateError(number, f"interrupt {row.name} a second time", "each once")
        rows[row.name] = row
    return Interrupts(cpus, tuple(rows.values()))


def _heading(line: str) -> Tuple[int, ...]:
    words = line.split()
    if not all(re.fullmatch(r"CPU[0-9]+", word) for word in words):
        return ()
    cpus = tuple(int(word[3:]) for word in words)
    return cpus if list(cpus) == sorted(set(cpus)) else ()


def _row(line: str, number: int, cpus: Tuple[int, ...]) -> Interrupt:
    name, colon, rest = line.strip().partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise StateError(number, repr(line[:60]), "NAME: COUNTS DESCRIPTION")
    words = rest.split()
    counts: List[int] = []
    while len(counts) < min(len(cpus), len(words)) and words[len(counts)].isdecimal():
        counts.append(decimal(words[len(counts)], number, f"interrupt {name}"))
    if len(counts) == 1 and len(words) == 1 and name in ("ERR", "MIS", "Err"):
        return Interrupt(name, {}, counts[0], "")
    if len(counts) != len(cpus):
        raise StateError(
            number,
            f"{len(counts)} counts for interrupt {name}",
            f"{len(cpus)}, one a CPU of the heading",
        )
    description = rest.strip().split(None, len(cpus))[len(cpus) :]
    by_cpu = {cpu: counts[at] for at, cpu in enumerate(cpus)}
    return Interrupt(name, by_cpu, sum(counts), description[0] if description else "")


def taken_between(before: Interrupts, after: Interrupts) -> Dict[str, Dict[int, int]]:
    """Interrupts taken between two readings of one boot: name -> CPU -> count.

    Only rows and CPUs of both. Raises :class:`StateError` when a count went back by more than
    the 32 bits at which the kernel's counters wrap allow.
    """
    first = {row.name: row for row in before.rows}
    found: Dict[str, Dict[int, int]] = {}
    for row in after.rows:
        if row.name not in first:
            continue
        deltas: Dict[int, int] = {}
        for cpu, count in row.counts.items():
            if cpu not in first[row.name].counts:
                continue
            delta = count - first[row.name].counts[cpu]
            if delta < 0:
                delta += 1 << 32
                if not 0 <= delta < 1 << 31:
                    raise StateError(
                        1,
                        f"interrupt {row.name} on CPU {cpu} went back",
                        "two readings of one boot",
                    )
            deltas[cpu] = delta
        found[row.name] = deltas
    return found

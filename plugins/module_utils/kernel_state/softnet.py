"""``/proc/net/softnet_stat``: what each CPU took off the network devices.

Format: softnet_seq_show in Linux net/core/net-procfs.c, 3.x to 6.x: hexadecimal columns, one line
a CPU. Column 13 is the CPU's number since 5.10; before, lines are CPUs in order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Dict

from .errors import StateError, Text, number_lines

_WORD = re.compile(r"[0-9a-f]{8,}")
_CPU_COLUMN = 12
# The counters have 32 bits.
_WRAP = 1 << 32


@dataclass(frozen=True)
class Softnet:
    """Of one CPU: packets ``processed``, ``dropped`` because its backlog was full, and how often
    it was ``squeezed``: had to stop with packets left."""

    processed: int
    dropped: int
    squeezed: int


def parse_softnet(text: Text) -> Dict[int, Softnet]:
    """The counters by CPU. Raises :class:`StateError` on other text or a CPU twice."""
    found: Dict[int, Softnet] = {}
    for number, line in number_lines(text):
        words = line.split()
        if not words:
            continue
        if len(words) < 3 or not all(_WORD.fullmatch(word) for word in words):
            raise StateError(number, repr(line[:60]), "hexadecimal columns of softnet_stat")
        values = [int(word, 16) for word in words]
        cpu = values[_CPU_COLUMN] if len(values) > _CPU_COLUMN else len(found)
        if cpu in found:
            raise StateError(number, f"CPU {cpu} a second time", "each once")
        found[cpu] = Softnet(*values[:3])
    if not found:
        raise StateError(1, "no line", "one line a CPU")
    return found


def softnet_between(
    before: Mapping[int, Softnet], after: Mapping[int, Softnet]
) -> Dict[int, Softnet]:
    """By how much each counter grew between two readings of one boot, by CPU of both."""
    return {
        cpu: Softnet(
            (later.processed - before[cpu].processed) % _WRAP,
            (later.dropped - before[cpu].dropped) % _WRAP,
            (later.squeezed - before[cpu].squeezed) % _WRAP,
        )
        for cpu, later in after.items()
        if cpu in before
    }

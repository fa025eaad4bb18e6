"""``/proc/net/xfrm_stat``: one record a reading."""

from __future__ import annotations

import re
from dataclasses import dataclass

from collector.kernel_state.errors import StateError
from collector.kernel_state.xfrm_stat import MEANING, parse_xfrm_stat
from collector.parsers.base import Document, Line, Reading, Record, Status
from collector.parsers.kernel_text import numbered, problem, source

TOOL = "xfrm_stat"
_COUNTER = re.compile(r"\s*Xfrm(?:In|Out|Fwd|Acquire)[A-Za-z]*\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class XfrmStatRecord(Record):
    """Packets dropped by IPsec since the namespace was made, by counter.

    ``reasons`` says of each counter above zero what happened and where to look.
    """

    counters: dict[str, int]
    reasons: dict[str, str]


def recognise(document: Document) -> bool:
    """Whether a line holds a counter of xfrm_stat."""
    return any(_is_counter(line) for line in document.lines)


def _is_counter(line: Line) -> bool:
    words = line.text.split()
    return len(words) == 2 and _COUNTER.fullmatch(line.text) is not None


def _blocks(document: Document) -> list[list[Line]]:
    """Runs of counter lines; the kernel's first counter starts a new reading."""
    blocks: list[list[Line]] = []
    previous = False
    for line in document.lines:
        current = _is_counter(line)
        if current and (not previous or line.text.split()[0] == "XfrmInError"):
            blocks.append([])
        if current:
            blocks[-1].append(line)
        previous = current
    return blocks


def parse(document: Document) -> Reading:
    """Read every run of counters. A run without the counters of every kernel is incomplete."""
    reading = Reading()
    for lines in _blocks(document):
        reading.claimed.update(line.number for line in lines)
        try:
            counters = parse_xfrm_stat(numbered(lines), whole=False)
        except StateError as error:
            reading.problems.append(problem(document, error, lines[0].number))
            continue
        whole = "XfrmInError" in counters and "XfrmOutPolError" in counters
        reading.records.append(
            XfrmStatRecord(
                tool=TOOL,
                kind="xfrm_stat",
                status=Status.OK if whole else Status.INCOMPLETE,
                source=source(document, lines),
                warnings=() if whole else ("counters are missing: a part of /proc/net/xfrm_stat",),
                counters=counters,
                reasons={
                    name: ": ".join(MEANING.get(name, ("counter newer than this reader", "?")))
                    for name, count in counters.items()
                    if count
                },
            )
        )
    return reading

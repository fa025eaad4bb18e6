"""super_netperf with NAME=VALUE output: each line has the instance's number before it.

A variant of the script runs ``netperf -k`` N times, writes ``00 THROUGHPUT=…`` lines that stand in
any order, and ends with ``AGGREGATE_THROUGHPUT=…``, the sum of what came.
"""

from __future__ import annotations

import re
from dataclasses import replace

from . import netperf
from .base import Document, Line, Reading, Source, Status
from .super_netperf_record import SuperNetperfResult
from .super_netperf_sum import combine_instances

_LINE = re.compile(r"^\s*(?P<number>\d{2,4}) (?P<text>\S.*)$")
_KEY = re.compile(r"^\s*\d{2,4} [A-Z][A-Z0-9_]+=")
_AGGREGATE = re.compile(r"^\s*AGGREGATE_THROUGHPUT=(?P<value>\d+(?:\.\d+)?(?:e\+\d\d)?)\s*$")
_COUNT = re.compile(r"super_netperf\S*\s+(?P<n>\d+)\s+-")


def has_prefixed(document: Document) -> bool:
    """Whether the document holds NAME=VALUE lines with an instance's number before them."""
    return any(_KEY.match(line.text) for line in document.lines)


def parse_prefixed(document: Document) -> Reading:
    """Read every instance and their sum; what an aggregate line says is checked against it.

    The number of instances is that of the command line, else the highest number and one.
    """
    reading = Reading()
    if not has_prefixed(document):
        return reading
    instances: dict[int, list[Line]] = {}
    stated: float | None = None
    wanted: int | None = None
    for line in document.lines:
        if match := _LINE.match(line.text):
            text = Line(line.number, match["text"], line.quote)
            instances.setdefault(int(match["number"]), []).append(text)
            reading.claimed.add(line.number)
        elif match := _AGGREGATE.match(line.text):
            stated = float(match["value"])
            reading.claimed.add(line.number)
        elif match := _COUNT.search(line.text):
            wanted = int(match["n"])
    for _, lines in sorted(instances.items()):
        own = netperf.parse(Document(document.file, tuple(lines)))
        reading.records.extend(own.records)
        reading.problems.extend(own.problems)
    expected = max(wanted or 0, max(instances) + 1)
    total = combine_instances(reading.records, expected)
    numbers = sorted(reading.claimed)
    total = replace(total, source=Source(document.file, numbers[0], numbers[-1]))
    reading.records.append(_checked(total, stated))
    return reading


def _checked(total: SuperNetperfResult, stated: float | None) -> SuperNetperfResult:
    """The sum, with a warning if the script's own differs from it."""
    if stated is None or total.value is None or abs(stated - total.value) <= 1e-4 * stated:
        return total
    warning = f"the script says {stated:g}, the instances add up to {total.value:g}"
    status = Status.SUSPECT if total.status is Status.OK else total.status
    return replace(total, status=status, warnings=(*total.warnings, warning))

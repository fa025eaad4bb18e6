"""Adding up the results of concurrent netperf instances, without losing one silently."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable

from .base import Record, Source, Status
from .super_netperf_record import TOOL, SuperNetperfResult


def combine_instances(records: Iterable[Record], expected: int) -> SuperNetperfResult:
    """Sum ``throughput_bps`` or ``transactions_per_second`` of ``expected`` netperf records.

    ``records`` are what the netperf parser made of the instances' own outputs, failed ones
    included; the sum is marked ``incomplete`` and not ``comparable`` unless every instance has a
    sound result. The command line does this when several files are given together:

        crossover parse result-0 result-1 result-2

    parses each file as ever; the caller passes all netperf records and the number of files. The
    files must be of one run: use a directory of its own for each run, since a result left over
    from an earlier one looks like any other.

    Latencies are never averaged over instances: the 99th percentile of the whole is not known
    from the percentiles of its parts, so min, median and max are given. -1 means that netperf did
    not measure. Raises ValueError if ``expected`` is less than 1.
    """
    if expected < 1:
        raise ValueError(f"expected {expected} instances; wanted at least 1")
    found = list(records)
    good = [one for one in found if _sound(one)]
    failed = [one for one in found if not _sound(one)]
    warnings: list[str] = []
    quantity, unit, total = _total(good, warnings)
    complete = len(good) == expected and not failed and total is not None
    if len(good) != expected:
        warnings.insert(0, f"expected {expected} results, got {len(good)}")
    for one in failed:
        text = one.failure.text if one.failure else one.status.value
        warnings.append(f"{one.source.file}:{one.source.line}: {text}")
    late = [one for one in (_printed(r, "P99_LATENCY") for r in good) if one is not None]
    resent = [_printed(r, "LOCAL_TRANSPORT_RETRANS") for r in good]
    failure = next((one.failure for one in failed if one.failure), None)
    lines = [one.source for one in found] or [Source("", 0, 0)]
    return SuperNetperfResult(
        tool=TOOL,
        kind="instances",
        status=Status.OK if complete else Status.INCOMPLETE,
        source=Source(lines[0].file, lines[0].line, lines[0].last_line),
        warnings=tuple(warnings),
        failure=failure,
        instances=len(found),
        instances_expected=expected,
        instances_parsed=len(good),
        instances_failed=len(failed),
        comparable=complete,
        unit=unit,
        value=total,
        throughput_bps=_value_of(good, "throughput_bps") if quantity == "throughput_bps" else None,
        transactions_per_second=total if quantity == "transactions_per_second" else None,
        values=tuple(v for v in (_number(r, quantity) for r in good) if v is not None)
        if quantity
        else (),
        p99_latency_min_s=min(late) / 1e6 if late else None,
        p99_latency_median_s=statistics.median(late) / 1e6 if late else None,
        p99_latency_max_s=max(late) / 1e6 if late else None,
        retransmits=int(sum(r for r in resent if r is not None))
        if resent and all(r is not None for r in resent)
        else None,
    )


def _number(record: Record, name: str) -> float | None:
    value = getattr(record, name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def _sound(record: Record) -> bool:
    if record.status in {Status.FAILED, Status.INCOMPLETE} or record.failure is not None:
        return False
    return any(_number(record, n) for n in ("throughput_bps", "transactions_per_second"))


def _value_of(records: list[Record], name: str) -> float:
    return math.fsum(v for v in (_number(r, name) for r in records) if v is not None)


def _total(
    records: list[Record], warnings: list[str]
) -> tuple[str | None, str | None, float | None]:
    """The quantity all records share, its unit as printed, and the sum in that unit."""
    shared = [
        name
        for name in ("throughput_bps", "transactions_per_second")
        if records and all(_number(r, name) is not None for r in records)
    ]
    if not shared:
        if records:
            warnings.append("the instances measured different quantities: no sum")
        return None, None, None
    name = shared[0]
    total = _value_of(records, name)
    if name == "transactions_per_second":
        return name, "Trans/s", total
    return name, "10^6bits/s", total / 1e6


def _printed(record: Record, name: str) -> float | None:
    """A value by its name in netperf's own output; -1 is "not measured"."""
    text = record.printed.get(name) or ""
    match = re.match(r"\s*(\d+(?:\.\d+)?)\b", text)
    return float(match[1]) if match else None

"""Puts the blocks that follow a result (detail, segment size, histogram) into its record."""

from __future__ import annotations

from dataclasses import replace

from .blocks import DetailBlock, Histogram
from .records import NetperfResult


def why_not(record: NetperfResult, what: DetailBlock | Histogram | int) -> str | None:
    """Why a block cannot belong to a record; None if it can."""
    if isinstance(what, int):
        return "it has a segment size already" if record.mss_bytes is not None else None
    if isinstance(what, Histogram):
        return "it has a histogram already" if record.histogram else None
    if record.detail is not None:
        return "it has a detail block already"
    requests = record.kind == "request_response"
    if what.requests is not None and record.kind != "run" and what.requests != requests:
        return f"a detail block of another kind of test than {record.test}"
    return None


def with_block(record: NetperfResult, what: DetailBlock | Histogram | int) -> NetperfResult:
    """The record with the values of a block that stands below it."""
    if isinstance(what, int):
        printed = {**record.printed, "mss": str(what)}
        return replace(record, mss_bytes=what if what > 0 else None, printed=printed)
    if isinstance(what, Histogram):
        total = sum(bucket.count for bucket in what.buckets)
        warnings = record.warnings
        if what.total is None:
            warnings = (*warnings, "the histogram has no HIST_TOTAL")
        elif what.total != total:
            warnings = (
                *warnings,
                f"the histogram's counts sum to {total}, HIST_TOTAL is {what.total}: left out",
            )
            return replace(record, warnings=warnings)
        return replace(record, histogram=what.buckets, warnings=warnings)
    rate = record.transactions_per_second
    return replace(
        record,
        detail=what.detail,
        round_trip_us=what.detail.round_trip_us,
        transactions_per_second=what.transactions_per_second if rate is None else rate,
        printed={**record.printed, **{f"detail_{k}": v for k, v in what.printed.items()}},
    )

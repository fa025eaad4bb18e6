"""The columns after the rate in an iperf 2 row, plain and --enhancedreports.

Formats: ``report_*_format`` in Locale.c of iperf 2.0.5 to 2.2. A value of -1 (``-1K`` window)
means that the kernel did not tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .iperf_rows import Row
from .rates import NUMBER, loss, share_agrees

_LOSS = r"(?P<lost>-?\d+)\s*/\s*(?P<total>-?\d+)\s*\((?P<pct>[-+0-9.eE]+|-?nan|-?inf)%\)"
_MORE = r"(?P<more>(?:\s.*)?)"
_TAILS = tuple(
    re.compile(pattern)
    for pattern in (
        # UDP as received: jitter, loss, then latency, pps and more if enhanced
        rf"(?P<jitter>{NUMBER}|-?nan)\s*ms\s+{_LOSS}{_MORE}",
        # UDP as received, the sum
        rf"{_LOSS}(?:\s+(?P<pps>\d+)\s*pps)?",
        # UDP as sent: writes/errors[/timeouts] and packets per second
        r"(?P<writes>\d+)/(?P<errors>\d+)(?:/\d+)?\s+(?P<pps>\d+)\s*pps(?:\s+\d+/\d+/\d+)?",
        # UDP full duplex: datagrams and packets per second
        r"(?P<datagrams>\d+)\s+(?P<pps>\d+)\s*pps",
        # TCP as sent: writes/errors, retries, [in flight/]window/rtt, power
        r"(?P<writes>\d+)/(?P<errors>\d+)(?:\s+(?P<retries>\d+)"
        r"(?:\s+(?:\d+K\(\d+\)/)?(?:(?P<cwnd>-?\d+)K(?:\(\d+\))?|NA)/(?P<rtt>\d+)(?:\(\d+\))?"
        rf"\s*us{_MORE})?)?",
        # TCP as received: reads and their distribution
        r"(?P<reads>\d+)=\d+(?::\d+){7}",
        # nothing, or (omitted), (reverse) and the like
        r"(?:\([a-z -]+\))?",
    )
)
_PPS = re.compile(r"(?<![\d.,])(\d+)\s*pps\b")
ACCEPTS = re.compile(r"[\d\s./=:()%*A-Za-z+-]*")
"""What may follow the rate: anything without a decimal comma; read_tail() reads it."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What the columns after the rate say."""

    side: str  # "sent", "received" or "" if the columns do not tell
    jitter_s: float | None = None
    lost: int | None = None
    total: int | None = None
    loss_pct: float | None = None
    packets_per_second: float | None = None
    datagrams: int | None = None
    writes: int | None = None
    write_errors: int | None = None
    retransmits: int | None = None
    cwnd_bytes: float | None = None
    rtt_s: float | None = None
    warnings: tuple[str, ...] = ()


def read_tail(row: Row) -> Tail:
    """Read the columns of ``row``. Columns of an unknown layout are None, with a warning."""
    for pattern in _TAILS:
        match = pattern.fullmatch(row.rest)
        if match:
            return _tail(row, {k: v for k, v in match.groupdict().items() if v})
    return Tail("", warnings=(f"line {row.line}: columns not read: {row.rest!r}",))


def _tail(row: Row, found: dict[str, str]) -> Tail:
    warnings: list[str] = []
    lost, total = _int(found, "lost"), _int(found, "total")
    lost, total, ratio, doubts = loss(lost, total, f"line {row.line}")
    warnings += doubts
    if ratio is not None and lost is not None and total:
        try:
            same = share_agrees(lost, total, found["pct"])
        except ValueError:
            same = False
        if not same:
            warnings.append(f"line {row.line}: {lost}/{total} is not {found['pct']} %")
    jitter = None
    if "jitter" in found and "nan" not in found["jitter"]:
        jitter = float(found["jitter"]) / 1e3
        if jitter > max(row.end.value - row.start.value, 0):
            warnings.append(f"line {row.line}: jitter {found['jitter']} ms exceeds the interval")
            jitter = None
    pps = found.get("pps")
    if "more" in found and (named := _PPS.search(found["more"])):
        pps = named[1]
    if row.id.startswith("SUM-") and "pps" in found and "lost" not in found:
        # [SUM-n] prints writes/errors at a client and lost/total at a server, in one form.
        found = {key: text for key, text in found.items() if key not in {"writes", "errors"}}
    side = ""
    if "lost" in found:
        side = "received"
        row.printed["loss"] = f"{found['lost']}/{found['total']} ({found.get('pct', '')}%)"
    elif "writes" in found:
        side = "sent"
    elif "reads" in found:
        side = "received"
    cwnd = _int(found, "cwnd")
    rtt = _int(found, "rtt")
    return Tail(
        side=side,
        jitter_s=jitter,
        lost=lost,
        total=total,
        loss_pct=ratio,
        packets_per_second=float(pps) if pps else None,
        datagrams=_int(found, "datagrams"),
        writes=_int(found, "writes"),
        write_errors=_int(found, "errors"),
        retransmits=_int(found, "retries"),
        cwnd_bytes=cwnd * 1024.0 if cwnd is not None and cwnd >= 0 else None,
        rtt_s=rtt / 1e6 if rtt is not None else None,
        warnings=tuple(warnings),
    )


def _int(found: dict[str, str], key: str) -> int | None:
    return int(found[key]) if key in found else None

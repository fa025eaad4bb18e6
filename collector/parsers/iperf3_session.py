"""A session of iperf3's text report as read: its rows and facts, and the numbers of one row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .base import Failure
from .iperf3_record import Transfer
from .iperf_rows import OutOfOrder, Row
from .rates import NUMBER, loss, share_agrees

TAIL = re.compile(
    rf"(?:(?P<count>\d+)(?:\s+(?P<cwnd>{NUMBER})\s*[KMGT]?Bytes)?"
    rf"|(?P<jitter>{NUMBER}|-?nan)\s*ms\s+(?:(?P<lost>-?\d+)\s*/\s*(?P<total>-?\d+)"
    r"\s*\((?P<pct>[-+0-9.eE]+|-?nan|-?inf)%\)|Unknown/\s*(?P<all>\d+)))?"
    r"\s*(?P<side>sender|receiver|\(omitted\))?"
)
"""What follows the rate: retransmits and window, or jitter and loss, or a count of datagrams."""


@dataclass(frozen=True, slots=True)
class Report:
    """A row with its tail, the header it stands under and whether a ruler came before."""

    row: Row
    tail: re.Match[str]
    header: str
    after_ruler: bool

    @property
    def side(self) -> str:
        """``sender``, ``receiver``, ``(omitted)`` or nothing."""
        return self.tail["side"] or ""


@dataclass(slots=True)
class Session:
    """What has been read of one session."""

    line: int
    last: int
    server: bool | None = None
    facts: dict[str, str] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    late: list[OutOfOrder] = field(default_factory=list)
    reverse: bool = False
    header: str = ""
    after_ruler: bool = False
    failure: Failure | None = None
    damaged: bool = False
    earlier: list[Session] = field(default_factory=list)  # runs that only left an error text

    @property
    def has_finals(self) -> bool:
        """Whether a row of the whole run, marked as such, has come."""
        return any(report.side in {"sender", "receiver"} for report in self.reports)


def direction_of(session: Session, role: str) -> str:
    """forward: client to server. A role tells (TX-C, RX-S are forward), else -R does."""
    if role:
        return "forward" if role in {"TX-C", "RX-S"} else "reverse"
    sides = {r.side for r in session.reports}
    sends = session.server is True and "sender" in sides and "receiver" not in sides
    return "reverse" if session.reverse or sends else "forward"


def transfer(report: Report, side: str, warnings: list[str]) -> Transfer:
    """The numbers of one row. ``warnings`` collects what is doubtful."""
    row, tail = report.row, report.tail
    warnings.extend(row.warnings)
    lost = int(tail["lost"]) if tail["lost"] else None
    total = int(tail["total"] or tail["all"]) if tail["total"] or tail["all"] else None
    lost, total, ratio, doubts = loss(lost, total, f"line {row.line}")
    warnings.extend(doubts)
    if ratio is not None and lost is not None and total and not _said(tail["pct"], lost, total):
        warnings.append(f"line {row.line}: {lost}/{total} is not {tail['pct']} %")
    count = int(tail["count"]) if tail["count"] else None
    jitter = float(tail["jitter"]) / 1e3 if tail["jitter"] and "nan" not in tail["jitter"] else None
    elapsed = row.end.value - row.start.value
    if jitter is not None and jitter > max(elapsed, 0):
        warnings.append(f"line {row.line}: jitter {tail['jitter']} ms is longer than the interval")
        jitter = None
    datagrams = "Datagrams" in report.header
    counted = count is not None and not tail["cwnd"]
    if counted and not report.header:
        warnings.append(f"line {row.line}: {count} has no header above that names its column")
    if tail["pct"] is not None:
        row.printed["loss"] = f"{tail['lost']}/{tail['total']} ({tail['pct']}%)"
    if report.side == "sender":
        lost = ratio = None  # a sender prints 0 here: it cannot know
    is_retransmits = count is not None and ("Retr" in report.header or bool(tail["cwnd"]))
    return Transfer(
        side=side,
        elapsed_s=elapsed if elapsed >= 0 else None,
        bytes=row.size.value,
        throughput_bps=row.rate.value if row.rate else None,
        retransmits=count if is_retransmits else None,
        packets=count if datagrams and counted else total,
        lost_packets=lost,
        loss_pct=ratio,
        jitter_s=None if side == "sent" else jitter,
    )


def _said(share: str, lost: int, total: int) -> bool:
    """Whether the printed percentage is that of the counts."""
    try:
        return share_agrees(lost, total, share)
    except ValueError:
        return False

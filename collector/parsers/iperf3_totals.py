"""Records from the rows of an iperf3 text session: which row is the total, and is it sound.

The final rows end in ``sender`` or ``receiver``. Before 3.2, UDP printed one final row without
either, which holds the sender's rate with the receiver's loss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .base import Failure, Source, Status
from .iperf3_record import TOOL, Interval, Iperf3Result, Stream, Transfer
from .iperf_rows import OutOfOrder, Row
from .rates import NUMBER, Printed, loss, share_agrees, sum_agrees

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


def _direction(session: Session, role: str) -> str:
    """forward: client to server. A role tells (TX-C, RX-S are forward), else -R does."""
    if role:
        return "forward" if role in {"TX-C", "RX-S"} else "reverse"
    sides = {r.side for r in session.reports}
    sends = session.server is True and "sender" in sides and "receiver" not in sides
    return "reverse" if session.reverse or sends else "forward"


def _is_udp(session: Session) -> bool:
    if session.facts.get("protocol"):
        return session.facts["protocol"].upper() == "UDP"
    return any(r.tail["jitter"] or "Datagrams" in r.header for r in session.reports)


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


def _once(rows: list[Report], what: str, warnings: list[str]) -> Report | None:
    """The one row among repeats; rows that contradict each other give none."""
    if not rows:
        return None
    if len(rows) > 1:
        if len({row.row.key for row in rows}) > 1:
            warnings.append(
                f"{len(rows)} different final rows of {what} (lines "
                f"{', '.join(str(row.row.line) for row in rows)}); none is taken"
            )
            return None
        warnings.append(f"the final row of {what} is there {len(rows)} times; taken once")
    return rows[0]


def _finals(session: Session) -> list[Report]:
    """The rows that are totals: marked ones, else those that span the whole run."""
    marked = [r for r in session.reports if r.side in {"sender", "receiver"}]
    if marked or not session.reports:
        return marked
    plain = [r for r in session.reports if r.side != "(omitted)"]
    longest = max((r.row.end.value for r in plain), default=0.0)
    return [
        r
        for r in plain
        if r.after_ruler
        and r.tail["jitter"]
        and r.row.start.value == 0
        and r.row.end.value >= longest - 0.5
    ]


def _side_total(
    finals: list[Report], ids: list[str], what: str, warnings: list[str]
) -> tuple[Report | None, dict[str, Report]]:
    """The row over all streams of one side and direction, and each stream's own row."""
    per_stream: dict[str, Report] = {}
    for stream in ids:
        one = _once([r for r in finals if r.row.id == stream], f"{what}, stream {stream}", warnings)
        if one:
            per_stream[stream] = one
    sums = [r for r in finals if r.row.is_sum]
    if sums:
        total = _once(sums, f"{what}, sum", warnings)
        if total and len(per_stream) == len(ids) and len(ids) > 1:
            parts: list[Printed] = [r.row.size for r in per_stream.values()]
            if not sum_agrees(total.row.size, parts):
                warnings.append(
                    f"line {total.row.line}: the sum of {what} ({total.row.printed['transfer']}) "
                    f"is not what its {len(parts)} streams add up to"
                )
                return None, per_stream
        return total, per_stream
    if len(ids) == 1:
        return per_stream.get(ids[0]), per_stream
    if finals:
        warnings.append(f"{len(ids)} streams but no [SUM] row of {what}")
    return None, per_stream


def build(file: str, session: Session) -> Iperf3Result:
    """Make the record of a session.

    The headline is the receiver's rate, else the sender's. Status: ``failed`` with an error text
    or zero throughput, ``incomplete`` without final rows, ``suspect`` if rows were unreadable or
    contradict themselves.
    """
    warnings: list[str] = []
    finals = _finals(session)
    udp = _is_udp(session)
    roles = sorted({r.row.role for r in session.reports}, reverse=session.server is not True)
    totals: dict[tuple[str, str], Transfer] = {}
    streams: list[Stream] = []
    for role in roles:
        direction = _direction(session, role)
        ids = list(dict.fromkeys(r.row.id for r in session.reports if r.row.role == role))
        ids = [one for one in ids if not one.startswith("SUM")]
        per: dict[str, dict[str, Transfer]] = {one: {} for one in ids}
        for side, mark in (("sent", "sender"), ("received", "receiver"), ("sent", "")):
            mine = [r for r in finals if r.row.role == role and r.side == mark]
            if not mine:
                continue
            what = f"{direction} {mark or 'UDP total'}"
            total, parts = _side_total(mine, ids, what, warnings)
            if total and not _placeholder(session, total):
                totals[direction, side] = transfer(total, side, warnings)
            for one, part in parts.items():
                if not _placeholder(session, part):
                    per[one][side] = transfer(part, side, warnings if part is total else [])
        streams += [
            Stream(id=one, direction=direction, sent=s.get("sent"), received=s.get("received"))
            for one, s in per.items()
            if s
        ]
    if not totals and len(session.reports) == 1 and not session.facts and not session.failure:
        return _fragment(file, session, udp)
    return _record(file, session, totals=totals, streams=streams, udp=udp, warnings=warnings)


def _fragment(file: str, session: Session, udp: bool) -> Iperf3Result:
    """A single interval row that was quoted alone: a rate, but no result of a run."""
    warnings = ["a single interval row, not the result of a run"]
    report = session.reports[0]
    own = transfer(report, "", warnings)
    return Iperf3Result(
        tool=TOOL,
        kind="interval",
        status=Status.SUSPECT,
        source=Source(file, session.line, session.last),
        printed=dict(report.row.printed),
        warnings=tuple(warnings),
        protocol="udp" if udp else None,
        elapsed_s=own.elapsed_s,
        throughput_bps=own.throughput_bps,
        throughput_basis="interval" if own.throughput_bps is not None else None,
        retransmits=own.retransmits,
        packets=own.packets,
        lost_packets=own.lost_packets,
        loss_pct=own.loss_pct,
        jitter_s=own.jitter_s,
        intervals=_intervals(session, []),
    )


def _placeholder(session: Session, report: Report) -> bool:
    """A server that only receives prints the sender's row as zero: it did not count it."""
    return (
        session.server is True
        and report.side == "sender"
        and report.row.size.value == 0
        and any(r.side == "receiver" and r.row.size.value > 0 for r in session.reports)
    )


def _record(
    file: str,
    session: Session,
    *,
    totals: dict[tuple[str, str], Transfer],
    streams: list[Stream],
    udp: bool,
    warnings: list[str],
) -> Iperf3Result:
    directions = list(dict.fromkeys(direction for direction, _ in totals))
    main = "reverse" if directions == ["reverse"] else "forward"
    sent, received = totals.get((main, "sent")), totals.get((main, "received"))
    estimate = estimated(sent, received)
    headline, basis = pick(sent, received, estimate)
    late = {o.count for o in session.late if o.id == "SUM" or len(session.late) == 1}
    loss_of = received or sent
    status = _status(session, totals, headline, warnings)
    intervals = _intervals(session, warnings)
    facts = session.facts
    final_rows = [r for r in session.reports if r.side in {"sender", "receiver"}]
    return Iperf3Result(
        tool=TOOL,
        kind="session",
        status=status,
        source=Source(file, session.line, max(session.last, session.line)),
        printed=dict((final_rows or session.reports)[-1].row.printed) if session.reports else {},
        warnings=tuple(dict.fromkeys(warnings)),
        failure=session.failure,
        version=facts.get("version"),
        protocol=(facts["protocol"].lower() if "protocol" in facts else ("udp" if udp else None))
        or ("tcp" if any("Retr" in r.header for r in session.reports) else None),
        direction=main if totals else None,
        bidirectional=len({r.row.role[:2] for r in session.reports if r.row.role}) > 1
        if session.reports
        else None,
        streams_wanted=_int(facts.get("streams")),
        requested_s=_float(facts.get("time")),
        omit_s=_float(facts.get("omit")),
        block_bytes=_int(facts.get("block")),
        mss_bytes=_int(facts.get("mss")),
        congestion=facts.get("congestion"),
        local_host=facts.get("local"),
        remote_host=facts.get("host") or facts.get("remote"),
        remote_port=_int(facts.get("port")),
        elapsed_s=loss_of.elapsed_s if loss_of else None,
        throughput_bps=headline,
        throughput_basis=basis,
        sent_bps=sent.throughput_bps if sent else None,
        received_bps=received.throughput_bps if received else None,
        received_estimate_bps=estimate,
        retransmits=sent.retransmits if sent else None,
        packets=loss_of.packets if loss_of else None,
        lost_packets=loss_of.lost_packets if loss_of else None,
        loss_pct=loss_of.loss_pct if loss_of else None,
        jitter_s=received.jitter_s if received else None,
        out_of_order=late.pop() if len(late) == 1 else None,
        cpu_local_pct=_float(facts.get("cpu_local")),
        cpu_remote_pct=_float(facts.get("cpu_remote")),
        sent=sent,
        received=received,
        reverse_sent=totals.get(("reverse", "sent")) if main == "forward" else None,
        reverse_received=totals.get(("reverse", "received")) if main == "forward" else None,
        streams=tuple(streams),
        intervals=intervals,
    )


def estimated(sent: Transfer | None, received: Transfer | None) -> float | None:
    """Estimate of the received rate of UDP in bit/s: the sent rate times the share that arrived.

    Only where the receiver's own rate is not printed (iperf3 before esnet/iperf pull 1174).
    """
    if received is not None or sent is None or sent.throughput_bps is None:
        return None
    if sent.lost_packets is None or not sent.packets:
        return None
    return sent.throughput_bps * (sent.packets - sent.lost_packets) / sent.packets


def pick(
    sent: Transfer | None, received: Transfer | None, estimate: float | None
) -> tuple[float | None, str | None]:
    """The headline rate in bit/s and its basis; a rate of zero is no measurement."""
    for rate, basis in (
        (received.throughput_bps if received else None, "received"),
        (estimate, "received (estimate)"),
        (sent.throughput_bps if sent and not received else None, "sent"),
    ):
        if rate is not None:
            return (rate, basis) if rate > 0 else (None, basis)
    return None, None


def _status(
    session: Session,
    totals: dict[tuple[str, str], Transfer],
    headline: float | None,
    warnings: list[str],
) -> Status:
    if session.failure:
        return Status.FAILED
    if not totals:
        warnings.append("no final row: the run ended early or its report is cut off")
        return Status.INCOMPLETE
    if headline is None:
        warnings.append("the total is zero or not a number: no measurement")
        return Status.FAILED
    if session.damaged:
        warnings.append("a row of this session could not be read")
    doubts = [w for w in warnings if "taken once" not in w and "no header above" not in w]
    return Status.SUSPECT if doubts else Status.OK


def _intervals(session: Session, warnings: list[str]) -> tuple[Interval, ...]:
    """The interval rows of the sum where there is one, else of the streams."""
    finals = {id(r) for r in _finals(session)}
    plain = [r for r in session.reports if id(r) not in finals]
    sums = [r for r in plain if r.row.is_sum]
    seen: set[tuple[object, ...]] = set()
    result = []
    for report in sums or plain:
        if report.row.key in seen and report.side != "(omitted)":
            warnings.append(f"line {report.row.line}: an interval row is there twice")
            continue
        seen.add(report.row.key)
        direction = _direction(session, report.row.role)
        own = transfer(report, "", warnings)
        result.append(
            Interval(
                id=report.row.id,
                direction=direction,
                start_s=report.row.start.value,
                end_s=report.row.end.value,
                bytes=own.bytes,
                throughput_bps=own.throughput_bps,
                omitted=report.side == "(omitted)",
                retransmits=own.retransmits,
                packets=own.packets,
                lost_packets=own.lost_packets,
                loss_pct=own.loss_pct,
                jitter_s=own.jitter_s,
            )
        )
    return tuple(result)


def _int(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _float(text: str | None) -> float | None:
    return float(text) if text is not None else None

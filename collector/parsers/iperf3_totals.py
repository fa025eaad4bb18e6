"""Records from the rows of an iperf3 text session: which row is the total, and is it sound.

The final rows end in ``sender`` or ``receiver``. Before 3.2, UDP printed one final row without
either, which holds the sender's rate with the receiver's loss.
"""

from __future__ import annotations

from .base import Source, Status
from .iperf3_headline import estimated, pick
from .iperf3_record import TOOL, Interval, Iperf3Result, Stream, Transfer
from .iperf3_session import Report, Session, direction_of, transfer
from .rates import Printed, sum_agrees

_COVERED = 0.95  # share of a run that its intervals must cover to be compared with the total
_ABOVE = 1.02


def _is_udp(session: Session) -> bool:
    if session.facts.get("protocol"):
        return session.facts["protocol"].upper() == "UDP"
    return any(r.tail["jitter"] or "Datagrams" in r.header for r in session.reports)


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
        direction = direction_of(session, role)
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
    intervals = _intervals(session, warnings)
    _check_intervals(intervals, main, loss_of, warnings)
    status = _status(session, totals, headline, warnings)
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
        direction = direction_of(session, report.row.role)
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


def _check_intervals(
    intervals: tuple[Interval, ...], direction: str, total: Transfer | None, warnings: list[str]
) -> None:
    """A total above each of the intervals it is made of has counted more than the run."""
    own = [i for i in intervals if i.direction == direction and not i.omitted]
    rates = [i.throughput_bps for i in own if i.throughput_bps is not None]
    if (
        not total
        or not total.throughput_bps
        or not total.elapsed_s
        or len({i.id for i in own}) != 1
    ):
        return
    spans = [i.end_s - i.start_s for i in own if i.end_s is not None and i.start_s is not None]
    whole = len(rates) == len(spans) == len(own) and sum(spans) >= _COVERED * total.elapsed_s
    if whole and total.throughput_bps > max(rates) * _ABOVE:
        warnings.append(
            f"the total of {total.throughput_bps / 1e6:g} Mbits/sec is above every interval, of at "
            f"most {max(rates) / 1e6:g}: iperf3 with --omit has counted what it omits"
        )


def _int(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _float(text: str | None) -> float | None:
    return float(text) if text is not None else None

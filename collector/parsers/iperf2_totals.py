"""Records from the rows of an iperf 2 test: totals, directions, and whether they are sound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .base import Failure, Source, Status
from .iperf2_record import TOOL, Counts, Iperf2Result
from .iperf2_tail import Tail
from .iperf_rows import OutOfOrder, Row
from .rates import sum_agrees

_EDGE_S = 0.05  # a total may end this much before the last interval (one-decimal intervals)


@dataclass(frozen=True, slots=True)
class Report:
    """A row with its columns; ``from_server``: it stands under "Server Report:"."""

    row: Row
    tail: Tail
    from_server: bool


@dataclass(slots=True)
class Test:
    """What has been read of one test."""

    __test__ = False  # not a test class of pytest

    line: int
    last: int
    facts: dict[str, str] = field(default_factory=dict)
    connections: dict[str, tuple[int, int]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    late: list[OutOfOrder] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    server_report: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    window_bytes: float | None = None
    full_duplex: bool = False
    reverse: bool = False
    failure: Failure | None = None
    damaged: bool = False

    def following(self, line: int) -> Test:
        """An empty test that starts at ``line`` under the same heading."""
        heading = {"role", "protocol", "port", "host"}
        kept = {key: value for key, value in self.facts.items() if key in heading}
        return Test(line, line, facts=kept, window_bytes=self.window_bytes)

    @property
    def has_rows(self) -> bool:
        """Whether any result row has been read."""
        return bool(self.reports)

    @property
    def udp(self) -> bool:
        """Whether the test is UDP: said in the heading or shown by its columns."""
        if "protocol" in self.facts:
            return self.facts["protocol"] == "UDP"
        shown = any(r.tail.packets_per_second or r.tail.jitter_s is not None for r in self.reports)
        return shown or bool(self.sent) or any(r.tail.total is not None for r in self.reports)


@dataclass(slots=True)
class _Group:
    """The rows of one side in one direction: the whole and each stream's total."""

    whole: Counts | None = None
    streams: list[Counts] = field(default_factory=list)
    rows: int = 0


def build(file: str, test: Test) -> Iperf2Result:
    """Make the record of a test.

    Status: ``failed`` with an error text and no total, or a zero total; ``incomplete`` if no row
    spans the run or streams have no sum; ``suspect`` if rows were unreadable or contradict
    themselves.
    """
    warnings = list(test.warnings)
    intervals: list[Counts] = []
    ways = {_is_back(test, r) for r in test.reports if not r.row.is_sum}
    both = len(ways) > 1 or test.full_duplex
    groups = {
        (back, side): _group(
            test,
            [
                r
                for r in test.reports
                if _side(test, r) == side
                and (_is_back(test, r) == back or (r.row.is_sum and not both))
                # With two directions the sum adds both of them: it is nobody's rate.
                and not (both and r.row.is_sum)
            ],
            side,
            intervals,
            warnings,
        )
        for back in ((False, True) if both else (_back_only(test),))
        for side in ("sent", "received")
    }
    strange = {r.row.id for r in test.reports if not r.row.is_sum} - set(test.connections)
    if test.connections and strange:
        warnings.append(
            f"rows of connections that were not announced: {', '.join(sorted(strange))}; "
            "several tests may be mixed"
        )
    if both:
        warnings += [w for r in test.reports if r.row.is_sum for w in r.row.warnings]
    sent = _pick(groups, "sent", both)
    received = _pick(groups, "received", both)
    back = (groups[True, "received"].whole or groups[True, "sent"].whole) if both else None
    total = received or sent
    status = _status(test, total, groups, warnings)
    return _record(
        file,
        test,
        status=status,
        sent=sent,
        received=received,
        back=back,
        streams=[c for g in groups.values() for c in g.streams],
        intervals=intervals,
        warnings=warnings,
    )


def _pick(groups: dict[tuple[bool, str], _Group], side: str, both: bool) -> Counts | None:
    """The whole of ``side`` in the main direction: forward, or the only one there is."""
    for (back, name), group in groups.items():
        if name == side and not (both and back):
            return group.whole
    return None


def _record(
    file: str,
    test: Test,
    *,
    status: Status,
    sent: Counts | None,
    received: Counts | None,
    back: Counts | None,
    streams: list[Counts],
    intervals: list[Counts],
    warnings: list[str],
) -> Iperf2Result:
    facts, role = test.facts, test.facts.get("role")
    total = received or sent
    told = total is not None and (test.udp or total.writes is not None or role is not None)
    packets = received.packets if received and received.packets is not None else None
    rows = [r.row for r in test.reports]
    return Iperf2Result(
        tool=TOOL,
        kind="test",
        status=status,
        source=Source(file, test.line, max(test.last, test.line)),
        printed=dict(rows[-1].printed) if rows else {},
        warnings=tuple(dict.fromkeys(warnings)),
        failure=test.failure if status is Status.FAILED else None,
        protocol="udp" if test.udp else "tcp" if rows or "protocol" in facts else None,
        role=role,
        remote_host=facts.get("host") or facts.get("peer"),
        remote_port=int(facts["port"]) if "port" in facts and role == "client" else None,
        message_bytes=float(facts["message"]) if "message" in facts else None,
        window_bytes=test.window_bytes,
        elapsed_s=total.elapsed_s if total else None,
        throughput_bps=(total.throughput_bps or None) if total else None,
        throughput_basis=(total.side if told else "printing end") if total else None,
        reverse_bps=back.throughput_bps if back else None,
        sent_bps=sent.throughput_bps if sent and told else None,
        received_bps=received.throughput_bps if received else None,
        packets=packets if packets is not None else sent.packets if sent else None,
        packets_per_second=next(
            (c.packets_per_second for c in (sent, received) if c and c.packets_per_second), None
        ),
        lost_packets=received.lost_packets if received else None,
        loss_pct=received.loss_pct if received else None,
        jitter_s=received.jitter_s if received else None,
        out_of_order=_late(test),
        writes=sent.writes if sent else None,
        write_errors=sent.write_errors if sent else None,
        retransmits=sent.retransmits if sent else None,
        total=sent or received,
        streams=tuple(streams),
        intervals=tuple(intervals),
    )


def _side(test: Test, report: Report) -> str:
    """``received`` or ``sent``: by the row's columns, else by the role of the printing end."""
    if report.from_server or report.tail.side == "received":
        return "received"
    if report.tail.side == "sent":
        return "sent"
    receives = test.facts.get("role") == "server"
    back = _back_only(test) if report.row.is_sum else _is_back(test, report)
    turned = back or (test.reverse and not test.full_duplex)
    return "received" if receives != turned else "sent"


def _is_back(test: Test, report: Report) -> bool:
    """Whether a row is of the direction server to client.

    iperf 2.1 stars the id; the old -d and -r connect back to the port the client listens on.
    """
    if report.row.starred:
        return True
    ports = test.connections.get(report.row.id)
    listening = int(test.facts["port"]) if "port" in test.facts else None
    return (
        ports is not None
        and test.facts.get("role") == "client"
        and ports[0] == listening
        and ports[1] != listening
    )


def _back_only(test: Test) -> bool:
    return any(_is_back(test, r) for r in test.reports if not r.row.is_sum)


def _group(
    test: Test, reports: list[Report], side: str, intervals: list[Counts], warnings: list[str]
) -> _Group:
    """Find the totals among the rows of one side and direction; the rest are intervals."""
    group = _Group(rows=len(reports))
    if not reports:
        return group
    longest = max(r.row.end.value for r in reports)
    sums: list[Report] = []
    for name in dict.fromkeys(r.row.id for r in reports):
        total = _total([r for r in reports if r.row.id == name], side, intervals, warnings)
        if total is None:
            continue
        if total.row.is_sum:
            sums.append(total)
        else:
            group.streams.append(_counts(total, side, test, warnings))
    if len(sums) == 1:
        group.whole = _counts(sums[0], side, test, warnings)
        parts = [r.row.size for r in reports if not r.row.is_sum and _spans(r, longest)]
        if len(parts) > 1 and not sum_agrees(sums[0].row.size, parts):
            warnings.append(
                f"line {sums[0].row.line}: the sum ({sums[0].row.printed['transfer']}) is not "
                f"what its {len(parts)} streams add up to"
            )
    elif len(group.streams) == 1:
        group.whole = group.streams[0]
    elif len(group.streams) > 1:
        group.whole = _added(test, group.streams, side)
        if group.whole is None:
            warnings.append(f"{len(group.streams)} streams ({side}) but no [SUM] row of the whole")
    return group


def _spans(report: Report, longest: float) -> bool:
    return report.row.start.value == 0 and report.row.end.value >= longest - 1.0


def _total(
    reports: list[Report], side: str, intervals: list[Counts], warnings: list[str]
) -> Report | None:
    """The row that spans the whole run of one stream; all others become intervals."""
    end = max(r.row.end.value for r in reports)
    spans = [r for r in reports if r.row.start.value == 0 and r.row.end.value >= end - _EDGE_S]
    others = [r for r in reports if r not in spans]
    if len({r.row.key for r in others}) < len(others):
        warnings.append(f"[{reports[0].row.id}]: an interval row is there twice")
    for one in dict.fromkeys(id(r) for r in others):
        report = next(r for r in others if id(r) == one)
        intervals.append(_plain(report, side))
    if not spans:
        warnings.append(f"[{reports[0].row.id}]: no row spans the whole run")
        return None
    if len(spans) > 1:
        if len({r.row.key for r in spans}) == 1:
            warnings.append(
                f"[{spans[0].row.id}]: the total is there {len(spans)} times; once taken"
            )
        elif len(spans) == 2 and spans[0].row.key[3:7] == spans[1].row.key[3:7]:
            return spans[1]  # a run of one interval: the interval, then the total
        else:
            lines = ", ".join(str(r.row.line) for r in spans)
            warnings.append(f"[{spans[0].row.id}]: different totals (lines {lines}); none is taken")
            return None
    return spans[-1]


def _plain(report: Report, side: str) -> Counts:
    row, tail = report.row, report.tail
    elapsed = row.end.value - row.start.value
    return Counts(
        id=row.id,
        side=side,
        elapsed_s=elapsed if elapsed >= 0 else None,
        bytes=row.size.value,
        throughput_bps=row.rate.value if row.rate else None,
        packets=tail.total if tail.total is not None else tail.datagrams,
        packets_per_second=tail.packets_per_second,
        lost_packets=tail.lost,
        loss_pct=tail.loss_pct,
        jitter_s=tail.jitter_s,
        writes=tail.writes,
        write_errors=tail.write_errors,
        retransmits=tail.retransmits,
        cwnd_bytes=tail.cwnd_bytes,
        rtt_s=tail.rtt_s,
    )


def _counts(report: Report, side: str, test: Test, warnings: list[str]) -> Counts:
    """A total with its warnings, its "Sent N datagrams" and its out-of-order count."""
    warnings.extend([*report.row.warnings, *report.tail.warnings])
    plain = _plain(report, side)
    if test.udp and plain.retransmits is not None:
        warnings.append(f"line {report.row.line}: columns not read: {report.row.rest!r}")
        plain = replace(plain, retransmits=None)
    late = [o for o in test.late if o.id == report.row.id and o.end.text == report.row.end.text]
    name = report.row.id
    count = test.sent.get(name)
    if count is None and report.row.is_sum:
        count = next((n for key, n in test.sent.items() if key.startswith("SUM")), None)
    return replace(
        plain,
        packets=count if side == "sent" and count is not None else plain.packets,
        out_of_order=late[0].count if side == "received" and len(late) == 1 else None,
    )


def _added(test: Test, streams: list[Counts], side: str) -> Counts | None:
    """The whole of several UDP server reports, which iperf 2 does not add up itself.

    Rates, bytes and datagrams add up; jitter is the mean. Only if every stream that sent has its
    report.
    """
    reported = {r.row.id for r in test.reports if r.from_server}
    senders = {r.row.id for r in test.reports if not r.row.is_sum and not r.from_server}
    if side != "received" or not reported or senders - reported:
        return None
    jitters = [s.jitter_s for s in streams if s.jitter_s is not None]
    lost = [s.lost_packets for s in streams if s.lost_packets is not None]
    packets = [s.packets for s in streams if s.packets is not None]
    whole = len(lost) == len(packets) == len(streams)
    datagrams = sum(packets)
    return Counts(
        id="SUM",
        side=side,
        elapsed_s=max((s.elapsed_s or 0.0) for s in streams) or None,
        bytes=sum(s.bytes or 0.0 for s in streams),
        throughput_bps=sum(s.throughput_bps or 0.0 for s in streams),
        packets=datagrams if whole else None,
        lost_packets=sum(lost) if whole else None,
        loss_pct=100.0 * sum(lost) / datagrams if whole and datagrams else None,
        jitter_s=sum(jitters) / len(jitters) if len(jitters) == len(streams) else None,
    )


def _late(test: Test) -> int | None:
    """Datagrams out of order over the whole run: the sum's count, else the streams' added."""
    if not test.late:
        return None
    end = max([r.row.end.value for r in test.reports] + [o.end.value for o in test.late])
    whole = [o for o in test.late if o.start.value == 0 and o.end.value >= end - 1.0]
    sums = {o.count for o in whole if o.id.startswith("SUM")}
    if sums:
        return next(iter(sums)) if len(sums) == 1 else None
    streams = {o.id: o.count for o in whole}
    return sum(streams.values()) if streams else None


def _status(
    test: Test,
    total: Counts | None,
    groups: dict[tuple[bool, str], _Group],
    warnings: list[str],
) -> Status:
    if total is None:
        if test.failure:
            return Status.FAILED
        warnings.append("no row of the whole run: it ended early or its report is cut off")
        return Status.INCOMPLETE
    if test.failure:
        warnings.append(f"an error text came with the result: {test.failure.text}")
    if not total.throughput_bps:
        warnings.append("the total is zero or not a number: no measurement")
        return Status.FAILED
    if test.damaged:
        warnings.append("a row of this test could not be read")
    if any(group.rows and group.whole is None for group in groups.values()):
        return Status.SUSPECT
    return Status.SUSPECT if [w for w in warnings if "once taken" not in w] else Status.OK

"""A record from one decoded JSON document of iperf3."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .base import Failure, Problem, Source, Status
from .iperf3_json import Ambiguous, Found, Number, is_whole
from .iperf3_record import (
    TOOL,
    Interval,
    Iperf3Result,
    Stream,
    Transfer,
    errno_of,
    error_class,
)
from .iperf3_totals import estimated, pick
from .rates import loss

_RATE_SLACK = 0.005


class _Reader:
    """Typed access to a document; everything of the wrong type is None and noted."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def number(self, block: dict[str, Any], key: str) -> float | None:
        """A finite number, else None."""
        value = block.get(key)
        if isinstance(value, Ambiguous):
            self.warnings.append(f"{key} has several values; none is taken")
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            if value is not None:
                self.warnings.append(f"{key} is {value!r}, not a number")
            return None
        if not math.isfinite(value):
            self.warnings.append(f"{key} is not finite")
            return None
        return float(value) if isinstance(value, float) else value

    def integer(self, block: dict[str, Any], key: str) -> int | None:
        """A whole number, else None."""
        value = self.number(block, key)
        return int(value) if value is not None else None

    def block(self, parent: dict[str, Any], key: str) -> dict[str, Any]:
        """An object, else an empty one."""
        value = parent.get(key)
        if isinstance(value, Ambiguous):
            self.warnings.append(f"{key} is there {len(value.values)} times; none is taken")
        return value if isinstance(value, dict) else {}

    def blocks(self, parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """A list of objects, else an empty one."""
        value = parent.get(key)
        return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []

    def text(self, parent: dict[str, Any], key: str) -> str | None:
        """A string, else None."""
        value = parent.get(key)
        return value.strip() if isinstance(value, str) else None

    def transfer(self, block: dict[str, Any], side: str, where: str) -> Transfer | None:
        """The totals of one block (``sum_sent``, a stream's ``sender`` …)."""
        if not block:
            return None
        size, seconds = self.number(block, "bytes"), self.number(block, "seconds")
        rate = self.number(block, "bits_per_second")
        if size is not None and size < 0:
            self.warnings.append(f"{where}: negative number of bytes {size:.0f}")
            size = None
        if rate is not None and rate < 0:
            self.warnings.append(f"{where}: negative rate {rate}")
            rate = None
        if size is not None and seconds and rate is not None:
            computed = 8 * size / seconds
            if abs(computed - rate) > _RATE_SLACK * max(computed, rate):
                self.warnings.append(
                    f"{where}: bytes x 8 / seconds is {computed:.0f} bit/s, printed is {rate:.0f}; "
                    "the printed rate is kept"
                )
        lost, packets, ratio = self.loss(block, where)
        if where.startswith("sum_sent"):
            lost = ratio = None  # a sender prints 0 here: it cannot know
        retransmits = self.integer(block, "retransmits")
        return Transfer(
            side=side,
            elapsed_s=seconds,
            bytes=size,
            throughput_bps=rate,
            retransmits=retransmits if retransmits is not None and retransmits >= 0 else None,
            packets=packets,
            lost_packets=lost,
            loss_pct=ratio,
            jitter_s=self.jitter(block, seconds, where) if side != "sent" else None,
            out_of_order=self.integer(block, "out_of_order"),
        )

    def loss(
        self, block: dict[str, Any], where: str
    ) -> tuple[int | None, int | None, float | None]:
        """Checked loss counters; the ratio is computed and compared with the printed one."""
        lost, packets = self.integer(block, "lost_packets"), self.integer(block, "packets")
        lost, packets, ratio, doubts = loss(lost, packets, where)
        self.warnings += doubts
        said = self.number(block, "lost_percent")
        if ratio is not None and said is not None and abs(said - ratio) > 0.05:
            self.warnings.append(
                f"{where}: lost_percent is {said}, but {lost} of {packets} is {ratio:.3f} %"
            )
            ratio = None
        return lost, packets, ratio

    def jitter(self, block: dict[str, Any], seconds: float | None, where: str) -> float | None:
        """Jitter in seconds; one that is negative or longer than the test is no measurement."""
        value = self.number(block, "jitter_ms")
        if value is None:
            return None
        jitter = value / 1e3
        if jitter < 0 or (seconds is not None and jitter > seconds):
            self.warnings.append(f"{where}: jitter {value:g} ms is implausible")
            return None
        return jitter


def read_document(file: str, found: Found) -> tuple[Iperf3Result | None, list[Problem]]:
    """Make a record of one document, or of a piece of one (``"sum": {…}``, an interval, a stream).

    The headline is ``sum_received``, else for UDP the sender's rate less the loss (an estimate),
    else ``sum_sent``.
    """
    value = found.value
    reader = _Reader()
    reader.warnings += found.warnings
    if found.name in {"sum", "sum_sent", "sum_received"}:
        return _piece(file, found, reader, {found.name: value}, "sum"), []
    if found.name == "end":
        value = {"end": value}
    if not is_whole(value):
        if "streams" in value or "sum" in value:
            return _piece(file, found, reader, value, "interval"), []
        if "bits_per_second" in value:
            return _piece(file, found, reader, {"sum": value}, "stream"), []
        return None, [
            Problem(
                file,
                found.line,
                f"an object with {', '.join(sorted(value)[:5])}",
                'an iperf3 document with "start", "intervals" and "end"',
            )
        ]
    return _session(file, found, reader, value), []


def _piece(
    file: str, found: Found, reader: _Reader, blocks: dict[str, Any], kind: str
) -> Iperf3Result:
    reader.warnings.append(f"a piece of an iperf3 document ({kind}), not a whole result")
    block = next(
        (b for key in ("sum", "sum_received", "sum_sent") if (b := reader.block(blocks, key))), {}
    )
    streams = reader.blocks(blocks, "streams")
    if not block and len(streams) == 1:
        block = streams[0]
    side = {"sum_sent": "sent", "sum_received": "received"}.get(found.name or "", "")
    own = reader.transfer(block, side, kind)
    # end.sum of UDP is the only block that has the sender's rate with the receiver's loss.
    both = own if kind == "sum" and found.name == "sum" and "lost_packets" in block else None
    estimate = estimated(both, None)
    rate = own.throughput_bps if own else None
    omitted = block.get("omitted") is True
    return Iperf3Result(
        tool=TOOL,
        kind=kind,
        status=Status.SUSPECT,
        source=Source(file, found.line, found.last_line),
        printed=_printed(block),
        warnings=tuple(dict.fromkeys(reader.warnings)),
        protocol="udp" if "jitter_ms" in block or "lost_packets" in block else None,
        elapsed_s=own.elapsed_s if own else None,
        throughput_bps=(estimate if estimate is not None else rate) or None,
        throughput_basis="received (estimate)" if estimate is not None else (side or kind),
        sent_bps=rate if both or side == "sent" else None,
        received_bps=rate if side == "received" else None,
        received_estimate_bps=estimate,
        retransmits=own.retransmits if own else None,
        packets=own.packets if own else None,
        lost_packets=own.lost_packets if own else None,
        loss_pct=own.loss_pct if own else None,
        jitter_s=own.jitter_s if own else None,
        sent=replace(own, side="sent", jitter_s=None) if both and own else None,
        intervals=() if kind == "sum" else tuple(_interval(reader, block, "forward", omitted)),
    )


def _interval(
    reader: _Reader, block: dict[str, Any], direction: str, omitted: bool
) -> list[Interval]:
    quiet = _Reader()
    own = quiet.transfer(block, "", "interval")
    reader.warnings += [w for w in quiet.warnings if "bytes x 8" not in w]
    if own is None:
        return []
    return [
        Interval(
            id=str(block.get("socket", "SUM")),
            direction=direction,
            start_s=quiet.number(block, "start"),
            end_s=quiet.number(block, "end"),
            bytes=own.bytes,
            throughput_bps=own.throughput_bps,
            omitted=omitted,
            retransmits=own.retransmits,
            packets=own.packets,
            lost_packets=own.lost_packets,
            loss_pct=own.loss_pct,
            jitter_s=own.jitter_s,
        )
    ]


def _printed(block: dict[str, Any]) -> dict[str, str | None]:
    """The headline block's values as they stand in the document."""
    return {
        key: value.text if isinstance(value, Number) else None if value is None else str(value)
        for key, value in block.items()
        if isinstance(value, (int, float, str)) or value is None
    }


def _session(file: str, found: Found, reader: _Reader, value: dict[str, Any]) -> Iperf3Result:
    start, end = reader.block(value, "start"), reader.block(value, "end")
    test = reader.block(start, "test_start")
    protocol = reader.text(test, "protocol")
    udp = (protocol or "").upper() == "UDP" or "lost_packets" in reader.block(end, "sum")
    reverse = reader.integer(test, "reverse") == 1
    bidirectional = reader.integer(test, "bidir") == 1 or "sum_sent_bidir_reverse" in end
    sent, received = _totals(reader, end, udp, "")
    back = _totals(reader, end, udp, "_bidir_reverse") if bidirectional else (None, None)
    estimate = estimated(sent, received) if udp else None
    headline, basis = pick(sent, received, estimate)
    counted = received or sent
    error = reader.text(value, "error")
    failure = None
    if error is not None:
        errno, name = errno_of(error)
        failure = Failure(error_class(error), error, errno, name)
    cpu = reader.block(end, "cpu_utilization_percent")
    connected = reader.blocks(start, "connected")
    accepted = reader.block(start, "accepted_connection")
    to = reader.block(start, "connecting_to")
    status = _status(reader, failure, headline, sent or received, value)
    return Iperf3Result(
        tool=TOOL,
        kind="session",
        status=status,
        source=Source(file, found.line, found.last_line),
        printed=_printed(
            reader.block(end, "sum_received")
            or reader.block(end, "sum_sent")
            or reader.block(end, "sum")
        ),
        warnings=tuple(dict.fromkeys(reader.warnings)),
        failure=failure,
        version=reader.text(start, "version"),
        protocol=protocol.lower() if protocol else ("udp" if udp else None),
        direction=("reverse" if reverse else "forward") if headline is not None else None,
        bidirectional=bidirectional if test else None,
        streams_wanted=reader.integer(test, "num_streams"),
        requested_s=reader.number(test, "duration"),
        omit_s=reader.number(test, "omit"),
        block_bytes=reader.integer(test, "blksize"),
        # A target of 0 means "as fast as possible".
        target_bps=reader.number(test, "target_bitrate")
        or reader.number(start, "target_bitrate")
        or None,
        mss_bytes=reader.integer(start, "tcp_mss") or reader.integer(start, "tcp_mss_default"),
        congestion=reader.text(end, "sender_tcp_congestion"),
        local_host=reader.text(connected[0], "local_host") if connected else None,
        remote_host=reader.text(connected[0], "remote_host")
        if connected
        else reader.text(to, "host") or reader.text(accepted, "host"),
        remote_port=reader.integer(to, "port"),
        elapsed_s=counted.elapsed_s if counted else None,
        throughput_bps=headline,
        throughput_basis=basis,
        sent_bps=sent.throughput_bps if sent else None,
        received_bps=received.throughput_bps if received else None,
        received_estimate_bps=estimate,
        retransmits=sent.retransmits if sent else None,
        packets=counted.packets if counted else None,
        lost_packets=counted.lost_packets if counted else None,
        loss_pct=counted.loss_pct if counted else None,
        jitter_s=received.jitter_s if received else _sum_jitter(reader, end),
        out_of_order=received.out_of_order if received else None,
        cpu_local_pct=reader.number(cpu, "host_total"),
        cpu_remote_pct=reader.number(cpu, "remote_total"),
        sent=sent,
        received=received,
        reverse_sent=back[0],
        reverse_received=back[1],
        streams=_streams(
            reader, end, None if bidirectional else "reverse" if reverse else "forward"
        ),
        intervals=_intervals(reader, value, reverse),
    )


def _sum_jitter(reader: _Reader, end: dict[str, Any]) -> float | None:
    block = reader.block(end, "sum")
    return reader.jitter(block, reader.number(block, "seconds"), "end.sum") if block else None


def _totals(
    reader: _Reader, end: dict[str, Any], udp: bool, suffix: str
) -> tuple[Transfer | None, Transfer | None]:
    """Sent and received over all streams. A UDP ``sum`` alone is the sender's rate."""
    sent = reader.transfer(reader.block(end, f"sum_sent{suffix}"), "sent", f"sum_sent{suffix}")
    received = reader.transfer(
        reader.block(end, f"sum_received{suffix}"), "received", f"sum_received{suffix}"
    )
    block = reader.block(end, f"sum{suffix}")
    if udp and sent is None and received is None and block:
        sent = reader.transfer(block, "sent", f"end.sum{suffix}")
    if udp and received and not received.throughput_bps and not received.bytes:
        # An interrupted or very old receiver reports nothing: zero here is "not told".
        received = None
        reader.warnings.append("the receiver's totals are zero; the receiver reported nothing")
    return sent, received


def _streams(reader: _Reader, end: dict[str, Any], direction: str | None) -> tuple[Stream, ...]:
    """Each stream's totals; in a bidirectional run its direction is not told for certain."""
    result = []
    for block in reader.blocks(end, "streams"):
        quiet = _Reader()
        sender, receiver = quiet.block(block, "sender"), quiet.block(block, "receiver")
        udp = quiet.block(block, "udp")
        name = str((sender or receiver or udp).get("socket", ""))
        result.append(
            Stream(
                id=name,
                direction=direction,
                sent=quiet.transfer(sender or udp, "sent", f"stream {name}"),
                received=quiet.transfer(receiver, "received", f"stream {name}"),
            )
        )
        reader.warnings += [w for w in quiet.warnings if "bytes x 8" not in w]
    return tuple(result)


def _intervals(reader: _Reader, value: dict[str, Any], reverse: bool) -> tuple[Interval, ...]:
    result: list[Interval] = []
    for block in reader.blocks(value, "intervals"):
        for key, back in (("sum", reverse), ("sum_bidir_reverse", True)):
            one = block.get(key)
            if isinstance(one, Ambiguous):
                reader.warnings.append(f"an interval has {key} more than once; none is taken")
            elif isinstance(one, dict):
                result += _interval(
                    reader, one, "reverse" if back else "forward", one.get("omitted") is True
                )
    return tuple(result)


def _status(
    reader: _Reader,
    failure: Failure | None,
    headline: float | None,
    counted: Transfer | None,
    value: dict[str, Any],
) -> Status:
    if failure:
        return Status.FAILED
    ambiguous = any(isinstance(one, Ambiguous) for one in value.values())
    if counted is None or ambiguous:
        reader.warnings.append("the document has no totals: the run did not end")
        return Status.INCOMPLETE
    if headline is None:
        reader.warnings.append("the total is zero or not a number: no measurement")
        return Status.FAILED
    harmless = ("occurs more than once", "stands for content", "retransmits")
    if any(not any(h in w for h in harmless) for w in reader.warnings):
        return Status.SUSPECT
    return Status.OK

"""A record from one decoded JSON document of iperf3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .base import Failure, Problem, Source, Status
from .iperf3_bidir import TOLD_APART, split_end, split_interval
from .iperf3_headline import estimated, pick
from .iperf3_json import Ambiguous, Found, Number, is_whole
from .iperf3_reader import Reader
from .iperf3_record import (
    TOOL,
    Interval,
    Iperf3Result,
    Stream,
    Transfer,
    errno_of,
    error_class,
)


def read_document(file: str, found: Found) -> tuple[Iperf3Result | None, list[Problem]]:
    """Make a record of one document, or of a piece of one (``"sum": {…}``, an interval, a stream).

    The headline is ``sum_received``, else for UDP the sender's rate less the loss (an estimate),
    else ``sum_sent``.
    """
    value = found.value
    reader = Reader()
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
    file: str, found: Found, reader: Reader, blocks: dict[str, Any], kind: str
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
    reader: Reader, block: dict[str, Any], direction: str, omitted: bool
) -> list[Interval]:
    quiet = Reader()
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


def _session(file: str, found: Found, reader: Reader, value: dict[str, Any]) -> Iperf3Result:
    start, end = reader.block(value, "start"), reader.block(value, "end")
    accepted = reader.block(start, "accepted_connection")
    end, told_apart = split_end(end, server=bool(accepted))
    if told_apart:
        reader.warnings.append(TOLD_APART)
    test = reader.block(start, "test_start")
    protocol = reader.text(test, "protocol")
    udp = (protocol or "").upper() == "UDP" or "lost_packets" in reader.block(end, "sum")
    reverse = reader.integer(test, "reverse") == 1
    bidirectional = reader.integer(test, "bidir") == 1 or "sum_sent_bidir_reverse" in end
    sent, received = _totals(reader, end, udp, "")
    back = _totals(reader, end, udp, "_bidir_reverse") if bidirectional else (None, None)
    if accepted:
        sent, received = _own_side(sent, received, reverse)
        back = _own_side(*back, reverse=True)
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
    to = reader.block(start, "connecting_to")
    streams = _streams(reader, end, None if bidirectional else "reverse" if reverse else "forward")
    intervals = _intervals(reader, value, reverse, server=bool(accepted))
    status = _status(reader, failure, headline, sent or received, value)
    return Iperf3Result(
        tool=TOOL,
        kind="session",
        status=status,
        source=Source(file, found.line, found.last_line),
        printed=_printed(
            (reader.block(end, "sum_received") if received else {})
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
        streams=streams,
        intervals=intervals,
    )


def _own_side(
    sent: Transfer | None, received: Transfer | None, reverse: bool
) -> tuple[Transfer | None, Transfer | None]:
    """What a server's document tells: it prints zeros for what only the client counted."""
    own, other = (sent, received) if reverse else (received, sent)
    if own and own.bytes and other and not other.bytes and not other.throughput_bps:
        return (own, None) if reverse else (None, own)
    return sent, received


def _sum_jitter(reader: Reader, end: dict[str, Any]) -> float | None:
    block = reader.block(end, "sum")
    return reader.jitter(block, reader.number(block, "seconds"), "end.sum") if block else None


def _totals(
    reader: Reader, end: dict[str, Any], udp: bool, suffix: str
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


def _streams(reader: Reader, end: dict[str, Any], direction: str | None) -> tuple[Stream, ...]:
    """Each stream's totals; in a bidirectional run its direction is not told for certain."""
    result = []
    for block in reader.blocks(end, "streams"):
        quiet = Reader()
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


def _intervals(
    reader: Reader, value: dict[str, Any], reverse: bool, *, server: bool
) -> tuple[Interval, ...]:
    result: list[Interval] = []
    for whole in reader.blocks(value, "intervals"):
        block = split_interval(whole, server)
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
    reader: Reader,
    failure: Failure | None,
    headline: float | None,
    counted: Transfer | None,
    value: dict[str, Any],
) -> Status:
    if failure:
        return Status.FAILED
    ambiguous = any(isinstance(one, Ambiguous) for one in value.values())
    if counted is None or ambiguous:
        several = any("none is taken" in warning for warning in reader.warnings)
        reader.warnings.append(
            "the totals contradict each other"
            if several
            else "the document has no totals: the run did not end"
        )
        return Status.INCOMPLETE
    if headline is None:
        reader.warnings.append("the total is zero or not a number: no measurement")
        return Status.FAILED
    harmless = ("occurs more than once", "stands for content", "retransmits", TOLD_APART)
    if any(not any(h in w for h in harmless) for w in reader.warnings):
        return Status.SUSPECT
    return Status.OK

"""The records of iperf 2: a test read from its text report, and a row of its CSV report."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Record

TOOL = "iperf2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one end counted, for one stream or for all.

    ``side`` is ``sent`` or ``received``; with plain TCP rows that do not tell, the end that
    printed them: ``client`` or ``server``. ``rtt_s`` is the last one sampled.
    """

    id: str
    side: str
    elapsed_s: float | None
    bytes: float | None
    throughput_bps: float | None
    packets: int | None = None
    packets_per_second: float | None = None
    lost_packets: int | None = None
    loss_pct: float | None = None
    jitter_s: float | None = None
    out_of_order: int | None = None
    writes: int | None = None
    write_errors: int | None = None
    retransmits: int | None = None
    cwnd_bytes: float | None = None
    rtt_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Iperf2Result(Record):
    """One test of iperf 2, ``kind`` ``test``; a CSV row has ``total``, ``interval`` or ``sum``.

    A ``sum`` is iperf 2's row over all streams, whose ``transfer_id`` is -1: it is no further one.

    ``throughput_bps`` is of all streams: the receiver's where a server report tells it, else the
    printing end's (``throughput_basis``). Streams that ran in opposite directions (-d,
    --full-duplex) are not added: ``reverse_bps`` is the other direction's. ``jitter_s`` is the
    mean over the streams' server reports.
    """

    transfer_id: int | None = None
    protocol: str | None = None
    role: str | None = None
    remote_host: str | None = None
    remote_port: int | None = None
    message_bytes: float | None = None
    window_bytes: float | None = None
    started_at: str | None = None
    elapsed_s: float | None = None
    throughput_bps: float | None = None
    throughput_basis: str | None = None
    reverse_bps: float | None = None
    sent_bps: float | None = None
    received_bps: float | None = None
    packets: int | None = None
    packets_per_second: float | None = None
    lost_packets: int | None = None
    loss_pct: float | None = None
    jitter_s: float | None = None
    out_of_order: int | None = None
    writes: int | None = None
    write_errors: int | None = None
    retransmits: int | None = None
    total: Counts | None = None
    streams: tuple[Counts, ...] = ()
    intervals: tuple[Counts, ...] = ()
    interval_start_s: float | None = None
    interval_end_s: float | None = None

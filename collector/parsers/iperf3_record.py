"""The record of an iperf3 run, from JSON or from text."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Record

TOOL = "iperf3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What one side counted in one direction, over all streams or for one.

    ``side`` is ``sent`` or ``received``. ``packets`` and ``lost_packets`` are datagrams of UDP,
    as the receiver counted them.
    """

    side: str
    elapsed_s: float | None
    bytes: float | None
    throughput_bps: float | None
    retransmits: int | None = None
    packets: int | None = None
    lost_packets: int | None = None
    loss_pct: float | None = None
    jitter_s: float | None = None
    out_of_order: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One stream's totals; ``direction`` is ``forward`` (client to server) or ``reverse``."""

    id: str
    direction: str | None
    sent: Transfer | None
    received: Transfer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One reporting interval: of the sum where there is one, else of the stream ``id``."""

    id: str
    direction: str
    start_s: float | None
    end_s: float | None
    bytes: float | None
    throughput_bps: float | None
    omitted: bool
    retransmits: int | None = None
    packets: int | None = None
    lost_packets: int | None = None
    loss_pct: float | None = None
    jitter_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Iperf3Result(Record):
    """One iperf3 session.

    ``kind`` is ``session`` or, for a piece of a document, ``sum``, ``interval`` or ``stream``.
    ``throughput_bps`` is the receiver's rate where it is known, else the sender's;
    ``throughput_basis`` says which: ``received``, ``received (estimate)``, ``sent``. Its
    direction is ``direction``; a bidirectional run has the other one in ``reverse_*``.
    ``loss_pct``, ``jitter_s``, ``packets`` and ``lost_packets`` are the receiver's.
    """

    version: str | None = None
    protocol: str | None = None
    direction: str | None = None
    bidirectional: bool | None = None
    streams_wanted: int | None = None
    requested_s: float | None = None
    omit_s: float | None = None
    block_bytes: int | None = None
    target_bps: float | None = None
    mss_bytes: int | None = None
    congestion: str | None = None
    local_host: str | None = None
    remote_host: str | None = None
    remote_port: int | None = None
    elapsed_s: float | None = None
    throughput_bps: float | None = None
    throughput_basis: str | None = None
    sent_bps: float | None = None
    received_bps: float | None = None
    received_estimate_bps: float | None = None
    retransmits: int | None = None
    packets: int | None = None
    lost_packets: int | None = None
    loss_pct: float | None = None
    jitter_s: float | None = None
    out_of_order: int | None = None
    cpu_local_pct: float | None = None
    cpu_remote_pct: float | None = None
    sent: Transfer | None = None
    received: Transfer | None = None
    reverse_sent: Transfer | None = None
    reverse_received: Transfer | None = None
    streams: tuple[Stream, ...] = ()
    intervals: tuple[Interval, ...] = ()


ERROR_CLASSES = (
    ("unable to connect to server", "control_unreachable"),
    ("server is busy", "server_busy"),
    ("control socket has closed", "control_lost"),
    ("unable to send control message", "control_lost"),
    ("unable to receive control message", "control_lost"),
    ("unable to receive results", "control_lost"),
    ("unable to send cookie", "control_lost"),
    ("unable to connect stream", "stream_refused"),
    ("has terminated", "terminated"),
    ("interrupt", "interrupted"),
    ("authorization failed", "not_authorized"),
    ("unable to start listener", "address_in_use"),
    ("Bad file descriptor", "control_lost"),
    ("parameter", "wrong_use"),
    ("idle timeout", "timed_out"),
    ("timed out", "timed_out"),
)


def error_class(text: str) -> str:
    """A stable class name for an iperf3 error text (iperf_error.c); ``tool_error`` if unknown."""
    return next((name for part, name in ERROR_CLASSES if part in text), "tool_error")


ERRNO_NAMES = {
    "No route to host": (113, "EHOSTUNREACH"),
    "Connection refused": (111, "ECONNREFUSED"),
    "Connection timed out": (110, "ETIMEDOUT"),
    "Connection reset by peer": (104, "ECONNRESET"),
    "Network is unreachable": (101, "ENETUNREACH"),
    "Cannot assign requested address": (99, "EADDRNOTAVAIL"),
    "Address already in use": (98, "EADDRINUSE"),
    "Permission denied": (13, "EACCES"),
    "Broken pipe": (32, "EPIPE"),
    "No buffer space available": (105, "ENOBUFS"),
    "Operation not permitted": (1, "EPERM"),
    "Resource temporarily unavailable": (11, "EAGAIN"),
}


def errno_of(text: str) -> tuple[int | None, str | None]:
    """Linux error number and name of the strerror text at the end of a message, if it has one."""
    for words, found in ERRNO_NAMES.items():
        if words in text:
            return found
    return None, None

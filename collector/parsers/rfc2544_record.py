"""The record of a forwarding test by frame size, and line rate on Ethernet."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Record

TOOL = "rfc2544"

FRAMING_BYTES = 20
"""Preamble, start delimiter and inter-frame gap: what a frame takes on Ethernet beside itself."""

LINK_SPEEDS_BPS = (1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10, 5e10, 1e11, 2e11, 4e11, 8e11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfc2544Row(Record):
    """One result by frame size.

    ``kind``: ``throughput`` (a row of a throughput search: highest rate within the tolerated
    loss), ``forwarding`` (a cell of a table of forwarded shares; ``column`` is its heading, as a
    kernel version), ``table`` (a row of a table with named units; ``name`` is what the row is
    called where that is no size, as a direction), ``search`` (an NDR or PDR line or row; ``name``
    is ``NDR_LOWER`` …), ``rate`` (a packet rate written with its bit rate or with its maximum),
    ``trial`` (the counters of one trial).
    ``frame_bytes`` is with FCS. ``throughput_layer`` is ``L2`` (frames only) or ``L1`` (with
    preamble and gap). ``intended_…`` is what the tester was told to send, ``offered_…`` what it
    sent, the others what came back (RFC 2285). ``max_packets_per_second`` is the maximum the tool
    printed; it must not be taken for the line rate unless the recorded link speed agrees with
    ``link_bps_implied``.
    """

    name: str | None = None
    column: str | None = None
    frame_bytes: int | None = None
    frame_basis: str | None = None
    packets_per_second: float | None = None
    max_packets_per_second: float | None = None
    throughput_bps: float | None = None
    throughput_layer: str | None = None
    intended_packets_per_second: float | None = None
    intended_bps: float | None = None
    intended_pct: float | None = None
    offered_packets_per_second: float | None = None
    offered_bps: float | None = None
    offered_pct: float | None = None
    packets_sent: int | None = None
    packets_received: int | None = None
    line_rate_pct: float | None = None
    at_line_rate_within_resolution: bool | None = None
    link_bps_implied: float | None = None
    forwarded_pct: float | None = None
    loss_pct: float | None = None
    latency_s: float | None = None
    latency_min_s: float | None = None
    latency_max_s: float | None = None
    tolerated_loss_pct: float | None = None
    trial_s: float | None = None
    resolution_pct: float | None = None


def line_rate_pps(link_bps: float, frame_bytes: int) -> float:
    """Frames a second that Ethernet of ``link_bps`` carries: link / (8 · (frame + 20)).

    ``frame_bytes`` is with FCS (RFC 2544 appendix B, RFC 5180).
    """
    return link_bps / (8 * (frame_bytes + FRAMING_BYTES))


def layer_of(pps: float, bps: float, frame_bytes: int, slack: float = 0.01) -> str | None:
    """The layer on which ``pps`` frames are ``bps``: L2, L1 (20 bytes more), or None if neither.

    ``slack`` is the relative error that rounding may have left.
    """
    for layer, overhead in (("L2", 0), ("L1", FRAMING_BYTES)):
        expected = 8 * pps * (frame_bytes + overhead)
        if abs(expected - bps) <= slack * expected:
            return layer
    return None


def implied_link_bps(pps: float, frame_bytes: int) -> float | None:
    """The Ethernet speed whose line rate is ``pps``, or None if none is within 0.01 %."""
    wanted = pps * 8 * (frame_bytes + FRAMING_BYTES)
    return next(
        (s for s in LINK_SPEEDS_BPS if abs(wanted - s) <= max(s * 1e-4, 8 * (frame_bytes + 20))),
        None,
    )

"""The one rate that a session of iperf3 is worth, of what both ends say."""

from __future__ import annotations

from .iperf3_record import Transfer


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

"""Arithmetic that a sound result satisfies: the guard against swapped and foreign columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..base import Status
from .numbers import unit_factor
from .records import NetperfResult

_LOOSE = 0.02


def checked(record: NetperfResult) -> NetperfResult:
    """The record with ``derived`` filled in, and marked suspect where its numbers disagree."""
    warnings: list[str] = []
    derived = dict(record.derived)
    _cpus(record, derived, warnings)
    _udp(record, warnings)
    _detail(record, warnings)
    _histogram(record, warnings)
    rate = record.transactions_per_second
    if record.first_burst == 0 and rate:
        # One transaction at a time: the rate is the reciprocal of the round trip.
        derived["latency_mean_us"] = 1e6 / rate
    changes: dict[str, Any] = {"derived": derived}
    if warnings:
        changes["warnings"] = (*record.warnings, *warnings)
        if record.status is Status.OK:
            changes["status"] = Status.SUSPECT
    return replace(record, **changes)


def _cpus(record: NetperfResult, derived: dict[str, float], warnings: list[str]) -> None:
    """Service demand × rate / utilisation is the number of CPUs (netlib.c, calc_service_demand).

    Below one the columns cannot belong together.
    """
    for side in ("local", "remote"):
        util = getattr(record, f"cpu_{side}_pct")
        per_kb = getattr(record, f"service_demand_{side}_us_per_kb")
        per_transaction = getattr(record, f"service_demand_{side}_us_per_transaction")
        rate = record.throughput_bps
        if record.messages_ok is not None:
            if side == "remote":
                continue  # its demand is per KB sent in some versions, received in others
            rate = record.send_throughput_bps
        if per_kb is not None and rate is not None:
            busy = per_kb * rate / 8 / 1024
            noise = 0.0005 / per_kb if per_kb else 1.0
        elif per_transaction is not None and record.transactions_per_second:
            busy = per_transaction * record.transactions_per_second
            noise = 0.0005 / per_transaction if per_transaction else 1.0
        else:
            continue
        if not util or not busy:
            continue
        cpus = busy / (util / 100 * 1e6)
        derived[f"cpus_{side}"] = cpus
        noise += 0.005 / util + 0.01
        of_last = record.messages_ok is not None and record.confidence is not None
        if cpus < 0.9 - noise and not of_last:
            warnings.append(
                f"the {side} CPU utilisation, service demand and rate do not belong together:"
                f" they would make {cpus:.2f} CPUs"
            )


def _udp(record: NetperfResult, warnings: list[str]) -> None:
    """Messages × size × 8 / time is the rate, in both rows of UDP_STREAM."""
    size = record.message_bytes
    factor = unit_factor(record.throughput_unit or "")
    if record.messages_ok is None or size is None or factor is None:
        return
    received = record.messages_received
    if received is not None and received > record.messages_ok:
        warnings.append("more messages received than sent")
    for what, count, seconds, rate in (
        ("sent", record.messages_ok, record.send_elapsed_s, record.send_throughput_bps),
        ("received", received, record.receive_elapsed_s, record.receive_throughput_bps),
    ):
        if count is None or not seconds or rate is None:
            continue
        expected = count * size * 8 / seconds
        room = _LOOSE * max(expected, rate) + expected * 0.006 / seconds + 0.06 * factor
        if what == "received" and rate < expected and record.confidence is None:
            # A receive buffer smaller than the message cuts each one: fewer bytes, as many calls.
            if rate < expected - room:
                warnings.append("fewer bytes received than messages times their size: cut or lost")
            continue
        if abs(expected - rate) > room and record.confidence is None:
            warnings.append(
                f"{what}: {count} messages of {size} bytes in {seconds} s are not {rate:.0f} bit/s"
            )


def _detail(record: NetperfResult, warnings: list[str]) -> None:
    detail = record.detail
    if detail is None or record.confidence is not None:
        return
    moved = detail.bytes_transferred
    for calls, each, name in (
        (detail.sends, detail.bytes_per_send, "sends"),
        (detail.recvs, detail.bytes_per_recv, "receives"),
    ):
        if moved and calls and each and abs(calls * each - moved) > _LOOSE * moved:
            warnings.append(f"-v 2: {name} times their size are not the bytes transferred")
    rate, seconds = record.throughput_bps, record.elapsed_s
    if moved and rate and seconds:
        expected = moved * 8 / seconds
        if abs(expected - rate) > expected * (_LOOSE + 0.006 / seconds):
            warnings.append("-v 2: bytes transferred and time do not make the throughput")
    trip = record.transactions_per_second
    if record.round_trip_us and trip and record.first_burst is not None:
        flight = record.round_trip_us * trip / 1e6
        if abs(flight - 1 - record.first_burst) > 0.05 * (1 + record.first_burst):
            warnings.append("-v 2: round trip times rate is not the number in flight")


def _histogram(record: NetperfResult, warnings: list[str]) -> None:
    """The slowest and fastest transaction lie in the outermost buckets."""
    if not record.histogram:
        return
    low, high = record.latency_min_us, record.latency_max_us
    first, last = record.histogram[0].lower_us, record.histogram[-1].lower_us
    if low is not None and low < first:
        warnings.append(f"the minimum of {low} us is below the histogram's first bucket")
    if high is not None and high < last:
        warnings.append(f"the maximum of {high} us is below the histogram's last bucket")

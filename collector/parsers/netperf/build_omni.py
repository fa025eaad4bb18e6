"""From a row of omni output to the fields of a record."""

from __future__ import annotations

from collections.abc import Mapping

from ..base import Status
from .banner import Banner
from .build import Fields, default_unit, fail, from_banner, throughput, warn
from .command import Command
from .confidence import of_omni
from .numbers import TRANSACTIONS, measured, scaled, unit_factor
from .omni import Row, Value
from .selectors import SELECTORS, last_iteration_only

_INTEGERS = {
    "send_socket_bytes": ("LSS_SIZE_END", "LSS_SIZE"),
    "recv_socket_bytes": ("LSR_SIZE_END", "LSR_SIZE"),
    "remote_send_socket_bytes": ("RSS_SIZE_END", "RSS_SIZE"),
    "remote_recv_socket_bytes": ("RSR_SIZE_END", "RSR_SIZE"),
    "request_bytes": ("REQUEST_SIZE",),
    "response_bytes": ("RESPONSE_SIZE",),
    "mss_bytes": ("TRANSPORT_MSS",),
    "retransmits_local": ("LOCAL_TRANSPORT_RETRANS",),
    "retransmits_remote": ("REMOTE_TRANSPORT_RETRANS",),
}
_NUMBERS = {
    "elapsed_s": "ELAPSED_TIME",
    "cpu_local_pct": "LOCAL_CPU_UTIL",
    "cpu_remote_pct": "REMOTE_CPU_UTIL",
    "latency_min_us": "MIN_LATENCY",
    "latency_mean_us": "MEAN_LATENCY",
    "latency_p50_us": "P50_LATENCY",
    "latency_p90_us": "P90_LATENCY",
    "latency_p99_us": "P99_LATENCY",
    "latency_max_us": "MAX_LATENCY",
    "latency_stddev_us": "STDDEV_LATENCY",
    "round_trip_us": "RT_LATENCY",
}
_FAMILIES = {2: "AF_INET", 10: "AF_INET6", 23: "AF_INET6", 28: "AF_INET6", 30: "AF_INET6"}


def from_row(row: Row, banner: Banner | None, command: Command | None) -> Fields:
    """The fields of one omni result; -1 means "not measured" and becomes None."""
    values = row.values
    fields = from_banner(banner, command)
    fields["printed"] |= row.printed
    for warning in row.warnings:
        warn(fields, warning)
    for field_name, names in _INTEGERS.items():
        number = next(
            (n for n in (_positive(values, name) for name in names) if n is not None), None
        )
        fields[field_name] = None if number is None else int(number)
    for field_name, name in _NUMBERS.items():
        fields[field_name] = _positive(values, name)
    _identity(fields, row)
    unit = _unit(fields, row, command, banner)
    _rate(fields, row, unit)
    _sides(fields, values, unit)
    fields["confidence"] = of_omni(values, banner, command)
    confidence = fields["confidence"]
    if confidence is not None and (confidence.iterations or 0) > 1:
        fields["last_iteration_only"] = last_iteration_only(list(row.printed))
    unknown = [name for name in row.printed if name not in SELECTORS]
    if unknown:
        warn(fields, f"not known and kept as printed only: {', '.join(unknown)}")
    return fields


def _positive(values: Mapping[str, Value], name: str) -> float | None:
    value = values.get(name)
    return measured(float(value)) if isinstance(value, (int, float)) else None


def _text(row: Row, name: str) -> str | None:
    text = row.printed.get(name)
    return text if text else None


def _identity(fields: Fields, row: Row) -> None:
    brand = _text(row, "RESULT_BRAND")
    fields["tag"] = brand.strip('"') if brand else None
    fields["command"] = fields.get("command") or _text(row, "COMMAND_LINE")
    fields["address"] = fields.get("address") or _text(row, "DEST_ADDR")
    family = row.values.get("DEST_FAMILY")
    if fields.get("family") is None and isinstance(family, int):
        fields["family"] = _FAMILIES.get(family)
    burst = row.values.get("BURST_SIZE")
    if fields.get("first_burst") is None and isinstance(burst, int) and burst >= 0:
        fields["first_burst"] = burst
    protocol, direction = _text(row, "PROTOCOL"), _text(row, "DIRECTION")
    if fields.get("test") is None and protocol and direction:
        # An omni test has no classic name when it connects per transaction; this is the rest.
        kind = {"Send": "STREAM", "Recv": "MAERTS", "Receive": "MAERTS", "Send|Recv": "RR"}
        if protocol in {"TCP", "UDP", "SCTP"} and direction in kind:
            fields["test"] = f"{protocol}_{kind[direction]}"
    for size in ("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE"):
        value = row.values.get(size)
        if isinstance(value, int) and value > 0 and not _requests(fields):
            fields["message_bytes"] = value
            break


def _requests(fields: Fields) -> bool:
    return (fields.get("test") or "").endswith(("_RR", "_CRR", "_CC", "_TRR", "_RR_MANY"))


def _unit(fields: Fields, row: Row, command: Command | None, banner: Banner | None) -> str | None:
    """The unit of THROUGHPUT without ``/s``: selected, or from -f, or the test's own."""
    printed = _text(row, "THROUGHPUT_UNITS")
    if printed is not None:
        return printed.removesuffix("/s").removesuffix("/sec").strip()
    if "THROUGHPUT" not in row.values:
        return None
    requests = banner.concerns_requests if banner else _requests(fields)
    unit = default_unit(requests, command)
    if unit is None and requests:
        warn(fields, "THROUGHPUT_UNITS was not selected: taken as transactions a second")
        return TRANSACTIONS
    return unit


def _rate(fields: Fields, row: Row, unit: str | None) -> None:
    values = row.values
    transactions = _positive(values, "TRANSACTION_RATE")
    if transactions is not None and (unit == TRANSACTIONS or _requests(fields)):
        fields["transactions_per_second"] = transactions
    rate_only = not {"THROUGHPUT", "THROUGHPUT_UNITS"} & set(values)
    if rate_only and transactions is not None and _requests(fields):
        # Only the rate was asked for. Units without the value are a lost line.
        fields["throughput_unit"] = f"{TRANSACTIONS}/s"
        return
    if "THROUGHPUT" not in values:
        fields["status"] = Status.INCOMPLETE
        warn(fields, "no THROUGHPUT among the values")
        return
    rate = values["THROUGHPUT"]
    fields["throughput_unit"] = f"{unit}/s" if unit else None
    if not isinstance(rate, (int, float)):
        if any(name.startswith("THROUGHPUT came with") for name in row.warnings) or row.complaints:
            fields["status"] = Status.SUSPECT
            warn(fields, "THROUGHPUT could not be read")
        else:
            fail(fields, "the throughput is not a number")
        return
    if rate < 0:
        fail(fields, f"a throughput of {rate}")
    elif unit == TRANSACTIONS:
        # Printed with two decimals; TRANSACTION_RATE has three and is of the last iteration.
        fields["transactions_per_second"] = float(rate)
        if transactions is not None and abs(transactions - rate) > max(0.02 * rate, 0.01):
            warn(fields, f"TRANSACTION_RATE {transactions} is of the last iteration only")
        if rate == 0:
            fail(fields, "zero throughput")
    else:
        throughput(fields, float(rate), unit)
        if rate == 0 and fields.get("transactions_per_second"):
            # Too small for the unit, not zero: transactions were made.
            fields["throughput_bps"] = None
            fields["status"] = Status.SUSPECT
            fields.pop("failure_text", None)
            warn(fields, f"0.00 {unit}/s is below what this unit shows")
        fields["throughput_unit"] = f"{unit}/s" if unit else None


def _sides(fields: Fields, values: Mapping[str, Value], unit: str | None) -> None:
    """CPU, service demand and the rates of the two sides."""
    per = {"usec/KB": "us_per_kb", "usec/Tran": "us_per_transaction"}.get(
        str(values.get("SD_UNITS"))
    )
    for side, name in (("local", "LOCAL"), ("remote", "REMOTE")):
        method = values.get(f"{name}_CPU_METHOD")
        fields[f"cpu_method_{side}"] = method if method not in {"U", "", None} else None
        if f"{name}_SD" in values and per is not None:
            fields[f"service_demand_{side}_{per}"] = _positive(values, f"{name}_SD")
    # Where THROUGHPUT is in transactions, the rates of the sides are in 10^6bits (the default).
    factor = 1e6 if unit == TRANSACTIONS else unit_factor(unit) if unit else None
    send = values.get("LOCAL_SEND_THROUGHPUT")
    receive = values.get("REMOTE_RECV_THROUGHPUT")
    if factor is not None:
        if isinstance(send, (int, float)) and send >= 0:
            fields["send_throughput_bps"] = scaled(float(send), factor)
        if isinstance(receive, (int, float)) and receive >= 0:
            fields["receive_throughput_bps"] = scaled(float(receive), factor)
    if fields.get("test") == "UDP_STREAM" and receive == 0 and send:
        fields["status"] = Status.SUSPECT
        warn(fields, "nothing received")

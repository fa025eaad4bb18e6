"""The record of TRex, and how the values of its reports become one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .base import Failure, Record, Source, Status
from .rates import NUMBER

TOOL = "trex"

_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE = re.compile(rf"(?P<number>-?{NUMBER})\s*(?P<scale>[KkMGT]?)(?P<unit>bps|pps|PPS|cps)")
_PERCENT = re.compile(rf"(?P<number>-?{NUMBER})\s*%(?: of oPackets)?(?:\s.*|\s*@.*)?")
_COUNT = re.compile(r"(?P<number>-?\d+)\s*(?:pkts?|bytes?)?")
_TIME = re.compile(rf"(?P<number>-?{NUMBER})\s*(?P<unit>usec|msec|sec|seconds)")
_SECONDS = {"usec": 1e-6, "msec": 1e-3, "sec": 1.0, "seconds": 1.0}
_UNKNOWN = {"None", "N/A", "-", "nan", "-nan", "inf"}
_MORE = 1.01  # TRex itself warns from 101 % on

Bad = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrexResult(Record):
    """One report of TRex.

    ``kind``: ``trial`` (a trial of the NDR benchmark) and ``ndr`` (what it found), ``stats``
    (rates while traffic runs, of the server or the console), ``summary`` (counters after it).
    Rates of packets and bits are of all ports together; ``offered_…`` was sent, the others came
    back. L2 rates are of frames, L1 with preamble and gap; ``throughput_bps`` is what came back,
    on L2. ``loss_pct`` is of the packets sent, computed where the counters are there.
    """

    title: str | None = None
    direction: str | None = None
    iteration: str | None = None
    elapsed_s: float | None = None
    packets_per_second: float | None = None
    throughput_bps: float | None = None
    wire_bps: float | None = None
    offered_packets_per_second: float | None = None
    offered_bps: float | None = None
    offered_wire_bps: float | None = None
    intended_bps: float | None = None
    max_bps: float | None = None
    max_pct: float | None = None
    line_rate_pct: float | None = None
    loss_pct: float | None = None
    dropped_bps: float | None = None
    queue_full_pct: float | None = None
    packets_sent: int | None = None
    packets_received: int | None = None
    packets_dropped: int | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None
    latency_s: float | None = None
    latency_max_s: float | None = None
    cpu_pct: float | None = None
    version: str | None = None


class _Values:
    """Typed access to printed values; what is no number of its unit is collected in ``bad``."""

    def __init__(self, values: dict[str, str], warnings: list[str]) -> None:
        self.values = values
        self.warnings = list(warnings)
        self.doubtful = bool(warnings)
        self.bad: Bad = []

    def doubt(self, text: str) -> None:
        """Note what cannot be."""
        self.warnings.append(text)
        self.doubtful = True

    def _read(
        self, key: str, pattern: re.Pattern[str], wanted: str
    ) -> tuple[re.Match[str] | None, float]:
        text = self.values.get(key)
        if text is None or text in _UNKNOWN or not text:
            return None, 0.0
        match = pattern.fullmatch(text)
        if match is None:
            self.bad.append((key, text, wanted))
            return None, 0.0
        return match, float(match["number"])

    def _positive(self, key: str, value: float) -> float | None:
        if value >= 0:
            return value
        self.doubt(f"{key} is {self.values[key]}: no measurement")
        return None

    def rate(self, key: str, unit: str) -> float | None:
        """A rate in ``bps`` or ``pps``."""
        match, number = self._read(key, _RATE, f"a number in {unit}")
        if match is None:
            return None
        if match["unit"].lower() != unit:
            self.bad.append((key, self.values[key], f"a number in {unit}"))
            return None
        return self._positive(key, number * _SCALES[match["scale"].lower()])

    def share(self, key: str, most: float | None = None) -> float | None:
        """A percentage; above ``most`` it is no measurement."""
        match, number = self._read(key, _PERCENT, "a percentage")
        if match is None:
            return None
        if most is not None and number > most:
            self.doubt(f"{key} is {self.values[key]}: more than all, no measurement")
            return None
        return self._positive(key, number)

    def count(self, key: str) -> int | None:
        """A counter."""
        match, number = self._read(key, _COUNT, "a whole number")
        if match is None:
            return None
        return int(match["number"]) if self._positive(key, number) is not None else None

    def seconds(self, key: str) -> float | None:
        """A time in seconds."""
        match, number = self._read(key, _TIME, "a time")
        if match is None:
            return None
        return self._positive(key, number * _SECONDS[match["unit"]])


Maker = Callable[
    [Source, dict[str, str], list[str], "Failure | None"], "tuple[TrexResult | None, Bad]"
]


def _made(
    kind: str,
    source: Source,
    values: _Values,
    failure: Failure | None,
    measured: bool,
    fields: dict[str, Any],
) -> tuple[TrexResult, Bad]:
    status = Status.OK
    if failure is not None:
        status = Status.FAILED
    elif not measured:
        status = Status.INCOMPLETE
        values.warnings.append("no rate and no counter: no measurement")
    elif values.doubtful or values.bad:
        status = Status.SUSPECT
    record = TrexResult(
        tool=TOOL,
        kind=kind,
        status=status,
        source=source,
        printed=dict(values.values),
        warnings=tuple(values.warnings),
        failure=failure,
        **fields,
    )
    return record, values.bad


def ndr(
    source: Source, printed: dict[str, str], warnings: list[str], failure: Failure | None
) -> tuple[TrexResult | None, Bad]:
    """A trial of the NDR benchmark, or its result. Status lines alone are no report."""
    if not set(printed) - {"Status", "Interval", "Title", "Iteration", "Elapsed Time"}:
        return None, []
    values = _Values(printed, warnings)
    final = "Optimal P-Drop Rate" in printed
    way = "bi" if any("bi-directional" in key for key in printed) else "uni"
    end = " at Optimal P-Drop Rate" if final else ""
    received, sent = (values.rate(f"{way_} PPS {way}-directional", "pps") for way_ in ("RX", "TX"))
    loss = values.share(f"Drop Rate{end}", most=100.0)
    if received is not None and sent is not None:
        if received > sent * _MORE or (received > sent and loss):
            values.doubt(f"{received:g} pps came back of {sent:g} sent")
        if loss is None and f"Drop Rate{end}" in printed and received > sent:
            values.warnings.append(
                "the loss cannot be had from rates: more came back than was sent"
            )
    queue = values.share(f"Queue Full{end}", most=100.0)
    if printed.get("Valid Latency", "True") == "False":
        values.doubt("the latency was above the limit")
    fields = {
        "title": printed.get("Title"),
        "direction": "bidirectional" if way == "bi" else "unidirectional",
        "iteration": printed.get("Iteration") or printed.get("Total Iterations"),
        "elapsed_s": values.seconds("Elapsed Time"),
        "packets_per_second": received,
        "offered_packets_per_second": sent,
        "throughput_bps": values.rate(f"Total RX L2 {way}-directional", "bps"),
        "wire_bps": values.rate(f"Total RX L1 {way}-directional", "bps"),
        "offered_bps": values.rate(f"Total TX L2 {way}-directional", "bps"),
        "offered_wire_bps": values.rate(f"Total TX L1 {way}-directional", "bps"),
        "intended_bps": values.rate("Optimal P-Drop Rate" if final else "Running Rate", "bps"),
        "max_bps": values.rate("Max Rate", "bps"),
        "max_pct": values.share("P-Drop Rate (% of max)" if final else "Running Rate (% of max)"),
        "line_rate_pct": values.share("TX Utilization"),
        "loss_pct": loss,
        "queue_full_pct": queue,
        "cpu_pct": values.share("TRex CPU"),
    }
    measured = any(
        fields[name] is not None
        for name in ("packets_per_second", "throughput_bps", "loss_pct", "intended_bps")
    )
    return _made("ndr" if final else "trial", source, values, failure, measured, fields)


def summary(
    source: Source, printed: dict[str, str], warnings: list[str], failure: Failure | None
) -> tuple[TrexResult | None, Bad]:
    """The counters after a run. TRex prints a drop of 0 where it is negative."""
    values = _Values(printed, warnings)
    sent, received = values.count("Total-tx-pkt"), values.count("Total-rx-pkt")
    dropped = values.count("Total-pkt-drop")
    loss = None
    if sent is not None and received is not None:
        if received > sent:
            values.doubt(f"{received} packets received of only {sent} sent: loss is unknown")
            dropped = None
        elif sent:
            loss = 100.0 * (sent - received) / sent
            if dropped is not None and dropped != sent - received:
                values.doubt(f"{sent} sent and {received} received are not {dropped} dropped")
    if printed.get("latency-any-error", "OK") != "OK":
        values.doubt(f"latency-any-error: {printed['latency-any-error']}")
    fields = {
        "packets_sent": sent,
        "packets_received": received,
        "packets_dropped": dropped,
        "loss_pct": loss,
        "bytes_sent": values.count("Total-tx-bytes"),
        "bytes_received": values.count("Total-rx-bytes"),
        "latency_s": values.seconds("average-latency"),
        "latency_max_s": values.seconds("maximum-latency"),
    }
    return _made("summary", source, values, failure, bool(sent or received), fields)


def global_stats(
    source: Source, printed: dict[str, str], warnings: list[str], failure: Failure | None
) -> tuple[TrexResult | None, Bad]:
    """What the server prints while it runs: counters by port, then rates of all ports."""
    values = _Values(printed, warnings)
    totals = {key: _ports(values, key) for key in ("opackets", "ipackets", "obytes", "ibytes")}
    sent, received = totals["opackets"], totals["ipackets"]
    offered, back = values.rate("Total-Tx", "bps"), values.rate("Total-Rx", "bps")
    fields = {
        "elapsed_s": values.seconds("current time"),
        "throughput_bps": back,
        "offered_bps": offered,
        "offered_packets_per_second": values.rate("Total-PPS", "pps"),
        "intended_bps": values.rate("Expected-BPS", "bps"),
        "dropped_bps": values.rate("drop-rate", "bps"),
        "packets_sent": sent,
        "packets_received": received,
        "bytes_sent": totals["obytes"],
        "bytes_received": totals["ibytes"],
        "loss_pct": _loss(values, sent, received),
        "cpu_pct": values.share("Cpu Utilization"),
    }
    return _made("stats", source, values, failure, bool(offered or back or sent), fields)


def _ports(values: _Values, key: str) -> int | None:
    """The sum over the ports of a counter of the table; a total column would count twice."""
    text = values.values.get(key)
    if text is None:
        return None
    cells = [cell.strip() for cell in text.split("|")]
    if not all(re.fullmatch(r"-?\d+", cell) for cell in cells):
        values.bad.append((key, text, "whole numbers by port"))
        return None
    numbers = [int(cell) for cell in cells]
    if len(numbers) > 2 and numbers[-1] == sum(numbers[:-1]):
        numbers.pop()
    if min(numbers) < 0:
        values.doubt(f"{key} has a negative counter: {min(numbers)}")
        return None
    return sum(numbers)


def _loss(values: _Values, sent: int | None, received: int | None) -> float | None:
    if not sent or received is None:
        return None
    if received > sent:
        values.doubt(f"{received} packets received of only {sent} sent: loss is unknown")
        return None
    return 100.0 * (sent - received) / sent


def console(
    source: Source, printed: dict[str, str], warnings: list[str], failure: Failure | None
) -> tuple[TrexResult | None, Bad]:
    """The console's global statistics."""
    values = _Values(printed, warnings)
    cpu = re.match(rf"({NUMBER})\s*%", printed.get("cpu_util", ""))
    sent = values.rate("total_tx_L2" if "total_tx_L2" in printed else "total_tx", "bps")
    back = values.rate("total_rx", "bps")
    queue = values.count("queue_full")
    if queue:
        values.doubt(f"queue_full is {queue}: the tester could not send all that it should")
    fields = {
        "throughput_bps": back,
        "offered_bps": sent,
        "offered_wire_bps": values.rate("total_tx_L1", "bps"),
        "offered_packets_per_second": values.rate("total_pps", "pps"),
        "dropped_bps": values.rate("drop_rate", "bps"),
        "cpu_pct": float(cpu[1]) if cpu else None,
        "version": printed.get("version"),
    }
    return _made("stats", source, values, failure, bool(sent or back), fields)

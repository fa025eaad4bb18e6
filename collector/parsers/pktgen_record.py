"""The records of pktgen and the checks on its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from .base import Failure, Line, Record, Source, Status

TOOL = "pktgen"

_SHORT_S = 0.01
_FEW_PACKETS = 1000
_RATE_SLACK = 0.001
_FCS_BYTES = 4
_NEAR_LINES = 4  # how far apart two labelled results may stand that are compared
_UNSIGNED_LIMIT = 2**64 - 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class PktgenResult(Record):
    """One pktgen run of a device or thread (``run``), one quoted rate line (``rate``), the total
    over the threads of a run (``threads``), or the difference of two rate lines (``change``).

    ``packets_per_second`` and ``throughput_bps`` are ``generated``: what pktgen handed over.
    With ``xmit_mode`` ``netif_receive`` that is the receive path of the host itself.
    ``frame_bytes`` is without FCS; a mix of sizes (IMIX) has none, but ``imix_size_counts``, pairs
    of size and packets sent, and their mean ``mean_frame_bytes``. ``wire_packets_per_second`` is
    only filled where the input says so in words; ``wire_share_pct`` is its share of the generated
    rate.
    """

    device: str | None = None
    thread: int | None = None
    label: str | None = None
    basis: str = "generated"
    packets: int | None = None
    requested_packets: int | None = None
    stopped_early: bool | None = None
    too_short: bool | None = None
    elapsed_s: float | None = None
    busy_s: float | None = None
    idle_s: float | None = None
    frame_bytes: int | None = None
    frame_basis: str | None = None
    mean_frame_bytes: float | None = None
    imix_size_counts: tuple[tuple[int, int], ...] = ()
    frags: int | None = None
    packets_per_second: float | None = None
    throughput_bps: float | None = None
    errors: int | None = None
    clone_skb: int | None = None
    burst: int | None = None
    delay_ns: int | None = None
    flags: str | None = None
    xmit_mode: str | None = None
    wire_packets_per_second: float | None = None
    wire_share_pct: float | None = None
    threads: int | None = None
    change_pct: float | None = None
    change_from: str | None = None


@dataclass(slots=True)
class Block:
    """What has been read of one device's report."""

    line: int
    last: int
    device: str | None = None
    label: str | None = None  # the words above a result that names no device
    params: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    result: re.Match[str] | None = None
    rate: re.Match[str] | None = None
    other: str | None = None
    damaged: bool = False

    @property
    def has_content(self) -> bool:
        """Whether there is anything to report: parameters, a result or a part of one."""
        return bool(self.params or self.result or self.rate or self.damaged)

    def number(self, name: str) -> int | None:
        """A fact as an integer."""
        return int(self.facts[name]) if name in self.facts else None

    @property
    def mixed(self) -> bool:
        """Whether packets of several sizes were sent: the one size printed is of the last."""
        return "imix_weights" in self.facts or "imix_counts" in self.facts

    @property
    def imix(self) -> tuple[tuple[int, int], ...]:
        """Size in bytes and packets sent of each entry of the mix; empty if not said."""
        pairs = (pair.split(",") for pair in self.facts.get("imix_counts", "").split())
        return tuple((int(size), int(count)) for size, count in pairs)


def run(file: str, block: Block) -> PktgenResult:
    """The record of one device's report.

    The printed rate is kept and checked against packets / duration (show_results: pps =
    sofar * 10^9 / elapsed ns, bps = pps * 8 * size, of a mix the bytes of all sizes, each cut to
    whole numbers). A counter that contradicts another makes the record ``suspect``; without result
    lines it is ``incomplete``, ``failed`` if pktgen says that it could not run.
    """
    warnings: list[str] = []
    result, rate = block.result, block.rate
    packets = int(result["packets"]) if result else None
    elapsed = int(result["us"]) / 1e6 if result else None
    size = int(result["size"]) if result and not block.mixed else None
    pps = int(rate["pps"]) if rate else None
    microseconds = int(result["us"]) if result else None
    doubtful = block.damaged
    if result:
        doubtful |= _check_result(block, result, warnings)
    if rate:
        doubtful |= _check_rate(rate, packets, microseconds, size, warnings, mixed=block.mixed)
    mean = _mean_size(block, rate, packets, microseconds, warnings)
    if block.imix and mean is None:
        doubtful = True
    too_short = None
    if packets is not None and elapsed is not None:
        too_short = elapsed < _SHORT_S or packets < _FEW_PACKETS
        if too_short:
            warnings.append(
                f"{packets} packets in {result['us'] if result else ''} us: too short to be a rate"
            )
    requested = block.number("requested")
    stopped = packets < requested if packets is not None and requested else None
    if stopped:
        warnings.append(f"stopped early: {packets} of {requested} packets")
    if packets is not None and requested and packets > requested:
        warnings.append(f"{packets} packets sent, but only {requested} requested")
        doubtful = True
    errors = _errors(block, rate)
    if errors:
        warnings.append(f"{errors} errors: packets that the driver or the qdisc did not take")
    status = Status.SUSPECT if doubtful or too_short else Status.OK
    failure = None
    if pps is None:
        status = Status.INCOMPLETE
        warnings.append(
            f"no rate line; the last result is {block.other!r}" if block.other else "no rate line"
        )
        if block.other and re.match(r"(?:ERROR|No such)", block.other, re.IGNORECASE):
            status, failure = Status.FAILED, Failure("tool_error", block.other)
    elif pps == 0:
        status = Status.FAILED
        warnings.append("no packet was sent: no measurement")
    elif result is None:
        status = Status.SUSPECT
        warnings.append("a rate without the line that says of how many packets in what time")
    device = block.device or block.facts.get("device")
    name, _, thread = (device or "").partition("@")
    return PktgenResult(
        tool=TOOL,
        kind="run",
        status=status,
        source=Source(file, block.line, block.last),
        printed=_printed(rate) | ({"result": " ".join(result[0].split())} if result else {}),
        warnings=tuple(warnings),
        failure=failure,
        label=block.label if not name else None,
        device=name or None,
        thread=int(thread) if thread.isdigit() else None,
        packets=packets if packets is not None else block.number("sofar"),
        requested_packets=requested,
        stopped_early=stopped,
        too_short=too_short,
        elapsed_s=elapsed,
        busy_s=int(result["busy"]) / 1e6 if result else None,
        idle_s=int(result["idle"]) / 1e6 if result else None,
        frame_bytes=size,
        frame_basis="without FCS" if size is not None or mean is not None else None,
        mean_frame_bytes=mean,
        imix_size_counts=block.imix,
        frags=int(result["frags"]) if result and result["frags"] else None,
        packets_per_second=float(pps) if pps else None,
        throughput_bps=float(rate["bps"]) if rate and pps else None,
        errors=errors,
        clone_skb=block.number("clone"),
        burst=block.number("burst"),
        delay_ns=block.number("delay"),
        flags=block.facts.get("flags"),
        xmit_mode=block.facts.get("xmit_mode"),
    )


def _mean_size(
    block: Block,
    rate: re.Match[str] | None,
    packets: int | None,
    microseconds: int | None,
    warnings: list[str],
) -> float | None:
    """Mean frame size of a mix in bytes; None without its counts, or if they contradict the rest.

    In a mix, bps is 8 * bytes of all packets / duration, not pps * 8 * size.
    """
    sent = sum(count for _, count in block.imix)
    if not sent:
        return None
    total = sum(size * count for size, count in block.imix)
    if packets is not None and sent != packets:
        warnings.append(f"the sizes of the mix count {sent} packets, the result says {packets}")
        return None
    if rate and microseconds:
        bps = 8e6 * total / microseconds
        if abs(bps - int(rate["bps"])) > bps * _RATE_SLACK:
            warnings.append(
                f"{total} bytes in {microseconds} us are {bps:.0f} bit/s, printed is {rate['bps']}"
            )
            return None
    return total / sent


def _errors(block: Block, rate: re.Match[str] | None) -> int | None:
    value = int(rate["errors"]) if rate and rate["errors"] else block.number("current_errors")
    return value if value is None or value < _UNSIGNED_LIMIT else None


def _printed(rate: re.Match[str] | None) -> dict[str, str | None]:
    return {"rate": " ".join(rate[0].split())} if rate else {}


def _check_result(block: Block, result: re.Match[str], warnings: list[str]) -> bool:
    """Check the result line against itself and the counters above it; True if they differ."""
    before = len(warnings)
    total, busy, idle = int(result["us"]), int(result["busy"]), int(result["idle"])
    if abs(total - busy - idle) > 2:
        warnings.append(f"{total} us is not {busy} busy + {idle} idle")
    started, stopped = block.number("started"), block.number("stopped")
    # A clock of microseconds may be cut at both ends.
    if started and stopped and abs(stopped - started - total) > 2:
        warnings.append(f"stopped - started is {stopped - started} us, the result says {total} us")
    sofar = block.number("sofar")
    if sofar is not None and sofar != int(result["packets"]):
        warnings.append(f"pkts-sofar is {sofar}, the result says {result['packets']}")
    return len(warnings) > before


def _check_rate(
    rate: re.Match[str],
    packets: int | None,
    microseconds: int | None,
    size: int | None,
    warnings: list[str],
    *,
    mixed: bool = False,
) -> bool:
    """Check the printed rate against packets, duration and size; True if they differ.

    A mix of sizes has no one size to check.
    """
    before, fcs = len(warnings), ""
    pps, bps = int(rate["pps"]), int(rate["bps"])
    if packets is not None and microseconds is not None:
        # The duration is cut to whole microseconds, so the true one is up to 1 us longer.
        lowest = packets * 1e6 / (microseconds + 1) * (1 - _RATE_SLACK) - 1
        highest = packets * 1e6 / max(microseconds - 1, 0.5) * (1 + _RATE_SLACK)
        if not lowest <= pps <= highest:
            warnings.append(f"{packets} packets in {microseconds} us are not {pps} pps")
    if size and pps and bps == pps * 8 * (size + _FCS_BYTES):
        # pktgen of Linux 2.4 and early 2.6 counts the FCS in the bit rate, not in the size.
        fcs = f"the bit rate counts {_FCS_BYTES} bytes of FCS a packet, as old versions do"
    elif size is not None and bps != pps * 8 * size:
        warnings.append(f"{pps} pps of {size} bytes are {pps * 8 * size} bit/s, printed is {bps}")
    elif size is None and not mixed and pps and bps % (8 * pps):
        warnings.append(f"{bps} bit/s are not a whole number of bytes a packet at {pps} pps")
    if abs(bps / 1e6 - int(rate["mbps"])) > 1:
        warnings.append(f"{rate['mbps']} Mb/sec are not {bps} bit/s")
    doubtful = len(warnings) > before
    if fcs:
        warnings.append(fcs)
    return doubtful


def rate_line(file: str, line: Line, label: str | None, rate: re.Match[str]) -> PktgenResult:
    """The record of a rate line that was quoted without its result line."""
    warnings: list[str] = []
    doubtful = _check_rate(rate, None, None, None, warnings)
    pps, bps = int(rate["pps"]), int(rate["bps"])
    even = pps > 0 and bps % (8 * pps) == 0
    errors = int(rate["errors"]) if rate["errors"] else None
    if errors:
        warnings.append(f"{errors} errors: packets counted here were not all sent on the wire")
    warnings.append("a rate without its packet count and duration: one run, no interval possible")
    return PktgenResult(
        tool=TOOL,
        kind="rate",
        status=Status.SUSPECT if doubtful or label is None else Status.OK,
        source=Source(file, line.number, line.number),
        printed=_printed(rate),
        warnings=tuple(warnings),
        label=label,
        frame_bytes=bps // (8 * pps) if even else None,
        frame_basis="without FCS" if even else None,
        packets_per_second=float(pps) or None,
        throughput_bps=float(bps) if pps else None,
        errors=errors,
    )


def threads(file: str, runs: list[PktgenResult]) -> Iterator[PktgenResult]:
    """The total over consecutive runs of one device's threads (``eth0@0``, ``eth0@1`` …)."""
    group: list[PktgenResult] = []
    for one in [*runs, None]:
        follows = (
            one is not None
            and group
            and one.thread is not None
            and one.device == group[-1].device
            and one.thread not in {member.thread for member in group}
        )
        if not follows:
            if len(group) > 1:
                yield _threads_total(file, group)
            group = []
        if one is not None and one.thread is not None:
            group.append(one)


def _threads_total(file: str, group: list[PktgenResult]) -> PktgenResult:
    rates = [r.packets_per_second for r in group if r.packets_per_second is not None]
    bits = [r.throughput_bps for r in group if r.throughput_bps is not None]
    errors = [r.errors for r in group if r.errors is not None]
    packets = [r.packets for r in group if r.packets is not None]
    whole = len(rates) == len(group)
    sound = whole and all(r.status is Status.OK for r in group)
    numbers = sorted(r.thread for r in group if r.thread is not None)
    warnings = []
    if not whole:
        warnings.append(f"expected {len(group)} results, got {len(rates)}: no total")
    gaps = [a + 1 for a, b in pairwise(numbers) if b != a + 1]
    if gaps:
        warnings.append(f"threads are missing after {', '.join(str(g - 1) for g in gaps)}")
    return PktgenResult(
        tool=TOOL,
        kind="threads",
        status=Status.OK if sound and not gaps else Status.SUSPECT if whole else Status.INCOMPLETE,
        source=Source(file, group[0].source.line, group[-1].source.last_line),
        warnings=tuple(warnings),
        device=group[0].device,
        threads=len(group),
        packets=sum(packets) if len(packets) == len(group) else None,
        frame_bytes=group[0].frame_bytes if len({r.frame_bytes for r in group}) == 1 else None,
        frame_basis=group[0].frame_basis if len({r.frame_bytes for r in group}) == 1 else None,
        packets_per_second=sum(rates) if whole else None,
        throughput_bps=sum(bits) if whole and len(bits) == len(group) else None,
        errors=sum(errors) if len(errors) == len(group) else None,
    )


def changes(rates: list[PktgenResult]) -> Iterator[PktgenResult]:
    """The difference of two labelled results that stand together, without an interval."""
    for first, second in pairwise(rates):
        close = second.source.line - first.source.last_line <= _NEAR_LINES
        if not (close and first.label and second.label):
            continue
        if not (first.packets_per_second and second.packets_per_second):
            continue
        change = 100 * (second.packets_per_second / first.packets_per_second - 1)
        yield PktgenResult(
            tool=TOOL,
            kind="change",
            status=Status.SUSPECT,
            source=Source(first.source.file, first.source.line, second.source.last_line),
            warnings=("one run each: no interval possible, so the change proves nothing",),
            label=second.label,
            change_from=first.label,
            change_pct=change,
        )

"""The record of one netperf run, and the parts it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base import Record

TOOL = "netperf"


@dataclass(frozen=True, slots=True)
class PerQuantity:
    """Half-widths of confidence intervals in % of the mean; None: not measured or not said."""

    throughput: float | None = None
    cpu_local: float | None = None
    cpu_remote: float | None = None


@dataclass(frozen=True, slots=True)
class Met:
    """Whether each wanted interval was achieved; None: not measured or not said."""

    throughput: bool | None = None
    cpu_local: bool | None = None
    cpu_remote: bool | None = None


@dataclass(frozen=True, slots=True)
class Confidence:
    """What was asked of netperf's repeats and what they achieved.

    netperf prints FULL widths (``-I 99,5`` and ``CONFIDENCE_INTERVAL=5`` mean ±2.5 %; the
    percentages of its warning block and ``*_CONFID`` are full widths too: netlib.c,
    calculate_confidence); here are half-widths throughout. ``result_only``: with the global
    ``-r`` only the throughput had to be met.
    """

    level_pct: float | None = None
    wanted_half_width_pct: float | None = None
    iterations: int | None = None
    got_half_width_pct: PerQuantity = field(default_factory=PerQuantity)
    met: Met = field(default_factory=Met)
    result_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Interim:
    """One ``Interim result:`` line (option -D): mean rate over ``interval_s`` ending at ``end_s``.

    ``end_s`` is seconds since the epoch on netperf's host; netperf 2.4 does not print it.
    """

    end_s: float | None
    interval_s: float
    throughput_bps: float | None
    transactions_per_second: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A histogram bucket: ``count`` operations took at least ``lower_us`` microseconds."""

    lower_us: int
    count: int


@dataclass(frozen=True, slots=True)
class Detail:
    """The blocks of ``-v 2``. Alignments and offsets in bytes; calls count; sizes are means."""

    send_align_local: int | None = None
    recv_align_local: int | None = None
    send_align_remote: int | None = None
    recv_align_remote: int | None = None
    send_offset_local: int | None = None
    recv_offset_local: int | None = None
    send_offset_remote: int | None = None
    recv_offset_remote: int | None = None
    bytes_transferred: float | None = None
    bytes_per_send: float | None = None
    sends: int | None = None
    bytes_per_recv: float | None = None
    recvs: int | None = None
    round_trip_us: float | None = None
    outbound_bps: float | None = None
    inbound_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Alternate:
    """A second value somebody wrote in parentheses beside a printed one.

    What it stands for is said elsewhere in the text, so it is kept apart and never used.
    ``confidence_width_pct`` is as written: the text does not say whether full or half.
    """

    throughput_bps: float | None = None
    send_throughput_bps: float | None = None
    receive_throughput_bps: float | None = None
    transactions_per_second: float | None = None
    text: str = ""
    confidence_met: bool | None = None
    confidence_width_pct: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetperfResult(Record):
    """One run of netperf. Rates in bit/s, sizes in bytes, times in s unless the name says more.

    ``throughput_bps`` of a UDP_STREAM is what the receiver got; of a request/response test run
    with ``-f`` it is both directions together, and ``transactions_per_second`` is then None
    unless -v 2 gives it. CPU utilisation is of the whole host. A service demand, too, counts all
    of the host's CPU time, so where runs overlap it means nothing for one of them.
    ``last_iteration_only`` names fields that, under -i/-I, are of the last iteration while the
    interval is about the mean of all.
    """

    test: str | None = None
    host: str | None = None
    address: str | None = None
    source_host: str | None = None
    family: str | None = None
    migrated: bool | None = None
    banner_flags: tuple[str, ...] = ()
    first_burst: int | None = None
    tag: str | None = None
    command: str | None = None
    recv_socket_bytes: int | None = None
    send_socket_bytes: int | None = None
    remote_send_socket_bytes: int | None = None
    remote_recv_socket_bytes: int | None = None
    message_bytes: int | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    elapsed_s: float | None = None
    throughput_bps: float | None = None
    throughput_unit: str | None = None
    transactions_per_second: float | None = None
    send_throughput_bps: float | None = None
    receive_throughput_bps: float | None = None
    send_elapsed_s: float | None = None
    receive_elapsed_s: float | None = None
    messages_ok: int | None = None
    messages_received: int | None = None
    errors: int | None = None
    lost_messages: int | None = None
    loss_pct: float | None = None
    cpu_local_pct: float | None = None
    cpu_remote_pct: float | None = None
    cpu_method_local: str | None = None
    cpu_method_remote: str | None = None
    service_demand_local_us_per_kb: float | None = None
    service_demand_remote_us_per_kb: float | None = None
    service_demand_local_us_per_transaction: float | None = None
    service_demand_remote_us_per_transaction: float | None = None
    service_demand_shared: bool | None = None
    latency_min_us: float | None = None
    latency_mean_us: float | None = None
    latency_p50_us: float | None = None
    latency_p90_us: float | None = None
    latency_p99_us: float | None = None
    latency_max_us: float | None = None
    latency_stddev_us: float | None = None
    round_trip_us: float | None = None
    mss_bytes: int | None = None
    retransmits_local: int | None = None
    retransmits_remote: int | None = None
    confidence: Confidence | None = None
    last_iteration_only: tuple[str, ...] = ()
    detail: Detail | None = None
    histogram: tuple[Bucket, ...] = ()
    interim: tuple[Interim, ...] = ()
    alternate: Alternate | None = None
    alternate_throughput_bps: float | None = None
    alternate_transactions_per_second: float | None = None
    derived: dict[str, float] = field(default_factory=dict)

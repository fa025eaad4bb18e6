"""The sample: one measured repeat of one cell. The join between measuring and judging.

``crossover run`` turns each cell's raw output into samples; the store writes them as Parquet,
the statistics read them. docs/data-format.md describes every column.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SAMPLE_SCHEMA = 2


class SampleStatus(StrEnum):
    """``ok`` may be judged; ``invalid`` was not proven or drifted; ``failed`` has no result;
    ``skipped`` could not be run here (its reason says why); ``missing`` was planned, never run."""

    OK = "ok"
    INVALID = "invalid"
    FAILED = "failed"
    SKIPPED = "skipped"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One repeat of one cell. ``value`` is None unless ``status`` is ``ok``.

    A *cell* is a configuration measured by a test. ``configuration`` names what was put on the
    hosts (``C_FlCat``), ``test`` what was run (``tcp_rr``); ``arm`` is ``""`` except for the A/A
    pair of the baseline, whose second member has ``arm="aa"``. ``factors`` are the matrix's own
    factors of the cell (label, family, mode …). ``cell_id`` is the short hash of all of these.
    """

    run_id: str
    matrix: str
    lab_kind: str  # "guests", "exact", "netns", "hardware"
    accelerator: str  # "tcg", "kvm", "none"
    kernel: str  # `uname -r` of the measured hosts
    cell_id: str
    configuration: str
    test: str
    arm: str
    factors: dict[str, str]
    block: int  # from 0; a complete block runs every cell once
    sequence: int  # position in the run, from 0, as executed
    status: SampleStatus
    reason: str | None  # why not ok
    value: float | None  # in `unit`
    unit: str  # "bit/s" or "1/s"
    higher_is_better: bool
    elapsed_s: float | None
    confidence_level_pct: float | None
    confidence_wanted_pct: float | None  # full width wanted, % of the mean
    confidence_got_pct: float | None  # full width achieved, % of the mean
    confidence_met: bool | None  # None: not asked for
    cpu_local_pct: float | None
    cpu_remote_pct: float | None
    boot_ids: tuple[str, ...]
    started_at: str | None  # UTC, ISO 8601
    bounded_by: str | None = None  # of a forwarding rate: "line rate", "device" or "generator"
    # From version 2 on. Several sessions at once:
    sessions: int | None = None  # None: one netperf by itself
    window_s: float | None = None  # length of the window that all shared
    start_skew_s: float | None = None  # from the first session's first data to the last's
    session_low: float | None = None  # the slowest session, in `unit`
    session_high: float | None = None
    # CPU time over the window in percent of all CPUs, by kind; and what each CPU spent, by number:
    cpu_local_kinds: dict[str, float] | None = None
    cpu_remote_kinds: dict[str, float] | None = None
    cpu_local_each: dict[str, float] | None = None
    cpu_remote_each: dict[str, float] | None = None
    # Service demand: CPU microseconds for a KB (of `bit/s`) or a transaction (of `1/s`):
    sd_local_us: float | None = None
    sd_remote_us: float | None = None
    # Round-trip latency of all transactions; a percentile's range over the sessions:
    latency_mean_us: float | None = None
    latency_stddev_us: float | None = None
    latency_min_us: float | None = None
    latency_max_us: float | None = None
    latency_p50_low_us: float | None = None
    latency_p50_high_us: float | None = None
    latency_p90_low_us: float | None = None
    latency_p90_high_us: float | None = None
    latency_p99_low_us: float | None = None
    latency_p99_high_us: float | None = None

"""What the statistics say about a matrix: the shape that every report is written from."""

from __future__ import annotations

from dataclasses import dataclass

from collector.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """One cell over all blocks. ``None`` means that it cannot be said, never zero.

    ``values`` has one entry a block (index = block number), ``None`` where the block has no valid
    sample. ``ratio`` is the exponential of the median within-block log-ratio to the baseline, so
    1 is "same", and ``ratio_low``/``ratio_high`` its 95 % block-bootstrap interval; they are
    ``None`` for the baseline itself and without a shared block. ``verdict`` is "no verdict yet"
    (``not enough data``) below ``MatrixSummary.min_blocks`` shared blocks. A ``faster`` cell has
    a ratio above 1 when higher is better, below 1 otherwise.
    """

    cell_id: str
    configuration: str
    test: str
    arm: str  # "" or, for the second member of the A/A pair, "aa"
    factors: dict[str, str]
    baseline: str  # the configuration that its ratio refers to
    kernels: tuple[str, ...]  # `uname -r` of its valid samples, sorted
    unit: str
    higher_is_better: bool
    n: int  # valid samples
    n_invalid: int  # samples that were invalid, failed or missing
    n_pairs: int  # blocks in which this cell and the baseline are both valid
    values: tuple[float | None, ...]
    median: float | None
    mean: float | None
    cv: float | None  # standard deviation / mean, a fraction (0.02 = 2 %); None for n < 2
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_wilcoxon: float | None  # two-sided, of this cell alone
    p_holm: float | None  # the same after Holm over the matrix
    p_maxt: float | None  # sign-flip max-t over the matrix (docs/methodology.md)
    p_smallest: float | None  # the smallest p_wilcoxon that n_pairs blocks can give at all
    verdict: Verdict
    reason: str | None  # why there is no verdict, or why it is not the expected one
    bimodal: bool
    confidence_unmet: int  # repeats whose netperf confidence was asked for and not reached
    confidence_worst_pct: float | None  # widest full width achieved, % of the mean
    confidence_wanted_pct: float | None  # full width asked for, % of the mean
    cpu_local_pct: float | None  # median over valid samples
    cpu_remote_pct: float | None
    generator_bound: int = 0  # valid samples of a forwarding rate that the generator bounded
    cpu_local_kinds: dict[str, float] | None = None  # medians by kind of time, in % of all CPUs
    cpu_remote_kinds: dict[str, float] | None = None
    sd_local_us: float | None = None  # medians of the service demand, CPU us a KB or transaction
    sd_remote_us: float | None = None
    latency_mean_us: float | None = None  # median of the repeats' means
    latency_p99_low_us: float | None = None  # of any session of any repeat, the lowest
    latency_p99_high_us: float | None = None  # and the highest


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What the A/A pair of the baseline shows for one test: the same thing measured twice.

    ``floor`` is the absolute difference as a fraction (0.012 = 1.2 %); a cell whose ratio is not
    further from 1 than that is never called faster or slower.
    """

    test: str
    ratio: float  # second member / first, median within blocks
    ratio_low: float
    ratio_high: float
    floor: float
    n_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSummary:
    """A whole run, judged. ``cells`` is in the order of the samples' first appearance
    (``sequence`` is shuffled, so callers that know the plan pass its order to ``summarise``)."""

    run_id: str
    matrix: str
    lab_kind: str
    accelerator: str
    kernels: tuple[str, ...]  # every `uname -r` seen, sorted
    baseline: str  # name of the configuration (a cell may have its own: CellSummary.baseline)
    delta: float  # equivalence margin, a fraction
    level: float  # of significance, over the whole matrix
    min_blocks: int
    blocks: int  # blocks seen
    seed: int  # of the bootstrap and the sign flips
    resamples: int  # of the bootstrap
    procedure: str  # "wilcoxon-holm" or "max-t": which p decides (docs/methodology.md)
    comparisons: int  # size of the family that the p-values are adjusted for
    cells: tuple[CellSummary, ...]
    noise: dict[str, NoiseFloor]  # by test; a test without an A/A pair is absent
    drift: float | None  # how far the blocks lie apart, a fraction; None: steady, or unknown
    notes: tuple[str, ...]  # plain sentences that belong under every table

    def cell(self, configuration: str, test: str, arm: str = "") -> CellSummary | None:
        """The cell of that name, or None. For matrices whose names identify their cells."""
        for cell in self.cells:
            if (cell.configuration, cell.test, cell.arm) == (configuration, test, arm):
                return cell
        return None

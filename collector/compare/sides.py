"""The two sides of a comparison: ``RUN``, ``RUN:CONFIGURATION``, ``RUN@KERNEL`` or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collector.errors import CrossoverError, UsageError
from collector.runfolder.runfolder import PLAN_FILE, Run, complete, load_run
from collector.runfolder.samples import Sample
from collector.runfolder.store import read_samples
from collector.stats import MatrixSummary
from collector.stats.judged import judge

Key = tuple[str, str, tuple[tuple[str, str], ...]]  # configuration, test, factors


class LabMismatchError(CrossoverError):
    """Runs of different labs were to be compared by their absolute numbers (exit code 30)."""

    exit_code = 30


@dataclass(frozen=True, slots=True)
class Selector:
    """What the user named: a run folder, and the part of it that is meant."""

    text: str
    path: Path
    configuration: str | None
    kernel: str | None


@dataclass(frozen=True, slots=True)
class Side:
    """One side, loaded. ``cells`` has the samples of each cell that takes part (no A/A arms)."""

    selector: Selector
    run: Run
    summary: MatrixSummary
    cells: Mapping[Key, tuple[Sample, ...]]

    @property
    def noise(self) -> dict[str, float]:
        """The A/A difference by test, a fraction."""
        return {test: floor.floor for test, floor in self.summary.noise.items()}


def parse_selector(text: str) -> Selector:
    """Split ``RUN[:CONFIGURATION][@KERNEL]``; raises UsageError if no run folder is named.

    Folder names may contain both separators: the longest part that is a run folder is the run.
    """
    ends = [len(text)] + [at for at in range(len(text) - 1, 0, -1) if text[at] in ":@"]
    for end in ends:
        path = Path(text[:end])
        if (path / PLAN_FILE).is_file():
            configuration, kernel = _parts(text[end:])
            return Selector(text, path, configuration, kernel)
    raise UsageError(
        f"{text}: found no run folder (one with a {PLAN_FILE});"
        " wanted RUN, RUN:CONFIGURATION or RUN@KERNEL"
    )


def _parts(rest: str) -> tuple[str | None, str | None]:
    if rest.startswith("@"):
        return None, rest[1:]
    if not rest:
        return None, None
    configuration, at, kernel = rest[1:].rpartition("@")
    return (configuration, kernel) if at else (kernel, None)


def load_sides(base: str, new: str) -> tuple[Side, Side]:
    """Load and select both sides.

    Raises UsageError for names that the runs do not have, for a configuration named on one side
    only, and when both sides are the same samples; InputError for unreadable run folders.
    """
    base_selector, new_selector = parse_selector(base), parse_selector(new)
    same_run = base_selector.path.resolve() == new_selector.path.resolve()
    one_named = (base_selector.configuration is None) != (new_selector.configuration is None)
    if one_named:
        raise UsageError(
            f"{base} and {new}: found a configuration on one side;"
            " wanted one on both sides or on neither"
        )
    if same_run and (base_selector.configuration, base_selector.kernel) == (
        new_selector.configuration,
        new_selector.kernel,
    ):
        raise UsageError(f"{base} and {new}: found the same samples twice; wanted two sides")
    kernels = base_selector.kernel is not None or new_selector.kernel is not None
    return _load(base_selector, kernels), _load(new_selector, kernels)


def _load(selector: Selector, by_kernel: bool) -> Side:
    run = load_run(selector.path)
    return make_side(selector, run, read_samples(run.path), by_kernel=by_kernel)


def make_side(
    selector: Selector,
    run: Run,
    measured: Iterable[Sample],
    *,
    by_kernel: bool = False,
    summary: MatrixSummary | None = None,
) -> Side:
    """The side that ``selector`` means of a run and its samples.

    ``by_kernel``: cells of the two sides may differ in a factor named ``kernel``. ``summary``
    spares judging the run anew. Raises
    UsageError for a configuration or kernel that the run does not have.
    """
    samples = complete(run.plan, measured)
    configurations = dict.fromkeys(sample.configuration for sample in samples)
    kernels = dict.fromkeys(sample.kernel for sample in samples if sample.kernel)
    _known(selector, "configuration", selector.configuration, list(configurations))
    _known(selector, "kernel", selector.kernel, list(kernels))
    cells: dict[Key, list[Sample]] = {}
    for sample in samples:
        if sample.arm != "":
            continue
        if selector.configuration not in {None, sample.configuration}:
            continue
        if selector.kernel not in {None, sample.kernel}:
            continue
        cells.setdefault(_key(sample, selector, by_kernel), []).append(sample)
    judged = judge(run, samples) if summary is None else summary
    return Side(selector, run, judged, {key: tuple(rows) for key, rows in cells.items()})


def _key(sample: Sample, selector: Selector, by_kernel: bool) -> Key:
    """What makes a cell of one side the counterpart of a cell of the other."""
    if selector.configuration is not None:
        return ("", sample.test, ())
    factors = sample.factors.items()
    kept = tuple(sorted((k, v) for k, v in factors if not (by_kernel and k == "kernel")))
    # The same configuration over several kernels has the kernel in its name.
    same = sample.factors.get("configuration") if by_kernel else None
    return (same or sample.configuration, sample.test, kept)


def _known(selector: Selector, what: str, name: str | None, names: list[str]) -> None:
    if name is not None and name not in names:
        wanted = ", ".join(names) or "none is recorded"
        raise UsageError(f"{selector.path}: found no {what} {name!r}; wanted one of {wanted}")

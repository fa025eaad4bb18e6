"""A series per cell over many runs, and where it changes.

Change points are found by minimum description length (the jumpavg library, Apache-2.0, of the
FD.io CSIT project) on one number a run, its median: the repeats of one run share its boot and its
day, so they are no independent witnesses of a change between runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collector.errors import UsageError
from collector.runfolder.runfolder import complete, load_run
from collector.runfolder.samples import Sample
from collector.runfolder.store import read_samples
from collector.stats.cells import usable

# Change-point methods want this many points on either side of a change.
POINTS_WANTED = 10
FEWEST_POINTS = 3

Identity = tuple[str, str, str, tuple[tuple[str, str], ...], str, str]


@dataclass(frozen=True, slots=True)
class Point:
    """The median of one run's valid repeats; ``time`` is when the run was planned."""

    time: str
    run_id: str
    kernel: str
    value: float
    n: int


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first point of a new level. ``better`` says in which direction; ``before`` and
    ``after`` count the points of the levels on either side."""

    index: int
    run_id: str
    change_pct: float
    better: bool
    before: int
    after: int

    @property
    def provisional(self) -> bool:
        """Whether one of the sides has fewer points than change-point methods want."""
        return min(self.before, self.after) < POINTS_WANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One cell over many runs of one kind of lab, oldest first. ``lacking`` names the runs that
    planned the cell and have no valid repeat of it; ``note`` says that the series is short."""

    matrix: str
    configuration: str
    test: str
    factors: dict[str, str]
    lab_kind: str
    accelerator: str
    unit: str
    higher_is_better: bool
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...]
    lacking: tuple[str, ...]
    note: str | None

    @property
    def name(self) -> str:
        """Matrix, configuration, test, factors and lab, joined by dots."""
        parts = [self.matrix, self.configuration, self.test]
        parts += [f"{key}={value}" for key, value in sorted(self.factors.items())]
        return ".".join([*parts, self.lab_kind, self.accelerator])


def load_history(run_dirs: Sequence[str | Path]) -> list[Series]:
    """Read the runs and make the series; runs of different labs never share one.

    Raises InputError for unreadable run folders, UsageError for a run named twice.
    """
    runs: list[tuple[str, list[Sample]]] = []
    seen: set[str] = set()
    for run_dir in run_dirs:
        run = load_run(run_dir)
        if run.plan.run_id in seen:
            raise UsageError(f"{run_dir}: found run {run.plan.run_id} twice; wanted each run once")
        seen.add(run.plan.run_id)
        runs.append((run.plan.created_at, complete(run.plan, read_samples(run.path))))
    return make_series(sorted(runs, key=lambda item: item[0]))


def make_series(runs: Sequence[tuple[str, Sequence[Sample]]]) -> list[Series]:
    """Series of (time, samples of one run), oldest first. Pure."""
    first: dict[Identity, Sample] = {}
    points: dict[Identity, list[Point]] = {}
    lacking: dict[Identity, list[str]] = {}
    for time, samples in runs:
        cells: dict[Identity, list[Sample]] = {}
        for sample in samples:
            if sample.arm == "":
                cells.setdefault(_identity(sample), []).append(sample)
        for identity, rows in cells.items():
            first.setdefault(identity, rows[0])
            valid = [row for row in rows if usable(row)]
            values = [row.value for row in valid if row.value is not None]
            if not values:
                lacking.setdefault(identity, []).append(rows[0].run_id)
                continue
            points.setdefault(identity, []).append(
                Point(
                    time=time,
                    run_id=rows[0].run_id,
                    kernel=", ".join(sorted({row.kernel for row in valid})),
                    value=float(np.median(values)),
                    n=len(values),
                )
            )
    return [
        _series(sample, points.get(identity, []), lacking.get(identity, []))
        for identity, sample in first.items()
    ]


def _identity(sample: Sample) -> Identity:
    return (
        sample.matrix,
        sample.configuration,
        sample.test,
        tuple(sorted(sample.factors.items())),
        sample.lab_kind,
        sample.accelerator,
    )


def _series(sample: Sample, points: list[Point], lacking: list[str]) -> Series:
    changes = change_points(points, sample.higher_is_better)
    note = None
    if len(points) < FEWEST_POINTS:
        note = f"too short: {len(points)} points; no change can be found below {FEWEST_POINTS}"
    elif len(points) < 2 * POINTS_WANTED:
        note = (
            f"short: {len(points)} points; {POINTS_WANTED} on each side of a change are wanted,"
            " so any change is provisional"
        )
    return Series(
        matrix=sample.matrix,
        configuration=sample.configuration,
        test=sample.test,
        factors=dict(sample.factors),
        lab_kind=sample.lab_kind,
        accelerator=sample.accelerator,
        unit=sample.unit,
        higher_is_better=sample.higher_is_better,
        points=tuple(points),
        changes=tuple(changes),
        lacking=tuple(lacking),
        note=note,
    )


def change_points(points: Sequence[Point], higher_is_better: bool) -> list[ChangePoint]:
    """Where the level of a series changes; none below three points."""
    if len(points) < FEWEST_POINTS:
        return []
    import jumpavg

    groups = list(jumpavg.classify([point.value for point in points]))
    sizes = [len(group.run_list) for group in groups]
    averages = [float(group.stats.avg) for group in groups]
    changes, start = [], 0
    for number in range(1, len(groups)):
        start += sizes[number - 1]
        change = averages[number] / averages[number - 1] - 1
        changes.append(
            ChangePoint(
                index=start,
                run_id=points[start].run_id,
                change_pct=change * 100,
                better=(change > 0) == higher_is_better,
                before=sizes[number - 1],
                after=sizes[number],
            )
        )
    return changes

"""Which configurations are neighbours: the same but for the kernel, and the next kernel of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from collector.compare.compare import compare
from collector.compare.model import Comparison
from collector.compare.sides import Selector, make_side
from collector.runfolder.runfolder import Run
from collector.runfolder.samples import Sample
from collector.stats.cells import usable
from collector.stats.model import MatrixSummary

KERNEL = "kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two neighbouring kernels and what became of the cells from one to the other; ``others`` are
    the factors that both configurations have, ``boots`` how many of each kernel were measured in
    (of the one that had fewer)."""

    base: str
    new: str
    others: dict[str, str]
    comparison: Comparison
    boots: int


def neighbouring(factors: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Pairs of configurations (by name, with their factors in the order of the matrix) that differ
    in the kernel alone, each kernel with the one before it."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, own in factors.items():
        if KERNEL in own:
            key = tuple(sorted((k, v) for k, v in own.items() if k != KERNEL))
            groups.setdefault(key, []).append(name)
    return [pair for names in groups.values() for pair in pairwise(names)]


def compare_neighbours(
    run: Run, samples: Sequence[Sample], summary: MatrixSummary
) -> tuple[Neighbours, ...]:
    """Compare neighbouring kernels of a run within its blocks, as ``crossover compare`` does.

    Pairs of which a side has no valid repeat are left out: the tables say why.
    """
    booted: dict[str, set[tuple[str, ...]]] = {}
    for sample in samples:
        if usable(sample):
            booted.setdefault(sample.configuration, set()).add(sample.boot_ids)
    declared = {item.name: item.factors for item in run.plan.configurations}
    found = []
    for base, new in neighbouring({k: v for k, v in declared.items() if k in booted}):
        sides = [
            make_side(Selector(name, run.path, name, None), run, samples, summary=summary)
            for name in (base, new)
        ]
        found.append(
            Neighbours(
                base=declared[base][KERNEL],
                new=declared[new][KERNEL],
                others={k: v for k, v in declared[new].items() if k != KERNEL},
                comparison=compare(*sides, seed=run.plan.seed),
                boots=min(len(booted[base]), len(booted[new])),
            )
        )
    return tuple(found)

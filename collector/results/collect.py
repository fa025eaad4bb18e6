"""Many raw netperf outputs to one aggregated table, on all cores, in flat memory.

The folders are walked as a stream and the files read in chunks by worker processes; what comes
back is one array of numbers a group (8 bytes a result). Files of Crossover's own form take the
short way (rawfast.py), all others the parser.
"""

from __future__ import annotations

import math
import os
import statistics
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from collector.errors import InputError
from collector.parsers import netperf
from collector.parsers.base import Status
from collector.parsers.document import from_bytes
from collector.parsers.netperf.records import NetperfResult
from collector.results.rawfast import FastReader, Measured

CHUNK = 500  # files a task; large enough that handing tasks over costs nothing
_READ = 1 << 16
PROBLEMS_KEPT = 100

Group = tuple[str, str]  # cell, test
Values = dict[tuple[str, str, str], "array[float]"]  # cell, test, unit


@dataclass(slots=True)
class Tally:
    """What was found in some files. ``unmet``, ``suspect`` and ``failed`` count by group;
    ``problems`` are the first texts of what could not be read, ``problem_count`` all of them."""

    files: int = 0
    fast: int = 0
    values: Values = field(default_factory=dict)
    unmet: dict[Group, int] = field(default_factory=dict)
    suspect: dict[Group, int] = field(default_factory=dict)
    failed: dict[Group, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    def add(self, cell: str, result: Measured) -> None:
        """Count one sound result."""
        key = (cell, result.test, result.unit)
        known = self.values.get(key)
        if known is None:
            known = self.values[key] = array("d")
        known.append(result.value)
        if result.confidence_met is False:
            _count(self.unmet, (cell, result.test))

    def problem(self, text: str) -> None:
        """Count something that could not be read."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(text)

    def merge(self, other: Tally) -> None:
        """Take in what another worker found."""
        self.files += other.files
        self.fast += other.fast
        for key, numbers in other.values.items():
            known = self.values.get(key)
            if known is None:
                self.values[key] = numbers
            else:
                known.extend(numbers)
        for mine, theirs in (
            (self.unmet, other.unmet),
            (self.suspect, other.suspect),
            (self.failed, other.failed),
        ):
            for group, number in theirs.items():
                _count(mine, group, number)
        self.problems += other.problems[: PROBLEMS_KEPT - len(self.problems)]
        self.problem_count += other.problem_count


def _count(counts: dict[Group, int], group: Group, number: int = 1) -> None:
    counts[group] = counts.get(group, 0) + number


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: a cell's results of one test. ``unmet`` counts netperf confidences
    asked for and not reached, ``suspect`` and ``failed`` results that count in no number."""

    cell: str
    test: str
    unit: str | None
    n: int
    median: float | None
    mean: float | None
    cv: float | None
    smallest: float | None
    largest: float | None
    unmet: int
    suspect: int
    failed: int


def find(roots: Sequence[str | Path], pattern: str = "*.out") -> Iterator[tuple[str, str]]:
    """Files as (cell, path), in no particular order and without listing them all first.

    A folder is walked for names that match ``pattern``; of a run folder its ``raw`` part. The
    cell is the first folder below the root, ``.`` for files right in it. A file given by name is
    taken as it is. Raises InputError for a root that does not exist.
    """
    for root in roots:
        path = Path(root)
        if path.is_file():
            yield ".", str(path)
        elif path.is_dir():
            top = path / "raw" if (path / "raw").is_dir() else path
            yield from _walk(str(top), len(str(top)) + 1, pattern)
        else:
            raise InputError(str(root), "no file or folder of that name", "raw netperf output")


def _walk(folder: str, skip: int, pattern: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, skip, pattern)
            elif fnmatchcase(entry.name, pattern):
                first, slash, _ = entry.path[skip:].partition("/")
                yield (first if slash else "."), entry.path


def collect(files: Iterable[tuple[str, str]], workers: int | None = None) -> Tally:
    """Read the files on ``workers`` processes (None: one a core, 1: in this process).

    Nothing is raised for files that cannot be read: they are problems of the tally.
    """
    count = workers if workers is not None else os.cpu_count() or 1
    stream = iter(files)
    chunks = iter(lambda: list(islice(stream, CHUNK)), [])
    total = Tally()
    if count == 1:
        for chunk in chunks:
            total.merge(read_chunk(chunk))
        return total
    # Forked workers share the parsers that are loaded already.
    with ProcessPoolExecutor(count, mp_context=get_context("fork")) as pool:
        pending: set[Future[Tally]] = set()
        for chunk in chunks:
            pending.add(pool.submit(read_chunk, chunk))
            if len(pending) > 3 * count:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    total.merge(future.result())
        for future in pending:
            total.merge(future.result())
    return total


def read_chunk(files: Sequence[tuple[str, str]]) -> Tally:
    """Read some files; runs in a worker."""
    tally = Tally()
    fast = FastReader()
    for cell, path in files:
        tally.files += 1
        try:
            data = _bytes(path)
        except OSError as error:
            tally.problem(f"{path}: found {error.strerror}; wanted a readable file")
            continue
        result = fast.read(data)
        if result is not None:
            tally.fast += 1
            tally.add(cell, result)
        else:
            read_slowly(tally, cell, path, data)
    return tally


def _bytes(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(handle, _READ)
        if len(data) < _READ:
            return data
        parts = [data]
        while more := os.read(handle, _READ):
            parts.append(more)
        return b"".join(parts)
    finally:
        os.close(handle)


def read_slowly(tally: Tally, cell: str, path: str, data: bytes) -> None:
    """Read one file with the parser of netperf and count what it says."""
    reading = netperf.parse(from_bytes(data, path))
    for problem in reading.problems:
        tally.problem(str(problem))
    for record in reading.records:
        assert isinstance(record, NetperfResult)
        result = measured(record)
        group = (cell, record.test or "-")
        if record.status in {Status.FAILED, Status.INCOMPLETE} or result is None:
            _count(tally.failed, group)
        elif record.status is Status.SUSPECT:
            _count(tally.suspect, group)
        else:
            tally.add(cell, result)
    if not reading.records and not reading.problems:
        tally.problem(f"{path}:1: found no output of netperf; wanted at least one result")


def measured(record: NetperfResult) -> Measured | None:
    """The headline of a record: its throughput, else its transaction rate; None without one."""
    met = record.confidence.met.throughput if record.confidence is not None else None
    test = record.test or "-"
    if record.throughput_bps is not None:
        return Measured(test, "bit/s", record.throughput_bps, met)
    if record.transactions_per_second is not None:
        return Measured(test, "1/s", record.transactions_per_second, met)
    return None


def table(tally: Tally) -> list[Row]:
    """The aggregated table, sorted by cell and test; the same whatever the order of the files."""
    rows = []
    for (cell, test, unit), numbers in tally.values.items():
        mean = math.fsum(numbers) / len(numbers)
        deviation = statistics.stdev(numbers, mean) if len(numbers) > 1 else None
        rows.append(
            Row(
                cell=cell,
                test=test,
                unit=unit,
                n=len(numbers),
                median=statistics.median(numbers),
                mean=mean,
                cv=None if deviation is None or mean == 0 else deviation / mean,
                smallest=min(numbers),
                largest=max(numbers),
                unmet=tally.unmet.get((cell, test), 0),
                suspect=tally.suspect.get((cell, test), 0),
                failed=tally.failed.get((cell, test), 0),
            )
        )
    have = {(row.cell, row.test) for row in rows}
    for cell, test in dict.fromkeys([*tally.failed, *tally.suspect]):
        if (cell, test) not in have:
            rows.append(
                Row(
                    cell=cell, test=test, unit=None, n=0, median=None, mean=None, cv=None,
                    smallest=None, largest=None, unmet=0,
                    suspect=tally.suspect.get((cell, test), 0),
                    failed=tally.failed.get((cell, test), 0),
                )
            )  # fmt: skip
    return sorted(rows, key=lambda row: (row.cell, row.test, row.unit or ""))

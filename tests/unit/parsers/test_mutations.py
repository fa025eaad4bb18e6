"""Damaged input: what comes out is right, or an error, a problem or a flag; never a wrong number.

Every case file of every tool goes through every mutation of :mod:`mutations`. A result that the
parser calls sound must have only values that one result of the undamaged file has too (in a part
of it, such as one stream, where the rest is gone). Statistics over several results are not
compared: they are of what is left, and say how many that is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutations import mutations

from collector.parsers import read
from collector.parsers.base import Reading, Record, Status, as_json
from collector.parsers.document import from_bytes

CASES = sorted((Path(__file__).parents[2] / "data" / "cases").glob("*.txt"))


STATISTICS = {"repeats", "change"}


def numbers_in(value: object) -> Iterator[float]:
    """Every number in the JSON form of a record."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in {"source", "derived"}:
                yield from numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def values_of(record: Record) -> dict[str, float]:
    """The measured values and sizes that a record itself gives."""
    return {
        field.name: value
        for field in dataclasses.fields(record)
        if isinstance(value := getattr(record, field.name), (int, float))
        and not isinstance(value, bool)
    }


def unexplained(before: Reading, after: Reading, text: str) -> list[str]:
    """Results called sound whose values no result of the undamaged file has.

    A field that only the damaged form gives must be a number of the text, as it stands there.
    """
    if len(after.problems) > len(before.problems):
        return []
    given = {name for record in before.records for name in values_of(record)}
    known = [set(numbers_in(as_json(record))) for record in before.records]
    flags = {warning for record in before.records for warning in record.warnings}
    wrong = []
    for record in after.records:
        if record.status is not Status.OK or set(record.warnings) - flags:
            continue
        found = {
            name: value
            for name, value in values_of(record).items()
            if name in given or not re.search(rf"(?<![\d.]){value:g}(?![\d.])", text)
        }
        if record.kind in STATISTICS or any(set(found.values()) <= values for values in known):
            continue
        strange = [name for name, value in found.items() if all(value not in v for v in known)]
        wrong.append(f"{record.tool} line {record.source.line}: {strange} of {found}")
    return wrong


def test_there_are_cases() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_damage_is_noticed_or_harmless(path: Path) -> None:
    text = path.read_text()
    before = read(from_bytes(text.encode(), path.name))
    silent = []
    # netperf prints every figure with fixed decimals: only there can a cut figure be noticed.
    fixed = {record.tool for record in before.records} == {"netperf"}
    for name, damaged in mutations(text, fixed_decimals=fixed):
        after = read(from_bytes(damaged, path.name))
        as_json(after.records)
        silent.extend(f"{name}: {one}" for one in unexplained(before, after, text))
    assert not silent, "\n".join(silent[:20])

"""What the tests of the parsers share: reading texts and data files, and breaking them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from collector.parsers.base import Document, Line, Reading, Record, Status

DATA = Path(__file__).parents[2] / "data"
_QUOTE = re.compile(r"^(?:> ?)+")


def document(text: str, name: str = "input") -> Document:
    """A document as the loader makes it: numbered lines, mail quoting taken off."""
    lines = []
    for number, raw in enumerate(text.splitlines(), start=1):
        quote = _QUOTE.match(raw)
        prefix = quote[0] if quote else ""
        lines.append(Line(number, raw[len(prefix) :], prefix))
    return Document(name, tuple(lines))


def data(name: str) -> str:
    """The text of a file under tests/data."""
    return (DATA / name).read_text()


def read(module: ModuleType, text: str) -> Reading:
    """Parse a text with a parser module, which must recognise it."""
    doc = document(text)
    assert module.recognise(doc)
    reading: Reading = module.parse(doc)
    return reading


def mutations(text: str, *, cut: bool = True) -> Iterator[tuple[str, str]]:
    """A text with lines dropped, doubled, swapped, cut off, unindented, and with decimal commas."""
    lines = text.splitlines()
    for at in range(len(lines)):
        yield f"line {at + 1} dropped", "\n".join(lines[:at] + lines[at + 1 :])
        yield f"line {at + 1} doubled", "\n".join([*lines[: at + 1], *lines[at:]])
        if at:
            swapped = [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]
            yield f"lines {at} and {at + 1} swapped", "\n".join(swapped)
        yield f"cut off before line {at + 1}", "\n".join(lines[:at])
        comma = re.sub(r"(?<=\d)\.(?=\d)", ",", lines[at])
        yield f"decimal comma in line {at + 1}", "\n".join([*lines[:at], comma, *lines[at + 1 :]])
    if cut:
        for end in range(1, len(text), max(1, len(text) // 60)):
            yield f"cut off after {end} characters", text[:end]
    for width in (50, 60, 72):
        wrapped = [
            part
            for line in lines
            for part in textwrap.wrap(
                line, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
            )
            or [""]
        ]
        yield f"wrapped at {width}", "\n".join(wrapped)
    yield "decimal commas", re.sub(r"(?<=\d)\.(?=\d)", ",", text)
    yield "unindented", "\n".join(line.lstrip() for line in lines)
    yield "blanks squeezed", "\n".join(re.sub(r"[ \t]+", " ", line) for line in lines)


def doubtful(reading: Reading) -> bool:
    """Whether a reading says that something is wrong."""
    bad = any(record.status is not Status.OK or record.warnings for record in reading.records)
    return bad or bool(reading.problems)


def values(record: Record, names: tuple[str, ...]) -> dict[str, float]:
    """The fields of a record that are filled, of those named."""
    found = {name: getattr(record, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def assert_right_or_flagged(
    module: ModuleType, text: str, names: tuple[str, ...], *, cut: bool = True
) -> None:
    """No mutation of ``text`` may give an ok record with a value that the text does not hold."""
    whole = module.parse(document(text))
    known: set[float] = set()
    for record in whole.records:
        known |= set(values(record, names).values())
        for part in _parts(record):
            known |= set(values(part, names).values())
    for what, mutated in mutations(text, cut=cut):
        reading = module.parse(document(mutated))
        for record in reading.records:
            if record.status is not Status.OK:
                continue
            strange = {n: v for n, v in values(record, names).items() if v not in known}
            assert not strange, f"{what}: {strange}"


def _parts(record: Record) -> list[Record]:
    """Nested transfers, streams and intervals of a record."""
    parts: list[Record] = []
    for name in ("sent", "received", "reverse_sent", "reverse_received", "total"):
        part = getattr(record, name, None)
        if part is not None and not isinstance(part, (int, float)):
            parts.append(part)
    for name in ("streams", "intervals"):
        for one in getattr(record, name, ()):
            parts += [
                one,
                *[p for p in (getattr(one, "sent", None), getattr(one, "received", None)) if p],
            ]
    return parts

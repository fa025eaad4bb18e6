"""The omni forms of output: ``-k`` (NAME=VALUE), ``-o`` (CSV), ``-O`` (columns under titles)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from collector.errors import InputError

from ..base import Line
from .blocks import Broken
from .command import without_secret
from .numbers import fixed, general, integer
from .selectors import NAMES_BY_TITLE, SELECTORS, TITLE_WORDS

Value = str | int | float | None
_KEYVAL = re.compile(r"\s*(?P<key>[A-Z][A-Z0-9_]*)=(?P<value>.*?)\s*")
_CELL_WORD = re.compile(r'"[^"]*"|\S+')
_HEADER_REACH = 60
_HUMAN_HEADER = 4


@dataclass(slots=True)
class Row:
    """One result: texts as printed and values by selector name, and what is wrong with it."""

    first_line: int  # indexes into the lines
    last_line: int
    printed: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    complaints: list[tuple[int, str, str]] = field(default_factory=list)  # index, found, wanted
    warnings: list[str] = field(default_factory=list)

    def add(self, name: str, text: str, at: int) -> None:
        """Take one value; a form that netperf does not print is a complaint and no value."""
        text = _unquoted(text)
        if name == "COMMAND_LINE":
            text = without_secret(text)
        try:
            value = read_value(name, text)
        except ValueError as error:
            self.complaints.append((at, f"{name}: {error}", "the value as netperf prints it"))
            value = None
        self.printed[name] = text
        self.values[name] = value


def read_value(name: str, text: str) -> Value:
    """A value in the form netperf prints for this selector; nan is None. Raises ValueError.

    A selector that this version does not know may have any form.
    """
    known = SELECTORS.get(name)
    if known is None:
        try:
            return general(text)
        except ValueError:
            return text
    if known.is_text:
        return text
    if known.decimals is not None:
        return fixed(text, known.decimals)
    return integer(text)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def read_omni_keyval(text: str, wanted: Sequence[str], where: str = "netperf") -> dict[str, Value]:
    """Read the output of one live run with ``-P 0`` and ``-k LIST``, strictly.

    Every key of ``wanted`` must come exactly once and in its own form, and nothing else may: a
    selector netperf does not know is dropped by it without a word and with exit code 0. Lines
    that are no NAME=VALUE (warnings of a library) are let by. ``nan`` is None. Returns values by
    name. Raises InputError naming the missing, doubled, unwanted or malformed key.
    """
    found: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _KEYVAL.fullmatch(line)
        if match is None:
            continue
        key = match["key"]
        place = f"{where}:{number}"
        if key in found:
            raise InputError(place, f"{key} a second time", f"each of {_listed(wanted)} once")
        if key not in wanted:
            raise InputError(place, f"{key}", f"only what was asked for: {_listed(wanted)}")
        try:
            found[key] = read_value(key, _unquoted(match["value"]))
        except ValueError as error:
            raise InputError(place, f"{key}: {error}", "the value as netperf prints it") from None
    missing = [key for key in wanted if key not in found]
    if missing:
        got = f"only {_listed(found)}" if found else "no NAME=VALUE line"
        raise InputError(where, got, f"also {_listed(missing)}")
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def read_keyval(lines: tuple[Line, ...], at: int) -> tuple[list[Row], int] | None:
    """A run of NAME=VALUE lines: one row per result. None if none starts at ``lines[at]``.

    Results printed with ``-P 0`` follow each other without anything between: a new one begins
    where its first key comes again. A key that comes twice within one result is a complaint, and
    if the two differ the value is None; so is a result that lacks a key its neighbours have.
    """
    first = _KEYVAL.fullmatch(lines[at].text)
    if first is None or first["key"] not in SELECTORS:
        return None
    pairs: list[tuple[str, str, int]] = []
    index = at
    while index < len(lines) and (match := _KEYVAL.fullmatch(lines[index].text)):
        value = match["value"]
        start = index
        index += 1
        while value.startswith('"') and not value.endswith('"') and index - start < 6:
            if index >= len(lines) or _KEYVAL.fullmatch(lines[index].text):
                break
            value = f"{value} {lines[index].text.strip()}"
            index += 1
        pairs.append((match["key"], value, start))
    rows: list[Row] = []
    for chunk in _chunks(pairs):
        rows.append(_keyval_row(chunk))
    everything = max((set(row.printed) for row in rows), key=len)
    for row in rows:
        missing = sorted(everything - set(row.printed))
        if missing:
            found = f"a result without {_listed(missing)}"
            row.complaints.append((row.first_line, found, "the keys that the others have"))
    rows[-1].last_line = index - 1
    return rows, index - at


def _chunks(pairs: list[tuple[str, str, int]]) -> Iterator[list[tuple[str, str, int]]]:
    chunk: list[tuple[str, str, int]] = []
    for pair in pairs:
        # A key doubled on the spot is no new result unless it is the only key there is.
        again = chunk and pair[0] == chunk[0][0]
        if again and (len(chunk) > 1 or all(p[0] == pair[0] for p in pairs)):
            yield chunk
            chunk = []
        chunk.append(pair)
    yield chunk


def _keyval_row(chunk: list[tuple[str, str, int]]) -> Row:
    row = Row(chunk[0][2], chunk[-1][2])
    for key, text, at in chunk:
        if key in row.printed:
            row.complaints.append((at, f"{key} a second time", "each key once in a result"))
            if row.printed[key] != _unquoted(text):
                row.values[key] = None
                row.warnings.append(f"{key} came with different values: taken as unknown")
            else:
                row.warnings.append(f"{key} came twice")
            continue
        row.add(key, text, at)
    return row


def read_csv(lines: tuple[Line, ...], at: int) -> tuple[list[Row] | Broken, int] | None:
    """A CSV header, on one line or wrapped, and the rows below it; None if none starts here."""
    if not _may_be_title(lines[at].text):
        return None
    names, used = _csv_header(lines, at)
    if not names:
        return None
    rows: list[Row] = []
    index = at + used
    while index < len(lines):
        if not lines[index].text.strip():
            if index + 1 < len(lines) and _csv_row(lines, index + 1, names) is not None:
                index += 1
            else:
                break
        row = _csv_row(lines, index, names)
        if row is None:
            break
        rows.append(row)
        index += 1
    if not rows:
        return Broken(f"a row of {len(names)} values below the titles"), used
    return rows, index - at


def _may_be_title(text: str) -> bool:
    words = text.replace(",", " ").split()
    return bool(words) and words[0] in TITLE_WORDS and words[0][0].isupper() | words[0][0].isdigit()


def _csv_header(lines: tuple[Line, ...], at: int) -> tuple[list[str], int]:
    text = ""
    for count in range(1, _HEADER_REACH):
        if at + count - 1 >= len(lines) or not lines[at + count - 1].text.strip():
            break
        text = f"{text} {lines[at + count - 1].text.strip()}".strip()
        titles = [" ".join(cell.split()) for cell in text.split(",")]
        names = _names_of(titles)
        if names is not None:
            below = at + count
            if below < len(lines) and _csv_row(lines, below, names) is not None:
                return names, count
        elif count == 1 and len(titles) > 2 and sum(t in NAMES_BY_TITLE for t in titles) >= 2:
            loose = [NAMES_BY_TITLE.get(title, (title,))[0] for title in titles]
            if len(set(loose)) == len(loose) and _csv_row(lines, at + 1, loose) is not None:
                return loose, 1
    # A whole header without a row below it is a block that lost its values.
    titles = [" ".join(cell.split()) for cell in lines[at].text.split(",")]
    names = _names_of(titles)
    return (names, 1) if names is not None and len(names) > 1 else ([], 0)


def _names_of(titles: list[str]) -> list[str] | None:
    """Selector names of CSV titles; None unless every title is known and none comes too often."""
    names: list[str] = []
    for title in titles:
        choice = [name for name in NAMES_BY_TITLE.get(title, ()) if name not in names]
        if not choice:
            return None
        names.append(choice[0])
    return names


def _csv_row(lines: tuple[Line, ...], at: int, names: list[str]) -> Row | None:
    """The row at index ``at``; None if it has not one well-formed value per name."""
    if at >= len(lines):
        return None
    splits = list(_splits(lines[at].text.strip().split(","), len(names)))
    rows = []
    for cells in splits:
        row = Row(at, at)
        for name, cell in zip(names, cells, strict=True):
            row.add(name, cell, at)
        if not row.complaints:
            rows.append(row)
    return rows[0] if len(rows) == 1 else None


def _splits(parts: list[str], wanted: int, at: int = 0) -> Iterator[list[str]]:
    """Ways to make ``wanted`` cells of ``parts``: netperf quotes text but not quotes within it."""
    if wanted == 0 or at >= len(parts):
        if wanted == 0 and at >= len(parts):
            yield []
        return
    if len(parts) - at < wanted:
        return
    if not parts[at].lstrip().startswith('"'):
        yield from ([parts[at], *rest] for rest in _splits(parts, wanted - 1, at + 1))
        return
    for end in range(at + 1, len(parts) - wanted + 2):
        cell = ",".join(parts[at:end]).strip()
        if len(cell) > 1 and cell.endswith('"'):
            yield from ([cell, *rest] for rest in _splits(parts, wanted - 1, end))


def read_named_row(line: Line, at: int, names: Sequence[str], output: str) -> Row | None:
    """A row printed without titles (``-P 0``), for the selectors that the command line lists."""
    if output == "csv":
        return _csv_row((*[Line(0, "")] * at, line), at, list(names))
    cells = _CELL_WORD.findall(line.text)
    if len(cells) != len(names):
        return None
    row = Row(at, at)
    for name, cell in zip(names, cells, strict=True):
        row.add(name, cell, at)
    return row if not row.complaints else None


def read_human(lines: tuple[Line, ...], at: int) -> tuple[Row, int] | None:
    """Columns under titles of up to four lines; the blocks of several ``;`` parts are one row.

    A column starts where its value starts. None unless every title is one that netperf prints.
    """
    row = _human_block(lines, at)
    if row is None:
        return None
    index = row.last_line + 1
    while index + 1 < len(lines) and not lines[index].text.strip():
        more = _human_block(lines, index + 1)
        if more is None or set(more.printed) & set(row.printed):
            break
        row.printed |= more.printed
        row.values |= more.values
        row.last_line = more.last_line
        index = row.last_line + 1
    return row, row.last_line + 1 - at


def _human_block(lines: tuple[Line, ...], at: int) -> Row | None:
    if not _all_title_words(lines[at].text):
        return None
    for count in range(1, _HUMAN_HEADER + 1):
        below = at + count
        if below >= len(lines):
            return None
        if (
            count > 1
            and lines[below - 1].text.strip()
            and not _all_title_words(lines[below - 1].text)
        ):
            return None
        while below < len(lines) and not lines[below].text.strip() and below - at <= _HUMAN_HEADER:
            below += 1
        if below >= len(lines):
            return None
        row = _human_row(lines, at, count, below)
        if row is not None:
            return row
    return None


def _all_title_words(text: str) -> bool:
    words = text.split()
    return bool(words) and all(word in TITLE_WORDS for word in words)


def _human_row(lines: tuple[Line, ...], at: int, count: int, below: int) -> Row | None:
    cells = [(m.start(), m.group()) for m in _CELL_WORD.finditer(lines[below].text)]
    starts = [start for start, _ in cells]
    ends = [*starts[1:], None]
    header = [line.text for line in lines[at : at + count]]
    if not starts or any(text[: starts[0]].strip() for text in header):
        return None
    titles = [
        " ".join(word for text in header for word in text[start:end].split())
        for start, end in zip(starts, ends, strict=True)
    ]
    names = _names_of(titles)
    if names is None:
        return None
    row = Row(at, below)
    for name, (_, cell) in zip(names, cells, strict=True):
        row.add(name, cell, below)
    return row if not row.complaints else None

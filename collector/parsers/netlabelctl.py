"""``netlabelctl``: listings (plain and ``-p``), refusals, and scripts that configure NetLabel.

A plain DOI listing does not say its number; it is taken from the command before it, on the same
line (``netlabelctl cipso list doi:100 -> tags:128``) or on the line above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.kernel_state.errors import NumberedLine, StateError
from collector.kernel_state.failures import classify_netlabelctl
from collector.kernel_state.netlabel import (
    DoiDetail,
    MapEntry,
    StaticLabel,
    parse_doi,
    parse_doi_list,
    parse_unlabelled,
)
from collector.kernel_state.netlabel_check import review
from collector.kernel_state.netlabel_map import parse_map
from collector.kernel_state.netlabel_script import changes, commands, replay
from collector.parsers.base import Document, Line, Reading, Record, Source, Status, in_order
from collector.parsers.kernel_text import failure, indentation, problem, source, split_transcript

TOOL = "netlabelctl"
_PRETTY = re.compile(
    r"\s*(?:Configured (?:NetLabel domain mappings|NetLabel address mappings|"
    r"(?:CIPSO|CIPSOv4|CALIPSO) mappings?)\b.*|(?:Accept|Allow) unlabeled packets : .*)"
)
_PLAIN_MAP = re.compile(r'\s*domain:(?:"[^"]*"|DEFAULT),.*')
_PLAIN_UNLABELLED = re.compile(r"\s*accept:(?:on|off)\b.*")
_PLAIN_DETAIL = re.compile(r"\s*tags:[0-9]+\b.*|\s*type:PASS_THROUGH\s*")
_PLAIN_DOIS = re.compile(r"\s*[0-9]+,(?:TRANSLATED|STANDARD|PASS_THROUGH|LOCAL)\b.*")
_DOI_ARGUMENT = re.compile(r"\blist\s+doi:([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoiRecord(Record):
    """A DOI. ``levels`` and ``categories`` map local numbers to the wire's, both None unless the
    listing has a translation; ``tags`` is None in a listing of all DOIs."""

    doi: int | None
    mapping: str
    tags: tuple[int, ...] | None
    levels: Mapping[int, int] | None
    categories: Mapping[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRecord(Record):
    """The domain map. ``unmapped`` names families that no default entry covers: their new
    sockets fail, they are not unlabelled."""

    entries: tuple[MapEntry, ...]
    unmapped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledRecord(Record):
    """Whether unlabelled packets are accepted, and static labels for some."""

    accept: bool
    static: tuple[StaticLabel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRecord(Record):
    """What commands would leave configured. ``errors`` would break or cut off the host."""

    entries: tuple[MapEntry, ...]
    dois: tuple[int, ...]
    errors: tuple[str, ...]


def _signature(text: str) -> bool:
    patterns = (_PRETTY, _PLAIN_MAP, _PLAIN_UNLABELLED, _PLAIN_DETAIL, _PLAIN_DOIS)
    return any(pattern.fullmatch(text) for pattern in patterns)


def _output(line: Line) -> tuple[str, str]:
    """(command, output) of a line; the command is empty without an arrow."""
    parts = split_transcript(line.text)
    return ("", line.text) if parts is None else parts


def recognise(document: Document) -> bool:
    """Whether a line is a listing, a refusal or a command of netlabelctl."""
    return any(
        _signature(_output(line)[1])
        or classify_netlabelctl(line.text) is not None
        or bool(changes(commands([(line.number, line.text)])))
        for line in document.lines
    )


def parse(document: Document) -> Reading:
    """Read every listing and refusal, and review the commands between them."""
    reading = Reading()
    _failures(document, reading)
    command = ""
    lines = list(document.lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        before, text = _output(line)
        command = before or command
        if line.number in reading.claimed or not _signature(text):
            command = line.text if "list" in line.text else before
            at += 1
            continue
        block = [(line.number, text)]
        if _PRETTY.fullmatch(text):
            block += _pretty_rest(lines[at + 1 :], text)
        reading.claimed.update(number for number, _ in block)
        try:
            reading.records.append(_read(document, block, command))
        except StateError as error:
            reading.problems.append(problem(document, error, line.number))
        at += len(block)
        command = ""
    _script(document, reading)
    reading.records = in_order(reading.records)
    return reading


def _pretty_rest(lines: list[Line], head: str) -> list[NumberedLine]:
    found: list[NumberedLine] = []
    depth = indentation(head)
    for line in lines:
        address_part = head.lstrip().startswith(("Accept", "Allow")) and re.match(
            r"\s*Configured NetLabel address mappings", line.text
        )
        if not line.text.strip() or not (indentation(line.text) > depth or address_part):
            break
        found.append((line.number, line.text))
    return found


def _source(document: Document, block: list[NumberedLine]) -> Source:
    return Source(document.file, block[0][0], block[-1][0])


def _read(document: Document, block: list[NumberedLine], command: str) -> Record:
    text = block[0][1].strip()
    readers: tuple[tuple[tuple[str, ...], Callable[..., Record]], ...] = (
        (("domain:", "Configured NetLabel domain"), _map),
        (("accept:", "Accept", "Allow"), _unlabelled),
        (("tags:", "type:", "Configured CIPSO mapping (", "Configured CIPSOv4 mapping (",
          "Configured CALIPSO mapping ("), _detail),
    )  # fmt: skip
    for starts, reader in readers:
        if text.startswith(starts):
            return reader(document, block, command)
    return _listing(document, block, command)


def _map(document: Document, block: list[NumberedLine], command: str) -> MapRecord:
    entries = parse_map(block)
    covered: set[int] = set()
    for entry in entries:
        if entry.domain is None and entry.selector in (None, "0.0.0.0/0", "::/0"):
            covered |= {4, 6} if entry.family is None else {entry.family}
    unmapped = tuple(f"IPv{family}" for family in (4, 6) if family not in covered)
    return MapRecord(
        tool=TOOL,
        kind="map",
        status=Status.OK,
        source=_source(document, block),
        warnings=tuple(
            f"no default mapping for all of {family}: new sockets to other addresses fail"
            for family in unmapped
        ),
        entries=entries,
        unmapped=unmapped,
    )


def _unlabelled(document: Document, block: list[NumberedLine], command: str) -> UnlabelledRecord:
    found = parse_unlabelled(block)
    return UnlabelledRecord(
        tool=TOOL,
        kind="unlabelled",
        status=Status.OK,
        source=_source(document, block),
        accept=found.accept,
        static=found.static,
    )


def _detail(document: Document, block: list[NumberedLine], command: str) -> DoiRecord:
    found: DoiDetail = parse_doi(block)
    match = _DOI_ARGUMENT.search(command)
    number = found.number if found.number is not None or match is None else int(match.group(1))
    translated = found.kind == "trans"
    return DoiRecord(
        tool=TOOL,
        kind="doi",
        status=Status.OK,
        source=_source(document, block),
        printed={"tags": block[0][1].strip()},
        warnings=() if number is not None else ("the listing does not say the DOI's number",),
        doi=number,
        mapping=found.kind,
        tags=found.tags or None,
        levels=dict(found.levels) if translated else None,
        categories=dict(found.categories) if translated else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DoiListRecord(Record):
    """All DOIs of a protocol: number -> ``trans``, ``pass`` or ``local``."""

    dois: Mapping[int, str]


def _listing(document: Document, block: list[NumberedLine], command: str) -> DoiListRecord:
    return DoiListRecord(
        tool=TOOL,
        kind="dois",
        status=Status.OK,
        source=_source(document, block),
        dois=parse_doi_list(block),
    )


def _failures(document: Document, reading: Reading) -> None:
    for line in document.lines:
        found = classify_netlabelctl(line.text)
        if found is None:
            continue
        reading.claimed.add(line.number)
        reading.records.append(
            Record(
                tool=TOOL,
                kind="failure",
                status=Status.FAILED,
                source=source(document, [line]),
                failure=failure(found),
            )
        )


def _script(document: Document, reading: Reading) -> None:
    """Commands that change the configuration, taken together as one script."""
    free = [(line.number, line.text) for line in document.lines]
    found = changes(commands(free))
    if not found:
        return
    numbers = [command[0] for command in found]
    try:
        reviewed = review(replay(found))
    except StateError as error:
        reading.problems.append(problem(document, error, numbers[0]))
        return
    reading.records.append(
        ScriptRecord(
            tool=TOOL,
            kind="script",
            status=Status.SUSPECT if reviewed.errors else Status.OK,
            source=Source(document.file, min(numbers), max(numbers)),
            warnings=reviewed.warnings,
            entries=reviewed.state.maps,
            dois=tuple(doi.number for doi in reviewed.state.dois),
            errors=reviewed.errors,
        )
    )

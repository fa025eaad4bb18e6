"""What every parser of tool output shares: numbered lines, records, problems, the protocol.

A parser is one module of this package per tool. It gets a :class:`Document` (numbered, dequoted
lines), claims the blocks that carry its own tool's signature and returns a :class:`Reading`:
records in the order found, and problems for what looks like its tool's output but cannot be read.
Parsers never print, never guess a unit and never turn what the input does not say into a number:
such a field is ``None``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, Protocol


class Status(StrEnum):
    """What a record is worth.

    ``ok``: a complete result. ``suspect``: complete, but something makes its headline value
    doubtful (the warning says what). ``incomplete``: the run ended without its final result.
    ``failed``: the tool reported an error, or a value that is no measurement (zero throughput).
    """

    OK = "ok"
    SUSPECT = "suspect"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of input: ``number`` counts from 1 in the file, ``text`` is dequoted."""

    number: int
    text: str
    quote: str = ""  # the mail quoting that was taken off, e.g. "> > "


@dataclass(frozen=True, slots=True)
class Document:
    """One input file (or ``-``) as numbered lines without line ends."""

    file: str
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The dequoted lines joined by newlines."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record starts and ends: file name and line numbers (from 1, inclusive)."""

    file: str
    line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run has no result: a stable class name, the tool's own text, and what to look at."""

    error_class: str
    text: str
    errno: int | None = None
    errno_name: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One result found in the input. Each parser extends this with its own typed fields.

    Names of fields carry their SI base unit (``throughput_bps``, ``elapsed_s``,
    ``message_bytes``, ``cpu_local_pct``); ``printed`` keeps values and units as the tool wrote
    them. ``None`` means that the input does not say.
    """

    tool: str
    kind: str
    status: Status
    source: Source
    printed: dict[str, str | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Input that could not be read: where, what was found and what was wanted."""

    file: str
    line: int
    found: str
    wanted: str

    @classmethod
    def of_line(cls, file: str, line: Line, wanted: str) -> Problem:
        """A line that could not be read, as it stands."""
        return cls(file, line.number, repr(line.text.strip()), wanted)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: found {self.found}; wanted {self.wanted}"


@dataclass(slots=True)
class Reading:
    """What a parser made of a document. ``claimed`` holds the line numbers it accounts for."""

    records: list[Record] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)


class Parser(Protocol):
    """The interface of a parser module (a module object satisfies it)."""

    TOOL: str

    def recognise(self, document: Document) -> bool:
        """Whether the document holds at least one signature of this tool."""

    def parse(self, document: Document) -> Reading:
        """Read every block of this tool; blocks of other tools and prose are left alone."""


def as_json(value: Any) -> Any:
    """Turn records (nested dataclasses, tuples, enums) into what ``json.dumps`` takes.

    Not-a-number and infinity never appear: a parser has made them ``None`` before.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return value


def in_order(records: Iterable[Record]) -> list[Record]:
    """Records by the line on which they start."""
    return sorted(records, key=lambda record: (record.source.line, record.source.last_line))

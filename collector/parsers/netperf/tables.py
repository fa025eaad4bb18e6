"""The classic result tables: headers and rows as sequences of words.

A header is matched word by word over line ends, so that a table which mail has wrapped reads like
a whole one, while a header with a line missing, doubled or out of order is no header. A row takes
exactly the words its header promises, each in the form netperf prints it (``%d``, ``%.2f``, …).
Titles and formats: nettest_bsd.c, nettest_omni.c, nettest_sctp.c, nettest_dlpi.c, nettest_unix.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..base import Line
from .numbers import UNIT_PATTERN, fixed, integer

_UNIT = rf"(?P<unit>{UNIT_PATTERN})"
_METHOD = r"(?:%|% (?P<{0}>[A-Z?]))"
_METHODS = f"{_METHOD.format('local')} {_METHOD.format('remote')}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of table. Column names are fields of the record or ``rate``; see :data:`SHAPES`."""

    name: str
    header: re.Pattern[str]
    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    second_optional: bool = False
    test: str | None = None  # the only test that prints it


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above rows: the kind of table, unit and CPU methods, and where it begins."""

    shape: Shape
    unit: str | None
    methods: tuple[str | None, str | None]
    first: int


@dataclass(slots=True)
class Table:
    """A table found: values by column, cells as printed, and hand-written words beside them."""

    shape: Shape
    first_line: int
    last_line: int
    lines: int
    unit: str | None
    methods: tuple[str | None, str | None]
    values: dict[str, int | float | None]
    printed: dict[str, str]
    notes: list[tuple[str, str]] = field(default_factory=list)  # (row, text), row "1" or "2"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A table whose header is sound and whose rows are not."""

    shape: Shape
    lines: int
    at: int
    found: str
    wanted: str


# Column: decimals of its printf format; None is %d.
DECIMALS: dict[str, int | None] = {
    "elapsed_s": 2, "elapsed2_s": 2, "rate": 2, "rate2": 2, "rate1": 1, "rate21": 1,
    "cpu_local": 2, "cpu_remote": 2, "sd_local": 3, "sd_remote": 3,
}  # fmt: skip
_SIZES = ("recv_socket_bytes", "send_socket_bytes", "message_bytes")
_CPU = ("cpu_local", "cpu_remote", "sd_local", "sd_remote")
_RR = ("send_socket_bytes", "recv_socket_bytes", "request_bytes", "response_bytes", "elapsed_s",
       "rate")  # fmt: skip
_RR2 = ("remote_send_socket_bytes", "remote_recv_socket_bytes")


def _header(text: str) -> re.Pattern[str]:
    # "~" stands for a blank that may be missing: "MBytes  /s" where the unit is shorter than 8.
    text = re.sub(r"\s+", r"\\s+", text.strip()).replace("~", r"\s?")
    return re.compile(text + r"(?=\s|\Z)")


def _plain(text: str) -> str:
    return re.escape(text).replace(r"\ ", " ")


_WINDOWS = r"(?:Socket Socket Message|Window Window Message)"
_FRAMES = r"(?:bytes bytes|frames frames)"

SHAPES: tuple[Shape, ...] = (
    Shape(
        "stream",
        _header(
            f"Recv Send Send {_WINDOWS} Elapsed Size Size Size Time Throughput"
            f" {_FRAMES} bytes {_plain('secs.')} {_UNIT}~/s(?:ec)?"
        ),
        (*_SIZES, "elapsed_s", "rate"),
    ),
    *(
        Shape(
            name,
            _header(
                f"Recv Send Send Utilization Service Demand {_WINDOWS} Elapsed {order} {order}"
                " Size Size Size Time Throughput local remote local remote"
                f" {_FRAMES} bytes {_plain('secs.')} {_UNIT}~/s(?:ec)? {_METHODS} us/KB us/KB"
            ),
            (*_SIZES, "elapsed_s", "rate", *_CPU),
            test=test,
        )
        for name, order, test in (
            ("stream_cpu", "Send Recv", None),
            ("maerts_cpu", "Recv Send", "TCP_MAERTS"),
        )
    ),
    Shape(
        "udp_stream",
        _header(
            "(?:Socket|Window) Message Elapsed Messages Size Size Time Okay Errors Throughput"
            f" (?:bytes|frames) bytes secs # # {_UNIT}~/sec"
        ),
        ("socket", "message_bytes", "elapsed_s", "messages_ok", "errors", "rate"),
        ("socket2", "elapsed2_s", "messages_received", "rate2"),
        test="UDP_STREAM",
    ),
    Shape(
        "udp_stream_cpu",
        _header(
            "(?:Socket|Window) Message Elapsed Messages CPU Service"
            " Size Size Time Okay Errors Throughput Util Demand"
            f" (?:bytes|frames) bytes secs # # {_UNIT}~/sec"
            r" (?:%|% (?P<local>[A-Z?])(?P<remote>[A-Z?])?) us/KB"
        ),
        ("socket", "message_bytes", "elapsed_s", "messages_ok", "errors", "rate1", "cpu_local",
         "sd_local"),
        ("socket2", "elapsed2_s", "messages_received", "rate21", "cpu_remote", "sd_remote"),
        test="UDP_STREAM",
    ),
    Shape(
        "rr",
        _header(
            f"Local /Remote (?:Socket|Window) Size Request {_plain('Resp.')} Elapsed"
            f" {_plain('Trans.')} Send Recv Size Size Time Rate"
            f" (?:bytes [Bb]ytes|frames [Ff]rames) bytes bytes {_plain('secs.')} per sec"
        ),
        _RR, _RR2, True,
    ),
    Shape(
        "rr_throughput",
        _header(
            f"Local /Remote Socket Size Request {_plain('Resp.')} Elapsed Send Recv Size Size Time"
            f" Throughput bytes [Bb]ytes bytes bytes {_plain('secs.')} {_UNIT}~/sec"
        ),
        _RR, _RR2, True,
    ),
    Shape(
        "rr_cpu",
        _header(
            f"Local /Remote (?:Socket|Window) Size Request {_plain('Resp.')} Elapsed"
            f" {_plain('Trans.')} CPU CPU {_plain('S.dem S.dem')}"
            " Send Recv Size Size Time Rate local remote local remote"
            f" (?:bytes [Bb]ytes|frames [Ff]rames) bytes bytes {_plain('secs.')} per sec"
            f" {_METHODS} us/Tr us/Tr"
        ),
        (*_RR, *_CPU), _RR2, True,
    ),
    Shape(
        "rr_throughput_cpu",
        _header(
            f"Local /Remote Socket Size Request {_plain('Resp.')} Elapsed Tput CPU CPU"
            f" {_plain('S.dem S.dem')} Send Recv Size Size Time {_UNIT} local remote local remote"
            f" bytes [Bb]ytes bytes bytes {_plain('secs.')} per sec {_METHODS} us/KB us/KB"
        ),
        (*_RR, *_CPU), _RR2, True,
    ),
)  # fmt: skip
BY_NAME = {shape.name: shape for shape in SHAPES}
_STARTS = frozenset({"Recv", "Socket", "Local", "Window"})
_REACH = 16  # lines a wrapped header may take
_WORD = re.compile(r"\S+")
_PAIR = re.compile(r"\s*[0-9]+\s+[0-9]+\s*")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    line: int  # index into the lines
    last: bool  # last of its line


def words_from(lines: tuple[Line, ...], at: int, reach: int) -> list[_Word]:
    """The words of up to ``reach`` lines from index ``at``."""
    found: list[_Word] = []
    for index in range(at, min(at + reach, len(lines))):
        texts = _WORD.findall(lines[index].text)
        found.extend(_Word(t, index, n == len(texts) - 1) for n, t in enumerate(texts))
    return found


def read_table(lines: tuple[Line, ...], at: int) -> Table | Unreadable | None:
    """Read the table whose header starts at ``lines[at]``; None if no header starts there."""
    head = lines[at].text.split(maxsplit=1)
    if not head or head[0] not in _STARTS:
        return None
    words = words_from(lines, at, _REACH)
    text = " ".join(word.text for word in words)
    for shape in SHAPES:
        match = shape.header.match(text)
        if match is None:
            continue
        used = len(match[0].split())
        if not words[used - 1].last:
            return None
        unit = match.groupdict().get("unit")
        groups = match.groupdict()
        methods = groups.get("local"), groups.get("remote")
        return read_rows(lines, words[used - 1].line + 1, Heading(shape, unit, methods, at))
    return None


def read_rows(lines: tuple[Line, ...], at: int, heading: Heading) -> Table | Unreadable:
    """Read the row or rows of a table from index ``at`` on."""
    shape, first = heading.shape, heading.first
    while at < len(lines) and not lines[at].text.strip():
        at += 1
    table = Table(shape, first, at, 0, heading.unit, heading.methods, {}, {})
    try:
        at = _row(lines, at, table, "1")
        missing = bool(shape.second) and shape.second[0] not in table.values
        if missing and (not shape.second_optional or _is_pair(lines, at)):
            at = _row(lines, at, table, "2")
    except _BadRowError as error:
        return Unreadable(shape, error.index + 1 - first, error.index, error.found, error.wanted)
    table.last_line = at - 1
    table.lines = at - first
    return table


def _is_pair(lines: tuple[Line, ...], at: int) -> bool:
    return at < len(lines) and bool(_PAIR.fullmatch(lines[at].text))


class _BadRowError(Exception):
    def __init__(self, index: int, found: str, wanted: str) -> None:
        super().__init__(found)
        self.index, self.found, self.wanted = index, found, wanted


def _row(lines: tuple[Line, ...], at: int, table: Table, row: str) -> int:
    """Read row "1" or "2", and the words somebody wrote behind it; return the index after it."""
    columns = table.shape.first if row == "1" else table.shape.second
    while row == "2" and at < len(lines) and not lines[at].text.strip():
        at += 1
    words = words_from(lines, at, 12)
    wanted = f"a row of {len(columns)} columns ({' '.join(columns)})"
    if len(words) < len(columns):
        cut = " ".join(word.text for word in words)
        raise _BadRowError(min(at, len(lines) - 1), repr(cut) if cut else "the end", wanted)
    for column, word in zip(columns, words, strict=False):
        try:
            decimals = DECIMALS.get(column)
            value = integer(word.text) if decimals is None else fixed(word.text, decimals)
        except ValueError as error:
            raise _BadRowError(word.line, str(error), wanted) from None
        if value is not None and value < 0 and column not in _CPU:
            raise _BadRowError(word.line, f"{word.text!r} below zero", wanted)
        table.values[column] = value
        table.printed[column] = word.text
    end = words[len(columns) - 1]
    # Blank lines inside a row mean that two things have been joined.
    if any(not lines[i].text.strip() for i in range(words[0].line, end.line)):
        raise _BadRowError(end.line, "a blank line inside", wanted)
    if end.last:
        return end.line + 1
    return _note(words[len(columns) :], table, row, wanted)


def _note(behind: list[_Word], table: Table, row: str, wanted: str) -> int:
    """Take the words behind a row: ``(…)`` over any lines until closed, else the line's rest."""
    first = behind[0]
    if re.match(r"[-+.,]?[0-9]", first.text):
        raise _BadRowError(first.line, f"{first.text!r} behind the last column", wanted)
    if not first.text.startswith("("):
        table.notes.append((row, " ".join(w.text for w in behind if w.line == first.line)))
        return first.line + 1
    # Mail that wraps a long parenthesis puts the second row of a request/response table inside.
    pair = table.shape.second if row == "1" and table.shape.second_optional else ()
    taken: list[str] = []
    at = 0
    while at < len(behind):
        word = behind[at]
        if pair and word.line != first.line and at + 1 < len(behind) and behind[at - 1].last:
            two = (word.text, behind[at + 1].text)
            third = behind[at + 2].text if at + 2 < len(behind) else ""
            # A third number makes it a first row: the line has been doubled.
            if all(map(str.isdecimal, two)) and not third[:1].isdecimal():
                for column, text in zip(pair, two, strict=True):
                    table.values[column], table.printed[column] = int(text), text
                pair, at = (), at + 2
                continue
        taken.append(word.text)
        at += 1
        if word.text.endswith(")"):
            if not word.last:
                raise _BadRowError(word.line, f"{behind[at].text!r} behind {word.text!r}", wanted)
            table.notes.append((row, " ".join(taken)))
            return word.line + 1
    raise _BadRowError(first.line, f"{first.text!r} without a closing parenthesis", wanted)

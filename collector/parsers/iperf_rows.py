"""Interval rows of iperf 2 and iperf 3 text reports, and which of the two printed a line.

Formats: iperf_locale.c (``report_bw_*``) of iperf3, Locale.c of iperf 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .base import Document, Problem
from .rates import NUMBER, Printed, printed, rate_agrees, unit_factor

_HEAD = re.compile(
    r"^(?P<prefix>[^\[\]]{0,60}?)\[\s*(?P<star>\*?)\s*(?P<id>\d+|SUM(?:-\d+)?|SUM-cnt|FD\d+)\s*\]"
    r"(?:\[(?P<role>[TR]X-[CS])\])?\s*(?P<body>.*)$"
)
_INTERVAL = re.compile(
    r"^(?P<start>\d+\.\d+)\s*-\s*(?P<end>\d+\.\d+)\s+sec\s+(?P<rest>.*)$", re.DOTALL
)
_RATE = re.compile(
    rf"^(?P<size>{NUMBER})\s*(?P<size_unit>[KMGTPE]?Bytes)\s+"
    rf"(?P<rate>{NUMBER}|-?nan|-?inf)\s*(?P<rate_unit>[KMGTPEkmgtpe]?(?:bits|bis|Bytes)/sec)"
    r"(?P<rest>(?:\s.*)?)$",
    re.DOTALL,
)
_LOOSE = re.compile(
    r"^[^\[\]]{0,60}?\[\s*\*?\s*(?:\d+|SUM[-\w]*|FD\d+)\s*\](?:\[[TR]X-[CS]\])?"
    r"(?:\s*\d+[.,]?\d*\s*-\s*\d|.*/sec\b|.*out-of-order)"
)
_OUT_OF_ORDER = re.compile(r"^(\d+)\s+datagrams\s+received out-of-order")

_THREE = re.compile(
    r"\biperf3\b|^\s*iperf 3\.|iperf Done\.|Connecting to host .*, port \d"
    r"|Accepted connection from|Server listening on \d+|Reverse mode, remote host"
    r"|\[[TR]X-[CS]\]|\[ ?ID\]\[Role\]|Transfer\s+Bitrate\b|\]\s+Interval.*\bRetr\b"
    r"|/sec\b.*(?:\(omitted\)|sender|receiver)\s*$|^[-\d\s/.e+(%)]*(?:sender|receiver)\s*$"
    r"|\blocal\b.*\bport \d+ connected to\b|^\s*Starting Test: protocol"
    r"|statistics not available|^\s*Server output:"
)
_TWO = re.compile(
    r"Client connecting to .*\b(?:TCP|UDP)\b|Server listening on (?:TCP|UDP)"
    r"|\blocal\b.*\bport \d+ connected with\b|(?:TCP window|UDP buffer) size:|Write/Err"
    r"|\bServer Report:|Reads=Dist|\bNetPwr\b|\bsec\b.*/sec\b.*\bpps\b"
    r"|^\s*(?:Sending|Receiving) \d+ byte datagrams|\biperf version 2|\[SUM-\d+\]|\[\s*\*\d+\]"
    r"|K(?:\(\d+\))?/\d+(?:\(\d+\))?\s*us\b|ack of last datagram|\d=\d+:\d+:\d+:"
)
_SPACED_THREE = re.compile(r"\]\s{3,}\d+\.\d\d-\d+\.\d\d\s{2,}sec")
_SPACED_TWO = re.compile(r"\] {1,2}\d+\.(?:\d|\d\d|\d{4})-\s?\d+\.(?:\d|\d\d|\d{4}) sec")
_OWN_LINE = re.compile(r"- -|--|(?:[a-z]+ )*failed: |WARNING: |iperf")
_ANY = re.compile(r"^[^\[\]]{0,60}?\[\s*\*?\s*(?:\d+|SUM|FD|ID)")


@dataclass(slots=True)
class Row:
    """One report row: an interval of one stream or of the sum (``id`` ``SUM``)."""

    line: int
    last_line: int
    id: str
    starred: bool
    role: str
    start: Printed
    end: Printed
    size: Printed  # bytes
    rate: Printed | None  # bit/s; None: printed as nan or inf
    rest: str
    printed: dict[str, str | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_sum(self) -> bool:
        """Whether the row adds up several streams."""
        return self.id.startswith("SUM")

    @property
    def key(self) -> tuple[object, ...]:
        """What two prints of the same row share."""
        return (
            self.id,
            self.starred,
            self.role,
            self.start.text,
            self.end.text,
            self.size.value,
            self.rate.value if self.rate else None,
            " ".join(self.rest.split()),
        )


def owners(document: Document) -> dict[int, int]:
    """Which iperf (2 or 3) printed each line that looks like either's, by line number.

    A line's own marks decide; a line without any goes with the nearest one above, else below.
    """
    own: list[tuple[int, int | None]] = []
    for line in document.lines:
        text = line.text
        if _THREE.search(text):
            own.append((line.number, 3))
        elif _TWO.search(text):
            own.append((line.number, 2))
        elif _ANY.match(text):
            by_space = 3 if _SPACED_THREE.search(text) else None
            own.append((line.number, by_space))
    return _fill(own, document)


def _fill(own: list[tuple[int, int | None]], document: Document) -> dict[int, int]:
    """Give lines without marks to their neighbours; with none anywhere, to their spacing."""
    result: dict[int, int] = {}
    last: int | None = None
    waiting: list[int] = []
    texts = {line.number: line.text for line in document.lines}
    for number, owner in own:
        if owner is None and last is None:
            waiting.append(number)
            continue
        last = owner or last
        assert last is not None
        result[number] = last
        for earlier in waiting:
            result[earlier] = last
        waiting.clear()
    for number in waiting:
        if _SPACED_TWO.search(texts[number]) or _LOOSE.match(texts[number]):
            result[number] = 2
    return result


def joined(document: Document, index: int, most: int = 3) -> Iterator[tuple[str, int]]:
    """The line at ``index`` joined with up to ``most`` following ones, longest first.

    Mail programs break long rows. A line that starts a row, a header, a ruler or a JSON document
    of its own, or is empty, is never taken for the rest of another.
    """
    texts = [document.lines[index].text.strip()]
    for line in document.lines[index + 1 : index + 1 + most]:
        text = line.text.strip()
        if not text or text[0] in "[{}#$>" or _OWN_LINE.match(text):
            break
        texts.append(text)
    for count in range(len(texts), 0, -1):
        yield " ".join(texts[:count]), index + count - 1


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """The count of datagrams that arrived out of order, of one stream or of the sum."""

    line: int
    id: str
    role: str
    count: int
    start: Printed
    end: Printed


def read_row(document: Document, index: int, accepts: re.Pattern[str]) -> Row | OutOfOrder | None:
    """Read the row that starts at ``document.lines[index]``, broken over lines or not.

    ``accepts`` must match what follows the rate. Returns None if there is no such row.
    """
    for text, last in joined(document, index):
        head = _HEAD.match(text)
        body = _INTERVAL.match(head["body"]) if head else None
        if not head or not body:
            continue
        number = document.lines[index].number
        start, end = printed(body["start"]), printed(body["end"])
        late = _OUT_OF_ORDER.match(body["rest"])
        if late:
            return OutOfOrder(
                document.lines[last].number,
                head["id"],
                head["role"] or "",
                int(late[1]),
                start,
                end,
            )
        rate = _RATE.match(body["rest"])
        if not rate or not accepts.fullmatch(rate["rest"].strip()):
            continue
        row = Row(
            line=number,
            last_line=document.lines[last].number,
            id=head["id"],
            starred=bool(head["star"]) or head["id"].startswith("FD"),
            role=head["role"] or "",
            start=start,
            end=end,
            size=printed(rate["size"]).scaled(unit_factor(rate["size_unit"])),
            rate=None,
            rest=rate["rest"].strip(),
            printed={
                "transfer": f"{rate['size']} {rate['size_unit']}",
                "rate": f"{rate['rate']} {rate['rate_unit']}",
                "interval": f"{body['start']}-{body['end']} sec",
            },
        )
        _fill_rate(row, rate["rate"], rate["rate_unit"])
        return row
    return None


def _fill_rate(row: Row, value: str, unit: str) -> None:
    if "bis/" in unit:
        # iperf3 3.0 cut the unit of rates with more than six digits (esnet/iperf issue 142).
        row.warnings.append(f"line {row.line}: {unit} is taken as {unit.replace('bis', 'bits')}")
        unit = unit.replace("bis", "bits")
    try:
        row.rate = printed(value).scaled(unit_factor(unit))
    except ValueError:
        row.warnings.append(f"line {row.line}: the rate is printed as {value}")
        return
    if row.end.value < row.start.value:
        row.warnings.append(f"line {row.line}: the interval ends before it starts")
    if not rate_agrees(row.size, row.rate, row.start, row.end):
        row.warnings.append(
            f"line {row.line}: {row.printed['transfer']} in {row.printed['interval']} "
            f"is not {row.printed['rate']}"
        )


def looks_like_row(text: str) -> bool:
    """Whether a line should have been a row: an id in brackets with an interval or a rate."""
    return bool(_LOOSE.match(text))


def has_rows_of(document: Document, version: int) -> bool:
    """Whether a line that looks like a row was printed by iperf ``version``."""
    mine = owners(document)
    return any(
        mine.get(line.number) == version and looks_like_row(line.text) for line in document.lines
    )


def row_problem(document: Document, index: int) -> Problem:
    """The complaint about a line that should have been a row."""
    return Problem.of_line(
        document.file,
        document.lines[index],
        'a row "[ ID] start-end sec  N MBytes  N Mbits/sec …" with decimal points',
    )

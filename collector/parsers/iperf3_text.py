"""iperf3's text report: client and server output, TCP and UDP, -P, -R, --bidir, --omit.

Formats: iperf_locale.c and iperf_print_results in iperf_api.c of iperf 3.0 to 3.20. This module
finds the sessions and their lines; iperf3_totals.py makes records of them.
"""

from __future__ import annotations

import re

from .base import Document, Failure, Reading
from .iperf3_record import errno_of, error_class
from .iperf3_session import TAIL, Report, Session
from .iperf3_totals import build
from .iperf_rows import OutOfOrder, Row, looks_like_row, owners, read_row, row_problem
from .rates import NUMBER

_CONNECTING = re.compile(r"\bConnecting to host (?P<host>\S+), port (?P<port>\d+)")
_ACCEPTED = re.compile(r"\bAccepted connection from (?P<host>\S+?), port (?P<peer_port>\d+)")
_LISTENING = re.compile(r"\bServer listening on \d+")
_SERVER_OUTPUT = re.compile(r"^\s*Server output:")
_CONNECTED = re.compile(
    r"\[\s*\d+\](?:\[\w\w-\w\])?\s*local (?P<local>\S+) port \d+ connected to "
    r"(?P<remote>\S+) port \d+"
)
_TEST = re.compile(
    r"Starting Test: protocol: (?P<protocol>\w+), (?P<streams>\d+) streams, (?P<block>\d+) byte"
    r" blocks(?:, omitting (?P<omit>\d+) seconds)?(?:, (?P<time>\d+) second test)?"
)
_CPU = re.compile(
    rf"CPU Utilization: local/\w+ (?P<cpu_local>{NUMBER})% \([^)]*\), "
    rf"remote/\w+ (?P<cpu_remote>{NUMBER})%"
)
_VERSION = re.compile(r"^\s*(?P<version>iperf 3\.\S+)")
_MSS = re.compile(r"\bTCP MSS: (?P<mss>\d+)")
_CONGESTION = re.compile(r"\b(?:snd_tcp_congestion|sender_tcp_congestion) (?P<congestion>\S+)")
_FACTS = (_CONNECTED, _TEST, _CPU, _VERSION, _MSS, _CONGESTION)
_HEADER = re.compile(r"\[ ?ID\](?:\[Role\])?\s+Interval\b")
_ERROR = re.compile(r"\biperf3: (?P<text>(?:error - |interrupt|getaddrinfo|the ).*)$")
_REVERSE = re.compile(r"Reverse mode, remote host \S+ is sending")
_SEPARATOR = re.compile(r"^(?:.*\s)?(?:- ){5,}-?\s*$")
_NOISE = re.compile(
    r"\biperf Done\.|\bTest Complete\b|^\s*Time:|^\s*Cookie:|Control connection MSS"
    r"|statistics not available|Sent \d+ datagrams|^-{20,}$|\brcv_tcp_congestion\b"
    r"|Finished omit period"
)


def has_session(document: Document) -> bool:
    """Whether a session begins anywhere: a client that connects, a server that listens."""
    return any(
        _CONNECTING.search(line.text) or _ACCEPTED.search(line.text) or _LISTENING.search(line.text)
        for line in document.lines
    )


def parse_text(document: Document) -> Reading:
    """Read every iperf3 text session; a session without final rows is ``incomplete``.

    A row that cannot be read is a problem (file, line), and makes its session ``suspect``.
    """
    reading = Reading()
    mine = {number for number, owner in owners(document).items() if owner == 3}
    session: Session | None = None
    skip_to = -1
    for index, line in enumerate(document.lines):
        if index <= skip_to:
            continue
        text = line.text
        starts = _CONNECTING.search(text) or _ACCEPTED.search(text)
        if starts or _LISTENING.search(text) or _SERVER_OUTPUT.match(text):
            if _close(document, session, reading):
                session = None
            reading.claimed.add(line.number)
        if starts:
            before = session.facts if session else {}  # the verbose version line comes first
            session = Session(line.number, line.number, facts=dict(before))
            session.server = bool(_ACCEPTED.search(text))
            session.facts.update(starts.groupdict())
        elif looks_like_row(text):
            if line.number in mine:
                session = session or Session(line.number, line.number)
                if _begins_another(document, index, session):
                    _close(document, session, reading)
                    session = Session(line.number, line.number, reverse=session.reverse)
                skip_to = _take_row(document, index, session, reading)
        else:
            session = _note(text, line.number, session, reading, line.number in mine)
    _close(document, session, reading)
    return reading


def _begins_another(document: Document, index: int, session: Session) -> bool:
    """Whether a row follows the final ones that is none: of several runs only rows were kept."""
    row = read_row(document, index, TAIL) if session.has_finals else None
    if not isinstance(row, Row):
        return False
    tail = TAIL.fullmatch(row.rest)
    return tail is not None and tail["side"] not in {"sender", "receiver"}


def _take_row(document: Document, index: int, session: Session, reading: Reading) -> int:
    """Add the row at ``index`` to the session; returns the index of its last line."""
    number = document.lines[index].number
    row = read_row(document, index, TAIL)
    if row is None:
        reading.problems.append(row_problem(document, index))
        reading.claimed.add(number)
        session.last = number
        session.damaged = True
        return index
    session.last = row.line if isinstance(row, OutOfOrder) else row.last_line
    reading.claimed.update(range(number, session.last + 1))
    if isinstance(row, Row):
        tail = TAIL.fullmatch(row.rest)
        assert tail is not None  # read_row matched it
        session.reports.append(Report(row, tail, session.header, session.after_ruler))
    else:
        session.late.append(row)
    return index + session.last - number


def _note(
    text: str, number: int, session: Session | None, reading: Reading, owned: bool
) -> Session | None:
    """Take in a line that is no row: connection, header, ruler, error, verbose facts."""
    error = _ERROR.search(text)
    if error and session and session.failure and not session.reports and number == session.last + 1:
        # Each error ends one run: those of a loop follow each other.
        own_run = Session(session.line, session.last, failure=session.failure)
        session.earlier.append(own_run)
        session.failure, session.line = None, number
    facts = next((match for p in _FACTS if (match := p.search(text))), None)
    header = owned and _HEADER.search(text)
    if error or facts or header:
        session = session or Session(number, number)
    if error and session:
        errno, name = errno_of(error["text"])
        session.failure = session.failure or Failure(
            error_class(error["text"]), error["text"].strip(), errno, name
        )
    if facts and session:
        session.facts.update({k: v for k, v in facts.groupdict().items() if v is not None})
    own = bool(owned or error or facts or _NOISE.search(text))
    if session:
        if _REVERSE.search(text):
            session.reverse = own = True
        elif header:
            session.header = text
        elif _SEPARATOR.match(text):
            session.after_ruler = own = True
        if own:
            session.last = number
    if own:
        reading.claimed.add(number)
    return session


def _close(document: Document, session: Session | None, reading: Reading) -> bool:
    """Turn a session with content into a record; False if there was nothing in it yet."""
    if session and (session.reports or session.failure or session.damaged):
        reading.records.extend(build(document.file, one) for one in [*session.earlier, session])
        return True
    return False

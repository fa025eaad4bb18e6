"""TRex: trials and results of its NDR benchmark, statistics of the server and of the console.

Formats: ndr_bench.py (``Title  :value`` lines, rates in powers of 1000), the server's per-port
table, ``-Global stats`` and ``summary stats``, and the console's ``Global Statistics``. TRex
subtracts counters that are read one after the other and has printed a loss of 261 %, negative
packets and no loss where more came back than was sent: what cannot be is None and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .base import Document, Failure, Line, Problem, Reading, Source, in_order
from .trex_record import TOOL, TrexResult, console, global_stats, ndr, summary

__all__ = ["TOOL", "TrexResult", "parse", "recognise"]

_NDR_KEYS = (
    r"Title|Iteration|Total Iterations|Running Rate(?: \(% of max\))?|Max Rate"
    r"|Optimal P-Drop Rate|P-Drop Rate \(% of max\)"
    r"|(?:Drop Rate|Queue Full)(?: at Optimal P-Drop Rate)?|Valid Latency(?: at Opt\. P-Drop Rate)?"
    r"|Elapsed Time|BW Per Core|[TR]X PPS (?:uni|bi)-directional|TX Utilization|TRex CPU"
    r"|Total [TR]X L[12] (?:uni|bi)-directional|Distance from current Optimum"
    r"|NDR\(s\) (?:uni|bi)-directional|Status|Interval"
)
_NDR = re.compile(rf"^\s*(?P<key>{_NDR_KEYS})\s*:\s*(?P<value>.*?)\s*$")
_NDR_SURE = re.compile(
    r"^\s*(?:Running Rate|Drop Rate|Optimal P-Drop Rate|[TR]X PPS (?:uni|bi)-directional"
    r"|Total [TR]X L[12] (?:uni|bi)-directional)\b.*:"
)
_GLOBAL_KEYS = (
    r"Total-Tx|Total-Rx|Total-PPS|Total-CPS|Expected-PPS|Expected-CPS|Expected-BPS|drop-rate"
    r"|Cpu Utilization|current time|test duration"
)
_GLOBAL = re.compile(rf"^\s*(?P<key>{_GLOBAL_KEYS})\s*:\s*(?P<value>[^#]*?)\s*(?:#.*)?$")
_SUMMARY_KEYS = (
    r"Total-pkt-drop|Total-tx-bytes|Total-tx-sw-bytes|Total-rx-bytes|Total-tx-pkt|Total-rx-pkt"
    r"|Total-sw-tx-pkt|Total-sw-err|Total ARP sent|Total ARP received|maximum-latency"
    r"|average-latency|latency-any-error"
)
_SUMMARY = re.compile(rf"^\s*(?P<key>{_SUMMARY_KEYS})\s*:\s*(?P<value>.*?)\s*$")
_CONSOLE_KEYS = r"total_tx_L[12]|total_tx|total_rx|total_pps|drop_rate|queue_full|total_cps"
_CONSOLE = re.compile(
    rf"(?:^|\s)(?P<key>{_CONSOLE_KEYS}|version|cpu_util)\.?\s*:\s*(?P<value>.*?)(?=\s{{3,}}|\s*$)"
)
_CONSOLE_SURE = re.compile(rf"(?:^|\s)(?:{_CONSOLE_KEYS})\.?\s*:")
_PORTS = re.compile(
    r"^\s*(?P<key>opackets|ipackets|obytes|ibytes|oerrors|ierrors)\s*\|(?P<cells>.+)$"
)
_ERROR = re.compile(r"(?P<text>TRex(?:Argument|Timeout|Console|Types)?Error\(.*\)|TRexError:? .*)")
_WARNING = re.compile(r"^\s*Warning\s*: (?P<text>number of rx packets exceeds .*)$")
_SURE = (_NDR_SURE, _CONSOLE_SURE)
_PLAIN = ("Total-pkt-drop", "Total-Tx ", "Total-Rx ", "Total-PPS", "Total-tx-pkt", "Total-rx-pkt")
# The server prints its table of ports and its global numbers as one report.
_FORMS = (("ndr", _NDR), ("summary", _SUMMARY), ("stats", _GLOBAL), ("stats", _PORTS))


@dataclass(slots=True)
class _Block:
    """Lines of one report: values by key as printed, and where it stands."""

    form: str
    line: int
    last: int
    values: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failure: Failure | None = None


def recognise(document: Document) -> bool:
    """Whether the document holds a report of TRex."""
    return any(
        any(pattern.search(line.text) for pattern in _SURE)
        or line.text.strip().startswith(_PLAIN)
        or _PORTS.match(line.text)
        for line in document.lines
    )


def parse(document: Document) -> Reading:
    """Read every report; a value that is no number of its unit is a problem."""
    reading = Reading()
    if not recognise(document):
        return reading
    for block in _blocks(document, reading):
        make = {"ndr": ndr, "summary": summary, "console": console}.get(block.form, global_stats)
        source = Source(document.file, block.line, block.last)
        record, bad = make(source, block.values, block.warnings, block.failure)
        if record is not None:
            reading.records.append(record)
        reading.problems += [
            Problem(document.file, block.line, f"{key}: {value!r}", f"{wanted} of TRex")
            for key, value, wanted in bad
        ]
    reading.records = in_order(reading.records)
    return reading


def _blocks(document: Document, reading: Reading) -> Iterator[_Block]:
    """The reports of a document. A key that comes again begins the next one."""
    block: _Block | None = None
    for line in document.lines:
        pairs = list(_pairs(line))
        error, warning = _ERROR.search(line.text), _WARNING.match(line.text)
        if block and (error or warning):
            reading.claimed.add(line.number)
            block.last = line.number
            if warning:
                block.warnings.append(warning["text"].strip())
            if error:
                block.failure = Failure("tool_error", error["text"].strip())
        for form, key, value in pairs:
            again = block is not None and key in block.values and key != "Status"
            if block is None or block.form != form or again or block.failure:
                if block is not None:
                    yield block
                block = _Block(form, line.number, line.number)
            block.values[key] = value
            block.last = line.number
            reading.claimed.add(line.number)
    if block is not None:
        yield block


def _pairs(line: Line) -> Iterator[tuple[str, str, str]]:
    """``(form, key, value)`` of a line; the console prints two on a line."""
    found = [
        ("console", match["key"], match["value"].strip())
        for match in _CONSOLE.finditer(line.text)
        if _CONSOLE_SURE.search(line.text)
    ]
    if found:
        yield from found
        return
    for form, pattern in _FORMS:
        if match := pattern.match(line.text):
            yield form, match["key"], match[2].strip()
            return

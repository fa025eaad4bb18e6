"""super_netperf: N netperfs at once, of which only the sum is printed.

The script (Eric Dumazet's, and its copies) adds up the last field of each netperf's result line
and prints one bare number: no unit, no count of results, no spread over the instances. So the unit
comes from the test in the command line, and a failed instance makes the sum smaller without a
word. Repeats are grouped under their headings and described: n, mean, standard deviation, 95 %
half-width of Student's t.

A directory of per-instance outputs (``result-0`` …) is read by the netperf parser;
:func:`collector.parsers.super_netperf_sum.combine_instances` adds their records up.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from .base import Document, Line, Problem, Reading, Source, Status, in_order
from .super_netperf_record import TOOL, SuperNetperfResult, changes, describe, to_si, unit_of

__all__ = ["TOOL", "SuperNetperfResult", "parse", "recognise"]

_SUPER = re.compile(r"(?<![\w-])super_netperf(?:\.sh)?\s+(?P<n>\d+)(?P<args>\s+-.*)$")
_NETPERF = re.compile(r"(?<![\w-])netperf\s+(?P<args>-.*)$")
_VALUE = re.compile(r"^\s*(?P<value>\d+(?:\.\d+)?)\s*$")
_LOOSE_VALUE = re.compile(r"^\s*[-+]?\d[\d.,']*\s*$")
_LABELLED = re.compile(r"^\s*(?P<label>[A-Za-z][^:]{0,59}?)\s*:\s*(?P<values>(?:\d\S*\s*)*)$")
_HEADING = re.compile(r"^\s*(?P<label>[A-Za-z][\w /.,+()-]{0,59}?)\s*:?\s*$")
_ERROR = re.compile(
    r"^\s*(?P<text>(?:establish control|send_\w+|recv_\w+|netperf|netperf:|.*super_netperf):? ?"
    r".*(?:listening on|error|not found|No such file|failed|partial response).*)$"
)


@dataclass(slots=True)
class _Command:
    """A command line: how many instances of which test, for how long."""

    text: str
    instances: int | None
    test: str | None
    seconds: float | None
    unit_letter: str | None

    @classmethod
    def of(cls, text: str, instances: int | None, args: str) -> _Command:
        try:
            words = shlex.split(args.replace("&", " "))
        except ValueError:
            words = args.split()
        own = words[: words.index("--")] if "--" in words else words
        options: dict[str, str] = {}
        for at, word in enumerate(own):
            match = re.fullmatch(r"-([tlf])(.*)", word)
            if match:
                options[match[1]] = match[2] or (own[at + 1] if at + 1 < len(own) else "")
        length = options.get("l", "")
        return cls(
            text=" ".join(text.split()),
            instances=instances,
            # netperf's default test is TCP_STREAM, 10 s.
            test=options.get("t", "TCP_STREAM").upper(),
            seconds=float(length) if re.fullmatch(r"\d+(\.\d+)?", length) else None,
            unit_letter=options.get("f"),
        )


@dataclass(slots=True)
class _State:
    command: _Command | None = None
    background: _Command | None = None
    heading: str | None = None
    named: bool = False  # whether the heading is settled, so that the next text replaces it
    fresh: bool = False  # whether the command stands right above the next number
    groups: list[tuple[str | None, list[SuperNetperfResult]]] = field(default_factory=list)


def recognise(document: Document) -> bool:
    """Whether a super_netperf command line is in the document."""
    return any(_SUPER.search(line.text) for line in document.lines)


def parse(document: Document) -> Reading:
    """Read sums, then describe repeats and compare the conditions their headings name.

    A number after a command that is no plain decimal number is a problem.
    """
    reading = Reading()
    state = _State()
    if not recognise(document):
        return reading
    for index, line in enumerate(document.lines):
        _take(document, index, line, state, reading)
    sums = [one for _, group in state.groups for one in group]
    repeats = [describe(document.file, label, group) for label, group in state.groups if group]
    reading.records.extend(sums)
    reading.records.extend(in_order([*repeats, *changes(document.file, repeats)]))
    return reading


def _take(document: Document, index: int, line: Line, state: _State, reading: Reading) -> None:
    text = line.text
    if command := _SUPER.search(text):
        found = _Command.of(text.strip(), int(command["n"]), command["args"])
        if text.rstrip().endswith("&"):
            state.background, state.command = found, None
        else:
            state.command, state.fresh = found, True
    elif (command := _NETPERF.search(text)) and state.background:
        state.command = _Command.of(text.strip(), None, command["args"])
    elif match := _VALUE.match(text):
        if state.command is None and state.background is None:
            return
        _add(document, line, match["value"], state, reading)
    elif _LOOSE_VALUE.match(text) and (state.command or state.background):
        _bad(document, line, reading)
    elif (match := _LABELLED.match(text)) and (state.command or state.background):
        _labelled(document, line, match, state, reading)
    elif (error := _ERROR.match(text)) and state.command:
        reading.problems.append(
            Problem(
                document.file, line.number, repr(error["text"].strip()), "the sum of all instances"
            )
        )
    elif (match := _HEADING.match(text)) and _leads(document, index):
        state.heading, state.named = match["label"], False
    elif text.strip():
        return
    if text.strip():
        reading.claimed.add(line.number)


def _leads(document: Document, index: int) -> bool:
    """Whether the next line that is not empty is a command or a number."""
    following = next((x.text for x in document.lines[index + 1 :] if x.text.strip()), "")
    return bool(_SUPER.search(following) or _LOOSE_VALUE.match(following))


def _bad(document: Document, line: Line, reading: Reading) -> None:
    reading.problems.append(
        Problem(
            document.file,
            line.number,
            repr(line.text.strip()),
            "a sum as a plain number with a decimal point",
        )
    )


def _labelled(
    document: Document, line: Line, match: re.Match[str], state: _State, reading: Reading
) -> None:
    """``label: 1 2 3``, or a heading whose values follow one a line."""
    state.heading = match["label"]
    for word in match["values"].split():
        if not _VALUE.match(word):
            _bad(document, line, reading)
            continue
        _add(document, line, word, state, reading)


def _add(document: Document, line: Line, text: str, state: _State, reading: Reading) -> None:
    command, background = state.command, state.background
    value = float(text)
    warnings = ["only the sum is printed: nothing is known of the instances or their number"]
    if command is None or command.instances is None:
        warnings = []
    if command is None:
        warnings.append("no command line says which test this is: no unit")
    elif not state.fresh and command.instances is not None:
        warnings.append("no command line right above: taken to be a repeat of the last one")
    test = command.test if command else None
    unit = unit_of(test, command.unit_letter if command else None)
    covers = None
    if background and command and background.seconds and command.seconds:
        covers = background.seconds >= command.seconds
        warnings.append(
            f"start times are not recorded: it cannot be shown that this {command.seconds:g} s run "
            f"lies inside the {background.seconds:g} s background load"
        )
    throughput, transactions = to_si(value, unit)
    if value == 0:
        warnings.append("the sum is zero: no measurement")
    record = SuperNetperfResult(
        tool=TOOL,
        kind="sum" if command is None or command.instances is not None else "value",
        status=Status.FAILED if value == 0 else Status.OK if unit else Status.SUSPECT,
        source=Source(document.file, line.number, line.number),
        printed={"value": text},
        warnings=tuple(warnings),
        condition=state.heading,
        command=command.text if command else None,
        instances=command.instances if command else None,
        test=test,
        unit=unit,
        value=value or None,
        throughput_bps=throughput,
        transactions_per_second=transactions,
        requested_s=command.seconds if command else None,
        background=background.text if background else None,
        background_covers=covers,
    )
    state.fresh = False
    if not state.groups or not _same(state.groups[-1], record):
        state.groups.append((state.heading, []))
    state.groups[-1][1].append(record)


def _same(group: tuple[str | None, list[SuperNetperfResult]], record: SuperNetperfResult) -> bool:
    """Whether a value repeats the ones of the last group: same heading, test and command."""
    last = group[1][-1]
    return group[0] == record.condition and _bare(last.command) == _bare(record.command)


def _bare(command: str | None) -> str | None:
    """A command line without its prompt."""
    match = re.search(r"(?:nice .*)?(?:\S*/)?(?:super_)?netperf\b.*", command or "")
    return match[0] if match else command

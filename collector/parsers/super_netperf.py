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
from .super_netperf_prefixed import has_prefixed, parse_prefixed
from .super_netperf_record import TOOL, SuperNetperfResult, changes, describe, to_si, unit_of

__all__ = ["TOOL", "SuperNetperfResult", "parse", "recognise"]

_SUPER = re.compile(
    r"(?<![\w-])super_netperf(?:\.sh)?\s+(?P<n>\d+|\$\(\(.*?\)\)|\$\([^)]*\)|\$\{?\w+\}?|`[^`]*`)"
    r"(?P<args>\s+-.*)$"
)
_PERF = re.compile(r"Performance counter stats for")
_NETPERF = re.compile(r"(?<![\w-])netperf\s+(?P<args>-.*)$")
# awk prints a sum of a million and more with six digits: 1.23457e+06.
_VALUE = re.compile(r"^\s*(?P<value>\d+(?:\.\d+)?(?:e\+\d\d)?)\s*$")
_LOOSE_VALUE = re.compile(r"^\s*[-+]?\d[\d.,']*(?:[eE][-+]?\d*)?\s*$")
_AFTER_COMMAND = re.compile(r"\s*(?:;|\||&&|\d?>).*$")
_RUN_LABEL = re.compile(
    r"(?:run|iter(?:ation)?|trial|test|round|try|attempt)\s*#?\d+", re.IGNORECASE
)
_STATED = re.compile(r"(?P<word>avg|average|mean)\b", re.IGNORECASE)
_OF_REPEATS = re.compile(
    r"(?:avg|average|mean|total|sum|min(?:imum)?|max(?:imum)?|median|std ?dev|sd|stdev)\b",
    re.IGNORECASE,
)
_COUNTERS = re.compile(r"\S\s{2,}\d")
_UNAME = re.compile(r"^\s*Linux \S+ (?P<what>\d+\.\d\S*) ")
_UNAME_REST = re.compile(r"\bGNU/Linux\s*$")
_SET = re.compile(
    r"(?:^|[#$;]\s*)(?P<what>(?:echo\s+\S+\s*>+\s*/(?:proc|sys)/|sysctl\s+(?:-w\s+)?\S+=|ethtool\s+-"
    r"|tc\s+q|modprobe\s|insmod\s|ip\s+link\s+set)[^;]*)"
)
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
    sums: bool
    instances: int | None
    test: str | None
    seconds: float | None
    unit_letter: str | None

    @classmethod
    def of(cls, text: str, count: str | None, args: str) -> _Command:
        """``count`` is the number of instances as written, None for a single netperf."""
        args = _AFTER_COMMAND.sub("", args)
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
            sums=count is not None,
            instances=int(count) if count is not None and count.isdigit() else None,
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
    named: bool = False  # whether words named the condition since the last number
    fresh: bool = False  # whether the command stands right above the next number
    groups: list[tuple[str | None, list[SuperNetperfResult]]] = field(default_factory=list)
    stated: dict[int, tuple[str, float]] = field(default_factory=dict)  # means in words, by group


def recognise(document: Document) -> bool:
    """Whether a super_netperf command line is in the document, or output with its prefixes."""
    return _has_command(document) or has_prefixed(document)


def _has_command(document: Document) -> bool:
    return any(_SUPER.search(line.text) for line in document.lines)


def parse(document: Document) -> Reading:
    """Read sums, then describe repeats and compare the conditions their headings name.

    A number after a command that is no plain decimal number is a problem.
    """
    reading = parse_prefixed(document)
    state = _State()
    if not _has_command(document):
        return reading
    for index, line in enumerate(document.lines):
        _take(document, index, line, state, reading)
    sums = [one for _, group in state.groups for one in group]
    repeats = [
        describe(document.file, label, group, state.stated.get(number))
        for number, (label, group) in enumerate(state.groups)
    ]
    reading.records.extend(sums)
    reading.records.extend(in_order([*repeats, *changes(document.file, repeats)]))
    return reading


def _take(document: Document, index: int, line: Line, state: _State, reading: Reading) -> None:
    if line.number in reading.claimed or not line.text.strip():
        return
    known = (
        _command(line.text, state)
        or _setting(line.text, state)
        or _number(document, line, state, reading)
        or _words(document, index, state, reading)
    )
    if known:
        reading.claimed.add(line.number)


def _command(text: str, state: _State) -> bool:
    """Take in a command line; False for any other line."""
    if _PERF.search(text):
        return True
    if command := _SUPER.search(text):
        found = _Command.of(text.strip(), command["n"], command["args"])
        if text.rstrip().endswith("&"):
            state.background, state.command = found, None
        else:
            state.command, state.fresh = found, True
        return True
    if (command := _NETPERF.search(text)) and state.background:
        state.command = _Command.of(text.strip(), None, command["args"])
        return True
    return False


def _setting(text: str, state: _State) -> bool:
    """A command that sets something, or what uname says: another condition unless one is named."""
    if _UNAME_REST.search(text) and not _UNAME.search(text):
        return True
    match = _UNAME.search(text) or _SET.search(text)
    if match is None:
        return False
    if not state.named:
        state.heading = " ".join(match["what"].split())
    return True


def _number(document: Document, line: Line, state: _State, reading: Reading) -> bool:
    """Take in a sum, or sums behind a label; False if there is no command they could be of."""
    if state.command is None and state.background is None:
        return False
    if match := _VALUE.match(line.text):
        _add(document, line, match["value"], state, reading)
    elif _LOOSE_VALUE.match(line.text):
        _bad(document, line, reading)
    elif match := _LABELLED.match(line.text):
        _labelled(document, line, match, state, reading)
    else:
        return False
    return True


def _words(document: Document, index: int, state: _State, reading: Reading) -> bool:
    """Take in an error of the script, or a heading; False for any other text."""
    line = document.lines[index]
    if (error := _ERROR.match(line.text)) and state.command:
        reading.problems.append(
            Problem(
                document.file, line.number, repr(error["text"].strip()), "the sum of all instances"
            )
        )
        return True
    match = _HEADING.match(line.text)
    # nstat's counters stand between the runs, too.
    if match is None or not _leads(document, index) or _COUNTERS.search(match["label"]):
        return False
    state.heading, state.named = match["label"], True
    return True


def _leads(document: Document, index: int) -> bool:
    """Whether the next line that is not empty is a command or a number."""
    following = next((x.text for x in document.lines[index + 1 :] if x.text.strip()), "")
    return bool(_SUPER.search(following) or _LOOSE_VALUE.match(following))


def _bad(document: Document, line: Line, reading: Reading) -> None:
    reading.problems.append(
        Problem.of_line(document.file, line, "a sum as a plain number with a decimal point")
    )


def _labelled(
    document: Document, line: Line, match: re.Match[str], state: _State, reading: Reading
) -> None:
    """``label: 1 2 3``, or a heading whose values follow one a line.

    ``run 2: …`` is a repeat under the heading above it; ``avg: …`` is no further one.
    """
    label = match["label"].strip()
    if _OF_REPEATS.match(label) and state.groups and match["values"]:
        words = match["values"].split()
        if _STATED.match(label) and len(words) == 1 and _VALUE.match(words[0]):
            state.stated[len(state.groups) - 1] = (label, float(words[0]))
        return
    if not _RUN_LABEL.fullmatch(label):
        state.heading, state.named = label, True
    for word in match["values"].split():
        if not _VALUE.match(word):
            _bad(document, line, reading)
            continue
        _add(document, line, word, state, reading)


def _add(document: Document, line: Line, text: str, state: _State, reading: Reading) -> None:
    command, background = state.command, state.background
    value = float(text)
    warnings = ["only the sum is printed: nothing is known of the instances or their number"]
    if command is None or not command.sums:
        warnings = []
    if command is None:
        warnings.append("no command line says which test this is: no unit")
    elif not state.fresh and command.sums:
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
        kind="sum" if command is None or command.sums else "value",
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
    state.fresh = state.named = False
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

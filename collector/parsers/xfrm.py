"""``ip xfrm state`` and ``ip xfrm policy``, refusals of ip, secon and IKE, and scripts.

One record an SA or policy, without keys. An SA whose text was cut is a problem, not a record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from collector.kernel_state.errors import StateError
from collector.kernel_state.failures import KernelFailure, classify_ike, classify_ip, classify_secon
from collector.kernel_state.xfrm import Policy, State
from collector.kernel_state.xfrm_check import spi_conflicts
from collector.kernel_state.xfrm_command import parse_state_add
from collector.kernel_state.xfrm_policy import parse_policies
from collector.kernel_state.xfrm_state import parse_states
from collector.parsers.base import Document, Line, Reading, Record, Source, Status, in_order
from collector.parsers.kernel_text import failure, indentation, numbered, problem, source

TOOL = "xfrm"
_HEAD = re.compile(r"\s*(?:(?:Deleted|Updated|Expired) )?src \S+ dst \S+(?: .*)?")
_BODY = re.compile(
    r"\s*(?:proto \S+ (?:spi \S+ )?reqid \S+ mode \S+|replay-window \S+|"
    r"(?:aead|enc|auth|auth-trunc) [a-z0-9_(),-]+ .*|anti-replay .*|security context \S+.*|"
    r"dir (?:in|out|fwd) .*priority .*|socket (?:in|out|fwd) .*|tmpl src \S+ dst \S+|"
    r"sel src \S+ dst \S+.*|lifetime (?:config|current):)\s*"
)
_FIRST_BODY = re.compile(r"\s*(?:proto \S+|security context|dir |socket )")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord(Record):
    """An SA. ``direction`` is None where the kernel does not say it: then the host's own
    addresses decide. ``incomplete``: no algorithm, so IKE has not finished, or a line is gone."""

    esn: bool
    direction: str | None
    context: str | None
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord(Record):
    """A policy; its label (of the policy) differs from those of its SAs (of the sender)."""

    direction: str
    context: str | None
    policy: Policy


def recognise(document: Document) -> bool:
    """Whether there is a block of ip xfrm, a refusal, or an ``ip xfrm state add``."""
    lines = document.lines
    for at, line in enumerate(lines):
        if _starts(lines, at) or _refusal(line.text) is not None:
            return True
        if "add" in line.text and _command(line) is not None:
            return True
    return False


def _command(line: Line) -> State | None:
    try:
        return parse_state_add(line.text, line.number)
    except StateError:
        return None


def _refusal(text: str) -> KernelFailure | None:
    found = classify_secon(text) or classify_ike(text) or classify_ip(text)
    # "Error: …" alone is also the form of other programs; ip's are those whose cause is known.
    if found is not None and found.error_class == "refused" and "RTNETLINK" not in text:
        return None
    return found


def _starts(lines: tuple[Line, ...], at: int) -> bool:
    if not _HEAD.fullmatch(lines[at].text):
        return False
    following = lines[at + 1].text if at + 1 < len(lines) else ""
    return _FIRST_BODY.match(following) is not None or "\\" in lines[at].text


def parse(document: Document) -> Reading:
    """Read every SA, policy and refusal. Lines of a block without its start are a problem."""
    reading = Reading()
    for lines in _blocks(document):
        reading.claimed.update(line.number for line in lines)
        try:
            _read(document, lines, reading)
        except StateError as error:
            reading.problems.append(problem(document, error, lines[0].number))
    conflicts = _conflicts(document)
    _failures(document, reading, conflicts)
    if reading.claimed:
        _strays(document, reading)
    reading.records = in_order(reading.records)
    return reading


def _blocks(document: Document) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    inside, depth = False, 0
    for at, line in enumerate(document.lines):
        if _starts(document.lines, at):
            blocks.append([line])
            inside, depth = "\\" not in line.text, indentation(line.text)
        elif (
            inside
            and line.text.strip()
            and (indentation(line.text) > depth or _BODY.fullmatch(line.text))
        ):
            blocks[-1].append(line)
        else:
            inside = False
    return blocks


def _read(document: Document, lines: list[Line], reading: Reading) -> None:
    head = lines[0].text.split("\\")[0]
    if "/" in head:
        for policy in parse_policies(numbered(lines)):
            reading.records.append(_policy(document, lines, policy))
    else:
        for state in parse_states(numbered(lines)):
            reading.records.append(_state(document, lines, state))


def _state(document: Document, lines: list[Line], state: State) -> StateRecord:
    warnings = [f"{name} is blanked out in the text" for name in dict.fromkeys(state.blanked)]
    warnings += [f"attribute not known here: {text}" for text in state.unknown]
    larval = state.proto in ("esp", "ah") and not state.algorithms
    if larval:
        warnings.append("no algorithm: the SA is not set up yet, or a line is missing")
    return StateRecord(
        tool=TOOL,
        kind="state",
        status=Status.INCOMPLETE if larval else Status.OK,
        source=source(document, lines),
        warnings=tuple(warnings),
        esn=state.esn,
        direction=state.direction,
        context=state.context,
        state=state,
    )


def _policy(document: Document, lines: list[Line], policy: Policy) -> PolicyRecord:
    warnings = [f"{name} is blanked out in the text" for name in dict.fromkeys(policy.blanked)]
    warnings += [f"attribute not known here: {text}" for text in policy.unknown]
    return PolicyRecord(
        tool=TOOL,
        kind="policy",
        status=Status.OK,
        source=source(document, lines),
        warnings=tuple(warnings),
        direction=policy.direction,
        context=policy.context,
        policy=policy,
    )


def _conflicts(document: Document) -> tuple[str, ...]:
    """SAs that commands of the text add and that cannot stand beside each other."""
    states = [state for state in map(_command, document.lines) if state is not None]
    return tuple(spi_conflicts(states))


def _failures(document: Document, reading: Reading, conflicts: tuple[str, ...]) -> None:
    explained = False
    for line in document.lines:
        found = None if line.number in reading.claimed else _refusal(line.text)
        if found is None:
            continue
        exists = found.error_class == "sa_exists"
        explained = explained or exists
        reading.claimed.add(line.number)
        reading.records.append(
            Record(
                tool=TOOL,
                kind="failure",
                status=Status.FAILED,
                source=source(document, [line]),
                warnings=conflicts if exists else (),
                failure=failure(found),
            )
        )
    if conflicts and not explained:
        numbers = [line.number for line in document.lines if _command(line) is not None]
        reading.records.append(
            Record(
                tool=TOOL,
                kind="script",
                status=Status.SUSPECT,
                source=Source(document.file, numbers[0], numbers[-1]),
                warnings=conflicts,
            )
        )


def _strays(document: Document, reading: Reading) -> None:
    for line in document.lines:
        if line.number not in reading.claimed and _BODY.fullmatch(line.text):
            error = StateError(line.number, "a part of an SA or policy", "its src … dst … line")
            reading.problems.append(problem(document, error, line.number))
            reading.claimed.add(line.number)

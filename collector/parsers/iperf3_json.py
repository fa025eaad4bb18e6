"""Finding and decoding the JSON documents in a file of iperf3 output.

iperf3 writes JSON with cJSON, which has printed things that are no JSON: ``nan``, ``-nan`` and
``inf`` as numbers, and ``5.924e 06`` (the plus sign lost on the way). Each is made null, or
mended, at its own place and reported with its offset; anything else that is no JSON is an error
with offset. Keys that occur twice are found here: what they hold cannot be told apart.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from .base import Document, Problem

_TOKENS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"'
    r"|(?P<nan>(?<![\w.])-?(?:nan|inf|NaN|Infinity|infinity)\b(?:\([^)]*\))?)"
    r"|(?P<exponent>(?<![\w.])-?\d+(?:\.\d+)?[eE]\s\d+)"
    r"|(?P<elided>\{\.\.\.\}|\[\.\.\.\])"
)
_START = re.compile(r'^[ \t]*(?:"(?P<member>[a-z_]+)"\s*:\s*)?\{', re.MULTILINE)
_NEXT = re.compile(r"[ \t,]*\{")
_OURS = re.compile(
    r'"(?:bits_per_second|sum_sent|sum_received|lost_percent|jitter_ms|sender_tcp_congestion'
    r'|cpu_utilization_percent|test_start|connecting_to|iperf3?_?version|tcp_mss_default)"'
    r'|"event"\s*:\s*"(?:start|interval|end|error)"|"version"\s*:\s*"iperf'
    r'|"error"\s*:\s*"(?:error - |interrupt|unable to |the )'
)


@dataclass(slots=True)
class Found:
    """One decoded document: where it stands and what had to be mended."""

    value: dict[str, Any]
    line: int
    last_line: int
    text: str
    name: str | None  # of a lone member such as ``"sum": {…}``
    warnings: list[str] = field(default_factory=list)


class Ambiguous:
    """The value of a key that occurs more than once with different values."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


@dataclass(slots=True)
class Scan:
    """All documents of a file, in order, and what could not be decoded."""

    found: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)


def is_ours(text: str) -> bool:
    """Whether a text holds JSON keys of iperf3."""
    return "{" in text and bool(_OURS.search(text))


class Number(float):
    """A number with the text it was printed as."""

    text: str

    @classmethod
    def of(cls, text: str) -> Number:
        """Read a JSON number."""
        number = cls(text)
        number.text = text
        return number


def is_whole(value: dict[str, Any]) -> bool:
    """Whether an object is a document of iperf3 rather than a piece of one."""
    return (
        isinstance(value.get("start"), dict)
        or isinstance(value.get("end"), dict)
        or isinstance(value.get("intervals"), list)
        or isinstance(value.get("error"), str)
    )


def scan(document: Document) -> Scan:
    """Decode every JSON object of iperf3 in ``document``; the rest of the lines is left alone.

    An object that cannot be decoded is a problem with its offset in the file. After one, only
    whole documents (``start`` or ``end`` at the top) are taken, so that a part of the broken one
    never passes for a result.
    """
    result = Scan()
    text = document.text
    if not is_ours(text):
        return result
    starts = [0]
    for line in document.lines:
        starts.append(starts[-1] + len(line.text) + 1)
    mended, notes = _mend(text)
    position, whole_only = 0, False
    while True:
        match = (position and _NEXT.match(mended, position)) or _START.search(mended, position)
        if not match:
            return result
        begin = match.end() - 1
        first = bisect_right(starts, begin) - 1
        duplicates: list[str] = []
        try:
            value, end = _decoder(duplicates).raw_decode(mended, begin)
        except (json.JSONDecodeError, RecursionError, ValueError) as error:
            if not whole_only and is_ours(text[begin:]):
                result.problems.append(_problem(document, starts, begin, error))
                result.claimed.add(document.lines[first].number)
            whole_only = True
            position = starts[first + 1]
            continue
        last = bisect_right(starts, end - 1) - 1
        position = end
        if not isinstance(value, dict) or (whole_only and not is_whole(value)):
            continue
        if not is_ours(text[begin:end]):
            continue
        whole_only = False
        warnings = [f"offset {at}: {note}" for at, note in notes if begin <= at < end]
        warnings += [f'the key "{key}" occurs more than once' for key in dict.fromkeys(duplicates)]
        result.found.append(
            Found(
                value=value,
                line=document.lines[first].number,
                last_line=document.lines[last].number,
                text=mended[begin:end],
                name=match.groupdict().get("member"),
                warnings=warnings,
            )
        )
        result.claimed.update(line.number for line in document.lines[first : last + 1])


def _mend(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Replace what is no JSON by tokens of the same length; returns offsets with what was done."""
    notes: list[tuple[int, str]] = []

    def replace(match: re.Match[str]) -> str:
        token = match[0]
        if match["nan"]:
            notes.append((match.start(), f"{token} is no JSON number; read as null"))
            return "NaN".rjust(len(token))
        if match["exponent"]:
            mended = re.sub(r"\s", "+", token)
            notes.append((match.start(), f"{token!r} is no JSON number; read as {mended}"))
            return mended
        if match["elided"]:
            notes.append((match.start(), f"{token} stands for content that was left out"))
            return token.replace("...", "   ")
        return token

    return _TOKENS.sub(replace, text), notes


def _decoder(duplicates: list[str]) -> json.JSONDecoder:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in items:
            if key not in result:
                result[key] = value
                continue
            duplicates.append(key)
            if isinstance(result[key], Ambiguous):
                result[key].values.append(value)
            elif result[key] != value:
                result[key] = Ambiguous([result[key], value])
        return result

    return json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=lambda _: None, parse_float=Number.of, strict=False
    )


def _problem(document: Document, starts: list[int], begin: int, error: Exception) -> Problem:
    """The complaint about a document that is cut off or is no JSON."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else begin
    at = min(at, max(starts[-1] - 2, 0))
    index = min(bisect_right(starts, at) - 1, len(document.lines) - 1)
    near = document.text[at : at + 24].split("\n")[0]
    what = error.msg if isinstance(error, json.JSONDecodeError) else "nesting too deep"
    if not document.text[at:].strip():
        near, what = "the end of the input", "the document is cut off"
    return Problem(
        document.file,
        document.lines[index].number,
        f"at offset {at} {near!r} ({what})",
        "a complete JSON document of iperf3",
    )


def gather_events(found: list[Found]) -> list[Found]:
    """Put the lines of --json-stream (iperf 3.17 and later) together to whole documents.

    Each line is ``{"event": NAME, "data": …}``; ``start`` begins a session, ``interval`` adds to
    it, ``end`` and ``error`` belong to it. Other documents pass through.
    """
    result: list[Found] = []
    session: Found | None = None
    for one in found:
        event, data = one.value.get("event"), one.value.get("data")
        if not isinstance(event, str) or "data" not in one.value:
            session = None
            result.append(one)
            continue
        if session is None or event == "start":
            session = Found({"intervals": []}, one.line, one.last_line, "", None)
            result.append(session)
        session.last_line = one.last_line
        session.text += one.text
        session.warnings += one.warnings
        if event == "interval":
            session.value["intervals"].append(data)
        elif event in session.value:
            session.warnings.append(f'the event "{event}" occurs more than once')
            session.value[event] = Ambiguous([session.value[event], data])
        else:
            session.value[event] = data
    return result

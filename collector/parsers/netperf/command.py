"""Command lines of netperf found beside its output: what they say of units and of the test."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ..base import Line
from .banner import starts as banner_starts

# What may stand before the program: a prompt, a time stamp, another command that runs it.
_BEFORE = (
    r"(?:\[[^\]]*\]\s*[#$]?\s*|\S*[#$%]\s+|[#$]|\(?command:\s+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.,]+\S*\s+|[0-9]{2}:[0-9]{2}:[0-9]{2}\S*\s+"
    r"|\+\s+|sudo\s+|time\s+|nice\s+(?:-n\s*)?-?[0-9]+\s+|nice\s+|taskset\s+(?:-c\s+)?\S+\s+"
    r"|numactl\s+(?:-\S+\s+)*|timeout\s+\S+\s+|ip\s+netns\s+exec\s+\S+\s+|runcon\s+(?:-\S\s+\S+\s+)*"
    r"|[A-Za-z_]\w*=\S*\s+)*"
)
_COMMAND = re.compile(rf"\s*{_BEFORE}(?P<command>(?:[\w.+~-]*/)*netperf\s+-.*)")
_CONTINUES = re.compile(r"\s*-(?:-\s*$|-\s|\w|-\w)")
_WITH_ARGUMENT = frozenset("aAbBDfFHiIklLnoOpPRstTvwWyYZ")
_TEST_WITH_ARGUMENT = frozenset("bdDHIkKlLmMoOpPqrRsStTuwW")
_OUTPUT = {"k": "keyval", "o": "csv", "O": "human"}
_MAX_LINES = 6
_SECRET = re.compile(r"(?<!\S)(-[A-Za-z46]*Z\s*)(?:'[^']*'|\"[^\"]*\"|\S+)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command line: ``text`` without prompt and pass phrase, and what its options mean."""

    text: str
    test: str
    host: str | None
    unit_letter: str | None
    print_headers: bool
    verbosity: int
    level_pct: float | None
    width_pct: float | None
    cpu_local: bool
    cpu_remote: bool
    first_burst: int | None
    output: str | None
    selectors: tuple[str, ...]
    background: bool
    line: int
    last_line: int


def read_command(lines: tuple[Line, ...], at: int) -> tuple[Command, int] | None:
    """Read the command line that starts at ``lines[at]`` with its continuation lines.

    A line continues if it ends in a backslash, in ``--`` or in an option that wants an argument,
    or if the next line begins with an option. Returns the command and its number of lines.
    """
    match = _COMMAND.fullmatch(lines[at].text)
    if match is None:
        return None
    text, count = match["command"].rstrip(), 1
    while count < _MAX_LINES and at + count < len(lines):
        following = lines[at + count].text.strip()
        if not following or not _goes_on(text, following):
            break
        text = f"{text.removesuffix(chr(92)).rstrip()} {following}"
        count += 1
    return _of(text, lines[at].number, lines[at + count - 1].number), count


def _goes_on(text: str, following: str) -> bool:
    if text.endswith("\\"):
        return True
    if text.endswith("&") or banner_starts(following):
        return False
    words = text.split()
    if _CONTINUES.match(following):
        return True
    if words[-1] == "--":
        return following.startswith("-")
    after = "--" in words
    if after and words[-1] in {"-k", "-o", "-O"}:  # their argument may be left out
        return re.fullmatch(r"[A-Z][A-Z0-9_]+(?:[,;][A-Z0-9_]*)+", following) is not None
    letters = _TEST_WITH_ARGUMENT if after else _WITH_ARGUMENT
    return bool(re.fullmatch(r"-[A-Za-z46]+", words[-1])) and words[-1][-1] in letters


def without_secret(text: str) -> str:
    """The command with the pass phrase of ``-Z`` taken out."""
    return _SECRET.sub(r"\1***", text)


def _of(text: str, first: int, last: int) -> Command:
    text = re.split(r"\s(?:[0-9]?>|\||;)", text)[0].rstrip()
    background = text.endswith("&")
    text = text.rstrip("&").rstrip()
    if text.count(")") > text.count("("):
        text = text.rstrip(")")
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    rest = words[words.index("--") + 1 :] if "--" in words else []
    options = _options(own, _WITH_ARGUMENT)
    special = _options(rest, _TEST_WITH_ARGUMENT)
    level, _, width = options.get("I", "").partition(",")
    output = next((letter for letter in "koO" if letter in special), None)
    burst = special.get("b", "")
    return Command(
        text=without_secret(text),
        test=options.get("t", "TCP_STREAM").upper(),
        host=options["H"].split(",")[0] if options.get("H") else None,
        unit_letter=(options.get("f") or "")[:1] or None,
        print_headers=options.get("P", "1") != "0",
        verbosity=int(options["v"]) if options.get("v", "").isdigit() else 1,
        level_pct=_number(level),
        width_pct=_number(width),
        cpu_local="c" in options,
        cpu_remote="C" in options,
        first_burst=int(burst) if burst.isdigit() else None,
        output=_OUTPUT[output] if output else None,
        selectors=_names(special.get(output, "")) if output else (),
        background=background,
        line=first,
        last_line=last,
    )


def _options(words: list[str], with_argument: frozenset[str]) -> dict[str, str]:
    """Options as getopt reads them: letters may be joined, an argument may follow directly."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or len(word) < 2:
            continue
        for place, letter in enumerate(word[1:], start=1):
            if letter not in with_argument:
                found[letter] = ""
                continue
            value = word[place + 1 :]
            if not value and at < len(words) and not re.match(r"-[A-Za-z]", words[at]):
                value = words[at]
                at += 1
            found[letter] = value
            break
    return found


def _names(text: str) -> tuple[str, ...]:
    names = [name.strip().upper() for name in re.split(r"[,;]", text)]
    good = [name for name in names if re.fullmatch(r"[A-Z][A-Z0-9_]+", name)]
    return tuple(good) if len(good) == len(names) else ()


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) else None

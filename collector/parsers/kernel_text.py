"""What the parsers of kernel state share: turning readers' results and errors into records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from collector.kernel_state.errors import NumberedLine, StateError, redact
from collector.kernel_state.failures import KernelFailure
from collector.parsers.base import Document, Failure, Line, Problem, Source

_COMMAND = re.compile(r"^(?:\S*[#$>]\s+)?(?P<command>.*?\S)\s*->\s*(?P<output>.*)$")


def numbered(lines: Sequence[Line]) -> list[NumberedLine]:
    """Lines as the readers take them."""
    return [(line.number, line.text) for line in lines]


def source(document: Document, lines: Sequence[Line]) -> Source:
    """Where a block of lines stands."""
    return Source(document.file, lines[0].number, lines[-1].number)


def problem(document: Document, error: StateError, fallback: int) -> Problem:
    """A reader's error as a problem; ``fallback`` is the line when the error is of the block."""
    return Problem(document.file, max(error.line, fallback), error.found, error.wanted)


def failure(found: KernelFailure) -> Failure:
    """A tool's refusal in the collector's form."""
    return Failure(
        error_class=found.error_class,
        text=redact(found.text),
        errno=found.errno,
        errno_name=found.errno_name,
        hint=found.hint,
    )


def split_transcript(text: str) -> tuple[str, str] | None:
    """``command -> output`` of a transcript on one line, else None."""
    match = _COMMAND.match(text)
    return None if match is None else (match.group("command"), match.group("output").strip())


def indentation(text: str) -> int:
    """Columns of leading white space, tabs to eight."""
    expanded = text.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())

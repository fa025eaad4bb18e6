"""Documents for the tests of the parsers of kernel state."""

from pathlib import Path

from collector.parsers.base import Document, Line

DATA = Path(__file__).parents[2] / "data"


def document(text: str, name: str = "input.txt") -> Document:
    """A text as a document."""
    lines = text.splitlines()
    return Document(name, tuple(Line(number, line) for number, line in enumerate(lines, 1)))


def case(name: str) -> Document:
    """The input of a case."""
    return document((DATA / "cases" / name).read_text(), name)


def real(name: str) -> str:
    """Text recorded from a machine."""
    return (DATA / "kernel_state" / name).read_text()

"""The table forms kernel developers post, one module each.

A shape has ``text(figures) -> str`` (plain text, as in the post) and ``tables(figures)`` (the
same as :class:`collector.report.layout.Table`, for Markdown and HTML).
"""

from __future__ import annotations

from typing import Protocol

from collector.errors import UsageError
from collector.report.figures import PRINTED_UNITS, FigureSet, Units
from collector.report.layout import Table
from collector.report.shapes import forwarding, ipsec, netlabel, tunnels


class Shape(Protocol):
    """The interface of a shape module (a module object satisfies it)."""

    def text(self, figures: FigureSet) -> str:
        """The figures as plain text of a mail's width, without a final newline."""

    def tables(self, figures: FigureSet) -> tuple[Table, ...]:
        """The figures as tables."""


SHAPES: dict[str, Shape] = {
    "netlabel": netlabel,
    "ipsec": ipsec,
    "forwarding": forwarding,
    "tunnels": tunnels,
}

# Which shape a matrix prints in; every other matrix prints configurations down, tests across.
_OF_MATRIX = {"labelled_ipsec": "ipsec", "forwarding": "forwarding", "tunnels": "tunnels"}


def units_of_matrix(matrix: str) -> Units:
    """The units a matrix's table prints in: the tunnels post has Gbit/sec."""
    if _OF_MATRIX.get(matrix) == "tunnels":
        return {**PRINTED_UNITS, "bit/s": ("Gbit/sec", 1_000_000_000)}
    return PRINTED_UNITS


def shape_named(name: str) -> Shape:
    """The shape of that name; raises UsageError for one that does not exist."""
    if name not in SHAPES:
        raise UsageError(f"table shape: found {name!r}; wanted one of {', '.join(SHAPES)}")
    return SHAPES[name]


def shape_of_matrix(matrix: str) -> Shape:
    """The shape a matrix prints in."""
    return SHAPES[_OF_MATRIX.get(matrix, "netlabel")]

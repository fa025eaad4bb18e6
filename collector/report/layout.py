"""Plain-text layout: columns that line up, paragraphs of a mail's width, numbered footnotes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH = 72  # a mail quoted twice still fits 76 columns
MOST = 76  # what a table may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table apart from its medium. The first ``texts`` columns hold words (left-aligned; the
    first is the row's heading), the others figures (right-aligned). ``notes`` stand below it."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    texts: int = 1


@dataclass(slots=True)
class Footnotes:
    """Gives each different footnote text a number, from 1."""

    texts: list[str] = field(default_factory=list)

    def mark(self, text: str | None) -> str:
        """``"[2]"`` for a footnote, ``""`` for none."""
        if text is None:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"

    def lines(self) -> tuple[str, ...]:
        """The footnotes with their numbers."""
        return tuple(f"[{i}] {text}" for i, text in enumerate(self.texts, 1))


def columns(rows: Sequence[Sequence[str]], *, gap: int = 2, align: str = "l") -> str:
    """Rows as lines whose columns line up, without trailing blanks.

    ``align`` has a letter a column, ``l`` or ``r``; columns beyond it are right-aligned. Rows may
    be shorter than the longest.
    """
    widths: list[int] = []
    for row in rows:
        for i, text in enumerate(row):
            if i == len(widths):
                widths.append(0)
            widths[i] = max(widths[i], len(text))
    return "\n".join(
        (" " * gap)
        .join(
            text.ljust(widths[i]) if align[i : i + 1] == "l" else text.rjust(widths[i])
            for i, text in enumerate(row)
        )
        .rstrip()
        for row in rows
    )


def paragraph(text: str, *, indent: str = "", hanging: str | None = None) -> str:
    """Text wrapped to the mail's width; ``hanging`` indents every line after the first."""
    kept = re.sub(r"(\d) %", "\\1\u00a0%", text)  # "95 %" stays on one line
    return textwrap.fill(
        kept,
        width=WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\u00a0", " ")


def bullet(text: str) -> str:
    """One item of a list, wrapped with a hanging indent."""
    return paragraph(text, indent="* ", hanging="  ")


def note_lines(notes: Sequence[str]) -> str:
    """Footnotes, one a paragraph, wrapped with a hanging indent of four."""
    return "\n".join(paragraph(note, hanging="    ") for note in notes)


def underlined(title: str, rule: str = "-") -> str:
    """A section heading with a line below it."""
    return f"{title}\n{rule * len(title)}"

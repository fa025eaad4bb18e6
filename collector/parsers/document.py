"""Loading of input: any bytes become numbered lines, or an error that says what was wrong.

Tool output reaches Crossover through logs, terminals and mail. What these add is taken off here
(line ends of three kinds, byte order marks, colour sequences, mail quoting, Markdown's escapes);
nothing is repaired: a byte that is no text stays visible as U+FFFD, so that a number with a hole
in it is no number.
"""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path

from collector.errors import InputError

from .base import Document, Line

_LINE_END = re.compile(r"\r\n|\n|\r")
# ECMA-48: CSI sequences (colours, cursor keys) and OSC sequences (window titles).
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# Markdown escapes characters that it would take for markup: AF\_INET, \[ 5\].
_MARKDOWN = re.compile(r"\\(?=[_\[\]*#~])")
_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f", " "))
_QUOTE = re.compile(r" {0,2}(?:>|\|(?= |$)) ?")
# netperf's histogram ends with a line that begins like a quotation (src/netlib.c, HIST_report).
_NOT_QUOTED = re.compile(r" {0,2}>100_SECS\s*:")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def load(path: str) -> Document:
    """Read a file, or standard input for ``-``. Raises InputError if it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(path, f"no readable file ({reason})", "a file with tool output") from None
    return from_bytes(data, "<stdin>" if path == "-" else path)


def from_bytes(data: bytes, file: str) -> Document:
    """Decode and number the lines. Never raises: what is no text becomes U+FFFD."""
    encoding = "utf-8"
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :], name
            break
    return from_text(data.decode(encoding, errors="replace"), file)


def from_text(text: str, file: str = "<text>") -> Document:
    """Number the lines of ``text`` from 1 and take quoting off each (see :func:`dequote`).

    NUL bytes become U+FFFD, unusual blanks (no-break, figure, narrow) become plain ones, escape
    sequences of terminals and of Markdown go.
    """
    text = (
        _ESCAPES.sub("", _MARKDOWN.sub("", text.lstrip("\ufeff")))
        .replace("\x00", "\ufffd")
        .translate(_BLANKS)
    )
    lines = _LINE_END.split(text)
    if lines and not lines[-1]:
        lines.pop()
    numbered = []
    for number, raw in enumerate(lines, start=1):
        quote, rest = dequote(raw)
        numbered.append(Line(number=number, text=rest, quote=quote))
    return Document(file=file, lines=tuple(numbered))


def dequote(text: str) -> tuple[str, str]:
    """Split a line into its mail quoting (``> ``, ``>> ``, ``> > ``, ``| ``) and the rest.

    A line that also ends in ``|`` is a table, not a quotation.
    """
    if text.lstrip(" ").startswith("|") and text.rstrip().endswith("|") and text.strip() != "|":
        return "", text
    at = 0
    while not _NOT_QUOTED.match(text, at) and (match := _QUOTE.match(text, at)):
        at = match.end()
    return text[:at], text[at:]

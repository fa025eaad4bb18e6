"""netperf 2.1 to 2.7: classic tables, omni output and every error text it prints.

Whole blocks are recognised wherever they stand: in logs, scripts' traces and mail, several in one
document. What looks like netperf's output and cannot be read is a problem, never a number.
"""

from __future__ import annotations

import re

from ..base import Document, Reading
from .command import read_command
from .failures import is_timer_note, read_error
from .omni import read_omni_keyval
from .reader import Reader
from .records import TOOL, NetperfResult
from .selectors import SELECTORS

__all__ = ["TOOL", "NetperfResult", "parse", "read_omni_keyval", "recognise"]

_SIGNATURE = re.compile(
    r"^\s*(?:(?:MIGRATED )?\S.{0,40} TEST (?:from \S+ \(|to \S+)|Interim result:|!!! WARNING"
    r"|!!! Desired confidence|Local /Remote\s*$|Recv\s+Send\s+Send\b"
    r"|Socket\s+Message\s+Elapsed\s+Messages\b|OMNI \S+ TEST\b"
    r"|Throughput,|.*,Throughput(?:,| Units|$)|Local\s+Remote\s+Local\s+Elapsed"
    r"|[0-9]+ +[0-9]+ +[0-9]+ +(?:[0-9]+ +)?[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2}"
    r"|[0-9]+ +[0-9]+ +[0-9]+\.[0-9]{2} +[0-9]+ +[0-9]+ +[0-9]+\.[0-9])",
    re.MULTILINE,
)
_KEY = re.compile(r"^\s*([A-Z][A-Z0-9_]+)=", re.MULTILINE)


def recognise(document: Document) -> bool:
    """Whether anything in the document is of netperf's making."""
    text = document.text
    if _SIGNATURE.search(text) or any(m[1] in SELECTORS for m in _KEY.finditer(text)):
        return True
    return any(
        is_timer_note(line.text) or read_error(document.lines, index) is not None
        for index, line in enumerate(document.lines)
        if line.text.strip()
    ) or any(
        found is not None and not found[0].print_headers
        for found in (
            read_command(document.lines, index)
            for index, line in enumerate(document.lines)
            if "netperf" in line.text
        )
    )


def parse(document: Document) -> Reading:
    """Read all of netperf's output in the document; see :class:`NetperfResult`."""
    return Reader(document).read()

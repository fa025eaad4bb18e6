"""Lines that look like part of netperf's output and belong to nothing that could be read."""

from __future__ import annotations

import re

from .tables import DECIMALS, SHAPES

_TITLES = """
Recv Send Socket Message Elapsed Size Time Throughput bytes Bytes secs. secs Utilization Service
Demand local remote us/KB us/Tr Local Remote /Remote Request Resp. Trans. Trans Rate per sec CPU
S.dem Okay Errors Messages # Util Tput % S U SS SU US UU Alignment Offset Sends Recvs Xfered Per
(avg) RoundTrip Latency usec/Tran Outbound Inbound Window frames Maximum Segment (bytes)
"""
_HEADER_WORDS = frozenset(_TITLES.split())
_UNIT_WORD = re.compile(r"(?:[KMG]?Bytes|10\^[0369]bits)(?:/s(?:ec)?)?")
_HISTOGRAM = re.compile(
    r"\s*(?:(?:UNIT|TEN|HUNDRED)_(?:USEC|MSEC|SEC)\s*:[\s0-9:]+|>100_SECS:.*|HIST_TOTAL:.*)"
)
_LOOSE_NUMBER = re.compile(r"[-+]?[0-9][0-9.,'’eE+-]*|-?nan|-?inf")
_INTEGER = r"-?[0-9]+"
_CSV_ROW = re.compile(r'\s*(?:"[^"]*"|[^,\s]+),(?:"[^"]*"|[^,\s]*)(?:,(?:"[^"]*"|[^,]*))*\s*')


def _patterns() -> list[re.Pattern[str]]:
    found = []
    for shape in SHAPES:
        for columns in filter(None, (shape.first, shape.second)):
            cells = []
            for column in columns:
                decimals = DECIMALS.get(column)
                cells.append(
                    _INTEGER if decimals is None else rf"(?:-?[0-9]+\.[0-9]{{{decimals}}}|-?nan)"
                )
            found.append(re.compile(r"\s*" + r"\s+".join(cells) + r"(?:\s+\S+)?\s*"))
    return found


_ROWS = _patterns()
_BARE = re.compile(r"\s*[0-9]+\.[0-9]{2,3}(?: [A-Z?])?\s*")


def is_row(text: str) -> bool:
    """Whether a line looks like a row of netperf's tables, whole or damaged.

    A whole row of any table; or four to twelve numbers, a whole one first, with a decimal one
    among them; or a CSV row that has a number with two decimals; or one number of ``-v 0``.
    """
    if any(pattern.fullmatch(text) for pattern in _ROWS) or _BARE.fullmatch(text):
        return True
    words = text.split()
    if 4 <= len(words) <= 12 and all(_LOOSE_NUMBER.fullmatch(word) for word in words):
        return words[0].isdigit() and any("." in w or "," in w for w in words[2:])
    if _CSV_ROW.fullmatch(text):
        cells = [cell.strip() for cell in text.split(",")]
        numbers = sum(re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", cell) is not None for cell in cells)
        return numbers * 2 >= len(cells) and any(
            re.fullmatch(r"-?[0-9]+\.[0-9]{2,6}", cell) for cell in cells
        )
    return False


def is_header_fragment(text: str) -> bool:
    """Whether a line has only words of the tables' titles, or is a row of a histogram."""
    if _HISTOGRAM.fullmatch(text):
        return True
    words = text.split()
    if words == ["Local", "/Remote"]:
        return True
    return len(words) >= 3 and all(w in _HEADER_WORDS or _UNIT_WORD.fullmatch(w) for w in words)

"""Packet rates in running text: with their bit rate, or with the maximum of their frame size.

``NDR: 5,812,872 pps (3.9062 Gbps)`` as NFVbench's users write it, and ``64B: 1487460 Pkts/s
(line-rate: 1488095 Pkts/s)``. Neither says more than the two numbers, which must go together.
"""

from __future__ import annotations

import re
from typing import Any

from .base import Document, Problem, Reading, Source, Status
from .rates import NUMBER, ungroup
from .rfc2544_columns import rate_unit
from .rfc2544_record import FRAMING_BYTES, TOOL, Rfc2544Row, implied_link_bps

_LOOSE_NUMBER = r"\d[\d,.]*"
_PACKETS = r"[kKMG]?(?:[Pp]ps|PPS|fps|[Pp]kts/s(?:ec)?|packets/s(?:ec)?)"
_BITS = r"[kKMGT]?(?:bps|[Bb]its?/s(?:ec)?)"
_PAIR = re.compile(
    rf"^(?P<label>.*?)(?<![\d.,])(?P<first>{_LOOSE_NUMBER})\s*(?P<first_unit>{_PACKETS}|{_BITS})"
    rf"\s*\(\s*(?P<second>{_LOOSE_NUMBER})\s*(?P<second_unit>{_PACKETS}|{_BITS})\s*\)\W*$"
)
_SIZED = re.compile(
    rf"^\W*(?P<size>\d{{2,5}})\s*(?:B|bytes?)\s*:\s*(?P<rate>{_LOOSE_NUMBER})\s*(?P<unit>{_PACKETS})"
    rf"\s*\(\s*(?:line[- ]?rate|max(?:imum)?|theoretical)\s*:?\s*(?P<most>{_LOOSE_NUMBER})\s*"
    rf"(?P<most_unit>{_PACKETS})\s*\)\W*$"
)
_NUMBER = re.compile(rf"{NUMBER}\Z")
_GOAL = re.compile(
    r"(?<![a-z])(?P<goal>(?:ndr|pdr|mrr|mmr)(?:[_ ](?:lower|upper))?)(?![a-z])", re.IGNORECASE
)
_HEADING_REACH = 12
_SMALLEST_BYTES, _LARGEST_BYTES = 46, 65535 + FRAMING_BYTES


def is_rate_line(text: str) -> bool:
    """Whether a line holds a packet rate with its bit rate, or with a maximum in parentheses."""
    if _SIZED.match(text):
        return True
    match = _PAIR.match(text)
    if match is None or re.search(r"\d\s*pps\s+\d", text):
        return False
    units = [rate_unit(match["first_unit"]), rate_unit(match["second_unit"])]
    return {unit[0] for unit in units if unit} == {"pps", "bps"}


def read_rate_line(document: Document, index: int, reading: Reading, grouped: bool) -> None:
    """Read one such line; commas are no part of a number unless they ``grouped`` thousands."""
    line = document.lines[index]
    reading.claimed.add(line.number)
    text = ungroup(line.text) if grouped else line.text
    sized = _SIZED.match(text)
    pair = _PAIR.match(text)
    numbers = (
        [sized["rate"], sized["most"]] if sized else [pair["first"], pair["second"]] if pair else []
    )
    if not numbers or not all(_NUMBER.match(number) for number in numbers):
        reading.problems.append(
            Problem.of_line(
                document.file,
                line,
                '"N pps (N Gbps)" or "SIZE B: N pps (line-rate: N pps)" with decimal points',
            )
        )
        return
    warnings: list[str] = []
    if sized:
        fields, doubtful = _sized(sized, warnings)
    else:
        assert pair is not None  # numbers came from it
        fields, doubtful = _pair(document, index, pair, warnings)
    reading.records.append(
        Rfc2544Row(
            tool=TOOL,
            kind="search" if fields.get("name") else "rate",
            status=Status.SUSPECT if doubtful else Status.OK,
            source=Source(document.file, line.number, line.number),
            printed={"line": line.text.strip()},
            warnings=tuple(warnings),
            **fields,
        )
    )


def _scaled(number: str, unit: str) -> tuple[str, float]:
    kind = rate_unit(unit)
    assert kind is not None  # the patterns take no other units
    return kind[0], float(number) * kind[1]


def _sized(match: re.Match[str], warnings: list[str]) -> tuple[dict[str, Any], bool]:
    """A rate at a frame size with the maximum beside it."""
    size = int(match["size"])
    _, rate = _scaled(match["rate"], match["unit"])
    _, most = _scaled(match["most"], match["most_unit"])
    link = implied_link_bps(most, size)
    if link is None:
        warnings.append(f"the maximum {most:.0f} pps is no Ethernet line rate at {size} bytes")
    if rate > most:
        warnings.append(f"{rate:.0f} pps exceed the maximum {most:.0f}")
    if not rate:
        warnings.append("no packets: no measurement")
    return {
        "frame_bytes": size,
        "frame_basis": "with FCS",
        "packets_per_second": rate or None,
        "max_packets_per_second": most,
        "line_rate_pct": 100 * rate / most if most and rate and rate <= most else None,
        "link_bps_implied": link,
    }, bool(warnings)


def _pair(
    document: Document, index: int, match: re.Match[str], warnings: list[str]
) -> tuple[dict[str, Any], bool]:
    """A packet rate and a bit rate: together they tell the size of a packet."""
    found = dict(_scaled(match[name], match[f"{name}_unit"]) for name in ("first", "second"))
    pps, bps = found["pps"], found["bps"]
    label = re.sub(r"^\W+|\W+$", "", match["label"])
    fields: dict[str, Any] = {"name": _goal(document, index, label), "column": label or None}
    size = bps / (8 * pps) if pps else 0.0
    if not _SMALLEST_BYTES <= size <= _LARGEST_BYTES:
        warnings.append(
            f"{bps:g} bit/s at {pps:g} pps are {size:.1f} bytes a packet: no such packet, "
            "so a unit or a number is wrong"
        )
        return fields, True
    # With preamble and gap a frame of 64 bytes takes 84, so both layers may be meant.
    return fields | {"packets_per_second": pps, "throughput_bps": bps}, False


def _goal(document: Document, index: int, label: str) -> str | None:
    """NDR, PDR or MRR as the label says, else the heading above this line and its like."""
    texts = [label]
    for line in reversed(document.lines[max(0, index - _HEADING_REACH) : index]):
        if line.text.strip() and not is_rate_line(line.text):
            texts.append(line.text)
            break
    for text in texts:
        names = {match["goal"].upper().replace(" ", "_") for match in _GOAL.finditer(text)}
        if names:
            return names.pop() if len(names) == 1 else None
    return None

"""Results by frame size: ipgen's RFC 2544 charts, tables of shares and rates, NDR and PDR lines.

Tables with named columns are read by rfc2544_grid.py, those of shares by configuration by
rfc2544_table.py, rates in running text by rfc2544_rates.py.

ipgen: rfc2544_showresult in gen.c (``size |####  N Mbps, pps/max pps, N%``; the frame size is with
FCS, the rate without preamble and gap unless it was told otherwise). Tables are read only if their
heading starts with a frame size and every value has a unit, in the heading or in the table.
"""

from __future__ import annotations

import re

from .base import Document, Line, Problem, Reading, Source, Status, in_order
from .rates import NUMBER, commas_group, printed
from .rfc2544_grid import is_grid, read_grid
from .rfc2544_rates import is_rate_line, read_rate_line
from .rfc2544_record import (
    FRAMING_BYTES,
    TOOL,
    Rfc2544Row,
    implied_link_bps,
)
from .rfc2544_table import is_heading, read_table
from .rfc2544_trial import is_trial, read_trial

__all__ = ["TOOL", "Rfc2544Row", "parse", "recognise"]

_BAR = re.compile(
    rf"^\s*(?P<size>\d+)\s*\|\s*#*\s*(?:(?P<mbps>{NUMBER})\s*Mbps,\s*)?"
    rf"(?P<pps>\d+)\s*/\s*(?P<max>\d+)\s*pps,\s*(?P<pct>{NUMBER}|-?nan|-?inf)\s*%\s*$"
)
_LOOSE_BAR = re.compile(r"^\s*\d+\s*\|[\s#]*(?:#{2,}|[\d.,]+\s*(?:Mbps|/)|nan)")
_EMPTY_BAR = re.compile(r"^\s*\d+\s*\|#?\s*$")  # its numbers may follow on the next line
_ORPHAN = re.compile(r"^\s*(?:\|#{2,}|[\d.,]+\s*Mbps,|[\d.,]+\s*/\s*[\d.,]+\s*pps\b)")
_AXIS = re.compile(r"^\s*framesize\|0.*?(?P<top>\d+)(?P<unit>[MG])bps\s*$")
_SETTINGS = {
    "tolerated": re.compile(rf"rfc2544 tolerable error rate:\s*({NUMBER})\s*%"),
    "trial": re.compile(rf"rfc2544 trial duration:\s*({NUMBER})\s*sec"),
    "resolution": re.compile(rf"rfc2544 pps resolution:\s*({NUMBER})\s*%"),
}
_OTHER = re.compile(r"^\s*(?:rfc2544 (?:interval|warming duration):|framesize\||-{5,}\+)")
_SEARCH = re.compile(
    rf"^\W*(?P<name>(?:NDR|PDR|MRR)(?:[_ ](?:LOWER|UPPER|lower|upper))?)\b(?!\(s\))[^:=\d]*[:=]\s*"
    rf"(?P<value>{NUMBER})\s*(?P<unit>[kKMG]?(?:pps|fps)|%|[kKMG]?(?:bps|bit/s))"
    rf"(?:[\s,;(]+(?P<second>{NUMBER})\s*(?P<second_unit>[kKMG]?(?:bps|bit/s)))?(?P<rest>.*)$"
)
_LOOSE_SEARCH = re.compile(
    r"^\W*(?:NDR|PDR|MRR)(?:[_ ](?:LOWER|UPPER|lower|upper))?\b(?!\(s\))[^:=]*[:=]\s*[\d-]"
)
_DEFAULT_RESOLUTION_PCT = 0.1
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


def recognise(document: Document) -> bool:
    """Whether the document holds a chart, a table by frame size or an NDR/PDR line."""
    return any(
        _LOOSE_BAR.match(line.text)
        or _AXIS.match(line.text)
        or "rfc2544" in line.text
        or _LOOSE_SEARCH.match(line.text)
        or is_grid(document, index)
        or is_heading(document, index)
        or is_rate_line(line.text)
        or is_trial(line.text)
        for index, line in enumerate(document.lines)
    )


def parse(document: Document) -> Reading:
    """Read every row. A row of a known form that does not match is a problem.

    A size that was not measured (``0/0pps, nan%``) gives a row of None values, ``incomplete``.
    """
    reading = Reading()
    settings: dict[str, float] = {}
    axis_bps: float | None = None
    grouped = commas_group(document.text)
    index = 0
    while index < len(document.lines):
        line = document.lines[index]
        used = 1
        for name, pattern in _SETTINGS.items():
            if match := pattern.search(line.text):
                settings[name] = float(match[1])
                reading.claimed.add(line.number)
        if axis := _AXIS.match(line.text):
            axis_bps = float(axis["top"]) * _SCALE[axis["unit"]]
        if _OTHER.match(line.text):
            reading.claimed.add(line.number)
        elif _LOOSE_BAR.match(line.text) or _EMPTY_BAR.match(line.text):
            used = _take_bar(document, index, settings, axis_bps, reading)
        elif _ORPHAN.match(line.text):
            _bad(document, line, reading)
        elif is_trial(line.text):
            read_trial(document.file, line, reading)
        elif is_rate_line(line.text):
            read_rate_line(document, index, reading, grouped)
        elif _LOOSE_SEARCH.match(line.text):
            _take_search(document, line, reading)
        elif is_grid(document, index):
            used = read_grid(document, index, reading, grouped)
        elif is_heading(document, index):
            used = read_table(document, index, reading)
        index += used
    reading.records = in_order(reading.records)
    return reading


def _take_bar(
    document: Document,
    index: int,
    settings: dict[str, float],
    axis_bps: float | None,
    reading: Reading,
) -> int:
    """Read one chart row, broken over lines or not; returns how many lines it took."""
    text, line = "", document.lines[index]
    for used, part in enumerate(document.lines[index : index + 5], start=1):
        if used > 1 and (not part.text.strip() or _LOOSE_BAR.match(part.text)):
            break
        if used > 1 and _EMPTY_BAR.match(part.text):
            break
        text = f"{text} {part.text.strip()}"
        if match := _BAR.match(text):
            reading.claimed.update(p.number for p in document.lines[index : index + used])
            source = Source(document.file, line.number, part.number)
            _add(reading, _bar(match, source, settings, axis_bps))
            return used
    if _EMPTY_BAR.match(line.text):
        return 1
    _bad(document, line, reading)
    return 1


def _bad(document: Document, line: Line, reading: Reading) -> None:
    reading.claimed.add(line.number)
    reading.problems.append(
        Problem.of_line(
            document.file, line, '"SIZE |###  N.NNMbps, N/Npps, N.NN%" with decimal points'
        )
    )


def _bar(
    match: re.Match[str], source: Source, settings: dict[str, float], axis_bps: float | None
) -> Rfc2544Row:
    size, pps, most = int(match["size"]), int(match["pps"]), int(match["max"])
    warnings: list[str] = []
    base = {
        "rate": f"{match['mbps']} Mbps" if match["mbps"] else None,
        "pps": f"{match['pps']}/{match['max']}pps",
        "share": f"{match['pct']}%",
    }
    measured = pps > 0 and most > 0 and not match["pct"].lstrip("-").startswith(("nan", "inf"))
    if not measured:
        warnings.append("not measured: no packet rate")
    resolution = settings.get("resolution", _DEFAULT_RESOLUTION_PCT)
    share = 100.0 * pps / most if most else None
    layer = None
    doubtful = False
    if measured and share is not None:
        layer, doubtful = _check_bar(match, size, warnings)
    link = implied_link_bps(most, size) if most else None
    if measured and link is None:
        warnings.append(f"the maximum {most} pps is no Ethernet line rate at {size} bytes")
        doubtful = True
    if measured and link is not None and axis_bps is not None and link != axis_bps:
        warnings.append(
            f"the maximum {most} pps is of a {link:g} bit/s link, the axis ends at {axis_bps:g}"
        )
        doubtful = True
    within = measured and share is not None and share >= 100 - resolution
    if within and pps < most:
        warnings.append("at line rate within the resolution of the search, not a loss")
    return Rfc2544Row(
        tool=TOOL,
        kind="throughput",
        status=Status.INCOMPLETE if not measured else Status.SUSPECT if doubtful else Status.OK,
        source=source,
        printed=base,
        warnings=tuple(warnings),
        frame_bytes=size,
        frame_basis="with FCS",
        packets_per_second=float(pps) if measured else None,
        max_packets_per_second=float(most) if measured else None,
        throughput_bps=printed(match["mbps"]).value * 1e6 if measured and match["mbps"] else None,
        throughput_layer=layer,
        line_rate_pct=printed(match["pct"]).value if measured else None,
        at_line_rate_within_resolution=within if measured else None,
        link_bps_implied=link if measured else None,
        tolerated_loss_pct=settings.get("tolerated"),
        trial_s=settings.get("trial"),
        resolution_pct=settings.get("resolution"),
    )


def _check_bar(match: re.Match[str], size: int, warnings: list[str]) -> tuple[str | None, bool]:
    """Check share and rate of a row against its packet rates; returns the rate's layer."""
    before = len(warnings)
    pps, most = int(match["pps"]), int(match["max"])
    share = printed(match["pct"])
    if not share.low - 0.005 <= 100.0 * pps / most <= share.high + 0.005:
        warnings.append(f"{pps}/{most} is {100 * pps / most:.2f} %, printed is {match['pct']} %")
    if pps > most:
        warnings.append(f"{pps} pps exceed the maximum {most}")
    layer = None
    if match["mbps"]:
        rate = printed(match["mbps"])
        for name, overhead in (("L2", 0), ("L1", FRAMING_BYTES)):
            mbps = pps * 8 * (size + overhead) / 1e6
            if abs(mbps - rate.value) <= rate.half + 1e-9 + 8e-6 * (size + overhead):
                layer = name
                break
        if layer is None:
            warnings.append(
                f"{pps} pps of {size} bytes are {pps * 8 * size / 1e6:.2f} Mbps, "
                f"printed is {match['mbps']}"
            )
    return layer, len(warnings) > before


def _add(reading: Reading, row: Rfc2544Row) -> None:
    """Add a row; ipgen prints each result in two charts, the second without the bit rate."""
    for other in reading.records:
        assert isinstance(other, Rfc2544Row)
        if (
            row.printed["rate"] is None
            and other.kind == "throughput"
            and other.frame_bytes == row.frame_bytes
            and other.printed["pps"] == row.printed["pps"]
        ):
            return
    reading.records.append(row)


def _take_search(document: Document, line: Line, reading: Reading) -> None:
    """Read an NDR or PDR line (CSIT, TRex): a packet rate, a bit rate or a share of line rate."""
    reading.claimed.add(line.number)
    match = _SEARCH.match(line.text)
    cut = line.text.count("(") != line.text.count(")")
    if not match or cut or re.match(r"\s*[,.]?\d", match["rest"]):
        reading.problems.append(
            Problem.of_line(
                document.file,
                line,
                '"NDR: N pps", "N %" or "N Gbps" with a decimal point and a unit',
            )
        )
        return
    values: dict[str, float] = {}
    for key, unit_key in (("value", "unit"), ("second", "second_unit")):
        if match[key] is None:
            continue
        unit = match[unit_key]
        if unit == "%":
            values["line_rate_pct"] = float(match[key])
        else:
            scale = _SCALE[unit[0] if unit[0] in "kKMG" else ""]
            name = "packets_per_second" if unit[-3:] in {"pps", "fps"} else "throughput_bps"
            values[name] = float(match[key]) * scale
    layer = re.search(r"\bL([12])\b", line.text)
    headline = next(iter(values.values()))
    reading.records.append(
        Rfc2544Row(
            tool=TOOL,
            kind="search",
            status=Status.OK if headline > 0 else Status.FAILED,
            source=Source(document.file, line.number, line.number),
            printed={"line": line.text.strip()},
            name=match["name"].upper().replace(" ", "_"),
            throughput_layer=f"L{layer[1]}" if layer and "throughput_bps" in values else None,
            packets_per_second=values.get("packets_per_second"),
            throughput_bps=values.get("throughput_bps"),
            line_rate_pct=values.get("line_rate_pct"),
        )
    )

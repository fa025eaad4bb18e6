"""Parsers of tool output, one module a tool, and the one door to all of them: :func:`read`."""

from __future__ import annotations

from collector.errors import UsageError

from . import (
    avc,
    dpdk,
    interrupts,
    ip_link,
    iperf2,
    iperf3,
    moongen,
    netlabelctl,
    netperf,
    pktgen,
    proc_stat,
    rfc2544,
    super_netperf,
    trex,
    xfrm,
    xfrm_stat,
)
from .base import Document, Parser, Problem, Reading, Record, in_order

PARSERS: tuple[Parser, ...] = (
    netperf,
    super_netperf,
    iperf3,
    iperf2,
    pktgen,
    rfc2544,
    moongen,
    trex,
    dpdk,
    netlabelctl,
    xfrm,
    xfrm_stat,
    avc,
    ip_link,
    proc_stat,
    interrupts,
)
TOOLS: dict[str, Parser] = {parser.TOOL: parser for parser in PARSERS}

__all__ = ["PARSERS", "TOOLS", "read"]


def read(document: Document, tool: str | None = None) -> Reading:
    """Read everything in ``document`` that a parser recognises, in the order of its lines.

    ``tool`` (one of :data:`TOOLS`) forces one parser. A problem that one parser has with lines
    which another one accounts for is dropped: they were not its own. If nothing is recognised,
    or the forced parser finds nothing, that is a problem too. Raises UsageError for an unknown
    tool; nothing else.
    """
    if tool is not None and tool not in TOOLS:
        raise UsageError(f"--tool: found {tool!r}; wanted one of: {', '.join(TOOLS)}")
    asked = [TOOLS[tool]] if tool else [one for one in PARSERS if one.recognise(document)]
    parts = [(one.TOOL, one.parse(document)) for one in asked]
    whole = Reading()
    for name, part in parts:
        others: set[int] = set().union(*(p.claimed for n, p in parts if n != name))
        whole.records.extend(part.records)
        whole.problems.extend(p for p in part.problems if p.line not in others)
        whole.claimed |= part.claimed
    whole.records = in_order(_once(whole.records))
    whole.problems.extend(_unreadable_bytes(document, whole))
    whole.problems = sorted(set(whole.problems), key=lambda problem: (problem.line, str(problem)))
    if not whole.records and not whole.problems:
        whole.problems.append(_nothing(document, tool))
    return whole


def _once(records: list[Record]) -> list[Record]:
    """Records without those of the same tool at the same lines: one parser may use another."""
    seen: set[tuple[str, str, int, int]] = set()
    kept = []
    for record in records:
        key = (record.tool, record.kind, record.source.line, record.source.last_line)
        # A row of a table may give several records, each by its own parser.
        if record.tool == netperf.TOOL and key in seen:
            continue
        seen.add(key)
        kept.append(record)
    return kept


def _unreadable_bytes(document: Document, whole: Reading) -> list[Problem]:
    """Lines within results that hold bytes which are no text: a figure may be missing there."""
    used = set(whole.claimed)
    for record in whole.records:
        used.update(range(record.source.line, record.source.last_line + 1))
    return [
        Problem(
            document.file,
            line.number,
            f"bytes that are no text in {shown(line.text)}",
            "text in UTF-8",
        )
        for line in document.lines
        if "\ufffd" in line.text and line.number in used
    ]


def _nothing(document: Document, tool: str | None) -> Problem:
    wanted = f"output of {tool}" if tool else f"output of one of: {', '.join(TOOLS)}"
    first = next((line for line in document.lines if line.text.strip()), None)
    if first is None:
        return Problem(document.file, 1, "no text", wanted)
    return Problem(document.file, first.number, f"nothing of it, but {shown(first.text)}", wanted)


def shown(text: str, limit: int = 60) -> str:
    """A line for use in a message: quoted, without control characters, cut at ``limit``."""
    text = text.strip()
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")

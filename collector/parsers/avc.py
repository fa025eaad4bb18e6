"""SELinux denials in audit and kernel logs, one record a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collector.kernel_state.avc import Avc, allow_rule, explain, is_avc, parse_avc
from collector.kernel_state.errors import StateError
from collector.parsers.base import Document, Line, Reading, Record, Status
from collector.parsers.kernel_text import problem, source

TOOL = "avc"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvcRecord(Record):
    """A decision of SELinux. ``suspect`` when permissive (it would fail in enforcing mode),
    ``failed`` when the access was refused, ``ok`` when it was granted and only logged.

    ``time_s`` is in seconds since 1970. ``allow_rule`` is what the denial implies, for review;
    nothing loads it. ``extra`` keeps the other fields as printed (addresses, ports, interface).
    """

    denied: bool
    permissions: tuple[str, ...]
    source_context: str
    source_type: str
    target_context: str
    target_type: str
    tclass: str
    permissive: bool | None
    pid: int | None
    comm: str | None
    time_s: float | None
    serial: int | None
    extra: Mapping[str, str]
    allow_rule: str | None
    meaning: str | None


def recognise(document: Document) -> bool:
    """Whether the document has an AVC line."""
    return any(is_avc(line.text) for line in document.lines)


def parse(document: Document) -> Reading:
    """Read every AVC line; other lines are left alone."""
    reading = Reading()
    for line in document.lines:
        if not is_avc(line.text):
            continue
        reading.claimed.add(line.number)
        try:
            found = parse_avc(line.text, line.number)
        except StateError as error:
            reading.problems.append(problem(document, error, line.number))
            continue
        reading.records.append(_record(document, found, line))
    return reading


def _record(document: Document, found: Avc, line: Line) -> AvcRecord:
    rule = allow_rule(found) if found.denied else None
    warnings: tuple[str, ...] = ()
    status = Status.OK
    if found.enforced:
        status = Status.FAILED
    elif found.denied:
        status = Status.SUSPECT
        warnings = (f"would be refused in enforcing mode; for review, never loaded: {rule}",)
    return AvcRecord(
        tool=TOOL,
        kind="denied" if found.denied else "granted",
        status=status,
        source=source(document, [line]),
        printed={"permissive": None if found.permissive is None else str(int(found.permissive))},
        warnings=warnings,
        denied=found.denied,
        permissions=found.permissions,
        source_context=str(found.source),
        source_type=found.source.type,
        target_context=str(found.target),
        target_type=found.target.type,
        tclass=found.tclass,
        permissive=found.permissive,
        pid=found.pid,
        comm=found.comm,
        time_s=found.time,
        serial=found.serial,
        extra=dict(found.extra),
        allow_rule=rule,
        meaning=explain(found),
    )

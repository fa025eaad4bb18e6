"""A finding: one thing that a proof looked at, what it wanted and what it found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of a proof. ``ok`` False means: not proven, so no number."""

    what: str
    wanted: str
    found: str
    ok: bool

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, found {self.found}"


def equal(what: str, wanted: object, found: object) -> Finding:
    """The finding that two values are the same."""
    return Finding(what, str(wanted), str(found), wanted == found)


def document(findings: list[Finding]) -> dict[str, Any]:
    """The form that evidence files have."""
    return {"schema": 1, "findings": [asdict(finding) for finding in findings]}


def first_failure(findings: list[Finding]) -> str | None:
    """The first finding that is not ok, as a reason; None if all are."""
    return next((str(finding) for finding in findings if not finding.ok), None)

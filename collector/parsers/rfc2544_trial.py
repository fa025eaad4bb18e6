"""One trial on one line, as MoonGen's frameloss.lua and CSIT's TRex scripts print it.

``rate=…, totalReceived=…, totalSent=…, frameLoss=…``: frameLoss is a fraction in MoonGen and a
number of frames in CSIT, so it is only compared with what the two counters give.
"""

from __future__ import annotations

import re
from typing import Any

from .base import Line, Problem, Reading, Source, Status
from .rates import NUMBER
from .rfc2544_record import TOOL, Rfc2544Row

_TRIAL = re.compile(
    rf"\btotal_?[rR]eceived\s*=\s*(?P<received>-?\d+),\s*total_?[sS]ent\s*=\s*(?P<sent>-?\d+),\s*"
    rf"frame_?[lL]oss\s*=\s*(?P<loss>-?{NUMBER}|-?nan|-?inf)(?=,?(?:\s|$))"
)
_LOOSE = re.compile(r"\btotal_?[rR]eceived\s*=")
_LATENCY = re.compile(
    r"\blatency_?[sS]tream_?0\(usec\)\s*=\s*(?P<low>-?\d+)/(?P<mean>-?\d+)/(?P<high>-?\d+)"
)
_DURATION = re.compile(rf"\b(?:approximated_)?duration\s*=\s*(?P<seconds>{NUMBER})(?=,?(?:\s|$))")


def is_trial(text: str) -> bool:
    """Whether a line tells of a trial."""
    return _LOOSE.search(text) is not None


def read_trial(file: str, line: Line, reading: Reading) -> None:
    """Read one trial; a line that does not match is a problem."""
    reading.claimed.add(line.number)
    match = _TRIAL.search(line.text)
    if match is None:
        wanted = '"totalReceived=N, totalSent=N, frameLoss=N"'
        reading.problems.append(Problem.of_line(file, line, wanted))
        return
    warnings: list[str] = []
    received, sent = int(match["received"]), int(match["sent"])
    fields: dict[str, Any] = {
        "packets_received": received if received >= 0 else None,
        "packets_sent": sent if sent >= 0 else None,
    }
    if received < 0 or sent < 0:
        warnings.append("a negative counter: loss is unknown")
    elif not sent:
        warnings.append("nothing was sent: no measurement")
    elif received > sent:
        warnings.append(f"{received} packets received of only {sent} sent: loss is unknown")
    else:
        fields["loss_pct"] = 100.0 * (sent - received) / sent
        said = match["loss"]
        if not _agrees(said, sent - received, sent):
            warnings.append(f"{received} of {sent} packets is not a loss of {said}")
    fields |= _latency(line.text)
    if duration := _DURATION.search(line.text):
        fields["trial_s"] = float(duration["seconds"])
    reading.records.append(
        Rfc2544Row(
            tool=TOOL,
            kind="trial",
            status=Status.FAILED if not sent else Status.SUSPECT if warnings else Status.OK,
            source=Source(file, line.number, line.number),
            printed={"line": line.text.strip()},
            warnings=tuple(warnings),
            **fields,
        )
    )


def _agrees(said: str, lost: int, sent: int) -> bool:
    """Whether the printed loss is the number of frames lost, or their share."""
    if "n" in said:
        return False
    value = float(said)
    return value == lost or abs(value - lost / sent) <= 1e-9 + 1e-6 * lost / sent


def _latency(text: str) -> dict[str, float | None]:
    """Least, mean and greatest latency of the first direction in s; -1 means not measured."""
    match = _LATENCY.search(text)
    if match is None:
        return {}
    names = {"low": "latency_min_s", "mean": "latency_s", "high": "latency_max_s"}
    return {
        field: int(match[name]) / 1e6 if int(match[name]) >= 0 else None
        for name, field in names.items()
    }

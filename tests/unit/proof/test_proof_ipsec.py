"""The SAs that a host reads back are those of the measured flow, and the rest of a table."""

from __future__ import annotations

from typing import Any

import pytest

from collector.proof.findings import Finding
from collector.proof.ipsec import check_counters, check_state, spis_read_back

OWN = "u:r:measured_t:s0"


def subjects(**connection: Any) -> dict[str, Any]:
    return {"family": "ipv4", "ipsec": {"connections": [{"name": "one", **connection}]}}


def seen(*labels: str | None, mode: str = "transport", policies: int = 2) -> dict[str, Any]:
    sas = {
        f"esp spi 0x{0x1000 + number:x} to 198.18.0.{number % 2 + 1}": {
            "mode": mode,
            **({"ctx": label} if label else {}),
        }
        for number, label in enumerate(labels)
    }
    state = {"sas": sas, "sas_total": len(sas), "policies_total": policies}
    return {"client": {"state": state, "context": OWN}}


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


LABELLED = subjects(label="process")
TABLE = subjects(label="process", pairs="2", vary="label")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (subjects(), seen(None, None)),
        (LABELLED, seen(OWN, OWN)),
        (TABLE, seen(OWN, OWN, f"{OWN}:c0,c1", f"{OWN}:c0,c1")),
        (subjects(label="process", pairs=2, vary="selector"), seen(OWN, OWN, OWN, OWN)),
    ],
)
def test_what_is_declared_is_found(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert only(check_state(wanted, found)).ok


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (subjects(), seen(OWN, OWN)),
        (subjects(), seen()),
        (LABELLED, seen(None, None)),
        (LABELLED, seen(OWN, OWN, f"{OWN}:c0,c1")),
        (LABELLED, seen(OWN, OWN, mode="tunnel")),
        (LABELLED, seen(OWN, OWN, policies=1)),
        # The measured pair itself is missing from its table.
        (TABLE, seen(OWN, f"{OWN}:c0,c1", f"{OWN}:c0,c1")),
        # The pair that fills it has the label of the measured flow, or none.
        (TABLE, seen(OWN, OWN, OWN, OWN)),
        (TABLE, seen(OWN, OWN, None, None)),
        (subjects(label="process", pairs=2, vary="selector"), seen(OWN, OWN, None, None)),
        ({"family": "ipv4"}, seen(None, None)),
    ],
)
def test_anything_else_is_named(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert not only(check_state(wanted, found)).ok


def test_a_missing_sa_and_a_counter_that_grew_are_findings_of_their_own() -> None:
    found = seen(OWN, OWN)
    found["client"]["missing"] = ["esp spi 0x1003"]
    assert [finding.ok for finding in check_state(LABELLED, found)] == [True, False]
    assert only(check_counters({"client": {"grown": {"XfrmInNoStates": 0}}})).ok
    assert not only(check_counters({"client": {"grown": {"XfrmInNoStates": 2}}})).ok


def test_the_spis_come_from_the_names() -> None:
    assert spis_read_back(seen(OWN, OWN)["client"]["state"]) == {0x1000, 0x1001}

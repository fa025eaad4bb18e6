"""JUnit documents that continuous-integration servers can read."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import build_run
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.junit import Case, Outcome, junit_xml
from collector.report.run_junit import run_junit


def test_counts_and_children() -> None:
    cases = [
        Case(classname="m.a", name="t1"),
        Case(classname="m.a", name="t2", outcome=Outcome.FAILED, kind="regression", message="-5 %"),
        Case(classname="m.a", name="t3", outcome=Outcome.ERROR, kind="invalid", detail="no proof"),
        Case(classname="m.a", name="t4", outcome=Outcome.SKIPPED, message="no kernel", time_s=1.5),
    ]
    suite = ElementTree.fromstring(junit_xml("run & co", cases))[0]
    assert suite.attrib == {
        "name": "run & co",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    assert [[child.tag for child in case] for case in suite] == [
        [],
        ["failure"],
        ["error"],
        ["skipped"],
    ]
    assert suite[1][0].attrib == {"type": "regression", "message": "-5 %"}
    assert suite[2][0].text == "no proof"
    assert suite[3].attrib["time"] == "1.500"


def test_a_suite_without_cases_is_refused() -> None:
    with pytest.raises(ValueError, match="no cases; wanted at least one"):
        junit_xml("empty", [])


@given(st.text(), st.text(), st.text())
def test_any_text_gives_well_formed_xml(name: str, message: str, output: str) -> None:
    case = Case(classname=name, name=name, outcome=Outcome.FAILED, message=message, output=output)
    document = ElementTree.fromstring(junit_xml(name, [case]))
    assert document[0].attrib["tests"] == "1"


def test_a_run_has_a_case_a_cell_with_its_verdict(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.netlabel())
    suite = ElementTree.fromstring(run_junit(report))[0]
    cases = {(c.attrib["classname"], c.attrib["name"]): c for c in suite}
    assert len(cases) == len(report.summary.cells) == int(suite.attrib["tests"])
    invalid = cases["netlabel_cipso.C_F_NoC", "udp_stream"][0]
    assert invalid.tag == "error"
    assert invalid.attrib["type"] == "invalid"
    assert "no option 134" in invalid.attrib["message"]
    assert cases["netlabel_cipso.NoPatch", "tcp_rr"][0].tag == "skipped"
    slower = cases["netlabel_cipso.C_FlCat", "tcp_rr"][0]
    assert slower.tag == "system-out"
    assert "verdict: slower" in (slower.text or "")


def test_too_few_blocks_are_skipped_cases(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.tiny())
    suite = ElementTree.fromstring(run_junit(report))[0]
    skipped = suite.find("testcase[@classname='tiny.labelled']/skipped")
    assert skipped is not None
    assert skipped.attrib["type"] == "not enough data"

"""What is written of a group, and that a cell in the journal is complete on disk."""

import base64
import json

import pytest
from evidence_factory import PLAIN, measured, netperf_output, peer, result
from matrix_factory import plan, plan_document

from collector.errors import InputError
from collector.proof.findings import Finding
from collector.run.record import new_run_folder, record_failure, record_group, write_whole
from collector.runfolder.journal import finished
from collector.runfolder.runfolder import load_run

PLAN = plan()
CELL = next(c.cell_id for c in PLAN.cells if c.configuration == "Unlabel" and c.test == "tcp_rr")
OTHER = next(c.cell_id for c in PLAN.cells if c.configuration == "Unlabel" and c.test != "tcp_rr")
SETTINGS = {CELL: PLAN.tests[0].settings, OTHER: PLAN.tests[0].settings}
GOOD = Finding("kernel state", "as declared", "as declared", True)
BAD = Finding("peer label", "s0", "None", False)


@pytest.fixture
def folder(tmp_path):
    return new_run_folder(tmp_path / "runs", "small-1", plan_document())


def record(folder, results, proof=(GOOD,), mss=1448, cells=(CELL,)):
    brought = measured(PLAIN, results)
    who = {"client": brought["identity"], "server": peer()["identity"]}
    return record_group(folder, 0, cells, SETTINGS, list(proof), brought, who, mss)


def document(folder, cell=CELL):
    return json.loads((folder / "raw" / cell / "0" / "result.json").read_text())


def test_a_proven_cell_is_ok_with_raw_output_argv_evidence_and_journal(folder):
    assert record(folder, [result(CELL)]) == {CELL: "ok"}
    raw, evidence = folder / "raw" / CELL / "0", folder / "evidence" / CELL / "0"
    assert (raw / "netperf.out").read_text() == netperf_output()
    assert json.loads((raw / "argv.json").read_text()) == {"argv": ["netperf"]}
    assert (evidence / "probe.pcap").read_bytes() == base64.b64decode(measured(PLAIN)["pcap"])
    found = json.loads((evidence / "proof.json").read_text())["findings"]
    assert [item["what"] for item in found] == ["kernel state", "TCP segment size of the test"]
    assert document(folder)["status"] == "ok"
    assert document(folder)["hosts"]["server"]["boot_id"] == "boot-s"
    events = load_run(folder).journal
    assert (events[-1].event, events[-1].cell_id, events[-1].block) == ("cell", CELL, 0)
    assert events[-1].details == {"status": "ok", "reason": None}


def test_nothing_proven_means_invalid_with_the_first_reason(folder):
    assert record(folder, [result(CELL)], proof=[GOOD, BAD]) == {CELL: "invalid"}
    assert document(folder)["reason"] == "peer label: wanted s0, found None"


def test_a_test_over_other_segments_is_invalid(folder):
    assert record(folder, [result(CELL)], mss=1408) == {CELL: "invalid"}
    assert document(folder)["reason"] == ("TCP segment size of the test: wanted 1408, found 1448")


def test_a_failed_command_is_failed_and_its_output_is_kept(folder):
    broken = result(CELL, rc=1, stdout="", stderr="netperf: cannot connect\n")
    assert record(folder, [broken]) == {CELL: "failed"}
    assert document(folder)["reason"] == "netperf ended with 1: netperf: cannot connect"
    assert (folder / "raw" / CELL / "0" / "netperf.err").read_text() == "netperf: cannot connect\n"


def test_an_unproven_cell_is_invalid_even_if_its_command_failed(folder):
    assert record(folder, [result(CELL, rc=1)], proof=[BAD]) == {CELL: "invalid"}


def test_a_cell_whose_command_never_ran_is_invalid_and_the_others_stand(folder):
    assert record(folder, [result(CELL)], cells=(CELL, OTHER)) == {CELL: "ok", OTHER: "invalid"}
    assert document(folder, OTHER)["reason"] == "not measured"
    assert document(folder, OTHER)["rc"] is None


def test_a_group_that_could_not_be_measured_is_failed_with_the_reason(folder):
    record_failure(folder, 1, [CELL, OTHER], "client, Apply: no route to host")
    run = load_run(folder)
    assert finished(run.journal) == {(CELL, 1), (OTHER, 1)}
    assert {event.details["reason"] for event in run.journal} == {"client, Apply: no route to host"}


def test_files_appear_whole_and_leave_nothing_beside_them(tmp_path):
    write_whole(tmp_path / "deep" / "x", "one")
    write_whole(tmp_path / "deep" / "x", b"two")
    assert [(file.name, file.read_text()) for file in (tmp_path / "deep").iterdir()] == [
        ("x", "two")
    ]


def test_a_run_never_goes_into_a_folder_that_is_there(folder):
    with pytest.raises(InputError) as caught:
        new_run_folder(folder.parent, "small-1", {})
    assert str(caught.value) == f"{folder}: found a folder; wanted no folder of that name yet"
    assert json.loads((folder / "plan.json").read_text())["run_id"] == "small-1"

"""``crossover parse``: what it prints, what it complains of, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.cli import main

CASES = Path(__file__).parents[2] / "data" / "cases"


def test_records_of_all_files_in_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CASES / "07-a.txt"), str(CASES / "01-a.txt")]
    assert main(["parse", *files]) == 0
    captured = capsys.readouterr()
    records = json.loads(captured.out)
    assert [(r["source"]["file"], r["status"]) for r in records] == [
        (files[0], "failed"),
        (files[0], "ok"),
        (files[1], "ok"),
        (files[1], "ok"),
    ]
    assert records[1]["source"]["line"] == 8
    assert captured.err == ""


def test_good_records_are_printed_beside_problems(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text((CASES / "06-a.txt").read_text() + "\n 87380  16384  16384  10.00  941.28\n")
    assert main(["parse", str(log), str(tmp_path / "missing")]) == 1
    captured = capsys.readouterr()
    assert [record["status"] for record in json.loads(captured.out)] == ["failed", "ok"]
    complaints = captured.err.splitlines()
    assert complaints[0].startswith(f"{log}:12: found '87380  16384  16384  10.00  941.28'; wanted")
    assert "no readable file" in complaints[1]


def test_instances_of_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CASES / f"21-result-{n}.txt") for n in range(3)]
    assert main(["parse", "--tool", "super_netperf", *files]) == 0
    *instances, total = json.loads(capsys.readouterr().out)
    assert [record["tool"] for record in instances] == ["netperf"] * 3
    assert (total["status"], total["comparable"]) == ("incomplete", False)
    assert (total["instances_expected"], total["instances_parsed"]) == (3, 2)
    assert total["throughput_bps"] == pytest.approx(9855.35e6)
    assert total["warnings"][0] == "expected 3 results, got 2"


def test_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "--tool", "nuttcp", "-"]) == 2
    assert "found 'nuttcp'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["parse"])
    assert stop.value.code == 2


def test_not_a_number_never_reaches_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(CASES / "10-b.txt")]) == 0
    assert "NaN" not in capsys.readouterr().out

"""A forwarding matrix from the command line: planned, measured, proven, restored, reported.

It has a lab of its own, of the topology that the matrix wants, and another of the one that would do
as well: three hosts in a row, which take no longer with one size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from collector.runfolder.runfolder import load_run
from collector.runfolder.samples import Sample, SampleStatus
from collector.runfolder.store import read_samples

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 1200
MATRIX = {
    "schema": 1,
    "name": "forwarding",
    "title": "Forwarding, small",
    "topology": "dut",
    "baseline": "empty",
    "subjects": ["forwarding"],
    "configurations": [
        {
            "name": rules,
            "about": f"packet filter {rules}",
            "factors": {"rules": rules},
            "forwarding": {"rules": rules},
        }
        for rules in ("empty", "none")
    ],
    "tests": [
        {
            "name": f"size_{size}",
            "forwarding": "max_load",
            "frame_bytes": size,
            "direction": "bidirectional",
        }
        for size in (64, 1518)
    ]
    + [
        {
            "name": "throughput_1518",
            "forwarding": "throughput",
            "frame_bytes": 1518,
            "direction": "unidirectional",
            "width_pct": 25,
            "rate_pct": 10,
        }
    ],
    "short": {"duration_s": 1, "blocks": 1, "warm_up_s": 1.0},
    "full": {"duration_s": 60, "blocks": 10, "warm_up_s": 10.0},
}


def crossover(*words: str, runs: Path) -> subprocess.CompletedProcess[str]:
    """The command line on a lab that takes its topology from the matrix."""
    environment = {**os.environ, "CROSSOVER_RUNS": str(runs)}
    environment.setdefault("CROSSOVER_LAB", "test")
    return subprocess.run(
        [sys.executable, "-m", "collector", *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


PART = ["--configurations", "empty", "--tests", "size_1518,throughput_1518"]
FORMS = {"dut": [], "chain": ["--topology", "chain", *PART]}
# Cells at maximum load that a form measures, the A/A twin of the baseline among them.
LOADED = {"dut": 6, "chain": 2}
TESTERS = {"dut": {"tester"}, "chain": {"tester", "far tester"}}


def chosen(folder: Path) -> list[Sample]:
    """The samples of the cells that the run was to measure."""
    return [s for s in read_samples(folder) if s.status is not SampleStatus.SKIPPED]


@pytest.fixture(scope="module", params=FORMS)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """(what the command printed, the run folder) of one run; the lab is put down after it."""
    runs = tmp_path_factory.mktemp("forwarding")
    file = runs / "small.yml"
    file.write_text(yaml.safe_dump(MATRIX))
    done = crossover("run", str(file), "--short", *FORMS[request.param], runs=runs)
    yield done, next(runs.glob("forwarding-*"), None)
    lab = f"{os.environ.get('CROSSOVER_LAB', 'test')}-{request.param}"
    down = crossover("lab", "--name", lab, "down", runs=runs)
    assert down.returncode == 0, down.stderr


@pytest.mark.lab
@pytest.mark.slow
def test_a_run_prints_the_table_and_leaves_all_that_it_rests_on(measured) -> None:
    done, folder = measured
    assert done.returncode == 0, done.stderr
    assert "Forwarded, per cent: direction bidirectional" in done.stdout
    assert "The lab is emulated" in done.stdout
    run = load_run(folder)
    assert run.journal[-1].event == "end"
    samples = [s for s in chosen(folder) if s.test.startswith("size_")]
    assert len(samples) == LOADED[str(run.plan.lab.topology)]
    assert {s.status for s in samples} == {SampleStatus.OK}, [s.reason for s in samples]
    for sample in samples:
        raw = folder / "raw" / sample.cell_id / "0"
        lines = [json.loads(line) for line in (raw / "trials.jsonl").read_text().splitlines()]
        assert {"warm_up", "search"} <= {line["purpose"] for line in lines}
        assert 0 < sample.value <= 100
        assert sample.bounded_by in ("line rate", "device", "generator")
        hosts = json.loads((raw / "result.json").read_text())["hosts"]
        assert set(hosts) == {"dut", *TESTERS[str(run.plan.lab.topology)]}


@pytest.mark.lab
@pytest.mark.slow
def test_the_device_says_itself_that_it_forwarded(measured) -> None:
    _, folder = measured
    files = list(folder.glob("evidence/*/0/proof.json"))
    assert len(files) == len(chosen(folder))
    for file in files:
        findings = json.loads(file.read_text())["findings"]
        assert all(finding["ok"] for finding in findings), findings
        whats = [finding["what"] for finding in findings]
        assert "datagrams that the device's IP layer forwarded" in whats


@pytest.mark.lab
@pytest.mark.slow
def test_a_search_has_a_number_or_says_why_it_has_none(measured) -> None:
    """An emulated generator on a busy machine may miss any load; then there is no number."""
    _, folder = measured
    searched = [s for s in chosen(folder) if s.test == "throughput_1518"]
    assert searched
    for sample in searched:
        assert (sample.value is None) == (sample.reason is not None)


@pytest.mark.lab
@pytest.mark.slow
def test_two_kernels_are_booted_in_turn_and_printed_side_by_side(tmp_path: Path) -> None:
    """The shipped matrix by its first look, two of its sizes; kernels are fetched by the way."""
    kernels = {"old": "debian-6.1", "new": "debian-6.12"}
    wish = ",".join(f"{label}={name}" for label, name in kernels.items())
    part = ["--configurations", "default_empty", "--tests", "size_64,size_1518", "--blocks", "1"]
    done = crossover("run", "forwarding", "--short", "--kernels", wish, *part, runs=tmp_path)
    lab = f"{os.environ.get('CROSSOVER_LAB', 'test')}-dut"
    down = crossover("lab", "--name", lab, "down", runs=tmp_path)
    assert down.returncode == 0, down.stderr
    assert done.returncode == 0, done.stderr
    head = next(line for line in done.stdout.splitlines() if line.startswith("Size"))
    assert head.split() == ["Size", "old", "new"]
    assert "new after old" in " ".join(done.stdout.split())
    run = load_run(next(tmp_path.glob("forwarding-*")))
    assert set(run.plan.kernels) == set(kernels.values())
    measured_on = {
        sample.configuration: sample.kernel
        for sample in read_samples(run.path)
        if sample.status is SampleStatus.OK
    }
    # Release, build and configuration were proven before the number counted.
    assert measured_on == {
        f"default_empty/{label}": run.plan.kernels[name].release for label, name in kernels.items()
    }

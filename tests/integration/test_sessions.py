"""Sessions between the lab's guests: at once, whole or not at all, and two hundred of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.runfolder.samples import Sample, SampleStatus
from collector.runfolder.store import read_samples

# Slow: sessions are set up one by one, and each measurement takes its window.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

LIMIT_S = 900
MATRIX = {
    "schema": 1,
    "name": "sessions",
    "title": "Sessions on the bare link",
    "topology": "pair",
    "baseline": "plain",
    "subjects": [],
    "configurations": [{"name": "plain", "about": "the bare link"}],
    "short": {"duration_s": 2, "blocks": 1, "warm_up_s": 1.0},
    "full": {"duration_s": 60, "blocks": 10, "warm_up_s": 30.0},
}
RR = {"netperf": "TCP_RR", "request_bytes": 1, "response_bytes": 1}


class Measured:
    """A run of some tests on the bare link of the lab."""

    def __init__(self, lab: Any, folder: Path, *tests: dict[str, Any]) -> None:
        self.lab = lab
        self.runs = folder / "runs"
        matrix = folder / "sessions.yml"
        matrix.write_text(yaml.safe_dump({**MATRIX, "tests": list(tests)}))
        self.argv = [sys.executable, "-m", "collector", "run", str(matrix), "--short", "--seed=1"]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv,
            cwd=self.lab.root,
            env={**self.lab.environment, "CROSSOVER_RUNS": str(self.runs)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def folder(self) -> Path:
        (found,) = self.runs.iterdir()
        return found

    def samples(self, process: subprocess.Popen[str]) -> list[Sample]:
        text, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, text
        return read_samples(self.folder())


def test_five_sessions_are_measured_over_one_window_with_the_cpu_of_both_ends(lab, tmp_path):
    run = Measured(
        lab,
        tmp_path,
        {"name": "tcp_rr_5", **RR, "sessions": 5},
        {"name": "tcp_stream_1", "netperf": "TCP_STREAM", "sessions": 1},
        {"name": "udp_5", "netperf": "UDP_STREAM", "sessions": 5, "message_bytes": 64},
    )
    samples = run.samples(run.start())
    assert {(s.status, s.reason) for s in samples} == {(SampleStatus.OK, None)}
    for one in samples:
        assert one.value is not None
        assert one.window_s == pytest.approx(2.0)
        assert one.cpu_local_kinds is not None
        assert one.cpu_remote_kinds is not None
        assert sum(one.cpu_local_each.values()) > 0
        assert one.sd_local_us is not None
        assert one.sd_remote_us is not None
        raw = run.folder() / "raw" / one.cell_id / "0"
        assert len(list((raw / "sessions").glob("*.out"))) == one.sessions
        if one.test == "tcp_rr_5":
            assert one.session_low * 5 <= one.value <= one.session_high * 5
            assert one.latency_p99_low_us <= one.latency_p99_high_us
    specification = (run.folder() / "report.html").read_text()
    assert "Specification" in specification


def test_a_killed_session_makes_its_cell_invalid_and_is_named(lab, tmp_path):
    run = Measured(lab, tmp_path, {"name": "tcp_rr_5", **RR, "sessions": 5})
    process = run.start()
    deadline = time.monotonic() + LIMIT_S
    victim = ""
    while not victim and process.poll() is None and time.monotonic() < deadline:
        running = lab.ssh("client", "pgrep -x netperf || true").split()
        if len(running) >= 5:
            victim = running[2]
            lab.ssh("client", f"kill -KILL {victim}")
        time.sleep(0.2)
    assert victim, "no five sessions were seen"
    samples = run.samples(process)
    (invalid,) = [s for s in samples if s.status is not SampleStatus.OK]
    assert (invalid.status, invalid.value) == (SampleStatus.INVALID, None)
    assert invalid.reason.startswith("session ")
    assert "of 5: wanted a result, found netperf ended with -9" in invalid.reason
    window = json.loads((run.folder() / "raw" / invalid.cell_id / "0/window.json").read_text())
    assert [one["rc"] for one in window["sessions"]].count(-9) == 1
    # The other cell of the A/A pair was left alone.
    assert [s.status for s in samples].count(SampleStatus.OK) == 1


@pytest.mark.slow
def test_two_hundred_sessions_start_and_are_summed(lab, tmp_path):
    # A minute to set up: the guests have one emulated CPU each.
    test = {"name": "tcp_rr_200", **RR, "sessions": 200, "start_s": 60}
    run = Measured(lab, tmp_path, test)
    samples = run.samples(run.start())
    assert {(s.status, s.reason, s.sessions) for s in samples} == {(SampleStatus.OK, None, 200)}
    assert all(s.value > 0 for s in samples)

"""A stress run of seconds on the lab: its controller is killed, another one sees it through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.lab

LIMIT_S = 600
SECONDS = 60
STARTED, POLLED = '"what": "started"', '"event": "poll"'
CLEAN = "systemctl stop 'crossover-stress*'; rm -rf /var/lib/crossover/stress/*"


@pytest.fixture
def command(lab, tmp_path):
    """The argv and the surroundings of ``crossover stress``."""

    def build(*words):
        argv = [sys.executable, "-m", "collector", "stress", *words]
        return {
            "args": argv,
            "cwd": lab.root,
            "env": {**lab.environment, "CROSSOVER_RUNS": str(tmp_path)},
            "stdin": subprocess.DEVNULL,
            "text": True,
        }

    yield build
    # What a failed test has left behind must not disturb the next one.
    for node in ("client", "server"):
        lab.ssh(node, CLEAN)


def noted(folder, what):
    """Whether the run's log has such a line."""
    log = folder / "stress.jsonl"
    return log.exists() and what in log.read_text()


def wait_for(condition, process):
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.2)


def test_a_run_survives_its_controller_and_ends_with_a_verdict(lab, tmp_path, command):
    words = ["netlabel_cipso", "--configuration", "C_FlCat", "--minutes", str(SECONDS / 60)]
    words += ["--interval", "2", "--chunk", "2"]
    with subprocess.Popen(
        **command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as first:
        wait_for(lambda: any(noted(run, STARTED) for run in tmp_path.iterdir()), first)
        labels = lab.ssh("client", "until ps -o label= -C netperf; do sleep 0.1; done").split()
        wait_for(lambda: any(noted(run, POLLED) for run in tmp_path.iterdir()), first)
        os.killpg(first.pid, signal.SIGKILL)
    (folder,) = tmp_path.iterdir()
    assert labels
    assert all(label.endswith(":unconfined_t:s0:c0.c239") for label in labels), labels

    done = subprocess.run(
        **command("--attach", folder.name), capture_output=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("completed: C_FlCat of netlabel_cipso completed 1 min 00 s")
    assert (folder / "report.html").is_file()

    lines = [json.loads(line) for line in (folder / "stress.jsonl").read_text().splitlines()]
    for host in ("client", "server"):
        own = [line for line in lines if line.get("host") == host and "seq" in line]
        # Nothing was lost between the two controllers.
        assert sorted({line["seq"] for line in own}) == list(range(own[-1]["seq"] + 1))
    assert [line["what"] for line in lines if line["event"] == "controller"] == [
        "started",
        "attached",
        "stopped",
    ]
    findings = json.loads((folder / "evidence" / "proof.json").read_text())["findings"]
    assert findings
    assert all(finding["ok"] for finding in findings)

    for node in ("client", "server"):
        assert lab.ssh(node, "ls /var/lib/crossover/stress") == ""
        assert lab.ssh(node, "systemctl list-units --plain --no-legend 'crossover-stress*'") == ""
    assert lab.ssh("server", "ss -Hltn 'sport = :12865'") == ""
    assert "16," not in lab.ssh("client", "netlabelctl cipso list")


def test_a_run_that_is_ended_early_has_failed_and_says_so(lab, tmp_path, command):
    words = ["netlabel_cipso", "--configuration", "Unlabel", "--hours", "1", "--interval", "2"]
    with subprocess.Popen(
        **command(*words, "--chunk", "2"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as first:
        wait_for(lambda: any(noted(run, POLLED) for run in tmp_path.iterdir()), first)
        first.send_signal(signal.SIGINT)
        said, _ = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 130, said
    (folder,) = tmp_path.iterdir()
    assert f"crossover stress --attach {folder.name} --stop" in said
    done = subprocess.run(
        **command("--attach", folder.name, "--stop"),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 40, done.stdout + done.stderr
    assert "ended before its time (told to end)" in done.stdout
    assert lab.ssh("client", "ls /var/lib/crossover/stress") == ""

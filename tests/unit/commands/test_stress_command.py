"""``crossover stress``: what it asks the playbook for, when it ends a run, what it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import stress_factory as factory

from collector.cli import main
from collector.commands import run as run_command
from collector.commands import stress
from collector.run import runner
from collector.stress import log

PLAN_ACTION, RECORD_ACTION = "crossover.lab.stress_plan", "crossover.lab.stress_record"


class Hosts:
    """Stands in the place of the playbook: hosts whose programs wrote these lines."""

    def __init__(self, folder: Path, batches: list[list[factory.Line]]) -> None:
        self.folder = folder
        self.batches = batches
        self.asked: list[str] = []
        self.variables: list[dict[str, object]] = []
        self.failing = 0
        self.failing_state: str | None = None
        self.interrupt_at: str | None = None

    def __call__(self, name, variables=None, on_event=None, options=""):
        if name == "restore":
            self.asked.append("restore")
            return runner.Outcome(code=0)
        state = variables["bench_stress_state"]
        self.asked.append(state)
        self.variables.append(dict(variables))
        if state == self.interrupt_at:
            return runner.Outcome(code=1, interrupted=True)
        if state == "started":
            self.folder.mkdir()
            document = {**factory.DOCUMENT, "run_id": self.folder.name, "duration_s": 600.0}
            (self.folder / "stress.json").write_text(json.dumps(document))
            results = {PLAN_ACTION: {"run_folder": str(self.folder)}, RECORD_ACTION: {}}
            return runner.Outcome(code=0, results=results)
        if state == self.failing_state:
            return runner.Outcome(code=4, failures=["client, Poll: unreachable"])
        if self.failing:
            self.failing -= 1
            return runner.Outcome(code=4, failures=["client, Poll: unreachable"])
        lines = self.batches.pop(0) if self.batches else []
        path = self.folder / log.LOG_FILE
        with path.open("a") as handle:
            handle.writelines(json.dumps(line) + "\n" for line in lines)
        return runner.Outcome(code=0, results={RECORD_ACTION: {"more": False}})


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """Hosts of a run that goes well for ten minutes, in two polls."""
    whole = factory.lines(10)
    first = [line for line in whole if line["elapsed_s"] < 300]
    found = Hosts(tmp_path / "stress-x-1", [first, whole])
    monkeypatch.setenv("CROSSOVER_RUNS", str(tmp_path))
    monkeypatch.setattr(runner, "run_playbook", found)
    monkeypatch.setattr(run_command, "lab_variables", lambda inventory: {"lab_accelerator": "tcg"})
    monkeypatch.setattr(stress, "lab_variables", lambda inventory: {"lab_accelerator": "tcg"})
    monkeypatch.setattr(stress.time, "sleep", lambda seconds: None)
    return found


NEW = ["stress", "netlabel_cipso", "--configuration", "C_FlCat", "--minutes", "10"]


def test_a_run_is_started_polled_ended_and_reported(hosts, capsys) -> None:
    assert main([*NEW, "--interval", "30"]) == 0
    assert hosts.asked == ["started", "polled", "polled", "stopped"]
    asked = hosts.variables[0]
    assert asked["bench_stress_duration"] == 600.0
    assert asked["bench_stress_interval"] == 30.0
    assert asked["bench_stress_configuration"] == "C_FlCat"
    said = capsys.readouterr()
    assert said.out.startswith("completed: x of small completed 10 min 00 s")
    assert "x of small has run for 4 min 00 s of 10 min 00 s; tcp 100.0·10^6 bit/s" in said.err
    assert (hosts.folder / "report.html").read_text().startswith("<!doctype html>")


def test_polls_without_an_answer_are_noted_and_asked_again(hosts, capsys) -> None:
    hosts.failing = 2
    assert main(NEW) == 0
    assert hosts.asked == ["started", *["polled"] * 4, "stopped"]
    said = capsys.readouterr()
    assert "the hosts do not answer" in said.err
    assert "* client: 2 polls without an answer" in said.out


def failing_run(hosts) -> None:
    whole = factory.lines(10)
    whole[3]["chunks"][0].update(rc=1, stdout="", stderr="no route\n")
    hosts.batches = [[line for line in whole if line["seq"] < 6], []]


def test_the_first_failure_ends_the_run(hosts, capsys) -> None:
    failing_run(hosts)
    assert main(NEW) == 40
    assert hosts.asked == ["started", "polled", "stopped"]
    assert "because of client: tcp stream: netperf ended with 1: no route" in (
        capsys.readouterr().out.replace("\n", " ")
    )


def test_a_failed_run_goes_on_where_that_is_wanted(hosts) -> None:
    failing_run(hosts)
    hosts.batches.insert(1, factory.lines(10))
    assert main([*NEW, "--keep-going"]) == 40
    assert hosts.asked == ["started", "polled", "polled", "stopped"]


def test_an_interrupt_leaves_the_streams_running_and_attach_goes_on(hosts, capsys) -> None:
    hosts.interrupt_at = "polled"
    assert main(NEW) == 130
    assert hosts.asked == ["started", "polled"]
    assert "Go on: crossover stress --attach stress-x-1" in capsys.readouterr().err
    hosts.interrupt_at = None
    assert main(["stress", "--attach", "stress-x-1"]) == 0
    assert hosts.asked[2:] == ["polled", "polled", "stopped"]


def test_a_run_that_is_over_is_only_shown(hosts, capsys) -> None:
    assert main(NEW) == 0
    log.append_event(hosts.folder, "stopped")  # as the playbook does
    first = capsys.readouterr().out
    asked = list(hosts.asked)
    assert main(["stress", "--attach", "stress-x-1"]) == 0
    assert hosts.asked == asked
    assert capsys.readouterr().out == first


def test_stop_ends_a_run_now(hosts) -> None:
    hosts.interrupt_at = "polled"
    main(NEW)
    hosts.interrupt_at = None
    hosts.batches = [factory.lines(3)]
    assert main(["stress", "--attach", str(hosts.folder), "--stop"]) == 40
    assert hosts.asked[2:] == ["stopped"]


def test_hosts_that_cannot_be_asked_at_the_end_are_put_back(hosts, capsys) -> None:
    hosts.batches = [factory.lines(10)]
    hosts.failing_state = "stopped"
    assert main(NEW) == 0
    assert hosts.asked == ["started", "polled", "stopped", "restore"]
    assert "client, Poll: unreachable" in capsys.readouterr().err


def test_an_interrupt_while_starting_puts_the_hosts_back(hosts) -> None:
    hosts.interrupt_at = "started"
    assert main(NEW) == 1
    assert hosts.asked == ["started", "restore"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "wanted a MATRIX for a new run, or --attach RUN"),
        (["m", "--attach", "r"], "wanted a MATRIX for a new run, or --attach RUN"),
        (["netlabel_cipso", "--stop"], "wanted --attach RUN with it"),
        (["netlabel_cipso", "--hours", "1"], "found no --configuration; wanted one of Unlabel"),
        (
            ["ipsec_stress", "--configuration", "ipv6_transport_manual"],
            "wanted --hours or --minutes above 0 (published: 48 hours)",
        ),
        (["--attach", "x"], "found 'x'; wanted a stress run (there is none yet)"),
    ],
)
def test_what_has_no_meaning_is_told(hosts, capsys, words, text) -> None:
    assert main(["stress", *words]) == 2
    assert text in capsys.readouterr().err
    assert hosts.asked == []

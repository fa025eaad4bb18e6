"""The command line: exit codes, and messages without a traceback."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector import __version__, cli
from collector.commands import doctor, setup
from collector.commands import lab as lab_command
from collector.commands import run as run_command
from collector.errors import CrossoverError
from collector.lab import paths, state
from collector.run.exclusive import lock_file, only_run_on
from collector.run.runner import inventory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CROSSOVER_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("CROSSOVER_LAB", raising=False)
    return tmp_path


@pytest.mark.parametrize("words", [[], ["fly"], ["lab"], ["lab", "up", "--suite", "sarge"],
                                   ["plan"], ["plan", "x", "--short", "--full"],
                                   ["run", "x", "--blocks", "many"]])  # fmt: skip
def test_a_call_without_meaning_is_2_and_shows_the_usage(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert "usage: crossover" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in cli.COMMANDS)])
def test_every_command_has_help(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: crossover")


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"crossover {__version__}\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["plan", "nope"], 2, "crossover: matrix 'nope': no such matrix; wanted one of "),
        (["plan", "no.yml"], 1, "crossover: no.yml: found No such file or directory; wanted"),
        (["plan", "netlabel_cipso", "--blocks", "0"], 2, "crossover: blocks: found 0; wanted at"),
        (["run", "nope"], 2, "crossover: matrix 'nope': no such matrix; wanted one of "),
        (["run", "no.yml"], 1, "crossover: no.yml: found No such file or directory; wanted"),
        (["run", "netlabel_cipso", "--blocks", "0"], 2, "crossover: blocks: found 0; wanted at"),
        (["lab", "ssh", "client"], 1, "crossover: lab default does not run; start it with:"),
        (["lab", "--name", "../x", "status"], 2, "crossover: lab name '../x': wanted 1 to 32 of"),
        (["report", "no-run"], 1, "crossover: no-run: found no folder of that name; wanted a run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_problems_end_in_one_line_and_their_own_code(words, code, message, capsys):
    assert cli.main(words) == code
    told = capsys.readouterr()
    assert told.err.startswith(message)
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_a_plan_is_shown_in_words_and_as_json(capsys):
    assert cli.main(["plan", "netlabel_cipso", "--blocks", "1", "--seed", "4"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("netlabel_cipso: 24 cells in 1 block, 24 measurements, about ")
    assert "too few blocks for a verdict: 1 of at least 6" in text
    assert text.count("  block 1: ") == 6
    assert cli.main(["plan", "netlabel_cipso", "--blocks", "1", "--seed", "4", "--json"]) == 0
    assert '"seed": 4' in capsys.readouterr().out


def test_status_of_a_lab_that_never_was(capsys):
    assert cli.main(["lab", "status"]) == 0
    assert capsys.readouterr().out == "lab default: never started\n"


def test_status_tells_accelerator_reason_and_what_is_dead(capsys):
    paths.lab_dir("x").mkdir(parents=True)
    found = state.LabState(
        name="x",
        topology={},
        accelerator="tcg",
        accelerator_reason="emulation, as this host has no /dev/kvm",
        image="/i",
        selinux="enforcing",
        saved="s",
        kernel="lab-6.12",
        kernel_release="6.12.1-x",
        boot=1,
    )
    found.nodes["client"] = state.NodeState(2**22 + 1, 1, 2022, "")
    found.write()
    assert cli.main(["lab", "--name", "x", "status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab x: stopped",
        "accelerator: tcg (emulation, as this host has no /dev/kvm)",
        "image: /i, SELinux enforcing",
        "kernel: lab-6.12 (6.12.1-x), boot 2",
        "client: dead, SSH on 127.0.0.1 port 2022",
        "saved state: yes",
    ]
    assert "CROSSOVER_LAB" in os.environ


def test_a_lab_is_named_by_option_environment_or_default(monkeypatch):
    assert lab_command.lab_name() == "default"
    monkeypatch.setenv("CROSSOVER_LAB", "mine")
    assert lab_command.lab_name() == "mine"


def test_an_interrupt_is_130(monkeypatch, capsys):
    def stop(_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", stop)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "crossover: interrupted\n"


def test_a_reader_that_went_away_is_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -m collector plan netlabel_cipso --json | head -c 1",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_what_is_missing_is_found_by_the_roles_own_table(monkeypatch, tmp_path):
    monkeypatch.setattr(setup.shutil, "which", lambda name, path: None)
    plain, tests = setup.missing_programs(), setup.missing_programs(tests=True)
    assert {"mmdebstrap", "qemu-system-x86", "uidmap"} <= set(plain)
    assert set(tests) - set(plain) >= {"shellcheck", "chromium"}


class Answers:
    def isatty(self):
        return True

    def readline(self):
        return "n\n"


def test_nothing_is_installed_against_the_users_word(monkeypatch, capsys):
    monkeypatch.setattr(setup, "missing_programs", lambda *wanted: ["uidmap"])
    monkeypatch.setattr("sys.stdin", Answers())
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert cli.main(["setup"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "missing on this machine: uidmap",
        "crossover: setup: not installed; to do it by hand: apt-get install uidmap",
    ]


def test_without_root_and_sudo_the_command_for_root_is_told(monkeypatch, capsys):
    monkeypatch.setattr(setup, "missing_programs", lambda *wanted: ["uidmap"])
    monkeypatch.setattr(setup.os, "getuid", lambda: 1000)
    monkeypatch.setattr(setup.shutil, "which", lambda name, path=None: None)
    assert cli.main(["setup"]) == 1
    assert capsys.readouterr().err.endswith(
        "crossover: setup: neither root nor sudo; as root: apt-get install uidmap\n"
    )


def test_setup_on_a_machine_that_has_all_does_nothing(monkeypatch, capsys):
    monkeypatch.setattr(setup, "missing_programs", lambda *wanted: [])
    assert cli.main(["setup"]) == 0
    assert capsys.readouterr().out == "this machine has what Crossover needs\n"


def test_the_doctor_names_each_trouble_and_a_remedy(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "missing_programs", lambda: ["mmdebstrap"])
    monkeypatch.setattr(doctor, "LAB_BYTES", 2**70)
    assert cli.main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "BAD  programs: missing: mmdebstrap" in lines
    assert "     crossover setup installs them" in lines
    assert [line for line in lines if line.startswith("BAD  disk: ")]
    assert "ok   lab: default does not run" in lines


def test_the_doctor_is_content_with_a_machine_that_has_all(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "missing_programs", list)
    monkeypatch.setattr(doctor, "LAB_BYTES", 1)
    monkeypatch.setattr("collector.lab.image.host_mirror", lambda: "http://archive.example")
    assert cli.main(["doctor"]) == 0
    assert "BAD" not in capsys.readouterr().out


def outcome(code, *failures, interrupted=False):
    from collector.run.runner import Outcome

    return Outcome(code=code, interrupted=interrupted, failures=list(failures))


def test_a_run_that_never_came_to_a_plan_tells_why(monkeypatch):
    monkeypatch.setattr(run_command, "lab_variables", lambda inventory: {})
    monkeypatch.setattr(
        "collector.run.runner.run_playbook",
        lambda *a, **k: outcome(2, "client, Reach it: no route"),
    )
    with pytest.raises(CrossoverError) as caught:
        run_command.measure({"matrix": "netlabel_cipso"}, resume=False)
    assert str(caught.value) == "run netlabel_cipso: client, Reach it: no route"


def test_an_interrupted_run_puts_the_hosts_back_and_says_how_to_go_on(monkeypatch):
    names = []

    def play(name, *_args, **_kwargs):
        names.append(name)
        return outcome(1, interrupted=name == "benchmark")

    monkeypatch.setattr(run_command, "lab_variables", lambda inventory: {})
    monkeypatch.setattr("collector.run.runner.run_playbook", play)
    with pytest.raises(CrossoverError) as caught:
        run_command.measure({"matrix": "netlabel_cipso"}, resume=True)
    assert names == ["benchmark", "restore"]
    assert str(caught.value) == (
        "run netlabel_cipso: interrupted; nothing was measured; --resume goes on"
    )


def test_a_second_run_on_the_same_hosts_is_told_who_is_at_it(alone, capsys):
    context = multiprocessing.get_context("fork")
    ready, leave = context.Event(), context.Event()

    def hold():
        with only_run_on(inventory()):
            ready.set()
            leave.wait(60)

    holder = context.Process(target=hold)
    holder.start()
    try:
        assert ready.wait(60)
        assert cli.main(["run", "netlabel_cipso"]) == 75
    finally:
        leave.set()
        holder.join()
    assert capsys.readouterr().err == (
        f"crossover: {inventory()}: another crossover (pid {holder.pid}) measures on these hosts;"
        " wait for it to end\n"
    )
    assert not (alone / "runs").exists()


def test_other_labs_and_inventories_are_other_hosts(monkeypatch):
    first = lock_file("a")
    assert lock_file("b") != first
    monkeypatch.setenv("CROSSOVER_LAB", "mine")
    assert lock_file("a") != first

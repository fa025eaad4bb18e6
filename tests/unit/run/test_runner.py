"""Playbooks through ansible-runner: what failed comes back as a sentence."""

import os
import signal
import threading
import time

import pytest

from collector.errors import CrossoverError, LockedError
from collector.run import runner
from collector.run.runner import Outcome, must

INVENTORY = """\
controller:
  hosts:
    localhost:
      ansible_connection: local
      ansible_python_interpreter: "{{ ansible_playbook_python }}"
"""
PLAY = """\
- name: Something small
  hosts: controller
  gather_facts: false
  tasks:
"""
TASKS = {
    "good": "    - name: Say it\n      ansible.builtin.debug: {msg: 'as told: {{ word }}'}\n",
    "bad": "    - name: Break\n      ansible.builtin.fail: {msg: 'it broke: wanted more'}\n",
    "ignored": (
        "    - name: Try\n      ansible.builtin.fail: {msg: 'never mind'}\n"
        "      ignore_errors: true\n"
    ),
    "busy": ("    - name: Take the lab\n      crossover.lab.qemu_lab: {name: held, state: down}\n"),
    "long": (
        "    - name: Wait\n      ansible.builtin.command: {argv: [sleep, '60']}\n"
        "      changed_when: false\n"
    ),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Playbooks by the names of TASKS, an inventory of this machine, the project's own plugins."""
    (tmp_path / "playbooks").mkdir()
    for name, tasks in TASKS.items():
        (tmp_path / "playbooks" / f"{name}.yml").write_text(PLAY + tasks)
    (tmp_path / "playbooks" / "broken.yml").write_text("- hosts: [\n")
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    config = runner.ROOT / "ansible.cfg"
    real = runner.environment()
    monkeypatch.setattr(
        runner, "environment", lambda remote=True: {**real, "ANSIBLE_CONFIG": str(config)}
    )
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setenv("CROSSOVER_INVENTORY", str(tmp_path / "hosts.yml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CROSSOVER_STRATEGY", "linear")
    return tmp_path


def test_results_events_and_variables_come_through(project):
    kinds = []
    outcome = runner.run_playbook("good", {"word": "so"}, lambda kind, data: kinds.append(kind))
    assert (outcome.code, outcome.failures, outcome.interrupted) == (0, [], False)
    assert outcome.results["ansible.builtin.debug"]["msg"] == "as told: so"
    assert "playbook_on_task_start" in kinds
    assert "runner_on_ok" in kinds
    assert must(outcome, "x") is outcome


def test_a_failure_is_a_sentence_with_host_task_and_message(project):
    outcome = runner.run_playbook("bad")
    assert outcome.code
    assert outcome.failures == ["localhost, Break: it broke: wanted more"]
    with pytest.raises(CrossoverError) as caught:
        must(outcome, "lab up")
    assert str(caught.value) == "lab up: localhost, Break: it broke: wanted more"
    assert caught.value.exit_code == 1


def test_a_failure_that_the_playbook_ignores_is_none(project):
    outcome = runner.run_playbook("ignored")
    assert (outcome.code, outcome.failures) == (0, [])


def test_an_unset_variable_and_a_broken_playbook_are_told_too(project):
    assert "'word' is undefined" in runner.run_playbook("good").failures[0]
    outcome = runner.run_playbook("broken")
    assert outcome.code
    assert len(outcome.failures) == 1
    place = f"{project}/playbooks/broken.yml:2:1: "
    assert outcome.failures[0].startswith(f"{place}YAML parsing failed")


def test_a_lab_that_is_held_is_busy_with_its_own_exit_code(project):
    from collector.lab import state

    with state.locked("held"):
        outcome = runner.run_playbook("busy")
    assert outcome.busy
    with pytest.raises(LockedError, match=rf"another process \(pid {os.getpid()}\)") as caught:
        must(outcome, "lab down")
    assert caught.value.exit_code == 75


def test_an_interrupt_stops_the_playbook_and_is_told(project):
    def interrupt(kind, data):
        if kind == "runner_on_start":
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    before = signal.getsignal(signal.SIGINT)
    began = time.monotonic()
    outcome = runner.run_playbook("long", on_event=interrupt)
    assert outcome.interrupted
    assert time.monotonic() - began < 60
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(CrossoverError, match=r"^run: interrupted$"):
        must(outcome, "run")


def test_an_outcome_without_a_word_is_still_told():
    with pytest.raises(CrossoverError, match=r"^x: failed$"):
        must(Outcome(code=2), "x")


def test_the_environment_finds_the_project_from_any_folder():
    made = runner.environment()
    assert made["ANSIBLE_CONFIG"] == str(runner.ROOT / "ansible.cfg")
    assert made["PATH"].endswith(os.environ["PATH"])


def test_mitogen_is_the_strategy_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("CROSSOVER_STRATEGY", raising=False)
    made = runner.strategy_environment()
    assert made["ANSIBLE_STRATEGY"] == "mitogen_linear"
    assert (runner.Path(made["ANSIBLE_STRATEGY_PLUGINS"]) / "mitogen_linear.py").is_file()
    monkeypatch.setenv("CROSSOVER_STRATEGY", "linear")
    assert runner.strategy_environment() == {}


def test_the_inventory_can_be_another_one(monkeypatch):
    monkeypatch.setenv("CROSSOVER_INVENTORY", "/etc/lab")
    assert runner.inventory() == "/etc/lab"
    monkeypatch.delenv("CROSSOVER_INVENTORY")
    assert runner.inventory() == str(runner.ROOT / "inventories" / "qemu")

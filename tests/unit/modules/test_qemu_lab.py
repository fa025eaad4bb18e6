"""The module qemu_lab: what it refuses, check mode, and a lab held by somebody else."""

import os
import subprocess
import sys

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils.lab import paths, process, state
from ansible_collections.crossover.lab.plugins.modules import qemu_lab

TOPOLOGY = {"schema": 1, "name": "one", "nodes": {"a": {}}, "links": []}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "cache" / "crossover"


@pytest.fixture
def running(cache):
    """A state file that says that the lab runs: its guest is a process of ours."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = process.identify(child.pid)
        paths.lab_dir("x").mkdir(parents=True)
        made = state.LabState(name="x", topology=TOPOLOGY)
        made.nodes["a"] = state.NodeState(found.pid, found.started, 1, "")
        made.write()
        yield child
        child.kill()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "topology: found nothing; wanted a topology for state=up"),
        (
            {"topology": TOPOLOGY},
            "image: found None; wanted a baked image's folder or a qcow2 file",
        ),
        (
            {"topology": TOPOLOGY, "image": "/absent"},
            "image: found '/absent'; wanted a baked image's folder or a qcow2 file",
        ),
        (
            {"topology": {**TOPOLOGY, "nodes": {}}, "cloud_image": __file__},
            "topology nodes: found {}; wanted a dict of at least one node",
        ),
        (
            {"name": "../x", "state": "down"},
            "lab name '../x': wanted 1 to 32 of a-z, 0-9, '_', '-', not starting with a sign",
        ),
    ],
)
def test_a_refusal_says_what_came_and_what_was_wanted(arguments, message, capsys):
    answer = call(qemu_lab, capsys, **arguments)
    assert (answer["failed"], answer["exit_code"]) == (True, 1)
    assert answer["msg"] == message


def test_two_images_are_one_too_many(capsys):
    answer = call(qemu_lab, capsys, image="/a", cloud_image="/b")
    assert "mutually exclusive" in answer["msg"]


def test_check_mode_tells_by_the_state_and_touches_nothing(running, capsys):
    for wanted, changed in (("up", False), ("down", True), ("absent", True)):
        assert call(qemu_lab, capsys, check=True, name="x", state=wanted)["changed"] is changed
        assert call(qemu_lab, capsys, check=True, name="y", state=wanted)["changed"] is not changed
    assert running.poll() is None
    assert not paths.lab_dir("y").exists()


def test_down_ends_the_guest_and_a_second_time_nothing(running, capsys):
    pid = running.pid
    assert call(qemu_lab, capsys, name="x", state="down")["changed"] is True
    assert process.identify(pid) is None
    assert state.load("x").nodes == {}
    assert call(qemu_lab, capsys, name="x", state="down")["changed"] is False


def test_absent_takes_disks_and_keys_too(running, capsys):
    assert call(qemu_lab, capsys, name="x", state="absent")["changed"] is True
    assert not paths.lab_dir("x").exists()


def test_a_lab_in_other_hands_is_a_temporary_failure(capsys):
    with state.locked("x"):
        answer = call(qemu_lab, capsys, name="x", state="down")
    assert answer["exit_code"] == 75
    assert f"another process (pid {os.getpid()})" in answer["msg"]

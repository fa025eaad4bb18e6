"""The modules lab_kernel and kernel_build: what they refuse, check mode, what they return."""

import json

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils.lab import instance, paths, state
from ansible_collections.crossover.lab.plugins.modules import kernel_build, lab_kernel

FACTS = {"schema": 1, "name": "lab", "identity": "1" * 16, "release": "6.12.1-x"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def built(tmp_path):
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "entry.json").write_text(json.dumps(FACTS))
    return folder


@pytest.fixture
def running(monkeypatch):
    """A lab that runs the image's own kernel, and what it was asked to switch to."""
    paths.lab_dir("x").mkdir(parents=True)
    state.LabState(name="x", topology={}, wish={"name": "x"}).write()
    monkeypatch.setattr(state.LabState, "running", lambda self: True)
    asked = []

    def switch(name, kernel, boot):
        asked.append((name, kernel, boot))
        return True, state.LabState(name=name, topology={}, kernel="lab", boot=boot)

    monkeypatch.setattr(instance, "switch", switch)
    return asked


def test_a_lab_that_does_not_run_is_told(capsys):
    answer = call(lab_kernel, capsys, name="x")
    assert (answer["failed"], answer["msg"]) == (True, "lab x does not run; start it first")


def test_the_guests_are_booted_once(running, built, capsys):
    answer = call(lab_kernel, capsys, name="x", kernel=str(built), boot=1)
    assert answer["changed"]
    assert answer["lab"]["kernel"] == "lab"
    assert answer["diff"] == {
        "before": "the kernel of the image, boot 1\n",
        "after": "lab, boot 2\n",
    }
    assert running == [("x", built, 1)]


def test_guests_that_run_it_already_are_left_alone(running, built, capsys):
    answer = call(lab_kernel, capsys, name="x")
    assert not answer["changed"]
    assert running == []


def test_check_mode_boots_nothing(running, built, capsys):
    answer = call(lab_kernel, capsys, check=True, name="x", kernel=str(built))
    assert answer["changed"]
    assert running == []


def test_a_folder_without_a_kernel_is_refused(running, tmp_path, capsys):
    answer = call(lab_kernel, capsys, name="x", kernel=str(tmp_path))
    assert "wanted the folder of a built kernel" in answer["msg"]
    assert running == []


def test_a_kernel_without_an_entry_is_refused(capsys):
    answer = call(kernel_build, capsys, name="lab")
    assert answer["msg"] == "kernel lab: found no entry; wanted one, or a name of the files"


def test_an_entry_that_is_wrong_names_its_key(capsys):
    answer = call(kernel_build, capsys, name="lab", entry={"about": "a", "package": {}})
    assert answer["msg"].startswith("entry: lab.package.name: found None; wanted a text like")


def test_check_mode_says_that_the_kernel_would_be_made(capsys):
    entry = {"about": "a", "package": {"name": "linux-image-amd64"}}
    answer = call(kernel_build, capsys, check=True, name="lab", entry=entry)
    assert answer["changed"]
    assert "path" not in answer

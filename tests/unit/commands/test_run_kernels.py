"""A run that booted kernels leaves the lab on what it ran before."""

from __future__ import annotations

import pytest

from collector import cli
from collector.commands import lab as lab_command
from collector.commands import run as run_command
from collector.errors import UsageError
from collector.lab import paths, state
from collector.matrix.matrix import load_matrix
from collector.run.runner import ROOT

QEMU = str(ROOT / "inventories" / "qemu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CROSSOVER_LAB", "x")


@pytest.fixture
def started(monkeypatch):
    asked = []
    monkeypatch.setattr(lab_command, "start_lab", asked.append)
    return asked


def runs(kernel, boot):
    paths.lab_dir("x").mkdir(parents=True, exist_ok=True)
    state.LabState(name="x", topology={}, kernel=kernel, boot=boot).write()


def test_guests_that_were_left_on_a_kernel_are_taken_home(started):
    runs(None, 0)
    home = run_command.lab_kernel(QEMU)
    runs("lab-6.12", 1)
    run_command.take_home(home)
    assert started == [{"lab_qemu_kernel": "", "lab_qemu_boot": "0"}]


def test_guests_that_are_home_are_left_alone(started):
    runs("lab-6.12", 1)
    run_command.take_home(run_command.lab_kernel(QEMU))
    assert started == []


@pytest.mark.parametrize("inventory", ["/nowhere", str(ROOT / "inventories" / "netns")])
def test_other_hosts_are_none_of_the_labs(started, inventory):
    runs("lab-6.12", 1)
    home = run_command.lab_kernel(inventory)
    assert home is None
    run_command.take_home(home)
    assert started == []


def test_kernels_that_were_asked_for_and_are_not_built_end_the_run_before_it_starts():
    matrix = load_matrix(ROOT / "playbooks" / "matrices" / "netlabel_cipso.yml")
    with pytest.raises(UsageError) as refused:
        run_command.prepare_kernels(matrix, "lab-6.12,lab-6.12-disable", "guests", False)
    assert str(refused.value).startswith("kernel lab-6.12 and lab-6.12-disable: never built; about")
    run_command.prepare_kernels(matrix, None, "guests", False)
    run_command.prepare_kernels(matrix, "none", "guests", False)


def test_a_plan_without_its_base_is_refused_as_the_run_would_be(capsys):
    words = ["plan", "forwarding", "--short", "--kernels"]
    assert cli.main([*words, "old=lab-6.1,new=debian-6.12"]) != 0
    error = capsys.readouterr().err
    assert "baseline default_empty/old: found kernel lab-6.1: never built; about" in error
    assert "wanted one that runs (--kernels none: on what the hosts run)" in error
    assert cli.main([*words, "old=debian-6.1,new=lab-6.1"]) == 0
    assert "skipped: default_empty/new: kernel lab-6.1: never built" in capsys.readouterr().out

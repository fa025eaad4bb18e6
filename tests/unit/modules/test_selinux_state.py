"""The module selinux_state: a guard that fires while the mode changes is told, not passed over."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import guard
from ansible_collections.crossover.lab.plugins.module_utils.host import selinux, selinux_state
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.settings import Change
from ansible_collections.crossover.lab.plugins.modules import selinux_state as module

ARMED = guard.Armed("0123456789ab", 30, "unit", "/run/x/script")
ENFORCE = (Change("mode", "permissive", "enforcing"),)


@pytest.fixture
def steps(monkeypatch):
    """What is done, in order; the host and its guard are only remembered."""
    done = []

    def note(name):
        return lambda *arguments: done.append(name)

    monkeypatch.setattr(module, "_arm", lambda wanted: done.append("arm") or ARMED)
    for name in ("begin", "check", "finish", "roll_back"):
        monkeypatch.setattr(guard, name, note(name))
    for name in ("make_modules", "make_config", "make_booleans"):
        monkeypatch.setattr(selinux_state, name, note(name))
    monkeypatch.setattr(selinux, "set_mode", note("set_mode"))
    return done


def make(changes=ENFORCE):
    return module._make(changes, selinux_state.Declared({}), None, {"token": "x", "timeout": 30})


def test_the_guard_is_looked_at_before_the_mode_changes_and_after(steps):
    assert make() is ARMED
    assert steps == [
        "make_modules", "arm", "begin", "make_config", "make_booleans", "check", "set_mode",
        "finish",
    ]  # fmt: skip


@pytest.mark.parametrize("step", ["check", "finish"])
def test_a_guard_that_fired_meanwhile_is_no_success(steps, monkeypatch, step):
    def fired(armed):
        raise guard.FiredError(armed)

    monkeypatch.setattr(guard, step, fired)
    with pytest.raises(guard.FiredError, match="the guard's 30 s were over before the change"):
        make()
    assert steps[-1] == "roll_back"
    assert ("set_mode" in steps) == (step == "finish")


def test_a_step_that_fails_is_undone(steps, monkeypatch):
    def refuse(mode):
        raise HostError("no")

    monkeypatch.setattr(selinux, "set_mode", refuse)
    with pytest.raises(HostError, match="no"):
        make()
    assert steps[-1] == "roll_back"
    assert "finish" not in steps


def test_what_cuts_nobody_off_needs_no_guard(steps):
    assert make((Change("mode", "enforcing", "permissive"),)) is None
    assert "arm" not in steps
    assert "finish" not in steps

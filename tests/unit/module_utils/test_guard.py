"""The guard's host side: the rollback script is run for real, by a real shell."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import guard
from ansible_collections.crossover.lab.plugins.module_utils.guard import (
    Command,
    FiredError,
    GuardError,
    RemoveFile,
    WriteFile,
)
from ansible_collections.crossover.lab.plugins.module_utils.host import process

TOKEN = "0123456789ab"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder of stand-ins for systemd-run and systemctl, before the host's own tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemd-run", "systemctl"):
        tool = folder / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/calls\n')
        tool.chmod(0o755)
    monkeypatch.setattr(guard, "SEARCH", f"{folder}:{guard.SEARCH}")
    return folder


@pytest.fixture
def home(tmp_path):
    return tmp_path / "guard"


def run(armed, verb):
    return subprocess.run(
        ["/bin/sh", armed.script, verb], capture_output=True, text=True, check=False, timeout=20
    )


def arm(tmp_path, home, operations=(), timeout=30, finished=True):
    armed = guard.arm(TOKEN, timeout, operations, folder=home, systemd=tmp_path)
    guard.begin(armed)
    if finished:
        guard.finish(armed)
    return armed


def test_arming_starts_an_exact_timer_and_keeps_the_script_for_root(tmp_path, home, tools):
    armed = arm(tmp_path, home, timeout=20)

    call = (tmp_path / "calls").read_text()
    assert "systemd-run --quiet --collect --on-active=20s" in call
    assert "--timer-property=AccuracySec=100ms" in call
    assert f"--unit=crossover-guard-{TOKEN}" in call
    assert call.rstrip().endswith(f"/bin/sh {armed.script} rollback")
    assert stat.S_IMODE(Path(armed.script).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(armed.script).parent.stat().st_mode) == 0o700
    assert armed.as_result() == {
        "token": TOKEN,
        "timeout": 20,
        "unit": f"crossover-guard-{TOKEN}",
        "script": armed.script,
    }


def test_systemd_without_systemd_run_is_refused_before_anything_is_written(
    tmp_path, home, monkeypatch
):
    monkeypatch.setattr(guard, "SEARCH", str(tmp_path / "empty"))
    with pytest.raises(GuardError) as error:
        arm(tmp_path, home)
    assert str(error.value) == (
        "guard: this host runs systemd and has no systemd-run; wanted it, because the "
        "rollback must outlive the connection"
    )
    assert not home.exists()


def sleeper(armed):
    """The process that stands for the timer, and whether it is there still."""
    pid = int((Path(armed.script).parent / "sleeper").read_text())
    return pid, process.stat(pid)


def test_without_systemd_a_process_of_its_own_session_undoes_the_change(tmp_path, home):
    gone = tmp_path / "gone"
    gone.touch()
    operations = [RemoveFile(str(gone))]
    armed = guard.arm(TOKEN, 3, operations, folder=home, systemd=tmp_path / "absent")
    pid, found = sleeper(armed)
    assert found is not None
    assert (found.session, found.group) == (pid, pid)
    deadline = time.monotonic() + 60
    while not (Path(armed.script).parent / "fired").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not gone.exists()
    assert run(armed, "disarm").stdout == "rolled back\n"
    run(armed, "forget")
    assert not Path(armed.script).parent.exists()
    os.waitpid(pid, 0)


def test_disarming_ends_the_process_that_stands_for_the_timer(tmp_path, home):
    armed = guard.arm(TOKEN, 3600, (), folder=home, systemd=tmp_path / "absent")
    pid, _found = sleeper(armed)
    assert run(armed, "disarm").stdout == "disarmed\n"
    _pid, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert list(home.iterdir()) == []


def test_a_timer_that_does_not_start_leaves_nothing_armed(tmp_path, home, tools):
    (tools / "systemd-run").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    with pytest.raises(GuardError) as error:
        arm(tmp_path, home)
    assert str(error.value) == (
        f"guard: systemd-run could not start crossover-guard-{TOKEN}.timer: "
        "Failed to connect to bus"
    )
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("timeout", [0, 2, 3601])
def test_a_timeout_out_of_bounds_is_refused(tmp_path, home, tools, timeout):
    with pytest.raises(GuardError) as error:
        arm(tmp_path, home, timeout=timeout)
    assert str(error.value) == f"guard.timeout: {timeout}, wanted 3 to 3600 seconds"


@pytest.mark.parametrize("token", ["", "../../etc", "XYZ", "0123"])
def test_a_token_that_is_no_name_is_refused(token):
    with pytest.raises(GuardError, match="wanted 8 to 32 hexadecimal digits"):
        guard.check_request(30, token)


def test_a_token_in_use_is_refused(tmp_path, home, tools):
    arm(tmp_path, home)
    with pytest.raises(GuardError, match="is in use already"):
        arm(tmp_path, home)


def test_firing_runs_the_operations_in_order_and_says_so(tmp_path, home, tools):
    kernel = tmp_path / "sysctl"
    kernel.write_text("0\n")
    record, gone = tmp_path / "it's a record", tmp_path / "gone"
    gone.touch()
    armed = arm(
        tmp_path,
        home,
        [
            Command(("sh", "-c", f"echo 'one; $two' >>{tmp_path}/log")),
            Command(("sh", "-c", f"cat >>{tmp_path}/log"), stdin="key 'quoted'\n"),
            WriteFile(str(kernel), "1\n"),
            WriteFile(str(record), "text\n", 0o600),
            RemoveFile(str(gone)),
        ],
    )

    assert run(armed, "collect").stdout == "armed\n"
    assert run(armed, "rollback").returncode == 0
    assert (tmp_path / "log").read_text() == "one; $two\nkey 'quoted'\n"
    assert kernel.read_text() == "1\n"
    assert record.read_text() == "text\n"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert not gone.exists()
    for _ in range(2):  # the first answer may be lost
        assert guard.read_report(run(armed, "collect").stdout) == ("rolled back", ())
    run(armed, "forget")
    assert not Path(armed.script).parent.exists()


def test_a_failing_operation_is_told_and_does_not_stop_the_others(tmp_path, home, tools):
    armed = arm(
        tmp_path,
        home,
        [
            Command(("sh", "-c", "echo no such map >&2; exit 1"), tolerate="no such map"),
            Command(("sh", "-c", "echo busy >&2; exit 1")),
            Command(("touch", str(tmp_path / "after"))),
        ],
    )
    run(armed, "rollback")
    assert (tmp_path / "after").exists()
    state, failures = guard.read_report(run(armed, "collect").stdout)
    assert state == "rolled back"
    assert failures == ("sh -c echo busy >&2; exit 1: busy",)


def test_an_operation_is_tried_again(tmp_path, home, tools):
    flag = tmp_path / "flag"
    once = f"test -e {flag} || {{ touch {flag}; exit 1; }}"
    armed = arm(tmp_path, home, [Command(("sh", "-c", once), tries=2)])
    run(armed, "rollback")
    assert guard.read_report(run(armed, "collect").stdout) == ("rolled back", ())


def test_disarming_stops_the_timer_and_leaves_nothing(tmp_path, home, tools):
    armed = arm(tmp_path, home, [Command(("touch", str(tmp_path / "undone")))])
    assert run(armed, "disarm").stdout == "disarmed\n"
    assert f"systemctl stop {armed.unit}.timer" in (tmp_path / "calls").read_text()
    assert list(home.iterdir()) == []
    assert not (tmp_path / "undone").exists()


def test_an_armed_guard_is_not_forgotten(tmp_path, home, tools):
    armed = arm(tmp_path, home)
    run(armed, "forget")
    assert run(armed, "collect").stdout == "armed\n"


def test_a_timer_that_cannot_be_stopped_is_not_disarmed(tmp_path, home, tools):
    armed = arm(tmp_path, home, [Command(("touch", str(tmp_path / "undone")))])
    (tools / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    done = run(armed, "disarm")
    assert (done.returncode, done.stdout) == (1, "")
    run(armed, "rollback")
    assert (tmp_path / "undone").exists()


def test_disarming_too_late_reports_the_rollback(tmp_path, home, tools):
    armed = arm(tmp_path, home)
    run(armed, "rollback")
    assert run(armed, "disarm").stdout == "rolled back\n"


def test_firing_after_the_disarming_has_begun_does_nothing(tmp_path, home, tools):
    armed = arm(tmp_path, home, [Command(("touch", str(tmp_path / "undone")))])
    (Path(armed.script).parent / "claimed").mkdir()
    assert run(armed, "rollback").returncode == 0
    assert not (tmp_path / "undone").exists()
    assert run(armed, "collect").stdout == "rolling back\n"


def test_an_unknown_verb_is_refused(tmp_path, home, tools):
    done = run(arm(tmp_path, home), "explode")
    assert done.returncode == 2
    assert "'explode', wanted rollback, disarm, collect or forget" in done.stderr


def test_a_failed_step_is_undone_at_once(tmp_path, home, tools):
    undone = tmp_path / "undone"
    armed = arm(tmp_path, home, [Command(("touch", str(undone))), Command(("false",))])
    assert guard.roll_back(armed) == ("false:",)
    assert undone.exists()
    assert list(home.iterdir()) == []


def test_a_change_without_risk_needs_no_systemd_and_can_be_undone(tmp_path, home, monkeypatch):
    armed = guard.prepare(TOKEN, 30, [Command(("touch", str(tmp_path / "undone")))], home)
    guard.roll_back(armed)
    assert (tmp_path / "undone").exists()
    kept = guard.prepare(TOKEN, 30, [], home)
    guard.forget(kept)
    assert list(home.iterdir()) == []


# --- a change that is slower than its guard -----------------------------------------------------


def test_the_rollback_waits_until_the_change_has_stopped(tmp_path, home, tools):
    undone = tmp_path / "undone"
    armed = arm(tmp_path, home, [Command(("touch", str(undone)))], finished=False)
    with subprocess.Popen(["/bin/sh", armed.script, "rollback"]) as rollback:
        while not (Path(armed.script).parent / "claimed").exists():
            time.sleep(0.01)
        with pytest.raises(FiredError) as error:
            guard.check(armed)
        assert rollback.poll() is None
        assert not undone.exists()
        assert guard.roll_back(armed, poll=0.02) == ()
    assert undone.exists()
    assert str(error.value) == (
        "the guard's 30 s were over before the change was complete; wanted a longer "
        "guard.timeout or a host with less to do"
    )


def test_the_rollback_does_not_wait_for_a_change_whose_process_is_gone(tmp_path, home, tools):
    armed = arm(tmp_path, home, finished=False)
    gone = subprocess.run(["/bin/sh", "-c", "echo $$"], capture_output=True, check=True)
    (Path(armed.script).parent / "busy").write_bytes(gone.stdout)
    run(armed, "rollback")
    assert guard.read_report(run(armed, "collect").stdout) == ("rolled back", ())


def test_a_change_that_ends_after_its_guard_has_fired_is_told(tmp_path, home, tools):
    armed = arm(tmp_path, home, finished=False)
    guard.check(armed)
    (Path(armed.script).parent / "claimed").mkdir()
    with pytest.raises(FiredError):
        guard.finish(armed)


# --- guards of controllers that are gone -------------------------------------------------------


def test_no_guard_means_nothing_to_wait_for(home):
    assert guard.settle(home) == ()


def test_a_fired_guard_is_cleared_away_and_told(tmp_path, home, tools):
    armed = arm(tmp_path, home, [Command(("false",))])
    run(armed, "rollback")
    (warning,) = guard.settle(home)
    assert warning.startswith(
        "guard: an earlier change was never confirmed and has been rolled back; it could not "
        "undo: false:"
    )
    assert list(home.iterdir()) == []


def test_an_armed_guard_is_waited_for(tmp_path, home, tools):
    armed = arm(tmp_path, home)
    with subprocess.Popen(["/bin/sh", "-c", f"sleep 0.2; /bin/sh {armed.script} rollback"]):
        (warning,) = guard.settle(home, poll=0.02)
    assert "has been rolled back" in warning


def test_an_overdue_guard_is_an_error(tmp_path, home, tools):
    armed = arm(tmp_path, home)
    own = Path(armed.script).parent
    (own / "deadline").write_text(f"{time.monotonic() - 60}\n")
    with pytest.raises(GuardError) as error:
        guard.settle(home, grace=1, poll=0.01)
    assert str(error.value) == (
        f"guard: an earlier rollback, {TOKEN}, is overdue; see `systemctl status "
        f"crossover-guard-{TOKEN}.timer`, then remove {own}"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("disarmed\n", ("disarmed", ())),
        ("Welcome to the host\nrolled back\nmap del: busy\n", ("rolled back", ("map del: busy",))),
        ("rolling back\n", ("rolling back", ())),
        ("", ("unknown", ())),
        ("sh: cannot open script\n", ("unknown", ())),
    ],
)
def test_reports_are_read_past_what_a_login_prints(text, wanted):
    assert guard.read_report(text) == wanted

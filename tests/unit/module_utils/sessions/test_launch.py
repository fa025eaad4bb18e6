"""Sessions are started together, and what each wrote comes home apart."""

import os
import signal
import sys

import pytest

from collector.sessions import launch

AT_ONCE = launch.Timing(0, 0)
SCRIPT = "import sys,os; print('out', os.getpid()); print('err', file=sys.stderr)"


def test_each_copy_keeps_its_own_output(tmp_path):
    found = launch.launch([sys.executable, "-c", SCRIPT], 5, 30, str(tmp_path), AT_ONCE)
    assert [one.number for one in found] == [1, 2, 3, 4, 5]
    assert len({one.stdout for one in found}) == 5
    assert {(one.rc, one.timed_out, one.stderr) for one in found} == {(0, False, "err\n")}
    starts = [one.started_at for one in found]
    assert starts == sorted(starts)


def test_each_waits_for_those_started_last_and_its_length_covers_the_wait(tmp_path):
    argv = [sys.executable, "-c", "import sys; print(*sys.argv[1:])", "@wait", "@length"]
    found = launch.launch(argv, 3, 30, str(tmp_path), launch.Timing(7, 4))
    for one in found:
        wait, length = map(int, one.stdout.split())
        assert (one.wait_s, length) == (wait, wait + 4)
        assert 1 <= wait <= 7
    assert found[0].wait_s == 7


@pytest.mark.parametrize("inherited", [signal.default_int_handler, signal.SIG_IGN])
def test_sessions_are_told_to_end_when_their_time_is_over(tmp_path, inherited):
    before = signal.signal(signal.SIGINT, inherited)
    script = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('told')"
    timing = launch.Timing(2, 1, interrupt=True)
    try:
        found = launch.launch([sys.executable, "-c", script], 2, 30, str(tmp_path), timing)
        assert signal.getsignal(signal.SIGINT) is inherited  # a background job stays one
    finally:
        signal.signal(signal.SIGINT, before)
    assert {(one.rc, one.timed_out, one.stdout) for one in found} == {(0, False, "told\n")}


@pytest.mark.parametrize(
    ("since", "wait"), [(0.0, 7), (0.001, 7), (1.0, 6), (5.5, 2), (6.5, 1), (9.0, 1)]
)
def test_waits_are_whole_seconds_and_end_together(since, wait):
    assert launch.wait_for(launch.Timing(7, 4), since) == wait
    assert launch.wait_for(launch.Timing(0, 4), since) == 0


def test_a_copy_that_hangs_is_killed_and_told_from_the_others(tmp_path):
    script = "import os,time; r=os.open({!r}, os.O_CREAT|os.O_EXCL); time.sleep(60)"
    once = script.format(str(tmp_path / "first"))
    argv = [sys.executable, "-c", f"try:\n {once}\nexcept FileExistsError: print('done')"]
    found = launch.launch(argv, 3, 3, str(tmp_path), AT_ONCE)
    hung = [one for one in found if one.timed_out]
    assert [one.rc for one in hung] == [-signal.SIGKILL]
    assert sorted(one.stdout for one in found) == ["", "done\n", "done\n"]


def test_a_program_that_is_not_there_leaves_nothing_running(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        launch.launch([str(tmp_path / "absent")], 2, 5, str(tmp_path), AT_ONCE)


def test_sessions_survive_packing():
    one = launch.Session(1, -9, True, 1.5, "out\u20ac", "")
    assert launch.unpack(launch.pack([one])) == [one]
    same = launch.pack([one] * 200)
    assert len(same) < 400


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"pids.max of user.slice": 150}, "pids.max of user.slice is 150; wanted at least 300"),
        ({"RLIMIT_NPROC": 10_000}, None),
        ({"RLIMIT_NPROC": None}, None),
    ],
)
def test_a_host_without_room_says_which_limit_it_is(limits, told):
    found = launch.room_for(200, limits)
    assert found is None if told is None else found is not None and found.startswith(told)


def test_limits_of_the_control_groups_above_are_read(tmp_path):
    (tmp_path / "user.slice" / "session.scope").mkdir(parents=True)
    (tmp_path / "user.slice" / "pids.max").write_text("77\n")
    (tmp_path / "user.slice" / "session.scope" / "pids.max").write_text("max\n")
    group = tmp_path / "cgroup"
    group.write_text("0::/user.slice/session.scope\n")
    found = launch.process_limits(group, tmp_path)
    assert found["pids.max of user.slice"] == 77
    assert "pids.max of session.scope" not in found
    assert (found["RLIMIT_NPROC"] is None) or os.getuid() != 0


def test_a_host_without_control_groups_has_the_users_limit_alone(tmp_path):
    assert list(launch.process_limits(tmp_path / "absent")) == ["RLIMIT_NPROC"]

"""Processes by pid and start time; the lock and the state file of a lab."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

from collector.lab import instance, paths, state
from collector.lab.errors import LabError
from collector.lab.process import Process, identify, with_argument

SLEEPER = [sys.executable, "-c", "import sys; sys.stdin.read()"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('ready', flush=True); sys.stdin.read()",
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "cache" / "crossover"


@pytest.fixture
def stranger():
    child = subprocess.Popen(SLEEPER, stdin=subprocess.PIPE)
    yield child
    child.stdin.close()
    child.wait()


def test_a_process_is_recognised_and_ended(stranger):
    process = identify(stranger.pid)
    assert process.alive()
    waiter = threading.Thread(target=stranger.wait)
    waiter.start()
    process.end()
    waiter.join()
    assert stranger.returncode == -15
    assert not process.alive()


def test_a_process_that_ignores_the_polite_signal_is_ended_all_the_same():
    child = subprocess.Popen(STUBBORN, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        child.stdout.readline()
        Process(child.pid, identify(child.pid).started).end(patience_s=0.1)
        assert child.wait() == -9


def test_a_stranger_with_a_recycled_pid_is_never_signalled(stranger):
    stale = Process(stranger.pid, identify(stranger.pid).started - 1)
    assert not stale.alive()
    stale.end()
    assert stranger.poll() is None


def test_a_zombie_does_not_count_as_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identify(child.pid) is None
    child.wait()


def test_the_state_survives_a_round_trip(cache):
    paths.lab_dir("one").mkdir(parents=True)
    written = state.LabState(name="one", topology={"schema": 1}, saved="abc")
    written.nodes["client"] = state.NodeState(1, 2, 3, "/x")
    written.write()
    assert state.load("one") == written
    assert [file.name for file in paths.lab_dir("one").iterdir()] == ["lab.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"schema": 99}', '{"schema": 1, "nodes": {}}',
     '{"schema": 1, "nodes": 5}', '{"schema": 1, "nodes": {}, "name": "x", "odd": 1}'],
)  # fmt: skip
def test_a_damaged_state_file_counts_as_none(cache, text):
    paths.lab_dir("one").mkdir(parents=True)
    paths.state_file("one").write_text(text)
    assert state.load("one") is None


def test_a_lab_runs_only_if_every_node_does(cache, stranger):
    alive = identify(stranger.pid)
    found = state.LabState(name="one", topology={})
    assert not found.running()
    found.nodes["client"] = state.NodeState(alive.pid, alive.started, 1, "")
    assert found.running()
    found.nodes["server"] = state.NodeState(alive.pid, alive.started + 1, 1, "")
    assert not found.running()


def _hold(name, ready, leave):
    with state.locked(name):
        ready.set()
        leave.wait(60)


def test_a_held_lock_is_busy_and_names_its_holder(cache):
    context = multiprocessing.get_context("fork")
    ready, leave = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=("one", ready, leave))
    holder.start()
    try:
        assert ready.wait(60)
        with pytest.raises(LabError) as caught, state.locked("one", patience_s=0):
            pass
    finally:
        leave.set()
        holder.join()
    assert caught.value.busy
    assert str(caught.value) == (
        f"lab one: another process (pid {holder.pid}) is starting or stopping it;"
        " wait for it to end"
    )
    with state.locked("one", patience_s=0):
        assert (cache / "labs" / "one" / "lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("name", ["", "A", "../x", "-x", "a" * 33, "a/b", "a b", "a\n"])
def test_a_lab_name_that_could_leave_its_folder_is_refused(name):
    with pytest.raises(LabError, match=r"^lab name .*: wanted 1 to 32 of a-z, 0-9, '_', '-'"):
        paths.lab_dir(name)


def test_everything_lasting_is_under_the_cache(cache):
    assert paths.images_dir() == cache / "images"
    assert paths.ssh_config("x").parent == paths.state_file("x").parent == cache / "labs" / "x"


def test_the_cache_is_in_the_home_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.cache_root() == tmp_path / ".cache" / "crossover"


def test_sockets_are_under_the_runtime_folder_or_a_short_one_of_the_users_own(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert paths.runtime_dir("x") == tmp_path / "crossover" / "x"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "absent"))
    assert str(paths.runtime_dir("x")).endswith(f"crossover-{os.getuid()}/x")


def test_the_state_file_is_plain_json(cache):
    paths.lab_dir("one").mkdir(parents=True)
    state.LabState(name="one", topology={}).write()
    assert json.loads(paths.state_file("one").read_text())["schema"] == state.SCHEMA


def with_pid_file(path):
    """A process whose command line names the file, running: right after its start a process has
    no command line yet."""
    script = "import sys; print('here', flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", script, "-pidfile", str(path)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def test_a_process_that_no_state_file_knows_is_found_by_its_command_line(tmp_path):
    mine, other = tmp_path / "labs" / "one", tmp_path / "labs" / "one-more"
    child = with_pid_file(mine / "client.pid")
    try:
        assert [found.pid for found in with_argument("-pidfile", mine)] == [child.pid]
        assert list(with_argument("-pidfile", other)) == []
        assert list(with_argument("-other", mine)) == []
    finally:
        child.communicate()


def test_down_ends_what_a_killed_start_left_behind(cache):
    lab = paths.lab_dir("one")
    with with_pid_file(lab / "client.pid") as child:
        waiter = threading.Thread(target=child.wait)
        waiter.start()
        assert instance.down("one")
        waiter.join()
    assert child.returncode == -15
    assert not instance.down("one")


def test_sockets_are_made_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = paths.make_runtime_dir("one")
    assert made == paths.make_runtime_dir("one")
    assert made.stat().st_mode & 0o077 == made.parent.stat().st_mode & 0o077 == 0


def test_a_place_for_sockets_that_leads_elsewhere_is_refused(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "crossover").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(LabError, match="wanted a folder of this user's own"):
        paths.make_runtime_dir("one")
    assert list((tmp_path / "elsewhere").iterdir()) == []

"""The lab lives through what happens to labs: killed guests, strangers, full disks, haste."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from lab_process import OwnLab, processes_naming

from collector.lab import paths, state

ROOT = Path(__file__).resolve().parents[2]
NODES = ("client", "server")
pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def second(lab):
    """A second lab beside the session's own, for breaking; boots once ever, then is restored."""
    found = OwnLab(f"{lab.name}-2", state.load(lab.name).image)
    found.ok("up")
    yield found
    found.ok("down")


@pytest.fixture
def running(second):
    """The second lab, running whatever the test before left of it."""
    second.ok("up")
    return second


def test_two_labs_run_side_by_side_with_keys_and_ports_of_their_own(lab, running):
    for node in NODES:
        assert lab.ssh(node, "hostname").strip() == node
        assert running.ssh(node, "hostname").strip() == node
    boots = {lab.ssh(node, "cat /proc/sys/kernel/random/boot_id") for node in NODES}
    boots |= {running.ssh(node, "cat /proc/sys/kernel/random/boot_id") for node in NODES}
    assert len(boots) == 4
    keys = [paths.lab_dir(name) / "id_ed25519.pub" for name in (lab.name, running.name)]
    assert keys[0].read_text() != keys[1].read_text()
    assert running.ssh("client", "ping -c 1 -W 5 198.18.0.2 >/dev/null && echo there") == "there\n"


def test_up_changes_nothing_while_it_runs(running):
    before = running.state
    assert running.ok("up") | {"start_s": None} == {
        "changed": False,
        "how": before["how"],
        "start_s": None,
    }
    assert running.state == before


def test_a_host_key_that_changed_is_refused(running):
    known = running.folder / "known_hosts"
    kept = known.read_text()
    client, server = kept.splitlines()
    swapped = f"{client.split()[0]} {server.split(' ', 1)[1]}\n{server}\n"
    try:
        known.write_text(swapped)
        done = running.try_ssh("client", "true")
        assert done.returncode == 255
        assert "Host key verification failed" in done.stderr
        known.write_text(f"{server}\n")
        assert running.try_ssh("client", "true").returncode == 255
    finally:
        known.write_text(kept)
    assert running.try_ssh("client", "true").returncode == 0


def test_a_killed_guest_comes_back_on_another_port_with_the_right_time(running):
    killed = running.state["nodes"]["client"]
    os.kill(killed["pid"], signal.SIGKILL)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        # The clock of this machine is said to be in 2033: the saved state cannot know.
        answer = running.ok("up", "--first-port", str(port), "--time", "2000000000")
        assert (answer["changed"], answer["how"]) == (True, "restored")
        assert port not in {node["ssh_port"] for node in running.state["nodes"].values()}
        for node in NODES:
            assert 0 <= int(running.ssh(node, "date +%s")) - 2_000_000_000 < 3600
    assert running.ssh("client", "getenforce") == "Enforcing\n"


def test_a_stale_pid_never_hits_a_stranger_and_down_leaves_nothing(running):
    argv = ["ssh", "-F", str(running.folder / "ssh_config"), "-M", "-f", "-N", "client"]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sockets = paths.runtime_dir(running.name)
    assert processes_naming(str(sockets))
    outside = set(Path(tempfile.gettempdir()).iterdir())
    assert running.ok("down")["changed"]
    assert processes_naming(str(running.folder)) == []
    assert processes_naming(f"crossover-{running.name}-") == []
    assert not sockets.exists()
    appeared = set(Path(tempfile.gettempdir()).iterdir()) - outside
    assert not [path for path in appeared if running.name in path.name]
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        kept = running.state
        for number, node in enumerate(NODES):
            kept["nodes"][node] = {
                "pid": stranger.pid,
                "started": number + 1,
                "ssh_port": 1,
                "qmp": "/nowhere",
            }
            (running.folder / f"{node}.pid").write_text(f"{stranger.pid}\n")
        (running.folder / "lab.json").write_text(json.dumps(kept))
        answer = running.ok("up")
        assert stranger.poll() is None
        stranger.kill()
    assert (answer["changed"], answer["how"]) == (True, "restored")


def test_what_a_killed_start_left_is_found_and_ended(running):
    running.ok("down")
    kept = (running.folder / "lab.json").read_text()
    with subprocess.Popen(running.argv("up"), stdout=subprocess.DEVNULL) as starting:
        deadline = time.monotonic() + 120
        while not processes_naming(f"crossover-{running.name}-client"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        starting.kill()
    (running.folder / "lab.json").write_text("{")
    assert running.ok("down")["changed"]
    assert processes_naming(f"crossover-{running.name}-") == []
    (running.folder / "lab.json").write_text(kept)
    assert running.ok("up")["how"] == "restored"


def _hold(name, ready, leave):
    with state.locked(name):
        ready.set()
        leave.wait(120)


def test_a_second_up_meanwhile_is_told_who_is_at_it(lab):
    """The command line, the playbook and the lock together: exit code 75 and the holder's pid."""
    context = multiprocessing.get_context("fork")
    ready, leave = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(lab.name, ready, leave))
    holder.start()
    try:
        assert ready.wait(60)
        done = subprocess.run(
            [sys.executable, "-m", "collector", "lab", "--name", lab.name, "up"],
            cwd=ROOT,
            env=lab.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        leave.set()
        holder.join()
    assert done.returncode == 75, done.stderr
    assert f"another process (pid {holder.pid}) is starting or stopping it" in done.stderr
    assert "Traceback" not in done.stderr


def in_small_file_system(tmp_path, size, argv, environment):
    """Run a command with the cache on a tmpfs of ``size``; its files are listed on stdout."""
    cache = tmp_path / "cache"
    cache.mkdir()
    script = (
        'mount -t tmpfs -o "size=$1" none "$2" && cd "$3" && shift 3 && { "$@"; code=$?; }; '
        'find "$XDG_CACHE_HOME/crossover" -type f; exit "$code"'
    )
    rights = ["--mount"] if os.getuid() == 0 else ["--user", "--map-root-user", "--mount"]
    return subprocess.run(
        ["unshare", *rights, "sh", "-c", script, "sh", size, str(cache), str(ROOT), *argv],
        env={**environment, "XDG_CACHE_HOME": str(cache)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_disk_too_small_for_a_lab_is_told_and_nothing_is_left_on_it(lab, tmp_path):
    found = OwnLab("small", state.load(lab.name).image)
    done = in_small_file_system(tmp_path, "100m", found.argv("up"), lab.environment)
    assert done.returncode == 1
    folder = tmp_path / "cache" / "crossover" / "labs" / "small"
    assert re.fullmatch(rf"lab small: {folder} has \d+ MiB free; wanted 1144 MiB\n", done.stderr)
    left = {Path(line).name for line in done.stdout.splitlines()}
    assert left <= {"lock", "lab.json", "accelerator.json"}
    assert processes_naming("crossover-small-") == []


def test_a_disk_without_any_room_is_told_in_one_line(lab, tmp_path):
    found = OwnLab("small", state.load(lab.name).image)
    done = in_small_file_system(tmp_path, "4k", found.argv("up"), lab.environment)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr or "MiB free; wanted" in done.stderr
    assert "Traceback" not in done.stderr
    assert processes_naming("crossover-small-") == []


def test_a_disk_too_small_for_the_image_is_told_by_the_command_line(lab, tmp_path):
    argv = [sys.executable, "-m", "collector", "lab", "--name", "small", "up"]
    done = in_small_file_system(tmp_path, "100m", argv, lab.environment)
    images = tmp_path / "cache" / "crossover" / "images"
    assert done.returncode == 1, done.stderr
    assert re.search(rf"guest image: {images} has \d+ MiB free; wanted 2861 MiB", done.stderr)
    assert "Traceback" not in done.stderr
    assert not [line for line in done.stdout.splitlines() if "/images/" in line]

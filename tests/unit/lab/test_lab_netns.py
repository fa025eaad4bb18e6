"""The lab of network namespaces: what its hosts see, how they are made, what they lack."""

import json
import os
from pathlib import Path

import pytest

from collector.lab.errors import LabError
from collector.lab.netns import instance, state, tools, view
from collector.lab.process import Process, identify
from collector.lab.topology import read_topology

PAIR = {
    "schema": 1,
    "name": "pair",
    "nodes": {"a": {"groups": ["clients"]}, "b": {"groups": ["servers"]}},
    "links": [
        {
            "name": "test",
            "ends": [
                {"node": "a", "device": "eth1", "ipv4": "198.18.0.1/24", "ipv6": "2001:db8::1/64"},
                {"node": "b", "device": "eth1", "ipv4": "198.18.0.2/24", "ipv6": "2001:db8::2/64"},
            ],
        }
    ],
}
MOUNTINFO = """\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/x rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:22 / /sys rw - sysfs sysfs rw
25 22 0:5 / /dev rw - devtmpfs dev rw
26 25 0:6 / /dev/shm rw - tmpfs tmpfs rw
27 22 0:23 / /run rw - tmpfs tmpfs rw
28 27 0:24 / /run/user/0 rw - tmpfs tmpfs rw
29 22 8:1 / /home\\040of\\040all rw,noatime - ext4 /dev/y rw
30 22 8:2 / /srv ro,noatime - ext4 /dev/z rw
31 22 8:3 / /runner rw - ext4 /dev/z rw
"""


@pytest.fixture
def labs(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "ROOT", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_the_machines_files_are_what_is_writable_and_not_a_hosts_own():
    assert view.writable_mounts(MOUNTINFO) == ["/", "/home of all", "/runner"]


def test_a_view_hides_the_machines_run_time_files_after_everything_that_is_taken_from_them():
    steps = view.mounts(MOUNTINFO, Path("/run/lab/hosts"), Path("/run/tools"), ["/proc/sys"])
    texts = [" ".join(step) for step in steps]
    run = texts.index("mount -n -t tmpfs -o mode=0755 crossover-lab /run")
    assert texts.index("mount -n --bind /run/lab/hosts /etc/hosts") < run
    overlay = "mount -n -t overlay -o lowerdir=/run/tools/usr:/usr crossover-tools /usr"
    assert texts.index(overlay) < run
    # A read-only /proc/sys must not be hidden by a later /proc, nor its exception by it.
    proc = texts.index("mount -n -t proc proc /proc")
    closed = texts.index("mount -n -o remount,bind,ro /proc/sys")
    assert proc < closed < texts.index("mount -n --bind /proc/sys/net /proc/sys/net")


def test_a_view_has_no_step_for_what_this_machine_lacks():
    steps = view.mounts(MOUNTINFO, Path("/h"), None, ["/sys/bus"])
    words = [step[-1] for step in steps]
    assert "/sys/bus" in words
    assert "/sys/firmware" not in words
    assert view.MACHINE_RECORDS not in words
    assert not any("overlay" in step for step in steps)


def test_records_of_the_machines_own_settings_are_not_the_hosts_to_put_back():
    steps = view.mounts("", Path("/h"), None, [view.MACHINE_RECORDS])
    assert ["mount", "-n", "-t", "tmpfs", "crossover-lab", view.MACHINE_RECORDS] in steps


def test_a_command_enters_every_namespace_without_the_power_over_the_machine():
    argv = view.entry(77, ["ip", "link"])
    assert argv[:2] == ["nsenter", "--target=77"]
    assert {"--net", "--mount", "--pid", "--uts", "--ipc"} <= set(argv)
    assert "--bounding-set=-sys_module,-sys_boot,-sys_time,-sys_rawio" in argv
    assert argv[-2:] == ["ip", "link"]


def test_a_cable_has_both_ends_in_the_hosts_from_its_first_moment():
    argv = view.link_command([("eth1", "52:54:00:00:00:01", 7), ("eth2", "52:54:00:00:00:02", 8)])
    assert " ".join(argv) == (
        "ip link add name eth1 address 52:54:00:00:00:01 netns 7 type veth "
        "peer name eth2 address 52:54:00:00:00:02 netns 8"
    )


def test_addresses_are_usable_at_once():
    assert view.address_script(read_topology(PAIR), "b") == (
        "address add 198.18.0.2/24 dev eth1\n"
        "address add 2001:db8::2/64 dev eth1 nodad\n"
        "link set dev eth1 up\n"
    )


def test_nobody_but_root_gets_a_lab_and_is_told_the_way_out(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError) as error:
        instance.require_machine()
    assert str(error.value) == (
        "the lab of network namespaces: found uid 1000; wanted root, because making network "
        "namespaces and cables is the superuser's (use sudo; the guests of inventories/qemu need "
        "no root)"
    )


def test_a_machine_without_the_programs_is_told_their_packages(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        instance.shutil, "which", lambda name, path: None if name in ("ip", "nsenter") else name
    )
    with pytest.raises(LabError, match="missing ip, nsenter; wanted the packages iproute2, util-"):
        instance.require_machine()


def test_a_lab_is_known_by_its_state_file_and_lives_with_its_hosts(labs):
    (labs / "x").mkdir()
    own = identify(os.getpid())
    assert own is not None
    state.NetnsState("x", PAIR, nodes={"a": own, "b": own}).write()
    found = state.load("x")
    assert found is not None
    assert found.running()
    assert found.topology == PAIR
    found.nodes["b"] = Process(own.pid, own.started + 1)  # the same number, another process
    assert not found.running()


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"schema": 2, "name": "x"})])
def test_a_state_file_of_another_version_counts_as_no_lab(labs, text):
    (labs / "x").mkdir()
    (labs / "x" / "lab.json").write_text(text)
    assert state.load("x") is None


def test_a_lab_that_never_was_needs_no_stopping(labs):
    assert instance.down("x") is False
    assert list(labs.iterdir()) == []


def test_a_lab_whose_hosts_are_dead_is_cleared_away_and_was_not_running(labs):
    (labs / "x").mkdir()
    state.NetnsState("x", PAIR, nodes={"a": Process(2**22 + 1, 1)}).write()
    assert instance.down("x") is False
    assert [path.name for path in (labs / "x").iterdir()] == ["lock"]


def test_a_machine_that_has_every_program_gets_no_tree():
    assert tools.ensure({"sh": "dash", "python3": "python3"}) == (False, None)


def test_missing_programs_are_named_by_package_once():
    wanted = {"no-such-a": "p2", "no-such-b": "p2", "no-such-c": "p1", "sh": "dash"}
    assert tools.missing_packages(wanted) == ("p1", "p2")


def test_the_release_is_debians_own():
    assert tools.suite('ID=debian\nVERSION_CODENAME="trixie"\n') == "trixie"
    with pytest.raises(LabError, match=r"found Ubuntu 24\.04; wanted Debian"):
        tools.suite('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04"\nVERSION_CODENAME=noble\n')


def test_what_cannot_be_fetched_is_told_with_its_package_and_component(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools, "suite", lambda text: "trixie")
    monkeypatch.setattr(tools, "host_mirror", lambda asked: "http://archive.example/debian")

    def refuse(argv):
        raise LabError("apt-get: E: Unable to locate package netperf")

    monkeypatch.setattr(tools, "_run", refuse)
    with pytest.raises(LabError) as error:
        tools.ensure({"no-such-program": "netperf"})
    assert str(error.value) == (
        "programs of the lab's hosts: this machine lacks the packages netperf, and they could not "
        "be fetched: apt-get: E: Unable to locate package netperf; wanted them here: install "
        "netperf on this machine (Debian has netperf in the component non-free, Ubuntu in "
        "multiverse)"
    )
    assert list((tmp_path / "crossover" / "tools").iterdir()) == []


def test_packages_of_the_root_folders_end_up_below_usr(tmp_path):
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin" / "tool").write_text("x")
    (tmp_path / "usr" / "sbin").mkdir(parents=True)
    (tmp_path / "usr" / "sbin" / "other").write_text("y")
    tools._merge(tmp_path)
    assert sorted(path.name for path in (tmp_path / "usr" / "sbin").iterdir()) == ["other", "tool"]
    assert not (tmp_path / "sbin").exists()


def test_apt_is_kept_from_the_machines_own_lists_and_cache(tmp_path):
    options = tools.apt_options(tmp_path)
    assert f"Dir::State={tmp_path}/state" in options
    assert f"Dir::Cache={tmp_path}/cache" in options
    assert "Dir::Etc::SourceParts=/dev/null" in options

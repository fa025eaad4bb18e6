"""The command line of a node, what a saved state depends on, and starting QEMU."""

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from collector.lab import qemu
from collector.lab.errors import LabError
from collector.lab.topology import read_topology

TOPOLOGIES = Path(__file__).resolve().parents[3] / "roles" / "lab_qemu" / "files" / "topologies"
PAIR = read_topology(yaml.safe_load((TOPOLOGIES / "pair.yml").read_text()))
CHAIN = read_topology(yaml.safe_load((TOPOLOGIES / "chain.yml").read_text()))
MACHINE = qemu.Machine("tcg", 768, 1, True)
BOOT = qemu.Boot(Path("/image/vmlinuz"), Path("/image/initrd"), qemu.append_line("enforcing"))


def files(folder="/lab", sockets="/run/lab"):
    base, short = Path(folder), Path(sockets)
    return qemu.NodeFiles(
        overlay=base / "n.qcow2",
        seed=base / "n.seed",
        console=base / "n.console",
        qmp=short / "n.qmp",
        pid=base / "n.pid",
        sockets=short,
    )


def command(**changes):
    wanted = {
        "lab": "default",
        "topology": PAIR,
        "node": "client",
        "boot": BOOT,
        "machine": MACHINE,
        "files": files(),
        "ssh_port": 40022,
        "restore": None,
        **changes,
    }
    return qemu.command(**wanted)


def signature(**changes):
    return qemu.signature(command(**changes), ["QEMU 7.2", "image"])


def test_a_guest_has_a_device_per_link_and_reaches_nothing_else():
    argv = command()
    assert argv.count("-netdev") == 1 + len(PAIR.ends_of("client"))
    assert "user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:40022-:22" in argv
    joined = " ".join(argv)
    assert "local.path=/run/lab/test-client,remote.type=unix,remote.path=/run/lab/test-server" in (
        joined
    )
    assert "enforcing=1" in joined


def test_both_ends_of_a_link_name_the_same_two_sockets():
    ends = {
        node: next(word for word in command(node=node) if "/test-" in word)
        for node in ("client", "server")
    }
    assert ends["client"].index("test-client") < ends["client"].index("test-server")
    assert ends["server"].index("test-server") < ends["server"].index("test-client")


def test_a_chain_needs_no_other_code():
    assert {len(CHAIN.ends_of(node)) for node in CHAIN.nodes} <= {1, 2, 3, 4}
    for node in CHAIN.nodes:
        argv = command(topology=CHAIN, node=node)
        assert argv.count("-netdev") == 1 + len(CHAIN.ends_of(node))


def test_kvm_takes_the_hosts_processor_and_no_translation_options():
    argv = command(machine=replace(MACHINE, accelerator="kvm"))
    assert argv[argv.index("-accel") + 1] == "kvm"
    assert argv[argv.index("-cpu") + 1] == "host"


def test_a_cloud_image_boots_by_its_own_loader():
    argv = command(boot=qemu.Boot(None, None, ""))
    assert "-kernel" not in argv
    assert "-append" not in argv


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("enforcing", "security=selinux selinux=1 enforcing=1"),
        ("permissive", "security=selinux selinux=1 enforcing=0"),
        ("disabled", "selinux=0"),
    ],
)
def test_the_kernel_command_line_says_the_selinux_mode(mode, words):
    assert qemu.append_line(mode, " quiet  debug ").endswith(f"{words} quiet debug")


def test_a_saved_state_survives_other_ports_and_folders():
    assert signature() == signature(ssh_port=1, restore="ready", files=files("/other", "/r"))


@pytest.mark.parametrize(
    "change",
    [
        {"machine": replace(MACHINE, memory_mib=1024)},
        {"machine": replace(MACHINE, cpus=2)},
        {"machine": replace(MACHINE, accelerator="kvm")},
        {"machine": replace(MACHINE, restrict=False)},
        {"boot": replace(BOOT, append=qemu.append_line("permissive"))},
        {"boot": replace(BOOT, append=qemu.append_line("enforcing", "debug"))},
        {"lab": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_saved_state_does_not_survive_another_machine(change):
    assert signature() != signature(**change)


def test_a_saved_state_does_not_survive_another_qemu_or_image():
    assert qemu.signature(command(), ["QEMU 7.2", "a"]) != qemu.signature(
        command(), ["QEMU 7.2", "b"]
    )


def test_a_free_port_can_be_bound():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", qemu.free_port()))


def test_qemus_own_words_are_handed_on_when_it_does_not_start(tmp_path):
    argv = ["sh", "-c", "echo 'no such machine' >&2; exit 3"]
    with pytest.raises(LabError, match=r"^node a: QEMU ended with 3: no such machine$"):
        qemu.start(argv, files(tmp_path, tmp_path), "a")


def test_a_silent_end_is_told_as_such(tmp_path):
    with pytest.raises(LabError, match=r"^node a: QEMU ended with 0: silently$"):
        qemu.start(["true"], files(tmp_path, tmp_path), "a")


# Opens its monitor, as QEMU does, before it knows whether it will come up: then greets, or not.
MONITOR = """
import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
connection, _ = listener.accept()
time.sleep(0.2)
if sys.argv[2] == "fail":
    sys.exit("Could not set up host forwarding rule")
connection.sendall(b'{"QMP": {"version": {}}}')
time.sleep(60)
"""


# The child is meant to outlive whoever started it, as QEMU does.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_started_qemu_is_known_by_pid_and_start_time(tmp_path):
    made = files(tmp_path, tmp_path)
    made.qmp.write_text("of an earlier start")
    process = qemu.start([sys.executable, "-c", MONITOR, str(made.qmp), "greet"], made, "a")
    assert process.alive()
    process.end()


def test_a_qemu_that_ends_after_its_monitor_opened_has_not_started(tmp_path):
    made = files(tmp_path, tmp_path)
    argv = [sys.executable, "-c", MONITOR, str(made.qmp), "fail"]
    with pytest.raises(LabError, match=r"^node a: QEMU ended with 1: Could not set up host"):
        qemu.start(argv, made, "a")


def test_no_qemu_says_what_installs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"playbooks/controller.yml installs it$"):
        qemu.version()


def test_qemus_version_is_its_own_line(monkeypatch, tmp_path):
    program = tmp_path / qemu.BINARY
    program.write_text("#!/bin/sh\necho 'QEMU emulator version 7.2.0'\necho Copyright\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert qemu.version() == "QEMU emulator version 7.2.0"
    assert subprocess.run([qemu.BINARY], check=True, capture_output=True).stdout

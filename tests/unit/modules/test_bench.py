"""bench_peer and bench_measure against each other over the loopback device, for real."""

import base64
import json
import os
import shutil
import signal
import socket
import sys

import pytest
from bench_fixtures import ADDRESS, AVC
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils import audit, labelled
from ansible_collections.crossover.lab.plugins.module_utils.host_identity import booted, identity
from ansible_collections.crossover.lab.plugins.modules import bench_measure, bench_peer
from collector.wire.packets import read_pcap

TCP, UDP = 6, 17
pytestmark = [
    pytest.mark.usefixtures("host"),
    pytest.mark.skipif(os.getuid() != 0, reason="capturing packets needs root"),
    # The probe's server is meant to outlive the module that starts it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def command(cell, *words, timeout=30):
    return {"cell_id": cell, "argv": [sys.executable, *words], "timeout": timeout}


def measure(capsys, port, *commands, **changes):
    wanted = {
        "device": "lo",
        "client": ADDRESS,
        "server": ADDRESS,
        "port": port,
        "payload_bytes": 1000,
        "warm_up": 0.3,
        "commands": list(commands),
        **changes,
    }
    return call(bench_measure, capsys, **wanted)


def test_a_path_is_probed_captured_warmed_up_and_measured(peer, port, capsys):
    answer = measure(
        capsys,
        port,
        command("a1", "-c", "import sys; print('THROUGHPUT=1'); print('w', file=sys.stderr)"),
        command("a2", "-c", "raise SystemExit(3)"),
    )
    seen = answer["probe"]
    assert seen["server_label"] == seen["label"] == identity()["context"]
    assert (seen["datagram_bytes"], seen["datagram_error"]) == (1000, None)
    assert seen["mss"] > 1000
    assert len(seen["warm_up_rates"]) >= 1
    packets = read_pcap(base64.b64decode(answer["pcap"]), "probe.pcap")
    assert {packet.protocol for packet in packets} == {TCP, UDP}
    assert all(port in packet.ports for packet in packets)
    first, second = answer["results"]
    assert (first["cell_id"], first["rc"], first["timed_out"]) == ("a1", 0, False)
    assert (first["stdout"], first["stderr"]) == ("THROUGHPUT=1\n", "w\n")
    assert first["started_at"].endswith("Z")
    assert second["rc"] == 3
    assert answer["denials"] == []
    assert answer["identity"] == booted()


def test_a_command_that_hangs_is_ended_and_told(peer, port, capsys):
    script = "import time; print('so far', flush=True); time.sleep(60)"
    answer = measure(capsys, port, command("a", "-c", script, timeout=2))
    result = answer["results"][0]
    assert (result["timed_out"], result["rc"]) == (True, -signal.SIGKILL)
    assert result["elapsed_s"] < 60


def test_nothing_is_measured_where_the_probe_does_not_get_through(port, capsys):
    answer = measure(capsys, port, command("a", "-c", "print(1)"))
    assert answer["probe"]["error"] == "[Errno 111] Connection refused"
    assert answer["results"] == []


def test_a_datagram_that_does_not_fit_is_told_not_fragmented(peer, port, capsys):
    answer = measure(capsys, port, payload_bytes=65508)
    assert answer["probe"]["datagram_error"] == "[Errno 90] Message too long"


def test_a_device_that_is_not_there_is_a_failure_in_words(peer, port, capsys):
    answer = measure(capsys, port, device="nosuch0")
    assert answer["failed"] is True
    assert answer["msg"] == ("the probe could not run on nosuch0: [Errno 19] No such device")


def test_a_level_without_selinux_fails_before_anything_is_measured(peer, port, capsys):
    if labelled.selinux_active():
        pytest.skip("this machine has SELinux: the level would be taken")
    answer = measure(capsys, port, command("a", "-c", "print(1)"), label="s0:c1")
    assert "runcon" in answer["probe"]["error"]
    assert answer["results"] == []


def test_denials_are_those_since_the_start_on_each_side(host, port, capsys):
    started = call(bench_peer, capsys, address=ADDRESS, port=port)
    with (host / "audit.log").open("a") as log:
        log.write(f"type=SYSCALL x\n{AVC} new\n")
    stopped = call(
        bench_peer, capsys, state="stopped", address=ADDRESS, port=port, audit=started["audit"]
    )
    assert stopped["denials"] == [f"{AVC} new"]
    assert stopped["changed"] is True
    again = call(bench_peer, capsys, state="stopped", address=ADDRESS, port=port)
    assert (again["changed"], again["denials"]) == (False, [])


def test_a_rotated_audit_log_is_read_on_in_both_files(host):
    log = host / "audit.log"
    where = audit.position()
    with log.open("a") as handle:
        handle.write(f"{AVC} before\n")
    shutil.move(log, host / "audit.log.1")
    log.write_text(f"{AVC} after\n")
    assert audit.denials_since(where) == [f"{AVC} before", f"{AVC} after"]


def test_a_server_left_by_a_killed_run_is_replaced(peer, port, host, capsys):
    before = json.loads((host / "run" / "probe.json").read_text())
    again = call(bench_peer, capsys, address=ADDRESS, port=port)
    assert again["changed"] is True
    assert json.loads((host / "run" / "probe.json").read_text()) != before


def test_a_strangers_port_is_left_to_the_stranger(port, capsys):
    with socket.socket() as stranger:
        stranger.bind((ADDRESS, port))
        stranger.listen()
        answer = call(bench_peer, capsys, address=ADDRESS, port=port)
    assert answer["msg"] == (
        f"port {port} of {ADDRESS} is taken by another program; wanted it free for the probe"
    )


def test_a_server_that_cannot_listen_tells_its_own_words(port, capsys):
    answer = call(bench_peer, capsys, address="203.0.113.1", port=port)
    assert answer["failed"] is True
    assert answer["msg"].startswith("the probe's server ended with 1: ")
    assert "Cannot assign requested address" in answer["msg"]


def test_a_forgotten_server_ends_by_itself(port, host, capsys):
    call(bench_peer, capsys, address=ADDRESS, port=port, lifetime=1)
    pid = json.loads((host / "run" / "probe.json").read_text())["pid"]
    assert os.waitpid(pid, 0)[1] == 0


def test_the_far_end_captures_what_it_sends(port, host, capsys):
    started = call(bench_peer, capsys, address=ADDRESS, port=port, capture_device="lo")
    assert started.get("changed"), started
    measure(capsys, port)
    stopped = call(bench_peer, capsys, state="stopped", address=ADDRESS, port=port)
    packets = read_pcap(base64.b64decode(stopped["pcap"]), "peer.pcap")
    assert {packet.protocol for packet in packets} == {TCP, UDP}
    assert not (host / "run" / "capture.pcap").exists()

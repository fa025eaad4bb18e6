"""A host of the test's own for bench_peer and bench_measure, and a started peer."""

import socket

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils import audit, labelled
from ansible_collections.crossover.lab.plugins.modules import bench_peer

ADDRESS = "127.0.0.1"
AVC = "type=AVC msg=audit(1.0:1): avc:  denied  { recv } for pid=1"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Run-time files, the audit log and the Python of the probe, all of the test's own."""
    run = tmp_path / "run"
    monkeypatch.setattr(labelled, "RUN_DIR", str(run))
    for name, file in (
        ("PID_FILE", "probe.json"),
        ("CAPTURE_PID_FILE", "capture.json"),
        ("CAPTURE_FILE", "capture.pcap"),
        ("SAMPLER_PID_FILE", "cpu.json"),
    ):
        monkeypatch.setattr(bench_peer, name, str(run / file))
    log = tmp_path / "audit.log"
    log.write_text("type=SYSCALL old\n" + AVC + "\n")
    monkeypatch.setattr(audit, "AUDIT_LOG", str(log))
    monkeypatch.setattr(bench_peer.netserver, "recorded", dict)
    return tmp_path


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


@pytest.fixture
def peer(port, capsys):
    """A started peer, and its end afterwards."""
    started = call(bench_peer, capsys, address=ADDRESS, port=port, lifetime=120)
    assert started.get("changed"), started
    yield started
    call(bench_peer, capsys, state="stopped", address=ADDRESS, port=port)

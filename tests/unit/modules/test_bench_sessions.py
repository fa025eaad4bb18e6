"""Sessions through bench_measure and bench_peer over the loopback device, with a program in
netperf's place that prints interim results as netperf does."""

import os
import sys

import pytest
from bench_fixtures import ADDRESS
from module_runner import call

from ansible_collections.crossover.lab.plugins.modules import bench_measure, bench_peer
from collector.results.cpu_use import host_cpu
from collector.sessions.launch import unpack
from collector.sessions.window import Window, amount, read_interims

pytestmark = [
    pytest.mark.usefixtures("host"),
    pytest.mark.skipif(os.getuid() != 0, reason="capturing packets needs root"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PROGRAM = """
import time
end = time.time()
for number in range({count}):
    began, done = end, 0
    while time.time() - began < 0.1:
        done += 1
    end = time.time()
    print(f"NETPERF_INTERIM_RESULT[{{number}}]={{done / (end - began):.2f}}")
    print(f"NETPERF_UNITS[{{number}}]=Trans/s")
    print(f"NETPERF_INTERVAL[{{number}}]={{end - began:.3f}}")
    print(f"NETPERF_ENDING[{{number}}]={{end:.3f}}", flush=True)
{after}
"""
SAMPLING = {"period_s": 0.1, "lifetime_s": 60}


def sessions(cell, count, after="", seconds=5.0, wanted=2.0):
    program = PROGRAM.format(count=int(seconds * 10), after=after)
    return {
        "cell_id": cell,
        "argv": [sys.executable, "-I", "-S", "-c", program],
        "timeout": 60,
        "sessions": count,
        "window": {"settle_s": 0.2, "wanted_s": wanted},
    }


def measure(capsys, port, *commands):
    return call(
        bench_measure,
        capsys,
        device="lo",
        client=ADDRESS,
        server=ADDRESS,
        port=port,
        payload_bytes=1000,
        warm_up=0.3,
        sampling=SAMPLING,
        commands=list(commands),
    )


@pytest.fixture
def sampled_peer(port, capsys):
    """A started peer that samples its CPU."""
    started = call(bench_peer, capsys, address=ADDRESS, port=port, sampling=SAMPLING, sessions=2)
    assert started.get("changed"), started
    yield started
    call(bench_peer, capsys, state="stopped", address=ADDRESS, port=port)


def test_sessions_share_a_window_and_both_ends_know_its_cpu(sampled_peer, port, capsys):
    answer = measure(capsys, port, sessions("a1", 2))
    (result,) = answer["results"]
    assert (result["rc"], result["sessions"], result["no_room"]) == (0, 2, None)
    window = Window(result["window"]["start"], result["window"]["end"])
    assert window.seconds == pytest.approx(2.0)
    done = [amount(read_interims(one.stdout), window) for one in unpack(result["packed"])]
    assert all(part > 0 for part in done)
    near = host_cpu(result["cpu"])
    assert near.spent_pct > 0
    assert 1.0 <= near.seconds <= 2.0
    (far,) = answer["windows"]
    assert far["cell_id"] == "a1"
    # One host, one clock.
    assert abs(far["start"] - window.start) <= far["uncertainty_s"] + 0.001
    stopped = call(
        bench_peer,
        capsys,
        state="stopped",
        address=ADDRESS,
        port=port,
        windows=answer["windows"],
        listen_drops=sampled_peer["listen_drops"],
    )
    assert host_cpu(stopped["cpu"]["a1"]).cpus == near.cpus
    assert stopped["listen_drops"] >= 0


def test_a_session_that_is_killed_leaves_no_window(sampled_peer, port, capsys):
    killed = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    (result,) = measure(capsys, port, sessions("a1", 2, killed, 0.3))["results"]
    assert (result["rc"], result["window"]) == (-9, None)
    assert result["window_error"] == "a session failed"
    assert "cpu" not in result


def test_sessions_that_end_too_early_have_no_window_and_say_so(sampled_peer, port, capsys):
    answer = measure(capsys, port, sessions("a1", 2, "", 0.5))
    (result,) = answer["results"]
    assert result["window"] is None
    assert "in common; wanted 2.2 s" in result["window_error"]
    assert answer["windows"] == []


def test_a_peer_that_was_not_told_to_sample_does_not(peer, port, host, capsys):
    assert not (host / "run" / "cpu.jsonl").exists()

"""The program that runs on the hosts: chunks, samples, its own end, and what is read of it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

PREFIX = "ansible_collections.crossover.lab.plugins.module_utils."
agent = importlib.import_module(PREFIX + "stress_agent")
health = importlib.import_module(PREFIX + "stress_health")
unit = importlib.import_module(PREFIX + "stress_unit")
HostError = importlib.import_module(PREFIX + "host.errors").HostError


class QuietLog:
    def since(self):
        return ["4 1.000 careful"], False


class QuietDenials:
    def since(self):
        return []


@pytest.fixture
def quiet(monkeypatch):
    """A host whose logs say little, whatever this machine's say."""
    monkeypatch.setattr(health, "KernelLog", QuietLog)
    monkeypatch.setattr(health, "Denials", QuietDenials)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def plan(folder, **changes):
    made = {
        "schema": 1,
        "duration_s": 2.0,
        "interval_s": 0.5,
        "chunk_s": 1.0,
        "device": "lo",
        "ipsec": False,
        "netserver": None,
        "streams": [],
        **changes,
    }
    (folder / agent.PLAN_FILE).write_text(json.dumps(made))


def lines(folder):
    text = (folder / agent.SAMPLES_FILE).read_text()
    return [json.loads(line) for line in text.splitlines()]


def stream(name, code):
    return {"name": name, "argv": [sys.executable, "-S", "-c", code, agent.SECONDS]}


def test_streams_are_begun_anew_until_the_time_is_over(tmp_path, quiet):
    code = "import sys, time; print('ran', sys.argv[1]); time.sleep(0.3)"
    plan(tmp_path, streams=[stream("tcp", code), stream("udp", code)])
    assert agent.main([str(tmp_path)]) == 0
    found = lines(tmp_path)
    assert [line["seq"] for line in found] == list(range(len(found)))
    assert [found[0]["event"], found[-1]["event"]] == ["begin", "end"]
    assert found[-1]["reason"] == "time is over"
    samples = [line for line in found if line["event"] == "sample"]
    chunks = [chunk for line in samples for chunk in line["chunks"]]
    for name in ("tcp", "udp"):
        own = [chunk for chunk in chunks if chunk["stream"] == name]
        assert len(own) >= 2
        assert {chunk["stdout"] for chunk in own} == {"ran 1\n"}
        assert all(
            # Both are rounded to milliseconds.
            later["began_s"] >= first["began_s"] + first["took_s"] - 0.002
            for first, later in pairwise(own)
        )
    first = samples[0]
    assert set(first["memory_kib"]) == set(health.MEMORY)
    assert first["device"]["rx_bytes"] >= 0
    assert first["kernel_log"] == ["4 1.000 careful"]
    assert first["sas"] is None
    assert first["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_chunk_that_fails_is_told_and_the_stream_pauses(tmp_path, quiet):
    plan(tmp_path, streams=[stream("tcp", "import sys; sys.exit('no route')")])
    agent.main([str(tmp_path)])
    chunks = [c for line in lines(tmp_path) for c in line.get("chunks", ())]
    # The pause is longer than this run.
    assert [(c["rc"], c["stderr"], c["timed_out"]) for c in chunks] == [(1, "no route\n", False)]


def test_told_to_end_it_leaves_no_child_and_writes_its_last_line(tmp_path, quiet):
    plan(
        tmp_path,
        duration_s=60.0,
        streams=[stream("tcp", "import time; time.sleep(60)")],
        netserver=[sys.executable, "-S", "-c", "import time; time.sleep(60)"],
    )
    threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert agent.main([str(tmp_path)]) == 0
    found = lines(tmp_path)
    assert found[-1]["reason"] == "told to end"
    # What was cut off has no result: it says nothing about the path.
    assert [c for line in found for c in line.get("chunks", ())] == []
    assert found[1]["netserver"] is True
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    alive = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]
    assert not any(b"time.sleep(60)" in command for command in alive)


def test_a_netserver_that_dies_is_seen(tmp_path, quiet):
    plan(tmp_path, netserver=[sys.executable, "-S", "-c", "import time; time.sleep(0.3)"])
    agent.main([str(tmp_path)])
    seen = [line["netserver"] for line in lines(tmp_path) if line["event"] == "sample"]
    assert (seen[0], seen[-1]) == (True, False)


def test_a_hanging_chunk_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "GRACE_S", -0.5)
    made = agent.Stream(stream("tcp", "import time; time.sleep(60)"), 1.0, str(tmp_path))
    made.begin(0.0, 10.0)
    assert made.finished(0.5) is None
    done = made.finished(1.2)
    assert (done["timed_out"], done["rc"], done["took_s"]) == (True, -9, 1.2)
    assert not made.running


def test_the_last_chunk_ends_with_the_time(tmp_path):
    made = agent.Stream(stream("tcp", "import sys; print(sys.argv[1])"), 60.0, str(tmp_path))
    made.begin(0.0, 0.9)
    assert not made.running
    made.begin(0.0, 7.9)
    deadline = time.monotonic() + 30
    while (done := made.finished(1.0)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert done["stdout"] == "7\n"


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ("4,1234,5678900,-;careful\n SUBSYSTEM=x\n", "4 5.679 careful"),
        ("2,1,1000000,-;bad", "2 1.000 bad"),
        ("6,1,1000000,-;told", None),
        # Written by a program, not by the kernel (facility 3).
        ("28,1,1000000,-;systemd", None),
    ],
)
def test_lines_of_the_kernel_of_level_warning_or_worse(record, line):
    assert health.kernel_line(record) == line


def test_memory_and_counters_as_the_kernel_prints_them():
    text = "MemTotal: 9 kB\nMemAvailable:  512 kB\nSUnreclaim:    7 kB\n"
    assert health.memory(text) == {"MemAvailable": 512, "SUnreclaim": 7, "SReclaimable": None}
    assert health.counters("XfrmInError   \t0\nXfrmOutNoStates 2\n") == {
        "XfrmInError": 0,
        "XfrmOutNoStates": 2,
    }
    assert health.counters(None) is None


def test_a_device_that_is_not_there_has_no_counters(tmp_path):
    assert set(health.device("eth9", str(tmp_path)).values()) == {None}


def test_denials_that_are_read_twice_are_told_once(monkeypatch):
    log = ["first"]
    monkeypatch.setattr(health.audit, "position", lambda: {"offset": 0})
    monkeypatch.setattr(health.audit, "denials_since", lambda start: list(log))
    seen = health.Denials()
    assert seen.since() == ["first"]
    log.append("second")
    assert seen.since() == ["second"]


def test_whole_lines_are_read_from_an_offset_on(tmp_path):
    made = unit.Unit("run", tmp_path)
    made.folder.mkdir()
    made.samples.write_bytes(b"one\ntwo\nthr")
    assert made.read(0) == {"lines": ["one", "two"], "offset": 8, "more": True}
    assert made.read(8) == {"lines": [], "offset": 8, "more": False}
    made.samples.write_bytes(b"one\ntwo\nthree\n")
    assert made.read(8) == {"lines": ["three"], "offset": 14, "more": False}
    # An answer is bounded, and at least a line.
    assert made.read(0, 5) == {"lines": ["one"], "offset": 4, "more": True}
    assert made.read(8, 2) == {"lines": ["three"], "offset": 14, "more": False}
    with pytest.raises(HostError, match="found 14 bytes; wanted at least 15"):
        made.read(15)


def test_what_is_no_run_says_so(tmp_path):
    with pytest.raises(HostError, match=r"found '\.\./x'; wanted letters"):
        unit.Unit("../x", tmp_path)
    with pytest.raises(HostError, match="not there; wanted the samples of a run"):
        unit.Unit("run", tmp_path).read(0)
    assert unit.Unit("run", tmp_path).stop() is False
    assert unit.Unit("run", tmp_path).forget() is False


def test_the_program_is_laid_out_so_that_a_bare_python_runs_it(tmp_path):
    made = unit.Unit("run", tmp_path)
    made._lay_out({"any": "plan"})
    script = f"import sys; sys.path.insert(0, sys.argv[1]); from {unit.PACKAGE} import stress_agent"
    script += "; print(stress_agent.SECONDS)"
    argv = [sys.executable, "-I", "-S", "-c", script, str(made.folder / "program")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "@seconds\n"
    assert json.loads((made.folder / agent.PLAN_FILE).read_text()) == {"any": "plan"}
    assert made.forget() is True
    assert not made.folder.exists()


def test_the_run_of_another_boot_does_not_run(tmp_path):
    made = unit.Unit("run", tmp_path)
    made.folder.mkdir()
    ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    data = {"pid": os.getpid(), "started": ticks, "boot_id": "another"}
    (made.folder / "process.json").write_text(json.dumps(data))
    assert made.process() is None
    data["boot_id"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (made.folder / "process.json").write_text(json.dumps(data))
    assert made.process().pid == os.getpid()
    assert unit.Unit("other", tmp_path).others() == ["run"]

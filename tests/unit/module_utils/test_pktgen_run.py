"""Making pktgen send, making sure that it stops, and leaving others' devices alone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_run
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_trial as trials
from ansible_collections.crossover.lab.plugins.module_utils.host import kmod, record
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_begin import Begun, Seen

from .pktgen_kernel import Kernel
from .test_pktgen_trial import LEFT, RIGHT, read


@pytest.fixture
def kernel(tmp_path):
    return Kernel(tmp_path, cpus=2)


def make(kernel, **changed):
    trial = read(**changed)
    kernel.make(trials.senders(trial, kernel.threads()), trial)


def test_a_kernel_without_pktgen_says_why(tmp_path, monkeypatch):
    absent = pktgen_run.Generator(tmp_path / "pktgen", tmp_path / "x.json")
    monkeypatch.setattr(kmod, "state", lambda _name: kmod.UNLOADED)
    with pytest.raises(HostError, match="is not there: the kernel module pktgen is not loaded"):
        absent.require()
    monkeypatch.setattr(kmod, "state", lambda _name: kmod.BUILT_IN)
    with pytest.raises(HostError, match="pktgen is built in, but not in this network namespace"):
        absent.require()


def test_what_is_made_is_read_back_and_remembered(kernel):
    make(kernel, ports=[LEFT, RIGHT])
    assert kernel.devices() == {"eth1@0": (0, False), "eth2@0": (1, False)}
    remembered = json.loads(kernel.remembered.read_text())
    assert remembered["devices"] == ["eth1@0", "eth2@0"]


def test_a_setting_that_a_device_ignores_is_an_error(kernel):
    kernel.refuses.add("delay")
    with pytest.raises(HostError, match="pktgen: eth1@0: delay wanted 1000000, is 0"):
        make(kernel)


def test_devices_of_somebody_else_are_not_started(kernel):
    kernel.write("kpktgend_1", "add_device eth9")
    with pytest.raises(BusyError, match="pktgen: eth9 is configured by somebody else"):
        make(kernel)
    assert kernel.clear() is False
    assert "eth9" in kernel.devices()


def test_clearing_removes_ours_and_only_ours(kernel):
    make(kernel)
    kernel.write("kpktgend_1", "add_device eth9")
    assert kernel.clear() is True
    assert list(kernel.devices()) == ["eth9"]
    assert not kernel.remembered.exists()
    assert kernel.clear() is False


def test_a_thread_that_somebody_shares_is_not_cleared(kernel):
    make(kernel)
    kernel.write("kpktgend_0", "add_device eth9")
    with pytest.raises(HostError, match="kpktgend_0 has eth9 beside our devices"):
        kernel.clear()


def test_what_a_killed_call_left_sending_is_stopped(kernel):
    make(kernel)
    kernel.running.add("eth1@0")
    kernel._show()
    assert kernel.clear() is True
    assert ("pgctrl", "stop") in kernel.writes
    assert kernel.devices() == {}


def test_a_record_of_another_boot_is_not_ours(kernel, tmp_path, monkeypatch):
    make(kernel)
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(record, "BOOT_ID", boot)
    assert kernel.clear() is False


def test_a_thread_that_does_not_stop_is_an_error(kernel, monkeypatch):
    make(kernel)
    monkeypatch.setattr(pktgen_run, "STOP_S", 0.05)
    monkeypatch.setattr(kernel, "devices", lambda: {"eth1@0": (0, True)})
    with pytest.raises(HostError, match=r"eth1@0 still sends 0\.05 s after it was told to stop"):
        kernel.stop()


def test_one_trial_at_a_time(tmp_path):
    lock = tmp_path / "run" / "pktgen.lock"
    with (
        pktgen_run.alone(lock),
        pytest.raises(BusyError, match="another trial runs on this host"),
        pktgen_run.alone(lock),
    ):
        pass
    with pktgen_run.alone(lock):
        pass


def test_the_kernels_own_refusals_are_told_in_words(tmp_path):
    generator = pktgen_run.Generator(tmp_path, tmp_path / "x.json")
    with pytest.raises(HostError, match="pktgen: nothing: count 1: No such file or directory"):
        generator.write("nothing", "count 1")
    assert "shares no buffers" in pktgen_run._reason(OSError(524, "Unknown error 524"))


def test_the_time_of_a_direction_is_from_the_first_start_to_the_last_stop(kernel):
    make(kernel, ports=[LEFT, RIGHT])
    assert pktgen_run.elapsed_s([kernel.report("eth1@0")]) is None
    kernel.run(2.0, True)
    assert pktgen_run.elapsed_s([kernel.report("eth1@0"), kernel.report("eth2@0")]) == 1.0


# "start" holds its writer for as long as pktgen sends; a named pipe does the same.
HOLDER = """
import sys
from pathlib import Path
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_run

class Held(pktgen_run.Generator):
    def devices(self):
        return {}

pktgen_run.START_S = float(sys.argv[2])
Held(Path(sys.argv[1]), Path(sys.argv[1]) / "x.json").run(0.1, bounded=False)
"""


def writers(pipe):
    """Processes that have opened, or wait to open, the pipe for writing."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as handle:
                if str(pipe).encode() in handle.read() and entry != str(os.getpid()):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def test_nothing_holds_the_start_when_the_module_was_killed(tmp_path):
    pipe = tmp_path / "pgctrl"
    os.mkfifo(pipe)
    module = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), "1"])
    while not writers(pipe):
        assert module.poll() is None
        time.sleep(0.02)
    module.send_signal(signal.SIGKILL)
    module.wait()
    # The time limit that the start was given ends it, though nobody is left to.
    limit = time.monotonic() + 30
    while writers(pipe) and time.monotonic() < limit:
        time.sleep(0.05)
    assert writers(pipe) == []


def test_nothing_is_started_before_its_time(tmp_path, monkeypatch):
    control = tmp_path / "pgctrl"
    generator = pktgen_run.Generator(tmp_path, tmp_path / "x.json")
    monkeypatch.setattr(generator, "devices", dict)
    before = []

    def wait():
        before.append(control.exists() and control.read_text())
        return Seen("never", None)

    assert generator.run(0.1, bounded=True, wait=wait, wait_s=5) == Begun("never", None)
    assert before[0] in (False, "")
    assert control.read_text() == "start\n"


def test_a_start_that_fails_is_told_in_its_own_words(tmp_path, monkeypatch):
    generator = pktgen_run.Generator(tmp_path / "absent", tmp_path / "x.json")
    monkeypatch.setattr(generator, "devices", dict)
    with pytest.raises(HostError, match=r"pktgen: start: tee: .*/absent/pgctrl: No such file"):
        generator.run(0.1, bounded=True)

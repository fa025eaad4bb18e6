"""The monitor of a real QEMU without a machine: what it is asked, and what goes wrong."""

import shutil
import socket
import subprocess
import time

import pytest

from collector.lab import qemu, qmp
from collector.lab.errors import LabError

pytestmark = pytest.mark.skipif(
    shutil.which(qemu.BINARY) is None, reason=f"{qemu.BINARY} is not installed"
)


@pytest.fixture
def monitor(tmp_path):
    path = tmp_path / "m"
    argv = [qemu.BINARY, "-machine", "none", "-nodefaults", "-display", "none"]
    argv += ["-qmp", f"unix:{path},server=on,wait=off"]
    with subprocess.Popen([*argv, "-S"]) as child:
        while not path.exists() and child.poll() is None:
            time.sleep(0.02)
        yield path
        child.terminate()


def test_the_run_state_is_qemus_own_word(monitor):
    assert qmp.status(monitor, "a") == "prelaunch"


def test_a_guest_without_the_disk_cannot_be_saved(monitor):
    with pytest.raises(LabError, match=r"^node a: its state could not be saved: .+"):
        qmp.save_state(monitor, "a")


def test_an_absent_monitor_is_an_error_that_names_it(tmp_path):
    with pytest.raises(LabError, match=rf"^node a: QMP on {tmp_path}/x: "):
        qmp.status(tmp_path / "x", "a")
    with pytest.raises(LabError, match=rf"^node a: QMP on {tmp_path}/x: "):
        qmp.save_state(tmp_path / "x", "a")


def test_a_monitor_that_is_silent_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr(qmp, "ANSWER_SECONDS", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "m"))
        silent.listen()
        with pytest.raises(LabError, match=r"/m: no answer; is QEMU stopped\?$"):
            qmp.status(tmp_path / "m", "a")
        with pytest.raises(LabError, match=r"/m: no answer; is QEMU stopped\?$"):
            qmp.save_state(tmp_path / "m", "a", timeout_s=0.1)

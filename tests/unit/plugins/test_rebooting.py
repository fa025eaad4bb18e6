"""A reboot is ordered once and seen through; each answer of the host is played."""

import pytest

from ansible_collections.crossover.lab.plugins.plugin_utils.new_connection import Answer
from ansible_collections.crossover.lab.plugins.plugin_utils.rebooting import Rebooting

GONE = Answer(False, 255, "", "connection refused")
REBOOT = ("systemctl", "reboot")


class Machine:
    """Answers as a host that takes ``down_s`` seconds to come back, or never does."""

    def __init__(self, down_s, deaf=0):
        self.now, self.down_s, self.deaf = 0.0, down_s, deaf
        self.ordered_at, self.orders = None, 0

    def ask(self, command, _limit_s):
        self.now += 1.0
        if self.ordered_at is None:
            if self.deaf:
                self.deaf -= 1
                return GONE
            if command[0] == "/bin/sh":
                assert command[3:] == ["old", *REBOOT]
                self.orders += 1
                self.ordered_at = self.now
                return Answer(True, 0, "", "")
            return Answer(True, 0, "old\n", "")
        away = self.now - self.ordered_at
        if away < 3:  # it is still going down
            return Answer(True, 0, "old\n", "")
        if away < self.down_s:
            return GONE
        return Answer(True, 0, "new\n", "")

    def sleep(self, seconds):
        self.now += seconds

    def reboot(self, limit_s=100):
        self.rebooting = Rebooting(self.ask, clock=lambda: self.now, sleep=self.sleep)
        return self.rebooting.reboot(REBOOT, "old", limit_s)


def test_the_old_boot_that_still_answers_is_not_taken_for_the_new_one():
    machine = Machine(down_s=40)
    assert machine.reboot() == pytest.approx(41, abs=3)
    assert machine.orders == 1


def test_an_order_that_did_not_arrive_is_given_again():
    machine = Machine(down_s=10, deaf=4)
    assert machine.reboot() is not None
    assert machine.orders == 1


def test_a_host_that_does_not_come_back_is_waited_for_so_long_only():
    machine = Machine(down_s=1000)
    assert machine.reboot(limit_s=60) is None
    assert machine.now < 70
    assert machine.rebooting.said == "connection refused"


def test_an_order_means_one_boot_only(tmp_path):
    import subprocess

    from ansible_collections.crossover.lab.plugins.plugin_utils import rebooting

    def order(boot_id):
        argv = ["/bin/sh", "-c", rebooting.ORDER, boot_id, "touch", str(tmp_path / "done")]
        return subprocess.run(argv, check=False).returncode

    assert order("another boot") != 0
    assert not (tmp_path / "done").exists()
    with open(rebooting.BOOT_ID, encoding="utf-8") as handle:
        assert order(handle.read().strip()) == 0
    assert (tmp_path / "done").exists()

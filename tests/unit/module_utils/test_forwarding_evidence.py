"""What the device under test counted over a trial, from two readings."""

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_evidence as evidence
from ansible_collections.crossover.lab.plugins.module_utils.host import irq, record
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

from .test_pktgen_measure import Host

ZEROS = " ".join(["00000000"] * 10)


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """/proc of a host with one CPU, whose eth1 has the interrupt 40."""
    boot = tmp_path / "boot_id"
    boot.write_text("boot\n")
    monkeypatch.setattr(record, "BOOT_ID", boot)
    monkeypatch.setattr(irq, "of_device", lambda _name: (40,))
    (tmp_path / "net").mkdir()

    def show(taken, forwarded, squeezed):
        stat = f"0000000a 00000001 {squeezed:08x} {ZEROS} 00000000 00000000\n"
        (tmp_path / "net" / "softnet_stat").write_text(stat)
        text = f"Ip: Forwarding ForwDatagrams\nIp: 1 {forwarded}\n"
        (tmp_path / "net" / "snmp").write_text(text)
        (tmp_path / "interrupts").write_text(f"  CPU0\n 40: {taken} PCI-MSIX virtio1-input.0\n")

    show(10, 100, 0)
    return tmp_path, show


class Dut(Host):
    """A host that has tc as well. ``drops``: what its queueing discipline says."""

    drops = 4

    def __call__(self, argv):
        if argv[0] != "tc":
            return super().__call__(argv)
        self.drops += 1
        return 0, f'[{{"kind": "mq"}}, {{"kind": "fq_codel", "drops": {self.drops}}}]', ""


def test_where_the_frames_of_a_trial_went(proc):
    folder, show = proc
    dut = Dut()
    before = evidence.read_counters(["eth1"], dut, folder)
    show(17, 190, 3)
    after = evidence.read_counters(["eth1"], dut, folder)
    found = evidence.between(before, after)
    assert found["ip"] == {"ForwDatagrams": 90}
    assert found["softnet"] == {"0": {"processed": 0, "dropped": 0, "squeezed": 3}}
    device = found["devices"]["eth1"]
    assert device["rx"]["packets"] == 1000
    assert device["queue_dropped"] == 1
    assert device["interrupts"] == {"40": {0: 7}}
    assert found["seconds"] >= 0


class WithoutTc(Host):
    """A host whose tc prints no JSON."""

    def __call__(self, argv):
        return (0, "no JSON", "") if argv[0] == "tc" else super().__call__(argv)


def test_a_host_without_tc_does_not_know_its_queues_drops(proc):
    folder, _show = proc
    host = WithoutTc()
    before = evidence.read_counters(["eth1"], host, folder)
    assert before["queued"] == {"eth1": None}
    found = evidence.between(before, evidence.read_counters(["eth1"], host, folder))
    assert found["devices"]["eth1"]["queue_dropped"] is None


def test_readings_of_two_boots_are_not_compared(proc):
    folder, _show = proc
    before = evidence.read_counters(["eth1"], Dut(), folder)
    with pytest.raises(HostError, match="since: found a reading of another boot"):
        evidence.between({**before, "boot_id": "another"}, before)


def test_a_counter_that_went_back_is_told(proc):
    folder, show = proc
    dut = Dut()
    before = evidence.read_counters(["eth1"], dut, folder)
    show(10, 99, 0)
    after = evidence.read_counters(["eth1"], dut, folder)
    with pytest.raises(HostError, match=r"since: .*Ip ForwDatagrams 100 and then 99"):
        evidence.between(before, after)

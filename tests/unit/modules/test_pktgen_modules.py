"""The modules pktgen, pktgen_sink and forwarding_evidence as Ansible calls them."""

import signal

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_measure, pktgen_run
from ansible_collections.crossover.lab.plugins.module_utils import pktgen_sink as sink
from ansible_collections.crossover.lab.plugins.module_utils.host import kmod, record
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.modules import (
    forwarding_evidence,
    pktgen,
    pktgen_sink,
)

PORT = {
    "device": "eth1",
    "mac_destination": "02:00:00:00:01:02",
    "ipv4_source": "198.18.0.1",
    "ipv4_destination": "198.19.0.1",
    "receive_device": "eth2",
}


@pytest.fixture(autouse=True)
def host(tmp_path, monkeypatch):
    """A host without pktgen, nftables or anything that was left."""
    monkeypatch.setattr(
        pktgen_run.Generator.__init__, "__defaults__", (tmp_path / "proc", tmp_path / "x")
    )
    monkeypatch.setattr(pktgen_run.alone.__wrapped__, "__defaults__", (tmp_path / "lock",))
    monkeypatch.setattr(kmod, "state", lambda _name: kmod.UNLOADED)
    monkeypatch.setattr(pktgen, "run", lambda _argv: (1, "", "no"))
    monkeypatch.setattr(pktgen_sink, "run", lambda _argv: (1, "", "no"))
    for function in (sink.stop, sink.forget):
        given = function.__defaults__
        monkeypatch.setattr(function, "__defaults__", (tmp_path / "sink.json", *given[1:]))
    return tmp_path


def test_a_host_without_pktgen_is_told(capsys):
    answer = call(pktgen, capsys, ports=[PORT])
    assert answer["failed"] is True
    assert "the kernel module pktgen is not loaded; load it" in answer["msg"]


def test_a_wrong_parameter_is_told_with_its_key(capsys):
    answer = call(pktgen, capsys, ports=[PORT], frame_bytes=60)
    assert answer["msg"] == "ports[0].frame_bytes: found 60; wanted 64 to 65535"


def test_stopping_where_nothing_was_left_is_no_change(capsys):
    answer = call(pktgen, capsys, state="stopped")
    assert (answer["changed"], answer["left"]) == (False, False)


def test_a_second_trial_on_the_host_is_told(capsys, host):
    with pktgen_run.alone(host / "lock"):
        answer = call(pktgen, capsys, state="stopped")
    assert "another trial runs on this host" in answer["msg"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_being_ended_cleans_up_and_gives_the_handlers_back(capsys, monkeypatch, number):
    cleaned = []

    def ended(*_arguments):
        try:
            signal.raise_signal(number)
        finally:
            cleaned.append(True)

    monkeypatch.setattr(pktgen_run.Generator, "require", lambda _self: None)
    monkeypatch.setattr(pktgen_measure, "check_devices", lambda _trial: None)
    monkeypatch.setattr(pktgen_measure, "measure", ended)
    before = signal.getsignal(number)
    with pytest.raises(ValueError, match="Expecting value"):
        call(pktgen, capsys, ports=[PORT])
    assert cleaned == [True]
    assert signal.getsignal(number) is before


def test_ending_a_count_that_was_not_begun_is_told(capsys, host, monkeypatch):
    boot = host / "boot_id"
    boot.write_text("boot\n")
    monkeypatch.setattr(record, "BOOT_ID", boot)
    answer = call(pktgen_sink, capsys, state="stopped")
    assert "nothing is being counted; wanted started before" in answer["msg"]
    assert call(pktgen_sink, capsys, state="absent")["changed"] is False


def test_counters_that_cannot_be_read_are_told(capsys, monkeypatch):
    def refuse(_devices, _run):
        raise HostError("device eth9: not on this host")

    monkeypatch.setattr(forwarding_evidence.forwarding_evidence, "read_counters", refuse)
    answer = call(forwarding_evidence, capsys, devices=["eth9"])
    assert answer["msg"] == "device eth9: not on this host"

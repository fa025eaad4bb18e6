"""What a forwarding host counts, and by how much it grew."""

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_counters as counters
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.modules import forwarding_evidence

SNMP = """\
Ip: Forwarding DefaultTTL InReceives ForwDatagrams
Ip: 1 64 2000 1500
Icmp: InMsgs
Icmp: 3
"""
SOFTNET = "0000000a 00000001 00000002 00000000\n00000010 00000000 00000001 00000000\n"


def test_the_ip_layers_counters_by_name():
    assert counters.parse_snmp(SNMP, "Ip")["ForwDatagrams"] == 1500


@pytest.mark.parametrize("text", ["", "Ip: Forwarding\n", "Ip: A B\nIp: 1\n"])
def test_a_file_of_another_form_is_told(text):
    with pytest.raises(HostError, match="found no two lines of Ip; wanted names and values"):
        counters.parse_snmp(text, "Ip")


def test_receive_queues_are_summed_over_the_cpus():
    assert counters.parse_softnet(SOFTNET) == {"processed": 26, "dropped": 1, "squeezed": 3}


def test_growth_is_per_counter_and_settings_are_none():
    before = {"ip": {"Forwarding": 1, "ForwDatagrams": 5}, "eth1 rx": {"packets": 7}}
    after = {
        "ip": {"Forwarding": 0, "ForwDatagrams": 9, "New": 3},
        "eth1 rx": {"packets": 7},
        "eth2 rx": {"packets": 1},
    }
    assert counters.grown(before, after) == {
        "ip": {"ForwDatagrams": 4},
        "eth1 rx": {"packets": 0},
        "eth2 rx": {},
    }


def test_of_a_device_that_was_made_anew_nothing_is_known():
    assert counters.grown({"eth1 rx": {"packets": 7}}, {"eth1 rx": {"packets": 2}}) == {}


def test_the_module_reads_this_very_host(capsys):
    first = call(forwarding_evidence, capsys, devices=["lo"])
    assert first["evidence"]["counters"]["lo rx"]["packets"] >= 0
    second = call(forwarding_evidence, capsys, devices=["lo"], since=first["evidence"])
    assert second["same_boot"] is True
    assert set(second["grown"]) == {"ip", "softnet", "lo rx", "lo tx"}
    moved = {**first["evidence"], "identity": {"kernel": "another", "boot_id": None}}
    assert call(forwarding_evidence, capsys, devices=["lo"], since=moved)["same_boot"] is False


def test_a_device_that_is_not_there_is_told(capsys):
    failed = call(forwarding_evidence, capsys, devices=["none0"])
    assert failed["failed"] is True
    assert "none0" in failed["msg"]

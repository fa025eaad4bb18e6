"""The filters of the role ipsec."""

from __future__ import annotations

import base64
import struct

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.filter.ipsec import (
    captured_spis,
    ipsec_keys_differ,
    ipsec_label_conflicts,
    ipsec_sas_differ,
)
from ansible_collections.crossover.lab.plugins.module_utils.capture import pcap


def host(generation="a", label="u:r:t:s0", sas=(0x1000, 0x1001)):
    ends = ("198.18.0.1", "198.18.0.2")
    return {
        "connections": [{"name": "test", "generation": generation, "label": label}],
        "state": {
            "sas": {
                f"esp spi 0x{spi:x} to {ends[1 - number % 2]}": {"src": ends[number % 2]}
                for number, spi in enumerate(sas)
            }
        },
    }


def test_hosts_that_agree():
    results = [host(), host()]
    assert not ipsec_keys_differ(results)
    assert ipsec_label_conflicts(results) == ipsec_sas_differ(results) == []


def test_a_host_without_connections_disagrees_with_nobody():
    assert not ipsec_keys_differ([{}, host()])
    assert ipsec_label_conflicts([{}, host()]) == []


def test_keys_of_two_seeds_are_seen():
    assert ipsec_keys_differ([host(), host(generation="b")])


def test_two_labels_are_named():
    (text,) = ipsec_label_conflicts([host(), host(label="u:r:other:s0")])
    assert text == "connection test: label u:r:other:s0 and u:r:t:s0, wanted the same at both ends"


def test_sas_that_only_one_host_has_are_named_where_none_is_shared():
    assert ipsec_sas_differ([host(), host(sas=(0x1000, 0x1001, 0x1002))]) == []
    (text,) = ipsec_sas_differ([host(), host(sas=(0x1000, 0x2001))])
    assert text == (
        "SAs from 198.18.0.2 to 198.18.0.1: esp spi 0x1001 to 198.18.0.1; esp spi 0x2001 to "
        "198.18.0.1, wanted at least one that all hosts have"
    )


def frame(protocol, payload):
    ends = b"\x01" * 4 + b"\x02" * 4
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ends
    return b"\0" * 12 + b"\x08\x00" + ip + payload


def test_spis_of_a_capture_and_packets_in_clear():
    frames = [frame(50, struct.pack("!II", 0x1000, 1) + b"x" * 20), frame(1, b"\x08" + b"\0" * 19)]
    content = base64.b64encode(pcap([(0.0, len(one), one) for one in frames])).decode()
    assert captured_spis(content) == [0x1000, None]
    with pytest.raises(AnsibleFilterError, match="captured_spis: "):
        captured_spis("no capture")

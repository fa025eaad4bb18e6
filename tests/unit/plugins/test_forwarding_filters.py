"""What the module forwarding and pktgen are told, from the links of the inventory."""

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.filter import forwarding

LEFT = {
    "name": "left",
    "device": "eth1",
    "mac": "02:00:00:00:01:01",
    "ipv4": "198.18.0.1/24",
    "ipv6": "2001:db8:18::1/64",
    "peer_mac": "02:00:00:00:01:02",
    "peer_ipv4": "198.18.0.2/24",
    "peer_ipv6": "2001:db8:18::2/64",
}
RIGHT = {
    "name": "right",
    "device": "eth2",
    "mac": "02:00:00:00:02:01",
    "ipv4": "198.19.0.1/24",
    "ipv6": "2001:db8:19::1/64",
    "peer_mac": "02:00:00:00:02:02",
    "peer_ipv4": "198.19.0.2/24",
    "peer_ipv6": "2001:db8:19::2/64",
}


def test_a_tester_is_silent_and_merges_nothing():
    (found,) = forwarding.devices([LEFT], "tester")
    assert found == {
        "name": "eth1",
        "mac": "02:00:00:00:01:01",
        "addresses": ["198.18.0.1/24"],
        "forwards": False,
        "ipv6": False,
        "offloads": {"gro": False, "gso": False, "tso": False},
        "channels": {},
    }


def test_a_device_under_test_forwards_and_keeps_its_offloads():
    (found,) = forwarding.devices([{**LEFT, "mtu": 9000}], "dut", {}, {"combined": 2})
    assert found["forwards"] is True
    assert found["offloads"] == {}
    assert found["channels"] == {"combined": 2}
    assert found["mtu"] == 9000
    assert "ipv6" not in found


def test_ipv6_brings_its_addresses_and_neighbours():
    (found,) = forwarding.devices([LEFT], "dut", ipv6=True)
    assert found["ipv6"] is True
    assert found["addresses"] == ["198.18.0.1/24", "2001:db8:18::1/64"]
    assert [item["address"] for item in forwarding.neighbours([LEFT], "dut", True)] == [
        "198.18.0.2",
        "2001:db8:18::2",
    ]
    assert len(forwarding.neighbours([LEFT], "tester", True)) == 1


def test_both_directions_go_from_port_to_port():
    there, back = forwarding.ports([LEFT, RIGHT], bidirectional=True)
    assert there == {
        "device": "eth1",
        "mac_destination": "02:00:00:00:01:02",
        "ipv4_source": "198.18.0.1",
        "ipv4_destination": "198.19.0.1",
        "receive_device": "eth2",
    }
    assert (back["device"], back["receive_device"]) == ("eth2", "eth1")
    assert forwarding.ports([LEFT, RIGHT]) == [there]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: forwarding.devices([LEFT], "router"),
            "side: found 'router'; wanted dut or tester",
        ),
        (
            lambda: forwarding.devices([{**LEFT, "mac": None}], "dut"),
            "bench_links left: found no mac; wanted its MAC address in the inventory",
        ),
        (
            lambda: forwarding.neighbours([{**LEFT, "peer_mac": ""}], "dut"),
            "bench_links left: found no peer_mac; wanted the peer's MAC address",
        ),
        (lambda: forwarding.ports([LEFT]), "bench_links: found 1; wanted the tester's two"),
    ],
)
def test_what_the_inventory_lacks_is_told(call, message):
    with pytest.raises(AnsibleFilterError, match=message):
        call()


def test_the_filters_have_names():
    assert set(forwarding.FilterModule().filters()) == {
        "forwarding_devices",
        "forwarding_neighbours",
        "forwarding_ports",
    }

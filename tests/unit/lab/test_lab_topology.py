"""Topologies: data that is read strictly, and what inventory and MAC addresses make of them."""

import copy
from pathlib import Path

import pytest
import yaml

from collector.lab.errors import LabError
from collector.lab.topology import mac_address, read_topology

SHIPPED = Path(__file__).resolve().parents[3] / "roles" / "lab_qemu" / "files" / "topologies"
PAIR = {
    "schema": 1,
    "name": "pair",
    "nodes": {"client": {"groups": ["clients"]}, "server": {"groups": ["servers"]}},
    "links": [
        {
            "name": "test",
            "ends": [
                {"node": "client", "device": "eth1", "ipv4": "198.18.0.1/24", "ipv6": "::1/64"},
                {"node": "server", "device": "eth1", "ipv4": "198.18.0.2/24", "ipv6": "::2/64"},
            ],
        }
    ],
}


def changed(path, value):
    """A copy of PAIR with one place changed; ``...`` as the value takes the key away."""
    document = copy.deepcopy(PAIR)
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yml")), ids=lambda file: file.stem)
def test_every_shipped_topology_is_read_and_names_itself(file):
    made = read_topology(yaml.safe_load(file.read_text()))
    assert made.name == file.stem
    assert all(groups for groups in made.nodes.values())


def test_the_inventory_sees_test_links_from_each_end_and_the_control_address():
    pair = read_topology(yaml.safe_load((SHIPPED / "pair.yml").read_text()))
    seen = pair.host_vars("server", "lab")
    assert seen["bench_control_address"] == "192.0.2.2"
    assert seen["bench_links"] == [
        {
            "name": "test",
            "device": "eth1",
            "mac": mac_address("lab", "server", "eth1"),
            "ipv4": "198.18.0.2/24",
            "ipv6": "2001:db8:18::2/64",
            "peer": "client",
            "peer_mac": mac_address("lab", "client", "eth1"),
            "peer_ipv4": "198.18.0.1/24",
            "peer_ipv6": "2001:db8:18::1/64",
            "speed_mbps": 1000,
        }
    ]


def test_without_the_name_of_the_lab_there_are_no_mac_addresses():
    (link,) = read_topology(PAIR).host_vars("client")["bench_links"]
    assert not {"mac", "peer_mac"} & set(link)


def test_kernels_are_booted_where_they_are_measured_and_a_tester_keeps_its_own():
    booted = {
        file.stem: [node for node in found.nodes if found.boots_kernels(node)]
        for file in SHIPPED.glob("*.yml")
        for found in [read_topology(yaml.safe_load(file.read_text()))]
    }
    assert booted == {
        "pair": ["client", "server"],
        "dut": ["dut"],
        "chain": ["dut"],
        "single": ["host"],
    }


def test_without_a_control_link_there_is_no_control_address():
    assert read_topology(PAIR).host_vars("client")["bench_control_address"] is None


END = ("links", 0, "ends", 0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "topology file: found []; wanted a dict of schema, name, nodes, links"),
        (
            {**PAIR, "speed": 1},
            "topology file: found ['speed']; wanted only schema, name, nodes, links",
        ),
        (changed(("schema",), 2), "topology schema: found 2; wanted 1"),
        (changed(("schema",), ...), "topology schema: found None; wanted 1"),
        (changed(("nodes",), {}), "topology nodes: found {}; wanted a dict of at least one node"),
        (changed(("links", 0, "ends"), []), "topology links[0].ends: found []; wanted two ends"),
        (changed(("links", 0), "x"), "topology links[0].ends: found None; wanted two ends"),
        (
            changed(END, {"node": "client"}),
            "topology links[0].ends[0]: found {'node': 'client'}; wanted a dict of node, device,"
            " ipv4, ipv6",
        ),
        (
            changed((*END, "node"), "ghost"),
            "topology links[0].ends[0].node: found 'ghost'; wanted one of client, server",
        ),
        (
            changed((*END, "device"), "eth0"),
            "topology links[0].ends[0].device: found 'eth0'; wanted a device other than the"
            " management one",
        ),
        (
            changed((*END, "ipv4"), "198.18.0.1"),
            "topology links[0].ends[0].ipv4: found '198.18.0.1'; wanted an IPv4 address with"
            " prefix length",
        ),
        (
            changed((*END, "ipv6"), "198.18.0.1/24"),
            "topology links[0].ends[0].ipv6: found '198.18.0.1/24'; wanted an IPv6 address with"
            " prefix length",
        ),
        (
            changed((*END, "ipv4"), "198.18.0.300/24"),
            "topology links[0].ends[0].ipv4: found '198.18.0.300/24'; wanted an IPv4 address with"
            " prefix length",
        ),
        (
            changed(("links",), PAIR["links"] * 2),
            "topology links[1]: found 'client eth1'; wanted each device in one link only",
        ),
        (
            changed(("links", 0, "purpose"), "fun"),
            "topology links[0].purpose: found 'fun'; wanted test or control",
        ),
    ],
)
def test_an_error_names_the_key_what_came_and_what_was_wanted(document, message):
    with pytest.raises(LabError) as caught:
        read_topology(document)
    assert str(caught.value) == message


def test_mac_addresses_are_stable_and_differ_by_lab_node_and_device():
    first = mac_address("default", "client", "eth1")
    assert first == mac_address("default", "client", "eth1")
    assert first.startswith("52:54:00:")
    others = {
        mac_address("other", "client", "eth1"),
        mac_address("default", "server", "eth1"),
        mac_address("default", "client", "eth2"),
    }
    assert len({first, *others}) == 4

"""Receive side scaling, sockets and cores, the bus: what a reader of a benchmark asks for."""

import hashlib

from ansible_collections.crossover.lab.plugins.module_utils.host import rss, topology

TABLE = """RX flow hash indirection table for eth0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      0     0     2     3     0     1     2     3
RSS hash key:
6d:5a:56:da:25:5b:0e:c2
RSS hash function:
    toeplitz: on
    xor: off
    crc32: off
RSS input transformation:
    symmetric-xor: off
"""
FIELDS = """TCP over IPV4 flows use these fields for computing Hash flow key:
IP SA
IP DA
L4 bytes 0 & 1 [TCP/UDP src port]
L4 bytes 2 & 3 [TCP/UDP dst port]

"""


def test_an_indirection_table_is_counted_and_known_by_its_hash():
    found = rss.parse_table(TABLE)
    assert (found["rings"], found["entries"], found["function"]) == (4, 16, "toeplitz")
    assert found["shares"] == {"0": 5, "1": 3, "2": 4, "3": 4}
    assert found["key_sha256"] == hashlib.sha256(b"6d:5a:56:da:25:5b:0e:c2").hexdigest()
    other = rss.parse_table(TABLE.replace("0     0     2", "0     1     2"))
    assert other["table_sha256"] != found["table_sha256"]


def test_the_fields_of_the_hash_are_those_that_ethtool_lists():
    assert rss.parse_fields(FIELDS) == (
        "IP SA, IP DA, L4 bytes 0 & 1 [TCP/UDP src port], L4 bytes 2 & 3 [TCP/UDP dst port]"
    )
    assert rss.parse_fields("") is None
    assert rss.parse_fields("Cannot get RX network flow hashing options\n") is None


def test_a_driver_without_scaling_says_nothing_not_zero():
    found = rss.read("eth1", lambda _argv: (1, "", "Operation not supported\n"))
    assert found == {
        "rings": None,
        "entries": None,
        "shares": {},
        "table_sha256": None,
        "key_sha256": None,
        "function": None,
        "hash_fields": {"tcp4": None, "udp4": None, "tcp6": None, "udp6": None},
    }


def test_each_flow_is_asked_for_by_itself():
    asked = []

    def run(argv):
        asked.append(" ".join(argv))
        return (0, FIELDS if "-n" in argv else TABLE, "")

    assert rss.read("eth1", run)["hash_fields"]["udp6"].startswith("IP SA")
    assert "ethtool -n eth1 rx-flow-hash udp4" in asked


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_cores_of_two_sockets_are_told_apart(tmp_path):
    for cpu in range(8):
        put(tmp_path / f"cpu{cpu}" / "topology" / "physical_package_id", str(cpu % 2))
        put(tmp_path / f"cpu{cpu}" / "topology" / "core_id", str(cpu // 4))
    put(tmp_path / "nodes" / "node0" / "cpulist", "0-3")
    put(tmp_path / "nodes" / "node1" / "cpulist", "4-7")
    assert topology.cpus(tmp_path, tmp_path / "nodes") == {
        "sockets": 2,
        "cores": 4,
        "threads_per_core": 2,
        "nodes": {"node0": "0-3", "node1": "4-7"},
    }


def test_a_kernel_without_topology_leaves_it_unknown(tmp_path):
    found = topology.cpus(tmp_path, tmp_path)
    assert found == {"sockets": None, "cores": None, "threads_per_core": None, "nodes": {}}


def test_the_bus_of_a_card_and_of_a_virtio_device(tmp_path):
    slot = tmp_path / "pci" / "0000:01:00.0"
    for name, text in (
        ("class", "0x020000"),
        ("vendor", "0x8086"),
        ("device", "0x10fb"),
        ("current_link_speed", "5.0 GT/s PCIe"),
        ("current_link_width", "8"),
    ):
        put(slot / name, text)
    put(slot / "virtio3" / "vendor", "0x1af4")
    for device, target in (("eth0", slot), ("eth1", slot / "virtio3")):
        (tmp_path / "net" / device).mkdir(parents=True)
        (tmp_path / "net" / device / "device").symlink_to(target)
    (tmp_path / "net" / "lo").mkdir()
    first = topology.bus("eth0", tmp_path / "net")
    assert (first["pci_id"], first["current_link_width"]) == ("8086:10fb", "8")
    assert first["max_link_speed"] is None
    assert topology.bus("eth1", tmp_path / "net") == first
    assert set(topology.bus("lo", tmp_path / "net").values()) == {None}

"""The exact filter: nftables' commands, and the program of the packet socket."""

import json
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_filter as filters
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import (
    HostError,
    NotInstalledError,
)
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_trial import MAGIC, Stream

STREAM = Stream("198.18.0.1", "198.19.0.1", 1024, 4, 9, 60)
COUNTERS = {
    "nftables": [
        {"metainfo": {"json_schema_version": 1}},
        {"counter": {"family": "netdev", "name": "matched", "packets": 5, "bytes": 230}},
        {"counter": {"family": "netdev", "name": "other", "packets": 2, "bytes": 120}},
    ]
}


def frame(stream, **changed):
    """A pktgen frame of a stream, without FCS; ``changed`` are parts of it that are not its own."""
    get = {
        "source": stream.source,
        "destination": stream.destination,
        "sport": stream.first_port,
        "dport": stream.udp_port,
        "protocol": 17,
        "fragment": 0,
        "magic": MAGIC,
        "length": stream.ip_bytes,
        "options": b"",
        **changed,
    }
    payload = struct.pack("!I", get["magic"])
    udp = struct.pack("!HHHH", get["sport"], get["dport"], 12, 0) + payload
    words = 5 + len(get["options"]) // 4
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x40 | words,
        0,
        get["length"],
        0,
        get["fragment"],
        32,
        get["protocol"],
        0,
        socket.inet_aton(get["source"]),
        socket.inet_aton(get["destination"]),
    )
    return bytes(12) + b"\x08\x00" + ip + get["options"] + udp


def run_program(program, data):
    """What the kernel's interpreter of classic BPF would return for a frame."""
    a = x = at = 0
    while True:
        code, true, false, value = program[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            a = struct.unpack_from("!I", data, value)[0]
        elif code == 0x28:
            a = struct.unpack_from("!H", data, value)[0]
        elif code == 0x30:
            a = data[value]
        elif code == 0x40:
            a = struct.unpack_from("!I", data, x + value)[0]
        elif code == 0x48:
            a = struct.unpack_from("!H", data, x + value)[0]
        elif code == 0xB1:
            x = 4 * (data[value] & 0xF)
        else:
            holds = {0x15: a == value, 0x25: a > value, 0x35: a >= value, 0x45: bool(a & value)}
            at += true if holds[code] else false


def test_the_program_takes_every_flow_of_the_stream():
    program = filters.program(STREAM)
    for port in range(1024, 1028):
        assert run_program(program, frame(STREAM, sport=port)) == 1
    assert run_program(program, frame(STREAM, options=bytes(4))) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"source": "198.18.0.3"},
        {"destination": "198.19.0.3"},
        {"sport": 1023},
        {"sport": 1028},
        {"dport": 10},
        {"protocol": 6},
        {"fragment": 0x2001},
        {"magic": 0},
        {"length": 47},
    ],
)
def test_the_program_refuses_what_differs_in_one_place(changed):
    assert run_program(filters.program(STREAM), frame(STREAM, **changed)) == 0


@given(flows=st.integers(1, 60000), port=st.integers(0, 65535))
def test_the_program_takes_exactly_the_ports_of_the_flows(flows, port):
    stream = Stream("198.18.0.1", "198.19.0.1", 1024, flows, 9, 60)
    taken = run_program(filters.program(stream), frame(stream, sport=port)) == 1
    assert taken == (1024 <= port < 1024 + flows)


def test_the_commands_of_nftables_match_and_drop_on_the_ingress_hook():
    commands = filters.ruleset("t", "eth2", STREAM)["nftables"]
    (chain,) = [c["add"]["chain"] for c in commands if "chain" in c["add"]]
    assert (chain["hook"], chain["dev"], chain["policy"]) == ("ingress", "eth2", "accept")
    first, second = (c["add"]["rule"]["expr"] for c in commands if "rule" in c["add"])
    assert [item["match"]["right"] for item in first if "match" in item] == [
        "198.18.0.1",
        "198.19.0.1",
        46,
        {"range": [1024, 1027]},
        9,
        MAGIC,
    ]
    assert first[-2:] == [{"counter": "matched"}, {"drop": None}]
    assert second == [{"counter": "other"}]


def test_one_flow_is_one_port():
    one = filters.ruleset("t", "eth2", Stream("198.18.0.1", "198.19.0.1", 1024, 1, 9, 60))
    assert '"right": 1024' in json.dumps(one)


class Nft:
    """Answers as nft. ``error``: what it says to new rules."""

    def __init__(self, error=""):
        self.error, self.tables, self.calls = error, set(), []

    def __call__(self, argv):
        self.calls.append(list(argv))
        words = argv[1:] if argv[1] != "-j" else argv[2:]
        if words[:2] == ["list", "tables"]:
            tables = [{"table": {"family": "netdev", "name": name}} for name in self.tables]
            return 0, json.dumps({"nftables": tables}), ""
        if words[:2] == ["list", "counters"]:
            return 0, json.dumps(COUNTERS), ""
        if words[:2] == ["delete", "table"]:
            self.tables.remove(words[3])
            return 0, "", ""
        if self.error:
            return 1, "", self.error
        self.tables.add(json.loads(words[0])["nftables"][0]["add"]["table"]["name"])
        return 0, "", ""


def test_a_filter_counts_and_leaves_nothing_behind():
    nft = Nft()
    made, reason = filters.add_filter("crossover_pktgen_0", "eth2", STREAM, nft)
    assert (made.kind, reason) == ("nft", None)
    assert made.read() == filters.Counted(5, 230, 2)
    assert made.remove() is True
    assert made.remove() is False
    assert nft.tables == set()


def test_a_filter_that_was_left_is_made_anew():
    nft = Nft()
    nft.tables.add("crossover_pktgen_0")
    filters.NftFilter("crossover_pktgen_0", nft).add("eth2", STREAM)
    assert ["nft", "delete", "table", "netdev", "crossover_pktgen_0"] in nft.calls


def test_without_nftables_a_packet_socket_counts_and_the_reason_is_told(monkeypatch):
    added = []
    monkeypatch.setattr(filters.PacketFilter, "add", lambda _self, device, _s: added.append(device))
    made, reason = filters.add_filter("t", "eth2", STREAM, Nft("Error: Operation not supported\n"))
    assert (made.kind, added) == ("packet", ["eth2"])
    assert reason == "nft: Error: Operation not supported"


def test_without_either_the_reasons_are_told(monkeypatch):
    def refuse(_self, device, _stream):
        raise HostError(f"packet socket on {device}: Operation not permitted")

    monkeypatch.setattr(filters.PacketFilter, "add", refuse)
    made, reason = filters.add_filter("t", "eth2", STREAM, Nft("Error: no\n"))
    assert made is None
    assert reason == "nft: Error: no; packet socket on eth2: Operation not permitted"


def test_a_host_without_nft_has_no_tables():
    def absent(_argv):
        raise NotInstalledError("nft: not installed on this host")

    assert filters.tables(absent) == []
    assert filters.tables(lambda _argv: (1, "", "Error: Operation not supported")) == []


def test_another_text_than_counters_is_an_error():
    with pytest.raises(HostError, match="nft -j list counters: found other text"):
        filters.parse_counters(json.dumps({"nftables": []}))


def test_a_packet_socket_that_was_not_made_has_counted_nothing_that_is_known():
    made = filters.PacketFilter()
    assert made.read() == filters.Counted(None, None, None)
    assert made.remove() is False

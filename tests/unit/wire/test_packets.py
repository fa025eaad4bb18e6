"""Captures and IP options: read right, and never further than they go."""

import ipaddress
import struct

import pytest
from evidence_factory import CLIENT, SERVER, frame, frames, pcap
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils import capture
from collector.errors import InputError
from collector.wire.packets import cipso_option, ip_options, read_pcap

OPTION = bytes.fromhex("860600000010")


def test_addresses_protocol_ports_and_option_are_read():
    packet = read_pcap(pcap([frame(CLIENT, SERVER, 17, OPTION)]), "x.pcap")[0]
    assert (packet.source, packet.destination, packet.protocol) == (CLIENT, SERVER, 17)
    assert packet.ports == (40000, 12900)
    assert cipso_option(packet) == OPTION
    assert not packet.fragment


def test_an_ipv6_packet_has_no_ipv4_options():
    six = b"\x60" + bytes(5) + b"\x06\x40"
    six += ipaddress.IPv6Address("2001:db8::1").packed + ipaddress.IPv6Address("2001:db8::2").packed
    data = bytes(12) + b"\x86\xdd" + six + struct.pack("!HH", 1, 2) + bytes(16)
    packet = read_pcap(pcap([data]), "x.pcap")[0]
    assert (packet.source, packet.protocol, packet.ports) == ("2001:db8::1", 6, (1, 2))
    assert cipso_option(packet) is None


def test_a_later_fragment_has_no_ports():
    data = bytearray(frame(CLIENT, SERVER, 17))
    data[20:22] = b"\x00\x10"
    packet = read_pcap(pcap([bytes(data)]), "x.pcap")[0]
    assert packet.fragment
    assert packet.ports is None


def test_frames_that_are_no_ip_are_left_out():
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    assert read_pcap(pcap([arp, *frames(None)]), "x.pcap")[0].protocol == 6


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.pcap: found no pcap header; wanted a pcap file (microseconds, little endian)"),
        (b"\0" * 24, "x.pcap: found no pcap header; wanted a pcap file (microseconds, little"),
        (pcap([])[:20] + b"\x65\0\0\0", "x.pcap: found another link type; wanted a capture of"),
        (pcap(frames(None))[:-1], "x.pcap: found a cut-off packet; wanted whole packets"),
        (pcap([]) + b"\0" * 15, "x.pcap: found a cut-off packet header; wanted whole packets"),
    ],
)
def test_a_damaged_capture_is_refused(data, message):
    with pytest.raises(InputError) as caught:
        read_pcap(data, "x.pcap")
    assert str(caught.value).startswith(message)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data):
    for content in (data, pcap([data]), pcap([])[:24] + data):
        try:
            for packet in read_pcap(content, "x.pcap"):
                cipso_option(packet)
        except InputError:
            continue


@given(st.binary(max_size=40))
def test_options_of_any_bytes_lie_inside_and_say_their_own_length(raw):
    at = 0
    for kind, option in ip_options(raw):
        assert option[0] == kind
        assert option[1] == len(option) >= 2
        found = raw.index(option, at)
        assert found >= at
        at = found + len(option)
    assert at <= len(raw)


WHOLE = st.tuples(st.integers(2, 255), st.binary(max_size=8)).map(
    lambda pair: bytes([pair[0], len(pair[1]) + 2]) + pair[1]
)


@given(st.lists(st.one_of(WHOLE, st.just(b"\x01")), max_size=6), st.sampled_from([b"", b"\0\0"]))
def test_every_whole_option_is_found_and_padding_is_not(parts, end):
    wanted = [(part[0], part) for part in parts if part != b"\x01"]
    assert list(ip_options(b"".join(parts) + end)) == wanted


@pytest.mark.parametrize("raw", [b"\x86", b"\x86\x00", b"\x86\x01aa", b"\x86\x09aa", b"\x01\x86"])
def test_a_malformed_option_ends_the_list(raw):
    assert list(ip_options(raw)) == []


def test_a_header_shorter_than_the_least_has_no_options():
    data = bytearray(frame(CLIENT, SERVER, 6, OPTION))
    data[14] = 0x41
    assert cipso_option(read_pcap(pcap([bytes(data)]), "x.pcap")[0]) is None


@given(st.lists(st.binary(min_size=60, max_size=200), max_size=5))
def test_what_the_target_writes_the_collector_reads(contents):
    made = [(1.5, len(data), data) for data in contents]
    ours = read_pcap(capture.pcap(made), "x.pcap")
    assert ours == read_pcap(pcap(contents), "x.pcap")


@given(st.binary(max_size=80), st.integers(1, 65535))
def test_the_filter_of_the_capture_takes_any_frame(data, port):
    assert capture.has_port(data, port) in (True, False)
    assert capture.is_esp(data) in (True, False)


def test_the_filter_of_the_capture_knows_ports_behind_options_and_esp():
    assert capture.has_port(frame(CLIENT, SERVER, 6, OPTION), 12900)
    assert not capture.has_port(frame(CLIENT, SERVER, 6, OPTION), 12901)
    assert not capture.has_port(frame(CLIENT, SERVER, 1), 12900)
    assert capture.is_esp(frame(CLIENT, SERVER, 50))
    assert not capture.is_esp(frame(CLIENT, SERVER, 6))

"""STT is read as another implementation wrote it, byte by byte, and written the same way."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import InputError
from collector.wire import stt

CAPTURE = Path(__file__).resolve().parents[2] / "data" / "stt" / "reference.pcap"


def frames_of(path):
    """The raw frames of a little-endian pcap file."""
    data = path.read_bytes()
    at = 24
    while at < len(data):
        (captured,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16 : at + 16 + captured]
        at += 16 + captured


@pytest.fixture(scope="module")
def reference():
    return stt.read_stt(frames_of(CAPTURE), "reference.pcap")


def test_the_reference_is_read_to_its_end(reference):
    whole, waiting = reference
    segments = [segment for frame in whole for segment in frame.segments]
    # The capture ends inside a frame, after two of its segments.
    assert waiting == 1
    assert len(segments) == len(list(frames_of(CAPTURE))) - 2
    assert all(segment.checksum for segment in segments)
    assert {segment.window for segment in segments} == {0xFFFF}
    assert {frame.header.key for frame in whole} == {1}
    assert max(len(frame.ethernet) for frame in whole) > 10000


def test_the_header_of_the_reference_says_what_is_inside(reference):
    whole, _ = reference
    tcp = [frame for frame in whole if frame.header.flags]
    assert {frame.header.flags for frame in tcp} == {stt.PARTIAL | stt.IPV4 | stt.TCP}
    assert {frame.header.l4_offset for frame in tcp} == {34}
    assert {frame.header.mss for frame in tcp} == {0, 1448}
    # A frame is to be segmented exactly when its TCP payload is longer than that.
    for frame in tcp:
        payload = len(frame.ethernet) - 34 - (frame.ethernet[34 + 12] >> 4) * 4
        assert bool(frame.header.mss) == (payload > 1448)


def test_inner_packets_of_the_reference_are_right_to_the_last_byte(reference):
    whole, _ = reference
    checked = 0
    for frame in whole:
        inner = frame.finished()
        found = stt._ip(inner[14:])
        if found is None:
            continue
        source, destination, protocol, payload, complete = found
        assert complete
        if protocol == 1:
            assert stt.internet_checksum(payload) == 0xFFFF
        elif protocol in (6, 17):
            start = stt.pseudo_sum(source, destination, protocol, len(payload))
            assert stt.internet_checksum(payload, start) == 0xFFFF
        else:
            continue
        checked += 1
    assert checked == 37


def test_the_reference_can_be_written_again(reference):
    whole, _ = reference
    for frame in whole:
        first = frame.segments[0]
        data = frame.header.pack() + frame.ethernet
        written = stt.segments(
            data,
            first.source,
            first.destination,
            source_port=first.source_port,
            packet_id=first.packet_id,
            size=1460,
        )
        assert [packet[20:] for packet in written] == [part.payload for part in frame.segments]
    frame = next(frame for frame in whole if len(frame.segments) > 3)
    first = frame.segments[0]
    written = list(
        stt.segments(
            frame.header.pack() + frame.ethernet,
            first.source,
            first.destination,
            source_port=first.source_port,
            packet_id=first.packet_id,
            size=1460,
        )
    )
    same_sizes = [
        raw[34:54]
        for raw in frames_of(CAPTURE)
        if (part := stt.segment_of(raw)) and part.flow == first.flow
    ]
    assert [packet[:20] for packet in written] == same_sizes


def ethernet(packet, kind=b"\x08\x00"):
    return b"\2\0\0\0\0\1\2\0\0\0\0\2" + kind + packet


def ipv4(payload, protocol=6):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0,
                       b"\xc6\x12\0\1", b"\xc6\x12\0\2")  # fmt: skip
    return head + payload


def on_wire(data, size=1000, packet_id=7):
    return [
        ethernet(ipv4(tcp))
        for tcp in stt.segments(
            data, "198.18.0.1", "198.18.0.2", source_port=50000, packet_id=packet_id, size=size
        )
    ]


@given(
    st.binary(min_size=14, max_size=6000),
    st.integers(0, 2**64 - 1),
    st.one_of(st.none(), st.tuples(st.integers(0, 7), st.integers(0, 4095))),
    st.integers(20, 1460),
    st.randoms(),
)
def test_any_order_of_segments_gives_the_frame(inner, key, vlan, size, random):
    header = stt.Header(key=key, vlan=vlan)
    sent = on_wire(header.pack() + inner, size)
    doubled = sent + sent[:-1]
    random.shuffle(sent)
    (frame,), waiting = stt.read_stt(sent, "capture")
    assert (frame.header, frame.ethernet, waiting) == (header, inner, 0)
    reassembler = stt.Reassembler()
    found = [reassembler.add(stt.segment_of(raw)) for raw in doubled]
    assert [one.ethernet for one in found if one] == [inner]


def test_a_missing_segment_is_counted():
    sent = on_wire(stt.Header().pack() + bytes(3000))
    assert stt.read_stt(sent[1:], "capture") == ([], 1)


def test_padding_of_a_short_frame_is_no_payload():
    sent = on_wire(stt.Header().pack() + bytes(983), 1000)
    (frame,), _ = stt.read_stt([sent[0], sent[1] + bytes(18)], "capture")
    assert len(frame.ethernet) == 983


def test_a_frame_of_the_largest_size_fits_and_no_larger():
    assert len(on_wire(bytes(18) + bytes(stt.LARGEST_FRAME), 1460)) == 45
    with pytest.raises(stt.MalformedError, match="at most 65495"):
        on_wire(bytes(18) + bytes(stt.LARGEST_FRAME + 1))


def change(raw, offset, value):
    return raw[:offset] + value + raw[offset + len(value) :]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda sent: [change(sent[0], 38, b"\0\1")], "1000 bytes at offset 0 of a frame of 1"),
        (lambda sent: [sent[0], change(sent[1], 38, b"\x0f\0")], "another length"),
        (lambda sent: [sent[0][:200]], "cut off by the capture"),
        (lambda sent: [*sent[:-1], change(sent[-1], 40, b"\x07\xcf")], "segments overlap"),
        (lambda sent: on_wire(b"\1" + bytes(40)), "version 1; wanted 0"),
    ],
)
def test_what_is_malformed_is_named_with_its_frame(make, text):
    sent = make(on_wire(stt.Header().pack() + bytes(2982)))
    with pytest.raises(InputError, match=text) as caught:
        stt.read_stt(sent, "capture")
    assert f"capture: frame {len(sent)}" in str(caught.value)


def test_other_traffic_is_left_out():
    sent = on_wire(stt.Header().pack() + bytes(14))
    other_port = change(sent[0], 36, b"\0\x50")
    no_ack = change(sent[0], 47, b"\2")
    arp = ethernet(bytes(28), b"\x08\x06")
    assert stt.read_stt([other_port, no_ack, arp, ethernet(ipv4(bytes(8), 17))], "c") == ([], 0)


@given(st.binary(max_size=99), st.integers(0, 0xFFFF))
def test_the_sum_is_that_of_adding_words_and_carries(data, start):
    total = start
    for at in range(0, len(data), 2):
        total += int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
        total = (total & 0xFFFF) + (total >> 16)
    assert stt.internet_checksum(data, start) == total


@given(st.binary(max_size=400), st.sampled_from([6, 17]))
def test_a_checksum_left_to_the_receiver_is_finished(payload, protocol):
    head = bytes(20) if protocol == 6 else bytes(8)
    header, partial = stt.with_partial_checksum(ethernet(ipv4(head + payload, protocol)), 5)
    inner = stt.Frame(header, partial, ()).finished()
    segment = inner[34:]
    start = stt.pseudo_sum(b"\xc6\x12\0\1", b"\xc6\x12\0\2", protocol, len(segment))
    assert stt.internet_checksum(segment, start) == 0xFFFF


def test_a_tag_of_the_header_comes_back_into_the_frame():
    inner = ethernet(ipv4(bytes(8), 50))
    frame = stt.Frame(stt.Header(vlan=(5, 42)), inner, ())
    assert frame.finished() == inner[:12] + b"\x81\0\xa0\x2a" + inner[12:]

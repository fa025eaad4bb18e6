"""The filter that shows the labels in a capture."""

from __future__ import annotations

import base64
import struct

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.filter.captured_labels import (
    FilterModule,
    captured_labels,
)

OPTION = bytes.fromhex("8628000000100122" + "0000") + b"\xff" * 30


def capture(*options):
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
    for option in options:
        header = 20 + len(option)
        packet = bytes([0x40 | header // 4, 0]) + struct.pack(">H", header + 20) + bytes(5)
        packet += bytes([6]) + bytes(2) + bytes([198, 18, 0, 1, 198, 18, 0, 2]) + option
        frame = bytes(12) + b"\x08\x00" + packet[: 20 + len(option)] + bytes(20)
        # The protocol stands at its fixed place.
        data += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    return base64.b64encode(data).decode()


def test_each_packet_has_its_label_or_none():
    assert captured_labels(capture(OPTION, b"")) == [
        {"doi": 16, "tag": 1, "level": 0, "categories": list(range(240))},
        None,
    ]
    assert FilterModule().filters() == {"captured_labels": captured_labels}


@pytest.mark.parametrize("content", ["!", base64.b64encode(b"no capture").decode()])
def test_what_is_no_capture_is_an_error(content):
    with pytest.raises(AnsibleFilterError, match="captured_labels: "):
        captured_labels(content)


def test_a_malformed_option_is_an_error():
    broken = OPTION[:6] + b"\x63" + OPTION[7:]
    with pytest.raises(AnsibleFilterError, match="captured_labels: tag 99"):
        captured_labels(capture(broken))

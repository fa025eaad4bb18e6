"""Line rate: the figures everybody knows by heart."""

import pytest

from collector.errors import InputError
from collector.forwarding.linerate import line_rate_fps

# RFC 2544, section 9.1, the sizes for Ethernet.
SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
GIGABIT = (1488095, 844595, 452899, 234962, 119732, 96154, 81274)


@pytest.mark.parametrize(("size", "fps"), list(zip(SIZES, GIGABIT, strict=True)))
def test_the_rates_of_a_gigabit_link(size, fps):
    assert round(line_rate_fps(size, 1000)) == fps
    assert round(line_rate_fps(size, 10_000) / 10) == fps


def test_a_rate_as_a_share_of_the_line():
    # An RFC 2544 tool printed 521343 of 1488095 frames/s as 35.03 %.
    assert 100 * 521343 / line_rate_fps(64, 1000) == pytest.approx(35.03, abs=0.005)


@pytest.mark.parametrize("size", [63, 9019])
def test_a_size_that_is_no_frame(size):
    with pytest.raises(InputError, match=rf"^frame_bytes: found {size}; wanted 64 to 9018, with"):
        line_rate_fps(size, 1000)


@pytest.mark.parametrize("speed", [0, -1, float("nan")])
def test_a_link_without_a_speed_has_no_line_rate(speed):
    with pytest.raises(InputError, match=r"^speed_mbps: found "):
        line_rate_fps(64, speed)

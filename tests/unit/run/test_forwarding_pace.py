"""Whether only the device can slow a generator down."""

import pytest
from forwarding_hosts import DUT, FAR, NEAR, TESTER

from collector.forwarding.path import find_path
from collector.run.forwarding_pace import keeps_pace

ONE, TWO = find_path([TESTER], DUT, {}), find_path([NEAR, FAR], DUT, {})
BOTH, ONE_WAY = "bidirectional", "unidirectional"


@pytest.mark.parametrize(
    ("path", "direction", "processors", "kind", "here", "wanted"),
    [
        # One processor cannot send and receive at full speed.
        (ONE, ONE_WAY, {"tester": 1, "dut": 4}, "hardware", 2, False),
        (ONE, ONE_WAY, {"tester": 2, "dut": 4}, "hardware", 2, True),
        # A tester that only sends needs no other.
        (TWO, ONE_WAY, {"near": 1, "far": 1, "dut": 1}, "hardware", 1, True),
        (TWO, BOTH, {"near": 2, "far": 1, "dut": 1}, "hardware", 8, False),
        (TWO, BOTH, {"near": 2, "far": 2, "dut": 1}, "hardware", 1, True),
        # Guests have processors of their own only where there are as many.
        (TWO, ONE_WAY, {"near": 1, "far": 1, "dut": 1}, "guests", 2, False),
        (TWO, ONE_WAY, {"near": 1, "far": 1, "dut": 1}, "guests", 3, True),
        (ONE, BOTH, {"tester": 2, "dut": 2}, "guests", 2, False),
        # The device of a netns lab is this machine as well.
        (TWO, ONE_WAY, {"near": 64, "far": 64, "dut": 64}, "netns", 64, False),
    ],
)
def test_what_else_could_slow_it_down(path, direction, processors, kind, here, wanted):
    assert keeps_pace(path, direction, processors, kind, here) is wanted

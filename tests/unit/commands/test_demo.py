"""``crossover demo``: as many blocks as its time has room for."""

import pytest

from collector.commands.demo import blocks_for


@pytest.mark.parametrize(
    ("booted", "spent_s", "blocks"),
    [
        (True, 95.0, 3),  # baked and booted on an idle machine
        (True, 250.0, 1),
        (True, 1000.0, 1),  # slow: it is measured all the same
        (False, 9.0, 1),
    ],
)
def test_a_demo_plans_the_blocks_that_its_time_has_room_for(booted, spent_s, blocks):
    assert blocks_for(booted, spent_s) == blocks

"""A time in the words that people read."""

import pytest

from collector.duration import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.5, "1 min 00 s"), (185, "3 min 05 s"),
     (3599.4, "59 min 59 s"), (3600, "1 h 00 min"), (7800, "2 h 10 min"), (90000, "25 h 00 min")],
)  # fmt: skip
def test_durations_are_short_words(seconds, text):
    assert duration(seconds) == text

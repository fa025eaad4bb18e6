"""Which samples of the CPU belong to a window."""

import json

import pytest

from collector.sessions.cpu import Reading, SpanError, read_samples, span_of, within
from collector.sessions.window import Window

SAMPLES = [Reading(100 + i / 4, 7 + i / 4, f"cpu {i}") for i in range(40)]


def test_the_span_lies_within_the_window_and_is_as_long_as_it_can_be():
    span = within(SAMPLES, Window(101.1, 105.1))
    assert (span.first.at, span.last.at) == (101.25, 105.0)
    assert span.seconds == 3.75
    assert span_of(span.as_dict()) == span


def test_an_uncertain_window_is_narrowed():
    span = within(SAMPLES, Window(101.1, 105.1), 0.3)
    assert (span.first.at, span.last.at) == (101.5, 104.75)


def test_a_window_without_samples_has_no_cpu():
    with pytest.raises(SpanError, match="1 of 40 samples of the CPU lie in the window; wanted two"):
        within(SAMPLES, Window(101, 101.1))
    with pytest.raises(SpanError, match=r"span 0\.75 s of the window's 3\.00 s"):
        within(SAMPLES, Window(109, 112))


def test_a_clock_that_was_set_is_told():
    jumped = [*SAMPLES[:20], *(Reading(s.at + 1, s.monotonic, s.stat) for s in SAMPLES[20:])]
    with pytest.raises(SpanError, match=r"the clock was set by 1\.00 s within the window"):
        within(jumped, Window(103, 108))


def test_a_line_that_was_cut_off_is_left_out():
    line = json.dumps({"at": 1.0, "monotonic": 2.0, "stat": "cpu"}) + "\n"
    assert read_samples([line, line[:-5]]) == [Reading(1.0, 2.0, "cpu")]

"""A generator that is slower with the device in the way than it was without."""

import itertools
from dataclasses import replace

import pytest

from collector.forwarding.bench import REACHES, search_within_reach
from collector.forwarding.judge import Bottleneck
from collector.forwarding.linerate import line_rate_fps
from collector.forwarding.session import LagError, Session
from collector.forwarding.setting import Setting
from collector.forwarding.simulated import Device, steady

LINE = line_rate_fps(64, 1000)
SETTING = Setting(frame_bytes=64, line_fps=LINE, capacity_fps=400_000, duration_s=1.0)
OWN = {"forwarding": "throughput", "width_pct": 1.0, "search": None, "repeats": 1}


@pytest.mark.parametrize("measure", ["throughput", "loss_curve", "back_to_back", "ndr_pdr"])
def test_a_search_is_made_anew_below_what_it_reached(measure):
    session = Session(Device(steady(1e6), generator_fps=200_000).measure)
    found, made = search_within_reach(session, SETTING, {**OWN, "forwarding": measure})
    assert made.capacity_fps == pytest.approx(200_000)
    assert made.top_fps == pytest.approx(190_000)
    assert found.bottleneck is Bottleneck.GENERATOR
    value = next(iter(found.values.values()))
    assert value == pytest.approx(380_000 if measure == "back_to_back" else 190_000, rel=0.01)
    # What did not count is kept.
    assert [judged.valid for judged in session.trials[:3]] == [False, False, True]


def test_a_device_that_loses_frames_below_it_is_found_all_the_same():
    session = Session(Device(steady(100_000), generator_fps=200_000).measure)
    found, _ = search_within_reach(session, SETTING, OWN)
    assert found.values["throughput"] == pytest.approx(100_000, rel=0.02)
    assert found.bottleneck is Bottleneck.DEVICE


def test_a_generator_that_gets_slower_all_the_time_is_no_tester():
    pace = (400_000 * 0.5**number for number in itertools.count(1))
    device = Device(steady(1e6))

    def measure(trial):
        return replace(device, generator_fps=next(pace)).measure(trial)

    session = Session(measure)
    with pytest.raises(LagError, match="could not reach the offered load"):
        search_within_reach(session, SETTING, OWN)
    assert len(session.trials) == 2 * (REACHES + 1)


def test_what_else_makes_a_trial_invalid_is_no_reason_to_go_lower():
    def spoil(counts):
        counts["pktgen_sofar"] -= 1

    session = Session(Device(steady(1e6), generator_fps=200_000, spoil=spoil).measure)
    with pytest.raises(Exception, match="could not reach the offered load") as caught:
        search_within_reach(session, SETTING, OWN)
    assert not isinstance(caught.value, LagError)
    assert len(session.trials) == 2

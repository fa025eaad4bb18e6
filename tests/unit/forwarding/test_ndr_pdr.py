"""NDR and PDR through the MLRsearch library, on devices that are known exactly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.forwarding.judge import Bottleneck
from collector.forwarding.ndr_pdr import ndr_pdr, rfc2544_goals, rfc9971_goals
from collector.forwarding.session import InvalidTrialError, Session
from collector.forwarding.setting import Setting
from collector.forwarding.simulated import Device, lossy_below, steady, two_bands

LINE = 1_488_095.0


def searched(device, goals=None, capacity_fps=None, duration_s=1.0):
    session = Session(device.measure)
    made = Setting(frame_bytes=64, line_fps=LINE, capacity_fps=capacity_fps, duration_s=duration_s)
    return ndr_pdr(session, made, goals or rfc9971_goals(duration_s)), session


@settings(max_examples=50, deadline=None)
@given(st.floats(5_000, 1_400_000))
def test_a_steady_device_is_found_to_the_width_of_the_goals(capacity):
    found, _ = searched(Device(steady(capacity)))
    # A trial of a second counts whole frames, sent and received.
    assert 0.99 * capacity - 2 <= found.values["ndr"] <= capacity + 2
    assert found.values["ndr"] - 2 <= found.values["pdr"] <= capacity + 2
    assert found.bottleneck is Bottleneck.DEVICE
    assert found.details["ndr_lower_fps"] < found.details["ndr_upper_fps"]


def test_a_device_as_fast_as_the_line():
    found, _ = searched(Device(steady(2e6)))
    assert found.values == {"ndr": pytest.approx(LINE), "pdr": pytest.approx(LINE)}
    assert found.bottleneck is Bottleneck.LINE
    assert found.details["ndr_upper_fps"] is None


def test_a_device_faster_than_the_generator_is_told_apart():
    found, session = searched(Device(steady(2e6), 200_000), capacity_fps=200_000)
    assert found.values["ndr"] == pytest.approx(190_000)
    assert found.bottleneck is Bottleneck.GENERATOR
    assert max(judged.trial.rate_fps for judged in session.trials) == pytest.approx(190_000)


def test_a_device_that_always_loses_has_no_rates():
    found, _ = searched(Device(lossy_below(2e6, 2e6, loss=0.2)))
    assert found.values == {"ndr": None, "pdr": None}


def test_a_device_that_always_loses_a_little_has_a_pdr_and_no_ndr():
    found, _ = searched(Device(lossy_below(2e6, 2e6, loss=0.001)))
    assert found.values["ndr"] is None
    assert found.values["pdr"] == pytest.approx(0.999 * LINE)
    # The line bounds the one, the device the other.
    assert found.apart == {"ndr": Bottleneck.DEVICE, "pdr": Bottleneck.LINE}


def test_loss_at_a_low_load_that_was_measured_bounds_the_result():
    """Loss inversion: the device loses at low loads and not at some higher ones. The relevant
    lower bound lies below every load that was found to be too high."""
    found, session = searched(Device(lossy_below(250_000, 200_000)))
    too_high = [
        judged.trial.rate_fps for judged in session.trials if judged.result.loss_ratio > 0.005
    ]
    for rate in found.values.values():
        assert rate is None or rate <= min(too_high)


def test_of_two_bands_the_usual_one_decides():
    # In a quarter of the trials the device has the lower band: NDR with exceed ratio 1/2 is the
    # upper one.
    found, _ = searched(Device(two_bands(150_000, 200_000, 0.25, seed=1)))
    assert found.values["ndr"] == pytest.approx(200_000, rel=0.01)
    found, _ = searched(Device(two_bands(150_000, 200_000, 0.75, seed=1)))
    assert found.values["ndr"] == pytest.approx(150_000, rel=0.01)


def test_rfc_2544_goals_take_whole_trials_only_and_no_exception():
    found, session = searched(
        Device(two_bands(150_000, 200_000, 0.5, seed=2)), rfc2544_goals(60.0), duration_s=60.0
    )
    assert found.values["ndr"] < 200_000
    assert {judged.trial.duration_s for judged in session.trials} == {60.0}
    assert set(found.values) == {"ndr"}


def test_a_generator_that_is_too_slow_gives_no_low_number():
    with pytest.raises(InvalidTrialError, match="could not reach the offered load"):
        searched(Device(steady(1e6), generator_fps=100_000))


def test_counters_that_disagree_give_no_number():
    def spoil(counts):
        counts["far_rx"] += 5_000

    with pytest.raises(InvalidTrialError, match="counters disagree"):
        searched(Device(steady(300_000), spoil=spoil))

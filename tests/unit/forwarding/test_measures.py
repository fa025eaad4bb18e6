"""The measures on devices that are known exactly."""

from dataclasses import replace

import pytest

from collector.forwarding.bench import search_within_reach
from collector.forwarding.judge import Bottleneck
from collector.forwarding.measures import back_to_back, loss_curve, max_load, throughput
from collector.forwarding.session import InvalidTrialError, Session
from collector.forwarding.setting import Setting
from collector.forwarding.simulated import Device, lossy_below, steady

LINE = 1_488_095.0
WAYS = {"max_load": max_load, "throughput": throughput, "lossless": loss_curve}


def setting(capacity_fps=None, duration_s=1.0):
    return Setting(frame_bytes=64, line_fps=LINE, capacity_fps=capacity_fps, duration_s=duration_s)


def searched(search, device, made=None, **options):
    session = Session(device.measure)
    return search(session, made or setting(), **options), session


def test_a_steady_device_at_maximum_load():
    found, session = searched(max_load, Device(steady(300_000), LINE))
    assert found.values == {"max_load": pytest.approx(300_000)}
    assert found.bottleneck is Bottleneck.DEVICE
    assert len(session.trials) == 1
    assert session.trials[0].trial.rate_fps is None


def test_a_rate_is_that_of_one_direction():
    found, session = searched(max_load, Device(steady(300_000), LINE, directions=2))
    assert found.values == {"max_load": pytest.approx(300_000)}
    assert session.trials[0].result.received == 600_000


@pytest.mark.parametrize(("calibrated", "trials"), [(5e6, 1), (None, 2), (1e6, 2)])
@pytest.mark.parametrize(
    ("capacity", "share", "wanted"),
    [(9e6, 1.0, Bottleneck.LINE), (LINE / 2, 0.5, Bottleneck.DEVICE)],
)
def test_a_link_without_a_clock_is_not_loaded_beyond_its_line_rate(
    calibrated, trials, capacity, share, wanted
):
    """Between guests a declared speed holds nobody back; 500 % of it would be no share."""
    found, session = searched(max_load, Device(steady(capacity), 5e6), setting(calibrated))
    assert found.values["max_load"] == pytest.approx(share * LINE, rel=1e-5)
    assert found.points[0].offered_pct == pytest.approx(100)
    assert found.bottleneck is wanted
    assert len(session.trials) == trials


def test_a_generator_that_is_slower_with_the_device_in_the_way_sends_what_it_can():
    session = Session(Device(steady(9e6), 400_000).measure)
    own = {"forwarding": "max_load", "width_pct": 0.5}
    found, made = search_within_reach(session, setting(5e6), own)
    assert found.values["max_load"] == pytest.approx(400_000)
    assert found.bottleneck is Bottleneck.GENERATOR
    assert made.capacity_fps == pytest.approx(400_000)


@pytest.mark.parametrize("capacity", [2_000, 123_456, 300_000, 1_400_000])
def test_the_throughput_of_a_steady_device_is_found_to_its_width(capacity):
    found, session = searched(throughput, Device(steady(capacity)))
    assert capacity * 0.995 <= found.values["throughput"] <= capacity
    assert all(judged.trial.duration_s == 1.0 for judged in session.trials)
    assert found.bottleneck is Bottleneck.DEVICE


def test_a_device_as_fast_as_the_line_needs_one_trial():
    found, session = searched(throughput, Device(steady(2e6)))
    assert found.values["throughput"] == pytest.approx(LINE)
    assert found.bottleneck is Bottleneck.LINE
    assert len(session.trials) == 1


def test_a_device_that_always_loses_has_no_throughput():
    found, _ = searched(throughput, Device(lossy_below(2e6, 2e6)))
    assert found.values == {"throughput": None}


def test_a_search_stays_below_what_the_generator_can_do_and_says_so():
    found, session = searched(throughput, Device(steady(1e6), 200_000), setting(200_000))
    assert found.values["throughput"] == pytest.approx(190_000)
    assert found.bottleneck is Bottleneck.GENERATOR
    assert len(session.trials) == 1


@pytest.mark.parametrize("search", [throughput, loss_curve, back_to_back])
def test_a_generator_that_is_too_slow_ends_a_search_without_a_number(search):
    with pytest.raises(InvalidTrialError, match="could not reach the offered load"):
        searched(search, Device(steady(1e6), generator_fps=100_000))


@pytest.mark.parametrize("search", [max_load, throughput, loss_curve, back_to_back])
def test_counters_that_disagree_end_a_search_without_a_number(search):
    def spoil(counts):
        counts["port_tx"] //= 2

    with pytest.raises(InvalidTrialError, match="counters disagree"):
        searched(search, Device(steady(1e6), spoil=spoil))


def test_a_loss_curve_goes_down_to_two_loads_without_loss():
    found, session = searched(loss_curve, Device(steady(0.65 * LINE)))
    assert [round(point.offered_pct) for point in found.points] == [100, 90, 80, 70, 60, 50]
    ratios = [point.loss_ratio for point in found.points]
    assert ratios == pytest.approx([0.35, 0.2778, 0.1875, 0.0714, 0.0, 0.0], abs=1e-4)
    assert found.values["lossless"] == pytest.approx(0.6 * LINE)
    assert len(session.trials) == 6


def test_one_load_without_loss_between_lossy_ones_is_no_end_of_a_curve():
    # Forwards all between 65 % and 75 % of line rate only.
    found, _ = searched(loss_curve, Device(lossy_below(0.65 * LINE, 0.75 * LINE)))
    assert len(found.points) == 10
    assert found.values == {"lossless": None}


def buffer_of(frames, capacity_fps):
    """Forwards at its capacity and keeps ``frames`` besides."""
    return lambda offered, seconds: min(offered, capacity_fps + frames / seconds)


def test_a_burst_as_long_as_the_buffer_lasts():
    device = Device(buffer_of(50_000, 1_000_000))
    found, _ = searched(back_to_back, device, repeats=3)
    longest = LINE * 50_000 / (LINE - 1_000_000)
    assert 0.98 * longest <= found.values["back_to_back"] <= longest
    assert found.details["min"] == found.details["max"]
    assert found.bottleneck is Bottleneck.DEVICE


def test_a_device_that_buffers_all_has_no_limit_to_find():
    found, session = searched(back_to_back, Device(steady(2e6)), repeats=2)
    assert found.values["back_to_back"] == pytest.approx(2 * LINE, abs=1)
    assert found.bottleneck is Bottleneck.LINE
    assert len(session.trials) == 2


@pytest.mark.parametrize(
    ("apart", "wanted"), [(True, Bottleneck.DEVICE), (False, Bottleneck.GENERATOR)]
)
def test_a_tester_that_receives_with_the_processor_that_sends_may_be_the_bottleneck(apart, wanted):
    made = replace(setting(400_000), keeps_pace=apart)
    found, _ = searched(max_load, Device(steady(1e6), 200_000), made)
    assert found.bottleneck is wanted
    found, _ = searched(max_load, Device(steady(100_000), 200_000), made)
    assert found.bottleneck is Bottleneck.DEVICE  # it lost frames

"""A trial counts, or it says why not; it is never a low number instead."""

from dataclasses import replace

import pytest

from collector.forwarding.judge import Bottleneck, Checks, bottleneck, judge
from collector.forwarding.session import InvalidTrialError, SearchLimitError, Session
from collector.forwarding.simulated import Device, steady
from collector.forwarding.trial import Trial

TRIAL = Trial(64, 100_000.0, 1.0)


def reasons(trial=TRIAL, capacity=1e6, generator=1e6, **counts):
    device = Device(steady(capacity), generator, spoil=lambda found: found.update(counts))
    return judge(trial, device.measure(trial), Checks()).reasons


def test_a_trial_that_went_as_asked_counts():
    assert reasons() == ()
    assert reasons(capacity=50_000) == ()  # loss is a result, not a fault


def test_a_generator_that_lags_behind_makes_no_low_number():
    assert reasons(generator=80_000) == (
        "eth1 to eth2: the generator could not reach the offered load: 80000 of 100000 frames/s"
        " (-20.0%, tolerated 1.0%)",
    )


def test_as_fast_as_it_can_is_no_load_to_miss():
    assert reasons(Trial(64, None, 1.0), generator=80_000) == ()


def test_a_generator_that_sends_more_than_asked():
    (text,) = reasons(sent=130_000, pktgen_sofar=130_000, port_tx=130_000)
    assert "exceeded the offered load: 130000 of 100000 frames/s (+30.0%" in text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"pktgen_sofar": 99_999}, "100000 frames sent, the generator says 99999"),
        ({"port_tx": 25_600}, "counters disagree: 100000 frames sent, the port says 25600"),
        ({"received": 100_200}, "more frames received than sent: 100200 of 100000"),
        ({"far_rx_filter": 99_000}, "100000 frames received, the filter says 99000"),
        ({"far_rx": 101_000}, "100000 frames received, the port says 101000"),
        (
            {"received": 90_000, "far_rx": 90_000, "far_rx_filter": 90_000, "far_rx_dropped": 500},
            "the tester itself dropped 500 frames; 10000 are missing",
        ),
        ({"sent": 0}, "the generator sent nothing"),
        ({"received": None}, "nothing counted the frames that arrived"),
    ],
)
def test_counters_that_disagree_make_the_trial_invalid(counts, text):
    assert text in reasons(**counts)[0]


def test_a_few_stray_frames_are_no_disagreement():
    assert reasons(port_tx=100_012, far_rx=100_007) == ()


def test_a_counter_that_a_host_has_not_is_not_looked_at():
    absent = dict.fromkeys(("pktgen_sofar", "port_tx", "far_rx", "far_rx_filter"))
    assert reasons(far_rx_dropped=None, **absent) == ()


def test_a_trial_that_ended_before_its_time():
    result = Device(steady(1e6)).measure(TRIAL)
    found = judge(Trial(64, 100_000.0, 2.0), result, Checks()).reasons
    assert "the generator stopped early: sent for 1.000 s of 2 s" in found[0]


def spoilt(**fields):
    result = Device(steady(1e6)).measure(TRIAL)
    made = replace(result, directions=(replace(result.directions[0], **fields),))
    return judge(TRIAL, made, Checks()).reasons


def test_a_generator_that_did_not_end_has_no_rate():
    assert spoilt(elapsed_s=None) == ("eth1 to eth2: the generator did not come to an end",)


def test_frames_that_still_arrive_are_not_counted_yet():
    assert spoilt(settled=False) == ("eth1 to eth2: frames still arrived when they were counted",)


def test_frames_of_others_at_the_far_port_are_told_apart_by_the_filter():
    counters = {"far_rx": 103_000, "far_rx_filter": 100_000, "far_rx_other": 3_000}
    assert spoilt(counters=counters) == ()


def test_a_bad_trial_is_repeated_once_and_both_are_kept():
    spoilt = iter([True, False])

    def spoil(counts):
        if next(spoilt):
            counts["pktgen_sofar"] -= 1

    session = Session(Device(steady(1e6), spoil=spoil).measure)
    assert session.run(TRIAL).valid
    assert [judged.valid for judged in session.trials] == [False, True]


def test_two_bad_trials_are_the_end_of_a_search():
    session = Session(Device(steady(1e6), generator_fps=50_000).measure)
    with pytest.raises(InvalidTrialError, match="could not reach the offered load"):
        session.run(TRIAL)
    assert len(session.trials) == 2


def test_a_search_has_only_so_much_traffic():
    session = Session(Device(steady(1e6)).measure, most_s=2.5)
    session.run(TRIAL)
    session.run(TRIAL)
    with pytest.raises(SearchLimitError, match=r"no result in 2 s of traffic \(2 trials\); wanted"):
        session.run(TRIAL)


@pytest.mark.parametrize(
    ("capacity", "generator", "calibrated", "wanted"),
    [
        (2e6, 2e6, None, Bottleneck.LINE),
        (2e6, 1.48e6, None, Bottleneck.LINE),  # within the tolerance of line rate
        (2e5, 2e6, None, Bottleneck.DEVICE),
        (2e6, 2e5, None, Bottleneck.GENERATOR),
        (2e6, 2e5, 2.05e5, Bottleneck.GENERATOR),
        # The link slows the generator down to what the device takes.
        (2e6, 2e5, 4e5, Bottleneck.DEVICE),
    ],
)
def test_what_bounds_a_rate_at_maximum_load(capacity, generator, calibrated, wanted):
    trial = Trial(64, None, 1.0)
    result = Device(steady(capacity), generator).measure(trial)
    assert bottleneck(result, 1_488_095, calibrated) is wanted

"""A trial between two testers: who is asked what, and what comes of it."""

import pytest
from forwarding_hosts import DUT, FAR, NEAR, Apart

from collector.forwarding import apart
from collector.forwarding.bench import Bench, Search
from collector.forwarding.judge import Checks, judge
from collector.forwarding.path import find_path
from collector.forwarding.simulated import Device, steady
from collector.forwarding.trial import Trial, read_result

PATH = find_path([NEAR, FAR], DUT, {})
TRIAL = Trial(64, 100_000, 1.0)
SETTINGS = {"direction": "bidirectional", "flows": 4, "queues": 2, "drain_s": 0.25}


def measured(testers, trial=TRIAL, to_nobody=False, **changes):
    asked = PATH.request(trial, {**SETTINGS, **changes}, to_nobody)
    return read_result(apart.measure(asked, testers.together), "trial")


def test_both_ports_and_the_hosts_that_they_are_of():
    assert PATH.apart
    assert PATH.hosts == ("near", "far")
    assert [PATH.end(port) for port in (PATH.first, PATH.second)] == ["near eth1", "far eth1"]
    assert PATH.document()["second"]["end"] == "far eth1"


def test_receivers_count_from_before_the_first_frame_to_after_the_last():
    testers = Apart(Device(steady(80_000), 2e6))
    result = measured(testers)
    steps = [
        {host: (name, asked.get("state")) for host, (name, asked) in calls.items()}
        for calls in testers.calls
    ]
    assert steps == [
        {"far": ("pktgen_sink", None), "near": ("pktgen_sink", None)},
        {"near": ("pktgen", None), "far": ("pktgen", None)},
        {"far": ("pktgen_sink", "stopped"), "near": ("pktgen_sink", "stopped")},
    ]
    assert [(one.sender, one.receiver) for one in result.directions] == [
        ("near eth1", "far eth1"),
        ("far eth1", "near eth1"),
    ]
    assert [(one.sent, one.received) for one in result.directions] == [(100_000, 80_000)] * 2
    assert judge(TRIAL, result, Checks()).reasons == ()


def test_the_second_direction_begins_when_it_sees_the_first():
    testers = Apart(Device(steady(80_000), 2e6))
    measured(testers)
    near, far = (testers.calls[1][host][1] for host in ("near", "far"))
    assert (near["lead_s"], near.get("follow")) == (apart.LEAD_S, None)
    assert (far.get("lead_s"), far["follow"]) == (None, {"device": "eth1", "packets": 7})
    # Senders wait for late frames, which may be in their own rings, and receivers after them.
    assert near["drain_s"] == far["drain_s"] == 0.25
    assert testers.calls[2]["far"][1]["drain_s"] == 0
    assert (near["flows"], near["queues"]) == (far["flows"], far["queues"]) == (4, 2)


def test_one_way_needs_nobody_to_wait():
    testers = Apart(Device(steady(80_000), 2e6))
    result = measured(testers, direction="unidirectional")
    assert [list(calls) for calls in testers.calls] == [["far"], ["near"], ["far"]]
    assert not {"lead_s", "follow"} & set(testers.calls[1]["near"][1])
    assert [one.followed for one in result.directions] == [None]


def test_what_is_sent_to_nobody_is_not_counted():
    testers = Apart(Device(steady(80_000), 2e6))
    result = measured(testers, to_nobody=True)
    assert [set(calls) for calls in testers.calls] == [{"near", "far"}]
    assert [one.received for one in result.directions] == [None, None]
    assert [one.followed for one in result.directions] == [None, None]


@pytest.mark.parametrize(
    ("followed", "text"),
    [
        (
            {"how": "in time", "lag_s": 0.3},
            "this one 0.300 s after the other (tolerated 0.200 s)",
        ),
        ({"how": "late", "lag_s": None}, "the other had begun before it was ready"),
        ({"how": "never", "lag_s": None}, "it saw nothing of the other"),
    ],
)
def test_directions_that_are_not_sent_at_once_do_not_count(followed, text):
    result = measured(Apart(Device(steady(80_000), 2e6), **followed))
    (reason,) = judge(TRIAL, result, Checks()).reasons
    assert reason == f"far eth1 to near eth1: the directions did not begin together: {text}"


def test_the_slower_of_two_testers_is_what_a_search_keeps_to():
    testers = Apart(Device(steady(1e6), 2e6))
    testers.pace["far"] = 400_000
    bench = Bench(PATH, lambda asked: apart.measure(asked, testers.together), lambda *_: None)
    own = {**SETTINGS, "frame_bytes": 64, "trial_s": 1.0}
    assert bench.capacity_fps(Search(own, ("c1",))) == pytest.approx(400_000)

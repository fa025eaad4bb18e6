"""What the module returns of a trial, read strictly."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import InputError
from collector.forwarding.trial import Direction, Result, read_result

DOCUMENT = {
    "started_at": "2026-11-30T15:00:00Z",
    "directions": [
        {
            "device": "eth1",
            "receive_device": "eth2",
            "offered_fps": 1000.0,
            "sent": 2000,
            "received": 1500,
            "errors": 3,
            "elapsed_s": 2.0,
            "counters": {"pktgen_sofar": 2000, "port_tx": 2001, "far_rx_dropped": None},
        }
    ],
}


def changed(**fields):
    document = copy.deepcopy(DOCUMENT)
    document["directions"][0].update(fields)
    return document


def test_a_result_is_what_was_counted():
    result = read_result(DOCUMENT, "raw")
    one = result.directions[0]
    assert (one.sent, one.received, one.lost, one.errors) == (2000, 1500, 500, 3)
    assert (one.offered_fps, one.forwarded_fps) == (1000.0, 750.0)
    assert one.counters["far_rx_dropped"] is None
    assert one.settled is None
    assert result.loss_ratio == 0.25


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({**DOCUMENT, "directions": []}, "raw: directions: found none; wanted at least one"),
        (changed(sent=-1), r"raw: directions\[0\].sent: found -1; wanted a count, not negative"),
        (changed(sent=None), r"raw: directions\[0\].sent: found nothing; wanted a count"),
        (changed(elapsed_s=-0.1), r"elapsed_s: found -0.1; wanted seconds, not negative"),
        (
            changed(counters={"far_rx": "many"}),
            r"counters.far_rx: found 'many'; wanted a count or null",
        ),
        (
            changed(followed={"how": "soon", "lag_s": None}),
            r"raw: directions\[0\].followed.how: found 'soon'; wanted one of in time, late, never",
        ),
    ],
)
def test_what_is_no_count_is_told_by_its_key(document, text):
    with pytest.raises(InputError, match=text):
        read_result(document, "raw")


def direction(sent, received):
    return Direction(
        device="a", receive_device="b", sent=sent, received=received, errors=0, elapsed_s=1.0
    )


def test_nothing_sent_has_no_loss_ratio():
    assert Result(directions=(direction(0, 0),), started_at="").loss_ratio is None


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), min_size=1, max_size=4))
def test_a_surplus_of_one_direction_never_hides_the_loss_of_another(counts):
    result = Result(directions=tuple(direction(*pair) for pair in counts), started_at="")
    assert result.sent == sum(sent for sent, _ in counts)
    assert result.lost >= result.sent - result.received
    assert 0 <= result.loss_ratio <= 1
    assert result.lost == sum(max(0, sent - received) for sent, received in counts)

"""The common window: where it lies, what each session did in it, and when there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.sessions.window import (
    Interim,
    Window,
    WindowError,
    amount,
    common_window,
    left_open,
    read_interims,
    skew,
    unit_of,
    whole_amount,
    without_interims,
)

# What netperf 2.7.1 (-j -P 0 -D 0.25, key=value) wrote over the loopback device.
REAL = """NETPERF_INTERIM_RESULT[0]=61923.69
NETPERF_UNITS[0]=Trans/s
NETPERF_INTERVAL[0]=0.301
NETPERF_ENDING[0]=1796051635.702
NETPERF_INTERIM_RESULT[1]=59315.77
NETPERF_UNITS[1]=Trans/s
NETPERF_INTERVAL[1]=0.261
NETPERF_ENDING[1]=1796051635.963
NETPERF_INTERIM_RESULT[2]=58962.93
NETPERF_UNITS[2]=Trans/s
NETPERF_INTERVAL[2]=0.251
NETPERF_ENDING[2]=1796051636.214
NETPERF_INTERIM_RESULT[3]=59732.91
NETPERF_UNITS[3]=Trans/s
NETPERF_INTERVAL[3]=0.187
NETPERF_ENDING[3]=1796051636.401
THROUGHPUT=60064.71
THROUGHPUT_UNITS=Trans/s
"""


def steady(rate: float, start: float, seconds: float, step: float = 0.5) -> list[Interim]:
    """A session of one rate."""
    count = round(seconds / step)
    return [
        Interim(rate, "Trans/s", start + i * step, start + (i + 1) * step) for i in range(count)
    ]


def test_the_interim_results_of_a_real_run_add_up_to_its_result():
    series = read_interims(REAL)
    assert [one.rate for one in series] == [61923.69, 59315.77, 58962.93, 59732.91]
    assert series[0].start == pytest.approx(1796051635.401)
    assert whole_amount(series) == pytest.approx(60064.71, rel=1e-3)
    assert without_interims(REAL) == "THROUGHPUT=60064.71\nTHROUGHPUT_UNITS=Trans/s\n"


def test_an_output_without_interim_results_has_none():
    assert read_interims("THROUGHPUT=1\n") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REAL.replace("[1]", "[3]"), "found NETPERF_INTERIM_RESULT[3]; wanted NETPERF_INTERIM_RE"),
        (REAL.replace("UNITS[0]=Trans/s\nNETPERF_", ""), "found NETPERF_INTERVAL[0]; wanted NETP"),
        (REAL.replace("0.301", "nan"), "over nan s ending at 1796051635.702; wanted numbers"),
        (REAL.replace("61923.69", "-61923.69"), "found -61923.69 Trans/s over 0.301 s"),
        (REAL.replace("61923.69", "inf"), "wanted numbers"),
        (REAL.replace("61923.69", "many"), "wanted numbers"),
        (REAL.split("NETPERF_ENDING[3]", maxsplit=1)[0], "the last one is cut off"),
    ],
)
def test_interim_results_that_are_not_whole_are_refused(text, message):
    with pytest.raises(WindowError) as caught:
        read_interims(text)
    assert message in str(caught.value)


def test_the_window_begins_after_the_last_session_and_ends_before_the_first_that_ends():
    series = [steady(10, 100, 5), steady(20, 101.5, 5)]
    window = common_window(series, 0.5, 2.0)
    assert (window.start, window.end, window.seconds) == (102.0, 104.0, 2.0)
    assert skew(series) == 1.5


def test_sessions_that_did_not_start_in_time_have_no_window_and_the_remedy_is_told():
    with pytest.raises(WindowError) as caught:
        common_window([steady(10, 100, 5), steady(20, 103, 5)], 0.5, 2.0)
    assert str(caught.value) == (
        "the 2 sessions began within 3.0 s and had 2.0 s in common; wanted 2.5 s"
        " (start_s of the test gives them longer to start)"
    )


def test_a_session_without_interim_results_is_named():
    with pytest.raises(WindowError, match="session 2 of 2 gave no interim result"):
        common_window([steady(1, 0, 5), []], 0.5, 1)
    with pytest.raises(WindowError, match="no session ran"):
        common_window([], 0.5, 1)


def test_only_what_was_done_in_the_window_counts():
    series = [*steady(10, 0, 2), *steady(30, 2, 2)]
    assert amount(series, Window(1.5, 2.5)) == pytest.approx(20)
    assert amount(series, Window(2.1, 2.4)) == pytest.approx(9)


def test_a_hole_in_the_interim_results_is_no_silence():
    with pytest.raises(WindowError, match=r"cover 2\.000 s of the window's 3\.000 s"):
        amount([*steady(10, 0, 1), *steady(10, 2, 1)], Window(0, 3))


def test_a_clock_read_late_leaves_its_share_open():
    window = Window(0, 3)
    late = [*steady(10, 0, 1), Interim(10, "Trans/s", 0.95, 3)]
    assert amount(late, window) == pytest.approx(30)
    assert left_open(late, window) == pytest.approx(10 * 0.05)


def test_units_must_be_one():
    other = Interim(1.0, "10^3bits/s", 0, 1)
    assert unit_of([steady(1, 0, 1)]) == "Trans/s"
    with pytest.raises(WindowError, match=r"in 10\^3bits/s and Trans/s; wanted one unit"):
        unit_of([steady(1, 0, 1), [other]])


def test_what_cut_results_leave_open_is_bounded_by_the_smaller_side():
    series = [Interim(10, "Trans/s", 0, 2), Interim(1, "Trans/s", 2, 2.5)]
    assert left_open(series, Window(0.5, 2.2)) == pytest.approx(10 * 0.5 + 1 * 0.2)
    assert left_open(series, Window(0, 2.5)) == 0


@given(
    st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 1000)), min_size=1, max_size=20),
    st.floats(0, 0.4),
    st.floats(0.6, 1),
)
def test_a_window_and_what_is_outside_make_the_whole(parts, low, high):
    series, at = [], 1000.0
    for seconds, rate in parts:
        series.append(Interim(rate, "Trans/s", at, at + seconds))
        at += seconds
    start, end = 1000 + low * (at - 1000), 1000 + high * (at - 1000)
    pieces = [Window(1000, start), Window(start, end), Window(end, at)]
    total = sum(amount(series, piece) for piece in pieces if piece.seconds > 0)
    assert total == pytest.approx(whole_amount(series), rel=1e-6, abs=1e-6)

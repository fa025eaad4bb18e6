"""Many sessions are one number only if every one of them is whole."""

import math
import random
import signal
import statistics

import pytest
from session_factory import STARTED, interims, rr, settings, udp

from collector.errors import InputError
from collector.proof.findings import first_failure
from collector.results.netperf_result import keys, read_omni_keyval
from collector.results.session_results import check_sessions, merge_latency, together
from collector.sessions.window import Window, without_interims

WINDOW = Window(STARTED + 1.0, STARTED + 3.0)


def check(sessions, window=WINDOW, error=None, hints=(), mss=1448, **changes):
    return check_sessions(
        sessions, window, error, settings(sessions=len(sessions), **changes), mss, hints
    )


def values(one):
    return read_omni_keyval(without_interims(one.stdout), keys())


def test_whole_sessions_are_found_whole():
    findings = check([rr(1), rr(2, 50.0, 0.3)])
    assert [finding.what for finding in findings] == [
        "sessions that ran",
        "TCP segment size of the sessions",
        "interim results of all sessions against their whole runs",
        "window that all sessions share",
        "share of the sum that interim results leave open at the window's ends",
    ]
    assert all(finding.ok for finding in findings)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (
            rr(2, rc=-signal.SIGKILL, stdout=""),
            "session 2 of 3: wanted a result, found netperf ended with -9: silently",
        ),
        (
            rr(2, rc=1, stdout="establish control: are you sure?\n"),
            "session 2 of 3: wanted a result, found netperf ended with 1: establish control: are"
            " you sure?",
        ),
        (
            rr(2, timed_out=True, rc=-9),
            "session 2 of 3: wanted a result, found netperf hung and was ended",
        ),
        (
            rr(2, stdout=without_interims(rr(2).stdout)),
            "session 2 of 3: wanted a result, found no interim result: this netperf was built"
            " without demo mode (--enable-demo)",
        ),
        (
            rr(2, values={"THROUGHPUT": "300.00"}),
            "session 2 of 3: wanted a result, found interim results add up to 400 of 1200 (1/s"
            " times s)",
        ),
        (
            rr(2, stdout=rr(2).stdout.replace("Trans/s", "Furlongs/s", 1)),
            "interim results in Furlongs/s and Trans/s; wanted one unit",
        ),
        (
            rr(2, stdout=rr(2).stdout.replace("=Trans/s\nNETPERF_INT", "=Ells/s\nNETPERF_INT")),
            "interim results in Ells/s; wanted one of 10^6bits/s, 10^3bits/s, Trans/s",
        ),
        (
            rr(2, values={"TRANSPORT_MSS": "1408"}),
            "TCP segment size of the sessions: wanted 1448, found 1408, 1448",
        ),
        (
            rr(2, values={"TRANSPORT_MSS": "-1"}),
            "TCP segment size of the sessions: wanted 1448, found 1448, None",
        ),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_one_broken_session_is_named_and_nothing_is_summed(broken, reason):
    findings = check([rr(1), broken, rr(3)])
    told = first_failure(findings)
    assert told is not None
    assert reason in told


def test_what_the_hosts_know_against_so_many_sessions_stands_beside_the_failure():
    told = first_failure(check([rr(1, rc=1, stdout="")], hints=["server: pids.max is 100"]))
    assert told is not None
    assert told.endswith("netperf ended with 1: silently; server: pids.max is 100")


def test_a_copy_that_never_ran_makes_the_sum_no_smaller():
    told = first_failure(check_sessions([rr(1)], WINDOW, None, settings(sessions=2), 1448))
    assert told == "sessions that ran: wanted 2, found 1"


def test_one_sessions_interims_may_be_off_but_not_those_of_all():
    off = rr(2, values={"THROUGHPUT": "120.00"})
    assert all(finding.ok for finding in check([rr(number) for number in range(3, 9)] + [off]))
    told = first_failure(check([off, rr(1)]))
    assert told == (
        "interim results of all sessions against their whole runs: wanted within 5%, found -9.1%"
    )


def test_interim_results_too_coarse_for_the_window_are_no_number():
    assert all(finding.ok for finding in check([rr(1), rr(2, step=1.6), rr(3), rr(4)]))
    told = first_failure(check([rr(1, step=1.6), rr(2, step=1.6)]))
    assert told == (
        "share of the sum that interim results leave open at the window's ends: wanted at most"
        " 25%, found 40.0%"
    )


def test_no_common_window_is_told_in_the_launchers_words():
    told = first_failure(check([rr(1)], window=None, error="began too late"))
    assert told == "window that all sessions share: wanted 2 s, found began too late"


def test_rates_are_summed_over_the_window_alone():
    # The second session is faster before the window and after it.
    head = interims(900, "Trans/s", STARTED, 1.0) + interims(50, "Trans/s", STARTED + 1, 2.0)
    lines = head.splitlines(keepends=True)
    count = 0
    numbered = []
    for line in lines:
        name, _, rest = line.partition("[")
        numbered.append(f"{name}[{count}]{rest.partition(']')[2]}")
        count += line.startswith("NETPERF_ENDING")
    changed = rr(2, stdout="".join(numbered) + without_interims(rr(2).stdout))
    found = together([rr(1, 100.0), changed], WINDOW, settings())
    assert found.value == pytest.approx(150.0)
    assert (found.low, found.high) == pytest.approx((50.0, 100.0))
    assert (found.unit, found.sent) == ("1/s", pytest.approx(150.0))


def test_the_skew_is_between_first_data():
    found = together([rr(1), rr(2, 10.0, 0.7)], WINDOW, settings())
    assert found.skew_s == pytest.approx(0.7)


def test_datagrams_count_where_they_arrive():
    both = [udp(1, 8e6, 0.5), udp(2, 4e6, 1.0)]
    found = together(both, WINDOW, settings("UDP_STREAM"))
    assert found.value == pytest.approx(8e6, rel=1e-3)
    assert found.sent == pytest.approx(12e6, rel=1e-3)
    assert (found.unit, found.latency) == ("bit/s", None)
    assert all(f.ok for f in check(both, mss=None, netperf="UDP_STREAM"))


def test_a_session_whose_datagrams_are_all_lost_counts_as_none_of_the_sum():
    both = [udp(1, 8e6, 0.5), udp(2, 4e6, 0.0)]
    assert all(f.ok for f in check(both, mss=None, netperf="UDP_STREAM"))
    assert together(both, WINDOW, settings("UDP_STREAM")).low == 0
    told = first_failure(check([rr(1), rr(2, values={"THROUGHPUT": "0.00"})]))
    assert told is not None
    assert "THROUGHPUT: found 0.0; wanted more than 0" in told


def test_nothing_done_in_the_window_is_no_number():
    still = rr(1, stdout=interims(0, "Trans/s", STARTED, 4) + without_interims(rr(1).stdout))
    with pytest.raises(InputError, match="nothing done in the window"):
        together([still], WINDOW, settings(sessions=1))


def test_mean_and_deviation_merge_to_those_of_all_transactions():
    draw = random.Random(7)
    groups = [[draw.randint(50, 900) for _ in range(n)] for n in (40, 400, 10)]
    merged = merge_latency(
        [
            {
                "THROUGHPUT": len(group) / 4,
                "ELAPSED_TIME": 4.0,
                "MEAN_LATENCY": statistics.fmean(group),
                "STDDEV_LATENCY": statistics.pstdev(group),
                "MIN_LATENCY": min(group),
                "MAX_LATENCY": max(group),
                "P50_LATENCY": statistics.median(group),
                "P90_LATENCY": 1,
                "P99_LATENCY": 2,
            }
            for group in groups
        ]
    )
    whole = [item for group in groups for item in group]
    assert merged is not None
    assert merged.mean == pytest.approx(statistics.fmean(whole))
    assert merged.stddev == pytest.approx(statistics.pstdev(whole))
    assert (merged.lowest, merged.highest) == (min(whole), max(whole))


def test_percentiles_are_a_range_never_a_mean():
    first = rr(1, values={"P99_LATENCY": "3000"})
    second = rr(2, values={"P99_LATENCY": "100"})
    found = together([first, second], WINDOW, settings()).latency
    assert found is not None
    assert found.percentiles[99] == (100.0, 3000.0)
    assert found.percentiles[50] == (855.0, 855.0)


def test_a_session_without_latency_leaves_that_of_all_unknown():
    read = [values(rr(1)), values(rr(2, values={"MEAN_LATENCY": "-1.00"}))]
    assert merge_latency(read) is None
    read = [values(rr(1)), values(rr(2, values={"P99_LATENCY": "-1", "STDDEV_LATENCY": "-1.00"}))]
    found = merge_latency(read)
    assert found is not None
    assert found.stddev is None
    assert sorted(found.percentiles) == [50, 90]
    assert math.isfinite(found.mean)

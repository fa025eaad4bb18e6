"""super_netperf: bare sums, what few repeats are worth, and instances that are missing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import read as read_all
from collector.parsers import super_netperf
from collector.parsers.base import Failure, Record, Source, Status
from collector.parsers.super_netperf_record import SuperNetperfResult, half_width, to_si, unit_of
from collector.parsers.super_netperf_sum import combine_instances


def of_kind(text: str, kind: str) -> list[SuperNetperfResult]:
    return [r for r in read(super_netperf, text).records if r.kind == kind]


class TestShells:
    """What shells, scripts and their users put around the sums."""

    def test_a_loop_that_lost_a_value(self) -> None:
        before, after = of_kind(data("cases/super-netperf-loop.txt"), "repeats")
        assert (before.condition, before.n, before.status) == ("Before", 10, Status.OK)
        assert before.mean == pytest.approx(8291.4)
        assert (after.condition, after.n, after.status) == ("After", 9, Status.SUSPECT)
        assert after.warnings == ("expected 10 values of the loop, got 9",)
        (change,) = of_kind(data("cases/super-netperf-loop.txt"), "change")
        assert change.verdict == "different"

    @pytest.mark.parametrize(
        ("loop", "promised"),
        [("for i in 1 2 3; do", 3), ("for i in $(seq 4); do", 4), ("for i in `seq 1 5`; do", 5)],
    )
    def test_what_a_loop_promises(self, loop: str, promised: int) -> None:
        text = f"$ {loop} ./super_netperf 8 -H server -l 10; done\n100\n101\n"
        (group,) = of_kind(text, "repeats")
        assert f"expected {promised} values of the loop, got 2" in group.warnings
        assert group.requested_s == 10

    def test_another_kernel_is_another_condition(self) -> None:
        groups = of_kind(data("cases/super-netperf-kernels.txt"), "repeats")
        assert [(g.condition, g.values) for g in groups] == [
            ("5.13.0-rc3-amd-iommu+", (95341.2,)),
            ("5.13.0-rc3-amd-iommu-unpatched", (33989.5,)),
        ]

    def test_a_setting_is_another_condition(self) -> None:
        command = "# ./super_netperf 8 -H server\n"
        text = (
            f"# sysctl -w net.ipv4.tcp_tso_rtt_log=0\n{command}96005\n"
            f"# sysctl -w net.ipv4.tcp_tso_rtt_log=9\n{command}96046\n"
        )
        assert [group.n for group in of_kind(text, "repeats")] == [1, 1]

    def test_perf_and_nstat_beside_the_sum(self) -> None:
        text = (
            "# nstat -n;perf stat ./super_netperf 600 -H server -l 20;nstat|egrep Tcp\n  96005\n\n"
            " Performance counter stats for './super_netperf 600 -H server -l 20':\n\n"
            "   65,945.29 msec task-clock\n\nTcpInSegs        1578132            0.0\n"
        )
        reading = read(super_netperf, text)
        assert reading.problems == []
        assert [r.value for r in reading.records if r.kind == "sum"] == [96005]

    def test_a_number_of_instances_that_the_shell_knows(self) -> None:
        text = "# ./super_netperf $(($(nproc) * 2)) -H server -l 60 -fM\n2929.81\n"
        (record,) = of_kind(text, "sum")
        assert record.instances is None
        assert record.unit == "MBytes/s"
        assert record.throughput_bps == pytest.approx(2929.81 * 2**20 * 8)

    def test_an_awk_sum_in_exponent_form(self) -> None:
        (record,) = of_kind("# super_netperf 200 -H server -t TCP_RR\n1.23457e+06\n", "sum")
        assert record.transactions_per_second == 1234570

    def test_runs_are_repeats_and_their_mean_is_none(self) -> None:
        text = data("cases/super-netperf-runs.txt")
        assert [r.value for r in of_kind(text, "sum")] == [1523411, 1524770, 1519876]
        (group,) = of_kind(text, "repeats")
        assert (group.n, group.status) == (3, Status.OK)
        (wrong,) = of_kind(text.replace("avg: 1522685.67", "avg: 1622685"), "repeats")
        assert "the text says avg 1.62268e+06, the values give 1.52269e+06" in wrong.warnings

    def test_instances_by_their_prefix(self) -> None:
        total = of_kind(data("cases/super-netperf-keyval.txt"), "instances")[0]
        assert total.status is Status.INCOMPLETE
        assert total.value == pytest.approx(9855.35)
        assert total.comparable is False
        assert total.warnings[0] == "expected 3 results, got 2"
        assert total.failure.error_class == "control_unreachable"

    def test_each_instance_is_one_record(self) -> None:
        reading = read_all(document(data("cases/super-netperf-keyval.txt")))
        assert [r.tool for r in reading.records].count("netperf") == 3

    def test_an_aggregate_that_the_instances_do_not_give(self) -> None:
        text = "00 THROUGHPUT=10.00\n00 THROUGHPUT_UNITS=10^6bits/s\nAGGREGATE_THROUGHPUT=30\n"
        total = of_kind(text, "instances")[0]
        assert total.status is Status.SUSPECT
        assert "the script says 30, the instances add up to 10" in total.warnings


class TestCases:
    def test_before_and_after(self) -> None:
        text = data("cases/19-a.txt")
        sums = of_kind(text, "sum")
        assert [s.value for s in sums] == [419594, 437171, 810442, 800992]
        assert {(s.instances, s.test, s.unit) for s in sums} == {(200, "TCP_CC", "Trans/s")}
        assert all("nothing is known of the instances" in s.warnings[0] for s in sums)
        before, after = of_kind(text, "repeats")
        assert (before.condition, before.n, before.mean) == ("before", 2, 428382.5)
        assert (after.condition, after.n, after.mean) == ("after", 2, 805717.0)
        assert before.half_width == pytest.approx(111667, rel=1e-4)
        assert before.half_width_pct == pytest.approx(26.1, abs=0.05)
        assert after.half_width == pytest.approx(60036, rel=1e-4)
        assert after.half_width_pct == pytest.approx(7.5, abs=0.05)
        (change,) = of_kind(text, "change")
        assert change.change_pct == pytest.approx(88.08, abs=0.005)

    @pytest.mark.parametrize("one_a_line", [False, True])
    def test_latency_under_load(self, one_a_line: bool) -> None:
        text = data("cases/19-b.txt")
        if one_a_line:
            head, _, rows = text.partition("\n\n")
            rows = rows.replace(": ", ":\n").replace(" ", "\n")
            rows = rows.replace("RR\n", "RR ").replace(",\nw", ", w").replace("o\nb", "o b")
            rows = rows.replace("with\nb", "with b")
            text = head + "\n\n" + rows
        groups = {r.condition: r for r in of_kind(text, "repeats")}
        wanted = {
            "RR 1q, w/o bql": (30.487, 2.039, 5.06),
            "RR 1q, with bql": (193.557, 31.806, 79.02),
            "RR 4q, w/o bql": (317.957, 73.299, 182.10),
            "RR 4q, with bql": (321.630, 59.301, 147.32),
        }
        assert list(groups) == list(wanted)
        for name, (mean, sd, width) in wanted.items():
            assert groups[name].n == 3
            assert groups[name].mean == pytest.approx(mean, abs=0.001)
            assert groups[name].sd == pytest.approx(sd, abs=0.001)
            assert groups[name].half_width == pytest.approx(width, rel=1e-3)
        one, four = of_kind(text, "change")
        assert one.verdict == "different"
        assert four.verdict == "no significant difference"
        assert "is not the same as no difference" in four.warnings[0]
        assert "+/-57 %" in four.warnings[0]
        group = groups["RR 1q, w/o bql"]
        assert group.background == "super_netperf 200 -H $ip -l 45 -t TCP_STREAM &"
        assert group.background_covers is True
        assert (group.test, group.unit, group.instances) == ("TCP_RR", "Trans/s", None)

    def test_a_missing_instance_makes_the_sum_incomplete(self) -> None:
        total = combine_instances(INSTANCES, 3)
        assert total.value == pytest.approx(9855.35)
        assert total.throughput_bps == pytest.approx(9855.35e6)
        assert total.status is Status.INCOMPLETE
        assert total.comparable is False
        assert total.warnings[0] == "expected 3 results, got 2"
        assert (total.instances_expected, total.instances_parsed, total.instances_failed) == (
            3,
            2,
            1,
        )
        assert total.failure.error_class == "control_unreachable"
        assert total.rt_latency_s is None
        assert total.p99_latency_min_s == pytest.approx(41e-6)
        assert total.p99_latency_median_s == pytest.approx(42.5e-6)
        assert total.p99_latency_max_s == pytest.approx(44e-6)
        assert total.retransmits == 3


class Netperf(Record):
    """A record with the fields the sum needs."""

    throughput_bps: float | None = None
    transactions_per_second: float | None = None


def netperf(
    file: str, mbps: float | None, failure: Failure | None = None, **printed: str
) -> Record:
    record = Netperf(
        tool="netperf",
        kind="tcp_stream",
        status=Status.FAILED if failure else Status.OK,
        source=Source(file, 1, 1),
        printed=dict(printed),
        failure=failure,
    )
    object.__setattr__(record, "throughput_bps", mbps * 1e6 if mbps else None)
    return record


INSTANCES = [
    netperf(
        "result-0", 4934.78, P99_LATENCY="41", RT_LATENCY="-1.000", LOCAL_TRANSPORT_RETRANS="0"
    ),
    netperf(
        "result-1", 4920.57, P99_LATENCY="44", RT_LATENCY="-1.000", LOCAL_TRANSPORT_RETRANS="3"
    ),
    netperf(
        "result-2",
        None,
        Failure("control_unreachable", "establish control: are you sure there is a netserver"),
    ),
]


class TestSum:
    def test_all_instances_make_a_comparable_sum(self) -> None:
        total = combine_instances(INSTANCES[:2], 2)
        assert total.status is Status.OK
        assert total.comparable is True

    def test_a_file_too_many_is_not_counted_silently(self) -> None:
        total = combine_instances([*INSTANCES[:2], INSTANCES[0]], 2)
        assert total.comparable is False
        assert "expected 2 results, got 3" in total.warnings

    def test_nothing_gives_nothing(self) -> None:
        total = combine_instances([], 3)
        assert total.value is None
        assert total.warnings == ("expected 3 results, got 0",)

    def test_no_instances_expected_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="expected 0 instances; wanted at least 1"):
            combine_instances([], 0)

    @given(st.lists(st.floats(0.1, 1e5), min_size=1, max_size=20), st.integers(1, 25))
    @settings(max_examples=60, deadline=None)
    def test_only_a_whole_set_is_comparable(self, rates: list[float], expected: int) -> None:
        records = [netperf(f"result-{i}", rate) for i, rate in enumerate(rates)]
        total = combine_instances(records, expected)
        assert total.comparable is (len(rates) == expected)
        assert total.throughput_bps == pytest.approx(sum(rates) * 1e6)


class TestText:
    @pytest.mark.parametrize(
        ("test", "letter", "unit", "bps"),
        [
            ("TCP_STREAM", None, "10^6bits/s", 5e6),
            ("UDP_STREAM", "g", "10^9bits/s", 5e9),
            ("TCP_MAERTS", "M", "MBytes/s", 5 * 2**20 * 8),
            ("TCP_RR", None, "Trans/s", None),
            ("OMNI", None, None, None),
        ],
    )
    def test_units_come_from_the_test(
        self, test: str, letter: str | None, unit: str | None, bps: float | None
    ) -> None:
        assert unit_of(test, letter) == unit
        assert to_si(5, unit)[0] == bps

    def test_the_default_test_is_tcp_stream(self) -> None:
        (record,) = of_kind("$ super_netperf 8 -H server\n   9567\n", "sum")
        assert record.throughput_bps == 9567e6

    def test_a_number_without_any_command_is_no_result(self) -> None:
        assert not super_netperf.recognise(document("419594\n"))
        assert super_netperf.parse(document("419594\n")).records == []

    def test_one_value_has_no_interval(self) -> None:
        (group,) = of_kind("# ./super_netperf 200 -H h -t TCP_RR -l 10\n419594\n", "repeats")
        assert group.half_width is None
        assert group.status is Status.SUSPECT

    @pytest.mark.parametrize("value", ["419,594", "419'594", "4.195.94", "-5"])
    def test_a_number_of_another_locale_is_a_problem(self, value: str) -> None:
        reading = read(super_netperf, f"# ./super_netperf 200 -H h -t TCP_RR\n{value}\n")
        assert reading.records == []
        (problem,) = reading.problems
        assert problem.line == 2
        assert problem.wanted == "a sum as a plain number with a decimal point"

    def test_zero_is_no_measurement(self) -> None:
        (record,) = of_kind("# ./super_netperf 200 -H h -t TCP_RR\n0\n", "sum")
        assert record.value is None
        assert record.status is Status.FAILED

    def test_an_error_in_place_of_a_sum_is_a_problem(self) -> None:
        text = "# ./super_netperf 2 -H h -t TCP_RR\nsuper_netperf: command not found\n"
        reading = read(super_netperf, text)
        assert reading.records == []
        assert reading.problems[0].wanted == "the sum of all instances"

    def test_half_width(self) -> None:
        assert half_width([1.0]) is None
        assert half_width([1.0, 3.0]) == pytest.approx(12.7062, rel=1e-4)


class TestMutations:
    @pytest.mark.parametrize("name", ["cases/19-a.txt", "cases/19-b.txt"])
    def test_right_or_flagged(self, name: str) -> None:
        names = ("value", "throughput_bps", "transactions_per_second")
        assert_right_or_flagged(super_netperf, data(name), names, cut=False)

    @given(st.text("super_ntf 20-tTCPRS\n#$:0123456789.,&labeforw/", max_size=200))
    @settings(max_examples=150, deadline=None)
    def test_no_text_breaks_it(self, text: str) -> None:
        super_netperf.parse(document("# ./super_netperf 2 -t TCP_RR\n" + text))
        super_netperf.parse(document("# ./super_netperf 2 -t TCP_RR &\n" + text))

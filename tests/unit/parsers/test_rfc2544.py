"""RFC 2544 charts, tables by frame size, NDR and PDR lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import rfc2544
from collector.parsers.base import Status
from collector.parsers.rfc2544_record import implied_link_bps, line_rate_pps

NAMES = ("packets_per_second", "max_packets_per_second", "throughput_bps", "line_rate_pct")

KERNELS = (
    "Size\t2.6.23\t2.6.24\t2.6.26\n64\t 14.%\t 20%\t 21%\n128\t 22\t 33\t 34\n1518\t100\t100\t100\n"
)


class TestCases:
    def test_bars(self) -> None:
        rows = read(rfc2544, data("cases/31-a.txt")).records
        found = [
            (
                r.frame_bytes,
                r.packets_per_second,
                r.max_packets_per_second,
                r.throughput_bps / 1e6,
                r.line_rate_pct,
            )
            for r in rows
        ]
        assert found == [
            (64, 521343, 1488095, pytest.approx(266.93), 35.03),
            (128, 567462, 844594, pytest.approx(581.08), 67.19),
            (256, 452843, 452898, pytest.approx(927.42), 99.99),
            (512, 234934, 234962, pytest.approx(962.29), 99.99),
            (1518, 81265, 81274, pytest.approx(986.88), 99.99),
        ]
        assert {r.throughput_layer for r in rows} == {"L2"}
        assert {r.status for r in rows} == {Status.OK}
        assert {(r.tolerated_loss_pct, r.trial_s) for r in rows} == {(0.1, 30)}
        assert [r.at_line_rate_within_resolution for r in rows] == [False, False, True, True, True]
        assert rows[2].loss_pct is None
        assert {r.link_bps_implied for r in rows} == {1e9}

    def test_a_row_that_was_not_measured(self) -> None:
        fast, empty = read(rfc2544, data("cases/31-b.txt")).records
        assert fast.link_bps_implied == 1e10
        assert fast.packets_per_second == 1627605
        assert empty.frame_bytes == 128
        assert empty.status is Status.INCOMPLETE
        assert (empty.packets_per_second, empty.line_rate_pct, empty.throughput_bps) == (None,) * 3
        assert empty.printed["share"] == "nan%"

    def test_an_axis_of_another_link_is_marked(self) -> None:
        axis = data("cases/31-a.txt").splitlines()[2]
        row = read(rfc2544, axis + "\n" + data("cases/31-b.txt")).records[0]
        assert row.status is Status.SUSPECT
        assert "is of a 1e+10 bit/s link, the axis ends at 1e+09" in row.warnings[0]

    def test_the_second_chart_repeats_the_first(self) -> None:
        again = "\n".join(
            line.split("|")[0] + "|###       " + line.split("Mbps,")[1]
            for line in data("cases/31-a.txt").splitlines()
            if "pps" in line
        )
        assert len(read(rfc2544, data("cases/31-a.txt") + again).records) == 5

    def test_line_rate(self) -> None:
        assert int(line_rate_pps(1e9, 64)) == 1488095
        assert int(line_rate_pps(1e9, 1518)) == 81274
        assert implied_link_bps(14880952, 64) == 1e10
        assert implied_link_bps(1627605, 64) is None


class TestTables:
    def test_shares_by_kernel(self) -> None:
        rows = read(rfc2544, KERNELS).records
        assert len(rows) == 9
        assert (rows[0].column, rows[0].frame_bytes, rows[0].forwarded_pct) == ("2.6.23", 64, 14)
        assert (rows[5].column, rows[5].frame_bytes, rows[5].forwarded_pct) == ("2.6.26", 128, 34)
        assert rows[0].printed == {"2.6.23": "14.%"}

    def test_blanks_instead_of_tabs(self) -> None:
        rows = read(rfc2544, KERNELS.replace("\t", " ")).records
        assert [r.forwarded_pct for r in rows] == [14, 20, 21, 22, 33, 34, 100, 100, 100]

    def test_a_title_may_give_the_unit(self) -> None:
        rows = read(rfc2544, "Forwarded frames, %\n" + KERNELS.replace("%", "")).records
        assert [r.forwarded_pct for r in rows[:3]] == [14, 20, 21]

    def test_numbers_without_a_unit_are_a_problem(self) -> None:
        reading = read(rfc2544, KERNELS.replace("%", ""))
        assert reading.records == []
        assert "has no known unit" in reading.problems[0].found

    def test_columns_with_units(self) -> None:
        text = (
            "| Frame size (bytes) | Throughput (Mbps) | Rate (kpps) | Loss (%) | Latency (us) |\n"
            "|---|---|---|---|---|\n"
            "| 64 | 1000.5 | 1953.9 | 0.001 | 12.5 |\n"
            "| 128 | - | nan | 0 | 13 |\n"
        )
        first, second = read(rfc2544, text).records
        assert (first.throughput_bps, first.packets_per_second) == (1000.5e6, 1953.9e3)
        assert (first.loss_pct, first.latency_s) == (0.001, pytest.approx(12.5e-6))
        assert (second.throughput_bps, second.packets_per_second) == (None, None)

    @pytest.mark.parametrize("cell", ["1,5", "120%", "abc", "14 20", "1.488.095"])
    def test_a_cell_that_cannot_be_read(self, cell: str) -> None:
        reading = read(rfc2544, KERNELS.replace(" 33", cell))
        (problem,) = reading.problems
        assert problem.line == 3
        assert 128 not in [r.frame_bytes for r in reading.records]


class TestNamedColumns:
    def test_units_beside_the_values(self) -> None:
        text = (
            "| Frame Size | Throughput | Avg Latency | Frame Loss |\n|---|---|---|---|\n"
            "| 64 | 7.4 Gbps | 480 us | 0.32% |\n| 1518 | 9.8 Gbps | 365 us | 0.00% |\n"
        )
        first, second = read(rfc2544, text).records
        assert (first.frame_bytes, first.throughput_bps, first.loss_pct) == (64, 7.4e9, 0.32)
        assert first.latency_s == pytest.approx(480e-6)
        assert second.loss_pct == 0

    def test_a_value_without_a_unit_anywhere_is_a_problem(self) -> None:
        text = "| Frame Size | Throughput | Frame Loss |\n| 64 | 7.4 | 0.32% |\n"
        reading = read(rfc2544, text)
        assert reading.records == []
        assert "'7.4' under 'Throughput' has no known unit" in reading.problems[0].found

    def test_csv_with_other_columns_beside(self) -> None:
        first, second = read(rfc2544, data("cases/rfc2544-csv.txt")).records
        assert (first.frame_bytes, first.offered_pct, first.loss_pct) == (64, 100, 0)
        assert (first.packets_per_second, first.throughput_bps) == (1488095.238, 1e9)
        assert first.throughput_layer == "L1"
        assert (first.latency_min_s, first.latency_s) == (
            pytest.approx(2.14e-6), pytest.approx(2.26e-6),
        )  # fmt: skip
        assert first.printed["Iteration"] == "1"
        assert second.frame_bytes == 128

    def test_thousands_are_grouped_where_the_table_shows_it(self) -> None:
        mmr, table, forward, reverse = read(rfc2544, data("cases/nfvbench-mmr.txt")).records
        assert (mmr.name, mmr.packets_per_second, mmr.throughput_bps) == ("MMR", 3452539, 2.3201e9)
        assert (table.frame_bytes, table.loss_pct) == (64, 76.7989)
        assert (table.latency_s, table.latency_max_s) == (
            pytest.approx(2072e-6), pytest.approx(3003e-6),
        )  # fmt: skip
        assert (forward.name, forward.status) == ("Forward", Status.OK)
        assert forward.intended_packets_per_second == forward.offered_packets_per_second == 7440476
        assert reverse.status is Status.SUSPECT
        assert reverse.packets_per_second == 1725039
        assert reverse.warnings == ("packets came back, but the tester counted none that it sent",)

    def test_an_infinite_loss_is_no_measurement(self) -> None:
        text = data("cases/nfvbench-mmr.txt").replace("76.7989%", "inf%")
        table = read(rfc2544, text).records[1]
        assert table.loss_pct is None
        assert table.status is Status.SUSPECT
        assert "Drop Rate is inf%: no measurement" in table.warnings

    def test_a_comma_that_may_be_decimal_is_a_problem(self) -> None:
        text = "| Frame Size | Rate (kpps) | Loss (%) |\n| 64 | 1,488 | 0 |\n"
        reading = read(rfc2544, text)
        assert reading.records == []
        assert len(reading.problems) == 1

    def test_rows_by_goal(self) -> None:
        ndr, pdr = read(rfc2544, data("cases/nfvbench-ndr.txt")).records
        assert (ndr.kind, ndr.name, ndr.frame_bytes) == ("search", "NDR", 64)
        assert (ndr.packets_per_second, ndr.throughput_bps) == (5812872, 3.9062e9)
        assert (ndr.throughput_layer, ndr.loss_pct) == ("L1", 0)
        assert (pdr.name, pdr.loss_pct) == ("PDR", 0.0958)

    def test_moongens_throughput_file(self) -> None:
        first, _ = read(rfc2544, data("cases/moongen-throughput-csv.txt")).records
        assert (first.frame_bytes, first.packets_per_second) == (128, 6.64e6)
        assert (first.packets_sent, first.packets_received) == (66400000, 66399990)
        assert (first.tolerated_loss_pct, first.trial_s) == (0.1, 10)

    def test_moongens_frame_loss_file_has_fractions_under_percent(self) -> None:
        first, second = read(rfc2544, data("cases/moongen-frameloss-csv.txt")).records
        assert (first.intended_pct, second.intended_pct) == (100, 95)
        assert (first.packets_sent, first.packets_received) == (14880952, 14880950)
        assert first.loss_pct == 1.3440000209e-05
        assert second.loss_pct == 0

    def test_more_received_than_sent_leaves_no_loss(self) -> None:
        text = "frame size,sent packets,received packets,frame loss (%)\n64,1000,1001,-0.1\n"
        (record,) = read(rfc2544, text).records
        assert record.status is Status.SUSPECT
        assert record.loss_pct is None
        assert "1001 packets received of only 1000 sent: loss is unknown" in record.warnings

    def test_a_rate_that_contradicts_its_bit_rate_is_suspect(self) -> None:
        text = "| Frame size | Rate (pps) | Throughput (Mbps) |\n| 64 | 1488095 | 100.0 |\n"
        (record,) = read(rfc2544, text).records
        assert record.status is Status.SUSPECT
        assert "1488095 pps of 64 bytes are not 100000000 bit/s, on no layer" in record.warnings

    def test_prose_with_commas_is_no_table(self) -> None:
        text = "packet size, rate and loss, as ever,\nwere 64, 14 and 3, more or less\n"
        assert not rfc2544.recognise(document(text))


class TestRatesInText:
    def test_packet_rate_and_bit_rate_must_go_together(self) -> None:
        records = read(rfc2544, data("cases/rates-in-text.txt")).records
        first, _, mean, swapped, _, ndr, turned = records
        assert (first.name, first.packets_per_second, first.throughput_bps) == (
            "PDR", 24762834, pytest.approx(16.6406e9),
        )  # fmt: skip
        assert mean.column == "PDR Average"
        assert swapped.name == "NDR"
        assert swapped.status is Status.SUSPECT
        assert (swapped.packets_per_second, swapped.throughput_bps) == (None, None)
        assert "no such packet, so a unit or a number is wrong" in swapped.warnings[0]
        assert (ndr.name, ndr.packets_per_second) == ("NDR", 1089912)
        assert (turned.packets_per_second, turned.throughput_bps) == (10425713, 7.0061e9)

    def test_rates_beside_their_maximum(self) -> None:
        records = read(rfc2544, data("cases/rates-by-size.txt")).records
        assert [r.frame_bytes for r in records] == [64, 128, 256, 512, 1024, 1280, 1518]
        assert {r.link_bps_implied for r in records} == {1e9}
        assert [r.status for r in records if r.frame_bytes != 1280] == [Status.OK] * 6
        over = records[5]
        assert over.status is Status.SUSPECT
        assert over.line_rate_pct is None
        assert over.warnings == ("97152 pps exceed the maximum 96153",)

    def test_a_lone_comma_is_a_problem(self) -> None:
        reading = read(rfc2544, "NDR: 812,872 pps (546 Mbps)\nMRR: 1,488 kpps (1,000 Gbps)\n")
        assert reading.records == []
        assert len(reading.problems) == 2


class TestTrials:
    """One trial on one line."""

    def test_loss_as_a_share_and_as_a_number(self) -> None:
        share, number, odd, negative = read(rfc2544, data("cases/rfc2544-trials.txt")).records
        assert (share.status, number.status) == (Status.OK, Status.OK)
        assert share.loss_pct == number.loss_pct == pytest.approx(25)
        assert (number.packets_sent, number.packets_received) == (1000, 750)
        assert (number.latency_min_s, number.latency_s, number.latency_max_s) == (
            pytest.approx(17e-6), pytest.approx(27e-6), pytest.approx(48e-6),
        )  # fmt: skip
        assert number.trial_s == 1.0012
        assert odd.status is Status.SUSPECT
        assert "750 of 1000 packets is not a loss of 0" in odd.warnings
        assert negative.status is Status.SUSPECT
        assert (negative.packets_received, negative.loss_pct) == (None, None)
        assert negative.latency_s is None

    def test_a_trial_that_cannot_be_read_is_a_problem(self) -> None:
        reading = read(rfc2544, "rate=1, totalReceived=1.000, totalSent=1.000, frameLoss=0\n")
        assert reading.records == []
        assert len(reading.problems) == 1


class TestSearchLines:
    def test_ndr_and_pdr(self) -> None:
        text = "NDR_LOWER: 11981402.6 pps, 8.05 Gbps (L1)\nPDR: 12.1 Mpps\nNDR: 85.3 %\n"
        lower, pdr, share = read(rfc2544, text).records
        assert (lower.name, lower.packets_per_second, lower.throughput_layer) == (
            "NDR_LOWER", 11981402.6, "L1",
        )  # fmt: skip
        assert lower.throughput_bps == pytest.approx(8.05e9)
        assert pdr.packets_per_second == 12.1e6
        assert share.line_rate_pct == 85.3

    @pytest.mark.parametrize("text", ["NDR: 12,1 Mpps\n", "NDR: 12.1\n", "PDR_LOWER: -1 pps\n"])
    def test_without_unit_or_with_a_comma(self, text: str) -> None:
        reading = read(rfc2544, text)
        assert reading.records == []
        assert len(reading.problems) == 1


class TestMutations:
    @pytest.mark.parametrize(
        "name",
        [
            "cases/31-a.txt",
            "cases/31-b.txt",
            "cases/nfvbench-mmr.txt",
            "cases/nfvbench-ndr.txt",
            "cases/rates-by-size.txt",
        ],
    )
    def test_right_or_flagged(self, name: str) -> None:
        assert_right_or_flagged(rfc2544, data(name), NAMES, cut="31" in name)

    def test_tables_too(self) -> None:
        assert_right_or_flagged(rfc2544, KERNELS, ("forwarded_pct", "frame_bytes"), cut=False)

    def test_cells_keep_their_kernel_whatever_is_lost(self) -> None:
        """A value that moved under another heading is a problem, not a result."""
        row = KERNELS.splitlines()[2]
        for lost in (1, 2, 3):
            cells = row.split("\t")
            del cells[lost]
            reading = read(rfc2544, KERNELS.replace(row, "\t".join(cells)))
            assert len(reading.problems) == 1
            assert 128 not in [r.frame_bytes for r in reading.records]

    @given(st.text("framesize |#0123456789.,Mbps/%nan\n\tNDR:kLoss()-", max_size=200))
    @settings(max_examples=200, deadline=None)
    def test_no_text_breaks_it(self, text: str) -> None:
        doc = document(text)
        rfc2544.recognise(doc)
        rfc2544.parse(doc)

    @given(
        size=st.sampled_from([64, 128, 256, 512, 1024, 1280, 1518]),
        link=st.sampled_from([1e9, 1e10, 1e11]),
        share=st.floats(0.01, 1),
    )
    @settings(max_examples=80, deadline=None)
    def test_what_ipgen_prints_is_sound(self, size: int, link: float, share: float) -> None:
        most = int(line_rate_pps(link, size))
        pps = max(1, int(most * share))
        text = (
            f"{size:8} |###    {pps * size * 8 / 1e6:7.2f}Mbps, {pps:7}/{most:7}pps, "
            f"{pps * 100 / most:6.2f}%\n"
        )
        (row,) = read(rfc2544, text).records
        assert row.status is Status.OK, row.warnings
        assert row.link_bps_implied == link

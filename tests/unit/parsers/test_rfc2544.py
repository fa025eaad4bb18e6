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
    @pytest.mark.parametrize("name", ["cases/31-a.txt", "cases/31-b.txt"])
    def test_right_or_flagged(self, name: str) -> None:
        assert_right_or_flagged(rfc2544, data(name), NAMES)

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

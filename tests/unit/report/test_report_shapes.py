"""The table shapes with other matrices than those of the posts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.published import Quantity
from collector.report.figures import Column, Entry, FigureSet, Row, printed_number
from collector.report.layout import MOST, Footnotes, columns, paragraph
from collector.report.shapes import forwarding, ipsec, netlabel, shape_of_matrix, sizes, tunnels

NAMES = st.lists(
    st.text(alphabet="abcdefgh_", min_size=1, max_size=14), min_size=1, max_size=9, unique=True
)
UNITS = st.sampled_from(["10^6 bits/sec", "rate / sec", "per cent"])


def quantity(printed_unit: str = "rate / sec", name: str = "throughput") -> Quantity:
    return Quantity(
        name=name, unit="1/s", printed_unit=printed_unit, scale=1, higher_is_better=True
    )


def figures(rows: list[str], tests: list[tuple[str, str]], footnote: str | None) -> FigureSet:
    return FigureSet(
        rows=tuple(Row(name=name) for name in rows),
        columns=tuple(
            Column(name=name, title=None, quantities=(quantity(unit),)) for name, unit in tests
        ),
        entries={
            (row, test, "throughput"): Entry(text="12345.67", value=1.0, footnote=footnote)
            for row in rows
            for test, _ in tests
        },
        baseline=rows[0],
    )


@given(NAMES, NAMES, st.data())
def test_any_matrix_fits_a_mail_and_shows_every_figure(
    rows: list[str], tests: list[str], data: st.DataObject
) -> None:
    units = [data.draw(UNITS) for _ in tests]
    note = data.draw(st.sampled_from([None, "a note"]))
    text = netlabel.text(figures(rows, list(zip(tests, units, strict=True)), note))
    assert max(map(len, text.splitlines())) <= MOST
    assert text.count("12345.67") == len(rows) * len(tests)
    assert text.count("[1]") == (0 if note is None else len(rows) * len(tests) + 1)


def test_units_stand_above_their_columns() -> None:
    text = netlabel.text(figures(["a"], [("t", "10^6 bits/sec"), ("u", "rate / sec")], None))
    assert text.split("\n") == [
        "      (in 10^6 bits/sec)  (rate / sec)",
        "TEST                   t             u",
        "======================================",
        "a               12345.67      12345.67",
    ]


def test_a_cell_that_does_not_exist_is_a_dash() -> None:
    made = figures(["a", "b"], [("t", "rate / sec")], None)
    del made.entries["b", "t", "throughput"]
    assert netlabel.text(made).split("\n")[-1] == "b                -"


def test_a_matrix_without_a_post_prints_configurations_by_tests() -> None:
    assert shape_of_matrix("something_else") is netlabel
    assert shape_of_matrix("labelled_ipsec") is ipsec


def test_pairs_differ_in_nothing_but_the_label() -> None:
    rows = (
        Row(name="u4", factors={"label": "off", "family": "ipv4"}),
        Row(name="l4", factors={"label": "s0", "family": "ipv4"}),
        Row(name="l6", factors={"label": "s0", "family": "ipv6"}),
        Row(name="l6b", factors={"label": "s1", "family": "ipv6"}),
    )
    found = [
        (shared, left.name if left else None, right.name if right else None)
        for shared, left, right in ipsec.pairs(rows)
    ]
    assert found == [("ipv4", "l4", "u4"), ("ipv6", "l6", None), ("ipv6 l6b", "l6b", None)]


def test_a_lacking_half_of_a_pair_is_a_dash() -> None:
    made = FigureSet(
        rows=(Row(name="l", factors={"label": "s0"}),),
        columns=(Column(name="t", title=None, quantities=(quantity(),)),),
        entries={("l", "t", "throughput"): Entry(text="5.00", value=5.0)},
        baseline="l",
    )
    assert ipsec.text(made).endswith("   5.00  (-)")


def test_forwarding_without_any_entry_is_empty() -> None:
    made = figures(["a"], [("t", "per cent")], None)
    made.entries.clear()
    assert forwarding.text(made) == ""
    assert forwarding.tables(made) == ()


def test_tunnels_name_sessions_and_say_what_was_not_measured() -> None:
    made = FigureSet(
        rows=(Row(name="gre"),),
        columns=(
            Column(
                name="tcp_rr", title=None, quantities=(quantity(),), factors={"sessions": "200"}
            ),
        ),
        entries={("gre", "tcp_rr", "throughput"): Entry(text="7.00", value=7.0)},
        baseline="gre",
    )
    assert tunnels.text(made).split("\n") == [
        "200 Netperf sessions, tcp_rr:",
        "=============================",
        "gre:",
        "    CPU utilization",
        "     - Send local: not measured",
        "     - Recv remote: not measured",
        "    Transactions: 7.00 / sec",
    ]


def test_kinds_of_cpu_time_stand_behind_the_share_or_below_it() -> None:
    column = Column(
        name="tcp_maerts_5",
        title=None,
        quantities=(quantity(),),
        factors={"sessions": "5", "netperf": "TCP_MAERTS"},
    )
    short = "user 1.0, system 2.0, softirq 3.0, steal 0.0"
    long = "user 31.0, nice 32.0, system 12.0, irq 10.0, softirq 13.0, steal 10.0"
    texts = {"cpu_local": "6.0", "cpu_remote": "98.0"}
    texts |= {"cpu_local_kinds": short, "cpu_remote_kinds": long, "demand": "d", "latency": "l"}
    entries = {("gre", column.name, name): Entry(text=t, value=1.0) for name, t in texts.items()}
    entries["gre", column.name, "throughput"] = Entry(text="7.00", value=7.0)
    made = FigureSet(rows=(Row(name="gre"),), columns=(column,), entries=entries, baseline="gre")
    text = tunnels.text(made)
    assert text.split("\n")[2:] == [
        "gre:",
        "    CPU utilization",
        f"     - Recv local: 6.0 ({short})",
        "     - Send remote: 98.0",
        f"     ({long})",
        "    Transactions: 7.00 / sec",
        "    Service demand: d",
        "    Latency: l",
    ]
    assert max(map(len, text.splitlines())) <= MOST
    (table,) = tunnels.tables(made)
    assert table.head[2:] == (
        "CPU receive local (%)",
        "CPU send remote (%)",
        "Local by kind (%)",
        "Remote by kind (%)",
        "Service demand",
        "Latency",
    )


def test_sizes_are_compared_smallest_beside_largest() -> None:
    columns_ = tuple(
        Column(
            name=f"udp_{size}",
            title=None,
            quantities=(quantity(),),
            factors={"netperf": "UDP_RR", "sessions": "5", "bytes": f"{size},1"},
        )
        for size in ("fit", "1", "64")
    )
    entries = {
        ("gre", column.name, "throughput"): Entry(text=column.name, value=1.0)
        for column in columns_
    }
    made = FigureSet(rows=(Row(name="gre"),), columns=columns_, entries=entries, baseline="gre")
    (table,) = sizes.tables(made)
    assert table.caption == "Small beside large, UDP_RR, 5 sessions (rate / sec, CPU in %)"
    assert table.rows == (("gre", "udp_1", "-", "-", "udp_fit", "-", "-"),)


def test_equal_footnotes_share_a_number() -> None:
    notes = Footnotes()
    assert [notes.mark(text) for text in ("a", None, "b", "a")] == ["[1]", "", "[2]", "[1]"]
    assert notes.lines() == ("[1] a", "[2] b")


def test_columns_line_up_and_end_without_blanks() -> None:
    assert columns([["a", "1", "x"], ["bb", "22"]], align="lrl") == "a    1  x\nbb  22"


def test_a_number_stays_with_its_per_cent_sign() -> None:
    text = paragraph("x" * 68 + " 95 % of it")
    assert text.split("\n") == ["x" * 68, "95 % of it"]


def test_forwarding_has_no_table_of_what_was_not_run() -> None:
    made = figures(["a", "b"], [("t", "per cent")], None)
    made.entries["b", "t", "throughput"] = Entry(text="skipped", value=None)
    assert forwarding.tables(made)[0].head == ("Frame size (bytes)", "a")
    made.entries["a", "t", "throughput"] = Entry(text="skipped", value=None)
    assert forwarding.tables(made) == ()


def test_a_burst_is_a_whole_number_of_frames() -> None:
    burst = Quantity(
        name="back_to_back", unit="frames", printed_unit="frames", scale=1, higher_is_better=True
    )
    assert printed_number(3094.6, burst) == "3095"

"""Asking runs, and following cells over many runs."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from run_factory import campaign, lost, run_folder

from collector.commands import history as history_command
from collector.commands import query as query_command
from collector.errors import CrossoverError, InputError, UsageError
from collector.history.history import Point, change_points, load_history, make_series
from collector.runfolder.samples import Sample, SampleStatus
from collector.runfolder.store import VERSION_KEY

Command = Callable[..., str]


@pytest.fixture
def crossover(capsys: pytest.CaptureFixture[str]) -> Command:
    """``crossover("query", …) -> what was printed``."""

    def call(*arguments: object) -> str:
        parser = argparse.ArgumentParser()
        subparsers = parser.add_subparsers()
        query_command.add_parser(subparsers)
        history_command.add_parser(subparsers)
        args = parser.parse_args([str(argument) for argument in arguments])
        assert args.run(args) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    first = campaign(10, effects={"C_FlCat": 0.8})
    second = campaign(6, seed=2, run_id="r2")
    return [run_folder(tmp_path / "it's", first), run_folder(tmp_path / "b", second)]


def test_sql_reads_the_samples_of_several_runs(runs: list[Path], crossover: Command) -> None:
    sql = "SELECT run, count(*) AS n, max(block) AS last FROM samples GROUP BY run ORDER BY n"
    rows = json.loads(crossover("query", *runs, sql, "--format", "json"))
    assert rows == [
        {"run": str(runs[1]), "n": 48, "last": 5},
        {"run": str(runs[0]), "n": 80, "last": 9},
    ]


def test_sql_reads_judged_cells(runs: list[Path], crossover: Command) -> None:
    sql = (
        "SELECT configuration, verdict, n, len(block_values) AS blocks FROM cells"
        " WHERE run_id = 'r1' AND test = 'tcp_rr' AND arm = '' ORDER BY ratio"
    )
    rows = list(csv.DictReader(io.StringIO(crossover("query", *runs, sql, "--format", "csv"))))
    assert rows[0] == {"configuration": "C_FlCat", "verdict": "slower", "n": "10", "blocks": "10"}
    assert {row["verdict"] for row in rows[1:]} == {"no difference beyond delta", "baseline"}


def test_text_output_lines_up_and_counts(runs: list[Path], crossover: Command) -> None:
    text = crossover(
        "query", runs[0], "SELECT DISTINCT unit, NULL AS nothing FROM samples ORDER BY 1"
    )
    assert text.splitlines() == ["unit   nothing", "1/s          -", "bit/s        -", "(2 rows)"]


def test_maps_and_lists_are_shown(runs: list[Path], crossover: Command) -> None:
    sql = "SELECT MAP {'family': 'ipv6'} AS factors, boot_ids FROM samples LIMIT 1"
    assert json.loads(crossover("query", runs[0], sql, "--format", "json")) == [
        {"factors": {"family": "ipv6"}, "boot_ids": ["a", "b"]}
    ]
    assert "family=ipv6" in crossover("query", runs[0], sql, "--format", "csv")


def test_samples_of_an_older_schema_can_be_asked(runs: list[Path], crossover: Command) -> None:
    file = runs[1] / "samples.parquet"
    table = pq.read_table(file).drop_columns(["cpu_local_pct"])
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: b"1"}), file)
    sql = "SELECT run_id, count(cpu_local_pct) AS n FROM samples GROUP BY run_id ORDER BY run_id"
    assert json.loads(crossover("query", *runs, sql, "--format", "json")) == [
        {"run_id": "r1", "n": 80},
        {"run_id": "r2", "n": 0},
    ]


def test_samples_of_a_newer_schema_are_refused(runs: list[Path], crossover: Command) -> None:
    file = runs[1] / "samples.parquet"
    pq.write_table(pq.read_table(file).replace_schema_metadata({VERSION_KEY: b"99"}), file)
    with pytest.raises(InputError, match="found 99, written by a newer version of Crossover"):
        crossover("query", *runs, "SELECT 1")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SELECT gone FROM samples",
        "SELEC 1",
    ],
)
def test_queries_reach_nothing_but_the_runs(runs: list[Path], crossover: Command, sql: str) -> None:
    with pytest.raises(UsageError, match="query: DuckDB refused it: "):
        crossover("query", runs[0], sql)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("COPY samples TO 'x.csv'", "COPY"),
        ("DROP VIEW samples", "DROP"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("SET enable_external_access = true", "SET"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("SELECT 1; SELECT 2", "SELECT, SELECT"),
        ("-- nothing", "nothing"),
    ],
)
def test_queries_only_read(
    runs: list[Path], crossover: Command, sql: str, found: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        crossover("query", runs[0], sql)
    assert str(caught.value) == f"query: found {found}; wanted one SELECT (queries only read)"


def test_sql_needs_a_run(crossover: Command) -> None:
    with pytest.raises(UsageError, match="found one argument; wanted RUN… and then the SQL"):
        crossover("query", "SELECT 1")


def test_jmespath_reads_the_documents(runs: list[Path], crossover: Command) -> None:
    expression = "plan.cells[?arm=='aa'].test"
    assert json.loads(crossover("query", "--jmespath", expression, runs[0])) == [
        "tcp_rr",
        "tcp_stream",
    ]
    assert json.loads(crossover("query", "--jmespath", "journal[0].event", runs[0])) == "started"
    release = "provenance.server.kernel.release"
    assert json.loads(crossover("query", "--jmespath", release, runs[0])) == "6.1.0-44"


def test_a_wrong_jmespath_says_so(runs: list[Path], crossover: Command) -> None:
    with pytest.raises(UsageError, match=r"query --jmespath: found 'plan\.cells\[' "):
        crossover("query", "--jmespath", "plan.cells[", runs[0])
    with pytest.raises(UsageError, match="query --jmespath: found 2 runs; wanted one"):
        crossover("query", "--jmespath", "plan", *runs)


def series_of(values: list[float], higher: bool = True) -> list[Point]:
    return [Point(f"2026-01-{n:02}", f"r{n}", "6.1", v, 10) for n, v in enumerate(values, 1)]


STEADY = [100.1, 99.9, 100.0, 100.2, 99.8, 100.0, 100.1, 99.9, 100.0, 100.1]


def test_a_jump_is_found_where_it_is() -> None:
    (change,) = change_points(series_of(STEADY + [value * 0.9 for value in STEADY]), True)
    assert (change.index, change.run_id, change.before, change.after) == (10, "r11", 10, 10)
    assert change.change_pct == pytest.approx(-10, abs=0.1)
    assert not change.better
    assert not change.provisional


def test_a_fall_is_better_where_lower_is_better() -> None:
    (change,) = change_points(series_of(STEADY + [value * 0.9 for value in STEADY]), False)
    assert change.better


def test_a_steady_series_has_no_change() -> None:
    assert change_points(series_of(STEADY * 2), True) == []


def test_a_change_with_few_points_on_a_side_is_provisional() -> None:
    (change,) = change_points(series_of([*STEADY, 80.0, 80.1, 79.9]), True)
    assert (change.after, change.provisional) == (3, True)


def test_two_points_are_too_few_for_any_change() -> None:
    assert change_points(series_of([100.0, 50.0]), True) == []


def many_runs(count: int, **changes: object) -> list[tuple[str, list[Sample]]]:
    return [
        (
            f"2026-01-{n:02}T00:00:00Z",
            campaign(6, seed=n, run_id=f"r{n}", effects={"C_FlCat": 0.8 if n > 10 else 1.0}),
        )
        for n in range(1, count + 1)
    ]


def test_a_series_per_cell_says_how_long_it_is() -> None:
    series = make_series(many_runs(4))
    assert len(series) == 6
    assert series[0].note == (
        "short: 4 points; 10 on each side of a change are wanted, so any change is provisional"
    )
    assert make_series(many_runs(2))[0].note == (
        "too short: 2 points; no change can be found below 3"
    )
    long = {item.name: item for item in make_series(many_runs(20))}
    changed = long["netlabel_cipso.C_FlCat.tcp_rr.guests.tcg"]
    assert changed.note is None
    assert [change.run_id for change in changed.changes] == ["r11"]
    assert long["netlabel_cipso.C_NoCat.tcp_rr.guests.tcg"].changes == ()


def test_series_of_different_labs_are_kept_apart() -> None:
    runs = many_runs(2)
    runs[1] = (runs[1][0], [replace(s, lab_kind="exact") for s in runs[1][1]])
    assert len(make_series(runs)) == 12


def test_a_run_without_a_valid_repeat_is_named() -> None:
    runs = many_runs(3)
    runs[1] = (
        runs[1][0],
        [lost(s, SampleStatus.INVALID) if s.configuration == "C_NoCat" else s for s in runs[1][1]],
    )
    series = next(item for item in make_series(runs) if item.configuration == "C_NoCat")
    assert series.lacking == ("r2",)
    assert [point.run_id for point in series.points] == ["r1", "r3"]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [
        run_folder(tmp_path / f"run{n}", samples, created_at=time)
        for n, (time, samples) in enumerate(many_runs(12))
    ]


def test_history_sorts_runs_by_time_and_prints_changes(
    folders: list[Path], crossover: Command
) -> None:
    text = crossover("history", *reversed(folders))
    assert (" % (worse) from r11 on, 6.1.0-44, provisional: 10 points before and 2 after") in text
    assert text.count("* netlabel_cipso.C_FlCat.tcp_rr.guests.tcg: ") == 1
    assert "* 6 of 6 series: short: 12 points" in text


def test_history_as_csv_has_a_row_a_point(folders: list[Path], crossover: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(crossover("history", *folders, "--format", "csv"))))
    assert len(rows) == 6 * 12
    changed = [row for row in rows if row["change_pct"]]
    assert {(row["configuration"], row["run_id"]) for row in changed} == {("C_FlCat", "r11")}


def test_history_as_json(folders: list[Path], crossover: Command) -> None:
    document = json.loads(crossover("history", *folders, "--format", "json"))
    assert document["schema"] == 1
    assert len(document["series"][0]["points"]) == 12


def test_otava_gets_one_file_a_series_and_its_configuration(
    tmp_path: Path, folders: list[Path], crossover: Command
) -> None:
    """Otava reads a time column, attributes, and numbers without a gap (its docs/CSV.md)."""
    crossover("history", *folders, "--otava", tmp_path / "otava")
    tests = yaml.safe_load((tmp_path / "otava" / "otava.yaml").read_text())["tests"]
    assert len(tests) == 6
    for test in tests.values():
        rows = list(csv.DictReader(io.StringIO(Path(test["file"]).read_text())))
        assert len(rows) == 12
        assert all(float(row["value"]) > 0 for row in rows)
        columns = [test["time_column"], *test["attributes"], *test["metrics"]]
        assert list(rows[0]) == columns
        assert test["metrics"]["value"]["direction"] == 1


def test_a_run_named_twice_is_refused(folders: list[Path]) -> None:
    with pytest.raises(UsageError, match="found run r1 twice; wanted each run once"):
        load_history([folders[0], folders[0]])


def test_errors_are_for_people(crossover: Command) -> None:
    with pytest.raises(CrossoverError, match="gone: found no folder of that name"):
        crossover("history", "gone")

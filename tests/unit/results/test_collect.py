"""Aggregating raw outputs: the short way says what the parser says, and nothing is lost."""

from __future__ import annotations

import argparse
import csv
import importlib.machinery
import importlib.util
import io
import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.commands import collect as command
from collector.errors import InputError
from collector.parsers import netperf
from collector.parsers.document import from_bytes
from collector.results.collect import Tally, collect, find, measured, read_chunk, read_slowly, table
from collector.results.rawfast import FastReader, Measured

ROOT = Path(__file__).parents[3]


def load_benchmark() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("collect_benchmark", f"{ROOT}/benchmarks/collect")
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


BENCHMARK = load_benchmark()
STREAM = BENCHMARK.keyval(random.Random(1), "TCP", "Send")
STREAM_TABLE = BENCHMARK.classic(random.Random(1), "TCP", "Send")
REQUEST_TABLE = BENCHMARK.classic(random.Random(1), "TCP", "Send|Recv")
REQUESTS = BENCHMARK.keyval(random.Random(2), "UDP", "Send|Recv")


def slowly(text: str) -> Tally:
    tally = Tally()
    read_slowly(tally, "c", "f", text.encode())
    return tally


def agrees(text: str) -> bool:
    """Whether the short way took the text; if so, the parser must say exactly the same."""
    fast = FastReader().read(text.encode())
    if fast is None:
        return False
    expected = Tally()
    expected.add("c", fast)
    slow = slowly(text)
    assert slow.values == expected.values
    assert (slow.unmet, slow.suspect, slow.failed) == (expected.unmet, {}, {})
    assert slow.problem_count == 0
    return True


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("protocol", "direction"), BENCHMARK.TESTS)
def test_our_own_form_takes_the_short_way(seed: int, protocol: str, direction: str) -> None:
    assert agrees(BENCHMARK.keyval(random.Random(seed), protocol, direction))


@pytest.mark.parametrize("direction", ["Send", "Send|Recv"])
def test_plain_classic_tables_take_the_short_way(direction: str) -> None:
    assert agrees(BENCHMARK.classic(random.Random(4), "TCP", direction))


def test_a_classic_table_of_zero_is_left_to_the_parser() -> None:
    zero = re.sub(r"[0-9]+\.[0-9]{2} *\n$", "0.00\n", STREAM_TABLE)
    assert FastReader().read(zero.encode()) is None


def test_the_short_way_reads_value_unit_test_and_confidence() -> None:
    text = STREAM
    for name, value in (("THROUGHPUT", "941.25"), ("THROUGHPUT_CONFID", "5.001")):
        text = replaced(text, name, value)
    assert FastReader().read(text.encode()) == Measured("TCP_STREAM", "bit/s", 941.25e6, False)
    met = replaced(text, "THROUGHPUT_CONFID", "5.000")
    assert FastReader().read(met.encode()) == Measured("TCP_STREAM", "bit/s", 941.25e6, True)
    not_asked = replaced(text, "CONFIDENCE_INTERVAL", "-1.000000")
    assert FastReader().read(not_asked.encode()) == Measured("TCP_STREAM", "bit/s", 941.25e6, None)


def replaced(text: str, name: str, value: str) -> str:
    lines = text.splitlines(keepends=True)
    assert any(line.startswith(f"{name}=") for line in lines)
    return "".join(f"{name}={value}\n" if line.startswith(f"{name}=") else line for line in lines)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THROUGHPUT", "0.00"),
        ("THROUGHPUT", "-nan"),
        ("THROUGHPUT", "941,25"),
        ("THROUGHPUT", "941.2"),
        ("THROUGHPUT_UNITS", "furlongs/s"),
        ("DIRECTION", "Sideways"),
        ("PROTOCOL", "SDP"),
        ("LOCAL_SD", "0.010"),
        ("ELAPSED_TIME", "10"),
        ("SD_UNITS", '"usec/KB"'),
        ("SOURCE_ADDR", "192.0.2.1 "),
    ],
)
def test_every_doubt_is_left_to_the_parser(name: str, value: str) -> None:
    assert FastReader().read(replaced(STREAM, name, value).encode()) is None


def test_nothing_received_is_left_to_the_parser() -> None:
    text = BENCHMARK.keyval(random.Random(3), "UDP", "Send")
    assert FastReader().read(replaced(text, "REMOTE_RECV_THROUGHPUT", "0.00").encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        STREAM + STREAM,
        STREAM.rstrip("\n"),
        STREAM.replace("\n", "\r\n"),
        "> " + STREAM.replace("\n", "\n> "),
        STREAM + "warning: something\n",
        STREAM.replace("TRANSPORT_MSS", "TRANSPORT_MMS"),
        STREAM.replace("PROTOCOL=TCP\n", ""),
        "\ufeff" + STREAM,
        STREAM_TABLE + STREAM_TABLE,
        STREAM_TABLE.replace(" : demo", " : +/-2.500% @ 99% conf.  : demo"),
        STREAM_TABLE.replace("10^6bits", "MBytes"),
        STREAM_TABLE.replace("TCP STREAM", "TCP REQUEST/RESPONSE"),
        REQUEST_TABLE.replace("TCP REQUEST/RESPONSE", "TCP STREAM"),
        REQUEST_TABLE.replace("Trans.", "KBytes/s"),
    ],
)
def test_any_other_form_is_left_to_the_parser(text: str) -> None:
    assert FastReader().read(text.encode()) is None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([STREAM, REQUESTS, STREAM_TABLE, REQUEST_TABLE]), st.data())
def test_a_damaged_file_is_never_read_differently(text: str, data: st.DataObject) -> None:
    """Lines dropped, doubled, swapped, cut, or with a value changed: same answer or no answer."""
    lines = text.splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    kind = data.draw(st.sampled_from(["drop", "double", "swap", "cut", "digit"]))
    if kind == "drop":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "swap":
        other = data.draw(st.integers(0, len(lines) - 1))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "cut":
        lines = list("".join(lines)[: data.draw(st.integers(0, len(text)))])
    else:
        characters = list(lines[at])
        spot = data.draw(st.integers(0, len(characters) - 1))
        characters[spot] = data.draw(st.sampled_from("0123456789-.,ex=| "))
        lines[at] = "".join(characters)
    agrees("".join(lines))


def test_the_reader_follows_a_change_of_layout() -> None:
    reader = FastReader()
    reordered = "".join(reversed(STREAM.splitlines(keepends=True)))
    first, second = reader.read(STREAM.encode()), reader.read(reordered.encode())
    assert first == second
    assert reader.read(STREAM.encode()) == first


def run_folder(folder: Path, files: int = 40) -> Path:
    BENCHMARK.generate(folder, files, 0)
    return folder


def test_the_table_has_exact_numbers(tmp_path: Path) -> None:
    values = []
    for number in range(7):
        text = BENCHMARK.keyval(random.Random(number), "TCP", "Send")
        place = tmp_path / "C_FlCat" / str(number)
        place.mkdir(parents=True)
        (place / "netperf.out").write_text(text)
        (record,) = netperf.parse(from_bytes(text.encode(), "x")).records
        result = measured(record)  # type: ignore[arg-type]
        assert result is not None
        values.append(result.value)
    (row,) = table(collect(find([tmp_path]), 1))
    assert (row.cell, row.test, row.unit, row.n) == ("C_FlCat", "TCP_STREAM", "bit/s", 7)
    assert row.median == statistics.median(values)
    assert row.mean == pytest.approx(statistics.mean(values))
    assert row.cv == pytest.approx(statistics.stdev(values) / statistics.mean(values))
    assert (row.smallest, row.largest) == (min(values), max(values))


def test_two_processes_give_the_same_table_as_one(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, 1100)
    one, two = collect(find([folder]), 1), collect(find([folder]), 2)
    assert table(one) == table(two)
    assert (two.files, two.fast, two.problem_count) == (1100, 1100, 0)


def test_failed_and_suspect_results_count_in_no_number(tmp_path: Path) -> None:
    cell = tmp_path / "c"
    cell.mkdir()
    (cell / "good.out").write_text(STREAM)
    (cell / "zero.out").write_text(replaced(STREAM, "THROUGHPUT", "0.00"))
    (cell / "odd.out").write_text(replaced(STREAM, "LOCAL_SD", "0.010"))
    (row,) = table(collect(find([tmp_path]), 1))
    assert (row.n, row.failed, row.suspect) == (1, 1, 1)


def test_a_cell_with_only_failures_has_a_row(tmp_path: Path) -> None:
    (tmp_path / "zero.out").write_text(replaced(STREAM, "THROUGHPUT", "0.00"))
    (row,) = table(collect(find([tmp_path]), 1))
    assert (row.cell, row.n, row.median, row.failed) == (".", 0, None, 1)


def test_what_cannot_be_read_is_a_problem_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text("no benchmark at all\n")
    tally = read_chunk([(".", str(tmp_path / "a.out")), (".", str(tmp_path / "gone.out"))])
    assert tally.problem_count == 2
    assert tally.problems[0].startswith(f"{tmp_path}/a.out:1: found ")
    assert tally.problems[1] == (
        f"{tmp_path}/gone.out: found No such file or directory; wanted a readable file"
    )


def test_large_files_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "many.out").write_text(BENCHMARK.classic(random.Random(1), "TCP", "Send") * 200)
    (row,) = table(collect(find([tmp_path]), 1))
    assert row.n == 200


def test_find_takes_files_folders_and_run_folders(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", 3)
    (folder / "raw" / "cell000" / "0" / "argv.json").write_text("[]")
    (tmp_path / "single.txt").write_text(STREAM)
    found = dict(map(reversed, find([folder, tmp_path / "single.txt"])))  # type: ignore[arg-type]
    assert sorted(found.values()) == [".", "cell000", "cell001", "cell002"]
    with pytest.raises(InputError, match="gone: found no file or folder of that name"):
        list(find([tmp_path / "gone"]))


def call(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["collect", *map(str, arguments)])
    return args.run(args)


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json"])
def test_every_format_shows_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    assert call(run_folder(tmp_path), "--workers", 1, "--format", form) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert len(json.loads(out)["rows"]) == 40
    elif form == "csv":
        assert len(list(csv.DictReader(io.StringIO(out)))) == 40
    else:
        assert out.count("cell0") == 40


def test_problems_go_to_stderr_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(120):
        (tmp_path / f"{number}.out").write_text("nothing\n")
    (tmp_path / "good.out").write_text(STREAM)
    assert call(tmp_path, "--workers", 1) == 1
    printed = capsys.readouterr()
    assert "TCP_STREAM" in printed.out
    assert printed.err.splitlines()[-1] == "and 20 more problems like these"


def test_no_file_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found no file named \*\.out; wanted at least one"):
        call(tmp_path)


def test_workers_must_be_a_number(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        call(tmp_path, "--workers", "0")
    assert caught.value.code == 2


def test_the_benchmark_runs_in_small() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "collect"), "--files", "200", "--repeats", "1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "200 files, 10 % classic: awk" in done.stdout
    assert "peak memory" in done.stdout

"""`crossover report` and `crossover published` as a user calls them."""

from __future__ import annotations

import argparse
import json
import tarfile
from pathlib import Path

import build_run
import golden
import pytest

from collector.commands import published as published_command
from collector.commands import report as report_command
from collector.errors import CrossoverError, InputError, UsageError


def call(*argv: str) -> int:
    parser = argparse.ArgumentParser(prog="crossover")
    subparsers = parser.add_subparsers()
    report_command.add_parser(subparsers)
    published_command.add_parser(subparsers)
    args = parser.parse_args(argv)
    code: int = args.run(args)
    return code


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run.build_run(tmp_path_factory.mktemp("runs") / "r", build_run.tiny())


def test_published_lists_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("published") == 0
    text = capsys.readouterr().out
    golden.check("published_list.txt", text)
    assert call("published", "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == [
        "forwarding",
        "labelled_ipsec",
        "netlabel_cipso",
        "tunnels",
    ]


def test_a_published_experiment_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("report", "--published", "netlabel_cipso") == 0
    assert "C_F_NoC      328.69      935.53   6258.61   6415.35" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json", "junit", "html"])
def test_a_run_in_every_format(run: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("report", str(run), "--format", form) == 0
    assert "tcp" in capsys.readouterr().out


def test_out_writes_the_file_and_names_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pages" / "r.html"
    out.parent.mkdir()
    assert call("report", str(run), "--format", "html", "--out", str(out)) == 0
    assert capsys.readouterr().out == f"{out}\n"
    page = out.read_text()
    link = page.split('raw/c00/0/netperf.out">')[0].rsplit('href="', 1)[1]
    assert (out.parent / f"{link}raw/c00/0/netperf.out").is_file()
    assert [file.name for file in out.parent.iterdir()] == ["r.html"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["report"], "report: found neither; wanted either RUN or --published NAME"),
        (["report", "x", "--published", "y"], "report: found both; wanted either RUN or"),
        (["report", "--published", "nope"], "published experiment: found 'nope'; wanted one of"),
        (["report", "--published", "tunnels", "--tarball"], "report --tarball: found --published"),
        (
            ["report", "--published", "tunnels", "--format", "html"],
            "report --published: found --format html; wanted one of text, markdown, csv, json",
        ),
    ],
)
def test_wrong_use(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(*argv)


def test_what_is_no_run_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wanted a run folder"):
        call("report", str(tmp_path / "absent"))


def test_a_file_that_cannot_be_written_is_named(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "absent" / "report.txt"
    with pytest.raises(
        CrossoverError, match=r"absent/report\.txt: No such file or directory; want"
    ):
        call("report", str(run), "--out", str(out))


def test_the_tarball_holds_all_raw_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = build_run.build_run(tmp_path / "r", build_run.tiny())
    assert call("report", str(run), "--tarball") == 0
    archive = Path(capsys.readouterr().out.strip())
    assert archive == run / "tiny-20260101-demo.tar.gz"
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    names = {member.name for member in members}
    raw = {p.relative_to(run).as_posix() for p in (run / "raw").rglob("*") if p.is_file()}
    assert {f"20260101-demo/{name}" for name in raw} <= names
    assert {"20260101-demo/plan.json", "20260101-demo/samples.parquet"} <= names
    assert {(m.uid, m.uname) for m in members} == {(0, "")}
    out = tmp_path / "elsewhere.tar.gz"
    assert call("report", str(run), "--tarball", "--out", str(out)) == 0
    with tarfile.open(out) as packed:
        assert {member.name for member in packed} == names


def test_a_run_without_raw_output_has_no_tarball(tmp_path: Path) -> None:
    run = build_run.build_run(tmp_path / "r", build_run.tiny())
    for file in (run / "raw").rglob("*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(CrossoverError, match="raw: found no files; wanted the tools' raw output"):
        call("report", str(run), "--tarball")

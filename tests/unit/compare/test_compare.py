"""The gate: outcomes, exit codes, refusals, acknowledgements, formats and JUnit."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from run_factory import campaign, lost, run_folder

from collector.commands import compare as command
from collector.errors import CrossoverError, UsageError
from collector.runfolder.samples import Sample, SampleStatus
from collector.verdict import OUTCOMES_WORST_FIRST, Outcome, overall

Result = tuple[int, str]
Compare = Callable[..., Result]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Compare:
    """``compare(BASE, NEW, …) -> (exit code, what was printed)``."""

    def call(*arguments: object) -> Result:
        parser = argparse.ArgumentParser()
        command.add_parser(parser.add_subparsers())
        args = parser.parse_args(["compare", *map(str, arguments)])
        code = args.run(args)
        return code, capsys.readouterr().out

    return call


def pair(tmp_path: Path, base: list[Sample], new: list[Sample], **plan: object) -> list[Path]:
    renamed = [replace(sample, run_id="r2") for sample in new]
    planned = [replace(sample, run_id="r2") for sample in base]
    return [
        run_folder(tmp_path / "base", base),
        run_folder(tmp_path / "new", renamed, planned=planned, **plan),
    ]


def outcomes(text: str) -> dict[str, str]:
    return {f"{c['test']} {c['configuration']}": c["outcome"] for c in json.loads(text)["cells"]}


def test_the_same_again_is_ok(tmp_path: Path, compare: Compare) -> None:
    code, text = compare(*pair(tmp_path, campaign(10), campaign(10, seed=2)))
    assert code == 0
    assert text.startswith(f"ok: {tmp_path}/new against {tmp_path}/base (guests/tcg; between runs")


def test_a_regression_exits_10(tmp_path: Path, compare: Compare) -> None:
    runs = pair(tmp_path, campaign(10), campaign(10, effects={"C_FlCat": 0.9}, seed=2))
    code, text = compare(*runs, "--format", "json")
    assert code == 10
    assert outcomes(text)["tcp_rr C_FlCat"] == "regression"
    assert outcomes(text)["tcp_rr C_NoCat"] == "ok"
    assert json.loads(text)["exit_code"] == 10


def test_an_improvement_exits_0(tmp_path: Path, compare: Compare) -> None:
    runs = pair(tmp_path, campaign(10), campaign(10, effects={"C_FlCat": 1.1}, seed=2))
    code, text = compare(*runs)
    assert code == 0
    assert text.startswith("improvement: ")


def test_lower_is_better_turns_the_outcome_around(tmp_path: Path, compare: Compare) -> None:
    lower = {"higher_is_better": False}
    base = campaign(10, **lower)
    new = campaign(10, effects={"C_FlCat": 1.1}, seed=2, **lower)
    assert compare(*pair(tmp_path, base, new))[0] == 10


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (3, "3 against 3 repeats cannot reach 0.05: the smallest p these sizes allow is 0.1"),
        (4, "4 against 4 repeats cannot reach 0.05: smallest p 0.029, 0.17 after Holm over 6"),
    ],
)
def test_too_few_repeats_exit_20_and_print_the_smallest_p(
    tmp_path: Path, compare: Compare, blocks: int, said: str
) -> None:
    new = campaign(blocks, effects={"C_FlCat": 0.5}, seed=2)
    code, text = compare(*pair(tmp_path, campaign(blocks), new))
    assert code == 20
    assert said in text


def test_an_unproven_cell_exits_30(tmp_path: Path, compare: Compare) -> None:
    new = [
        lost(s, SampleStatus.INVALID) if s.configuration == "C_FlCat" else s
        for s in campaign(10, seed=2)
    ]
    code, text = compare(*pair(tmp_path, campaign(10), new))
    assert code == 30
    assert "tcp_rr C_FlCat: 0 valid of 10 in" in text
    assert "invalid: no option 134" in text


@pytest.mark.parametrize("status", [SampleStatus.FAILED, SampleStatus.SKIPPED])
def test_a_failed_or_newly_skipped_cell_exits_40(
    tmp_path: Path, compare: Compare, status: SampleStatus
) -> None:
    new = [lost(s, status) if s.configuration == "C_FlCat" else s for s in campaign(10, seed=2)]
    assert compare(*pair(tmp_path, campaign(10), new))[0] == 40


def test_a_planned_cell_that_was_never_run_exits_40(tmp_path: Path, compare: Compare) -> None:
    new = [s for s in campaign(10, seed=2) if s.configuration != "C_FlCat"]
    code, text = compare(*pair(tmp_path, campaign(10), new), "--format", "json")
    assert code == 40
    assert outcomes(text)["tcp_rr C_FlCat"] == "infrastructure"


def test_a_cell_that_the_new_plan_lacks_exits_40(tmp_path: Path, compare: Compare) -> None:
    base = run_folder(tmp_path / "base", campaign(10))
    without = [s for s in campaign(10, seed=2, run_id="r2") if s.configuration != "C_FlCat"]
    code, text = compare(base, run_folder(tmp_path / "new", without))
    assert code == 40
    assert f"tcp_rr C_FlCat: missing: {tmp_path}/new has no such cell" in text


def test_a_cell_that_only_the_new_run_has_is_not_enough_data(
    tmp_path: Path, compare: Compare
) -> None:
    without = [s for s in campaign(10) if s.configuration != "C_FlCat"]
    base = run_folder(tmp_path / "base", without)
    code, text = compare(base, run_folder(tmp_path / "new", campaign(10, seed=2, run_id="r2")))
    assert code == 20
    assert f"tcp_rr C_FlCat: new: {tmp_path}/base has no such cell" in text


def test_cells_skipped_on_both_sides_are_noted_not_failed(tmp_path: Path, compare: Compare) -> None:
    def skipping(seed: int) -> list[Sample]:
        return [
            lost(s, SampleStatus.SKIPPED, "no kernel") if s.configuration == "C_FlCat" else s
            for s in campaign(10, seed=seed)
        ]

    code, text = compare(*pair(tmp_path, skipping(1), skipping(2)))
    assert code == 0
    assert "skipped on both sides: C_FlCat tcp_rr" in text


def test_the_worst_outcome_counts_and_a_proven_regression_leads() -> None:
    assert overall(Outcome) is Outcome.REGRESSION
    assert overall(OUTCOMES_WORST_FIRST[1:]) is Outcome.INFRASTRUCTURE
    assert overall([Outcome.IMPROVEMENT, Outcome.OK]) is Outcome.IMPROVEMENT
    assert overall([]) is Outcome.INFRASTRUCTURE
    assert {outcome: outcome.exit_code for outcome in Outcome} == {
        Outcome.OK: 0,
        Outcome.REGRESSION: 10,
        Outcome.IMPROVEMENT: 0,
        Outcome.NOT_ENOUGH_DATA: 20,
        Outcome.INVALID: 30,
        Outcome.INFRASTRUCTURE: 40,
    }


def test_min_effect_and_level_are_respected(tmp_path: Path, compare: Compare) -> None:
    runs = pair(tmp_path, campaign(10), campaign(10, effects={"C_FlCat": 0.95}, seed=2))
    assert compare(*runs)[0] == 10
    code, text = compare(*runs, "--min-effect", "8")
    assert code == 0
    assert "tcp_rr C_FlCat: significant, but within the minimum effect of 8 %" in text
    assert compare(*runs, "--level", "1e-6")[0] == 20


@pytest.mark.parametrize(
    "option", [("--min-effect", "-1"), ("--level", "1"), ("--level", "five"), ("--format", "html")]
)
def test_wrong_options_are_wrong_use(tmp_path: Path, compare: Compare, option: tuple) -> None:
    with pytest.raises(SystemExit) as caught:
        compare("a", "b", *option)
    assert caught.value.code == 2


def test_two_configurations_of_one_run_are_paired(tmp_path: Path, compare: Compare) -> None:
    run = run_folder(tmp_path / "run", campaign(10, effects={"C_FlCat": 0.9}))
    code, text = compare(f"{run}:C_NoCat", f"{run}:C_FlCat", "--format", "json")
    document = json.loads(text)
    assert code == 10
    assert document["method"] == "within the blocks of one run"
    assert [cell["new_configuration"] for cell in document["cells"]] == ["C_FlCat", "C_FlCat"]
    assert document["cells"][0]["p"] == pytest.approx(2 * 2 / 1024)


def test_paired_comparison_of_few_blocks_is_not_enough_data(
    tmp_path: Path, compare: Compare
) -> None:
    run = run_folder(tmp_path / "run", campaign(5, effects={"C_FlCat": 0.5}))
    code, text = compare(f"{run}:C_NoCat", f"{run}:C_FlCat")
    assert code == 20
    assert "5 against 5 repeats: too few shared blocks for a verdict, wanted at least 6" in text


def two_kernels(seed: int = 1) -> list[Sample]:
    """One run that measures each configuration under two kernels, the second 10 % slower."""
    samples = []
    for made in campaign(10, seed=seed):
        for kernel, speed in (("6.1.0", 1.0), ("6.12.0", 0.9)):
            assert made.value is not None
            name = f"{made.configuration}-{kernel}" if kernel == "6.12.0" else made.configuration
            samples.append(
                replace(
                    made,
                    cell_id=f"{made.cell_id}{kernel}",
                    configuration=name,
                    arm=made.arm,
                    kernel=kernel,
                    factors={"kernel": kernel},
                    value=made.value * speed,
                )
            )
    return samples


def test_two_configurations_under_two_kernels_of_one_run(tmp_path: Path, compare: Compare) -> None:
    run = run_folder(tmp_path / "run", two_kernels())
    code, _ = compare(f"{run}:C_FlCat@6.1.0", f"{run}:C_FlCat-6.12.0@6.12.0")
    assert code == 10


def test_two_kernels_of_one_run_are_matched_by_configuration(
    tmp_path: Path, compare: Compare
) -> None:
    samples = [
        replace(made, kernel="6.12.0" if made.configuration == "C_FlCat" else "6.1.0")
        for made in campaign(10)
    ]
    run = run_folder(tmp_path / "run", samples)
    code, text = compare(f"{run}@6.1.0", f"{run}@6.12.0")
    assert code == 40
    assert f"tcp_rr C_NoCat: missing: {run}@6.12.0 has no such cell" in text


def test_drift_between_runs_is_not_called_a_change(tmp_path: Path, compare: Compare) -> None:
    def wandering(start: float, seed: int) -> list[Sample]:
        return [
            replace(s, value=(s.value or 0) * (start - 0.02 * s.block))
            for s in campaign(10, effects={"C_FlCat": 0.95 if seed == 2 else 1.0}, seed=seed)
        ]

    runs = pair(tmp_path, wandering(1.0, 1), wandering(0.9, 2))
    code, text = compare(*runs, "--format", "json")
    document = json.loads(text)
    assert code == 10
    assert document["method"] == "ratios to each run's own baseline"
    assert [c["test"] for c in document["cells"] if c["outcome"] == "regression"] == [
        "tcp_rr",
        "tcp_stream",
    ]
    assert outcomes(text)["tcp_rr Unlabel"] == "ok"
    assert any("the machines drifted during the runs" in note for note in document["notes"])


def test_different_labs_are_refused(tmp_path: Path, compare: Compare) -> None:
    runs = pair(tmp_path, campaign(10), campaign(10, lab_kind="exact"), lab=LAB_EXACT)
    with pytest.raises(CrossoverError) as caught:
        compare(*runs)
    assert caught.value.exit_code == 30
    assert str(caught.value) == (
        f"{tmp_path}/base was measured in guests/tcg, {tmp_path}/new in exact/tcg:"
        " found different labs; wanted the same kind and accelerator"
        " (--across-labs compares their ratios to the baseline)"
    )


LAB_EXACT = {"kind": "exact", "accelerator": "tcg", "name": "lab"}


def test_across_labs_only_ratios_are_compared(tmp_path: Path, compare: Compare) -> None:
    new = [
        replace(s, value=(s.value or 0) * 100)
        for s in campaign(10, effects={"C_FlCat": 0.9}, seed=2, lab_kind="exact")
    ]
    runs = pair(tmp_path, campaign(10), new, lab=LAB_EXACT)
    code, text = compare(*runs, "--across-labs", "--format", "json")
    document = json.loads(text)
    assert code == 10
    assert document["lab"] == "guests/tcg against exact/tcg"
    assert outcomes(text) == {
        "tcp_rr C_NoCat": "ok",
        "tcp_rr C_FlCat": "regression",
        "tcp_stream C_NoCat": "ok",
        "tcp_stream C_FlCat": "regression",
    }


def ack_file(tmp_path: Path, **changes: object) -> Path:
    entry = {"configuration": "C_FlCat", "test": "tcp_rr", "loss_pct": 10, "reason": "known"}
    file = tmp_path / "acks.yml"
    other = {"configuration": "C_FlCat", "test": "tcp_stream", "loss_pct": 10, "reason": "known"}
    file.write_text(json.dumps({"schema": 1, "acks": [{**entry, **changes}, other]}))
    return file


@pytest.fixture
def regressed(tmp_path: Path) -> list[Path]:
    return pair(tmp_path, campaign(10), campaign(10, effects={"C_FlCat": 0.9}, seed=2))


def test_an_acknowledged_regression_does_not_fail_again(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    code, text = compare(*regressed, "--ack", ack_file(tmp_path, until="2999-12-31"))
    assert code == 0
    assert "regression (known)" in text
    assert "tcp_rr C_FlCat: known loss of 10 % until 2999-12-31 (known)" in text


def test_a_worse_regression_than_acknowledged_fails(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    code, text = compare(*regressed, "--ack", ack_file(tmp_path, loss_pct=4))
    assert code == 10
    assert "tcp_rr C_FlCat: worse than acknowledged: " in text
    assert "% lost, known are 4 %" in text


def test_an_acknowledgement_that_ran_out_fails_again(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    code, text = compare(*regressed, "--ack", ack_file(tmp_path, until="2020-01-01"))
    assert code == 10
    assert "acknowledgement ran out on 2020-01-01: C_FlCat tcp_rr" in text


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"configuration": "C_Gone"}, "stale acknowledgement, no such cell: C_Gone tcp_rr"),
        ({"factors": {"family": "ipv6"}}, "stale acknowledgement, no such cell: C_FlCat tcp_rr"),
        (
            {"configuration": "C_NoCat"},
            "acknowledgement that covers nothing here: C_NoCat tcp_rr",
        ),
    ],
)
def test_stale_acknowledgements_are_reported(
    tmp_path: Path, regressed: list[Path], compare: Compare, changes: dict, note: str
) -> None:
    _, text = compare(*regressed, "--ack", ack_file(tmp_path, **changes))
    assert note in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss_pct": 0}, "acks[0].loss_pct: found 0; wanted a loss above 0 (in %)"),
        ({"until": "soon"}, "acks[0].until: found 'soon'; wanted a date (YYYY-MM-DD)"),
        ({"kernel": "6.1"}, "acks[0].kernel: found an unknown field; wanted only fields of"),
    ],
)
def test_wrong_acknowledgements_name_file_and_key(
    tmp_path: Path, regressed: list[Path], compare: Compare, changes: dict, message: str
) -> None:
    file = ack_file(tmp_path, **changes)
    with pytest.raises(CrossoverError, match="found") as caught:
        compare(*regressed, "--ack", file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_junit_has_a_case_a_cell_and_agrees_with_the_exit_code(
    tmp_path: Path, compare: Compare
) -> None:
    new = [
        lost(s, SampleStatus.INVALID) if s.configuration == "C_NoCat" else s
        for s in campaign(10, effects={"C_FlCat": 0.9}, seed=2)
    ]
    file = tmp_path / "junit.xml"
    ack = ack_file(tmp_path)
    compare(*pair(tmp_path, campaign(10), new), "--junit", file, "--ack", ack)
    suite = ElementTree.parse(file).getroot()[0]
    assert suite.attrib["tests"] == "6"
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == (
        "0",
        "2",
        "2",
    )
    (error,) = suite.findall("testcase[@name='tcp_rr C_NoCat']/error")
    assert error.attrib["type"] == "invalid"
    (skipped,) = suite.findall("testcase[@name='tcp_rr C_FlCat']/skipped")
    assert "known loss of 10 %" in skipped.attrib["message"]


def test_a_regression_is_a_junit_failure(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    file = tmp_path / "junit.xml"
    compare(*regressed, "--junit", file)
    (failure,) = (
        ElementTree.parse(file)
        .getroot()
        .findall("testsuite/testcase[@name='tcp_rr C_FlCat']/failure")
    )
    assert failure.attrib["message"].startswith("regression: -")


def test_a_junit_file_that_cannot_be_written_says_so(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    with pytest.raises(CrossoverError, match="wanted a file that can be written"):
        compare(*regressed, "--junit", tmp_path / "none" / "junit.xml")


def test_csv_and_markdown_hold_every_cell(
    tmp_path: Path, regressed: list[Path], compare: Compare
) -> None:
    rows = list(csv.DictReader(io.StringIO(compare(*regressed, "--format", "csv")[1])))
    assert [row["outcome"] for row in rows].count("regression") == 2
    assert len(rows) == 6
    markdown = compare(*regressed, "--format", "markdown")[1]
    assert "| tcp_rr [1/s] | C_FlCat | 1" in markdown


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("{run}", "{run}"), "{run} and {run}: found the same samples twice; wanted two sides"),
        (
            ("{run}:C_FlCat", "{run}"),
            "{run}:C_FlCat and {run}: found a configuration on one side; wanted one on both"
            " sides or on neither",
        ),
        (
            ("{run}:C_FlCat", "{run}:Gone"),
            "{run}: found no configuration 'Gone'; wanted one of Unlabel, C_NoCat, C_FlCat",
        ),
        (
            ("{run}@6.1.0-44", "{run}@6.2"),
            "{run}: found no kernel '6.2'; wanted one of 6.1.0-44",
        ),
        (
            ("{run}", "gone"),
            "gone: found no run folder (one with a plan.json); wanted RUN, RUN:CONFIGURATION or"
            " RUN@KERNEL",
        ),
        (("{run}",), "compare: found 1 sides; wanted BASE and NEW"),
    ],
)
def test_wrong_sides_say_what_was_wanted(
    tmp_path: Path, compare: Compare, sides: tuple[str, ...], message: str
) -> None:
    run = str(run_folder(tmp_path / "run", campaign(6)))
    with pytest.raises(UsageError) as caught:
        compare(*[side.format(run=run) for side in sides])
    assert str(caught.value) == message.format(run=run)


def test_folder_names_may_contain_the_separators(tmp_path: Path, compare: Compare) -> None:
    base = run_folder(tmp_path / "2026-11-30T10:00:00@home", campaign(10))
    new = run_folder(tmp_path / "b", campaign(10, seed=2, run_id="r2"))
    assert compare(base, new)[0] == 0
    assert compare(f"{base}:C_NoCat", f"{new}:C_NoCat")[0] == 0


def test_units_must_agree(tmp_path: Path, compare: Compare) -> None:
    with pytest.raises(UsageError, match=r"test tcp_rr: found unit 1/s in .* and bit/s in"):
        compare(*pair(tmp_path, campaign(10), campaign(10, unit="bit/s")))


def test_published_experiments_are_compared_by_ratio(tmp_path: Path, compare: Compare) -> None:
    run = run_folder(tmp_path / "run", campaign(10, effects={"C_FlCat": 0.8}))
    code, text = compare("--published", "netlabel_cipso", run)
    assert code == 0
    assert "Ratios to Unlabel" in text
    document = json.loads(compare("--published", "netlabel_cipso", run, "--format", "json")[1])
    assert document["published"] == "netlabel_cipso"


def test_published_takes_one_run_and_two_formats(tmp_path: Path, compare: Compare) -> None:
    with pytest.raises(UsageError, match="found 2 runs; wanted one"):
        compare("--published", "netlabel_cipso", "a", "b")
    with pytest.raises(UsageError, match="found --format csv; wanted text or json"):
        compare("--published", "netlabel_cipso", "a", "--format", "csv")

"""The live line: what is done, what is left, what runs, how long."""

import io
import json

import pytest
from matrix_factory import plan, plan_document

from collector.run import progress
from collector.run.plan import groups_of
from collector.run.progress import Progress, planned_text
from collector.runfolder import journal
from collector.runfolder.runfolder import load_run


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(plan_document()))
    return tmp_path


def begin(folder, group):
    journal.append(
        folder, "group", block=group.block, configuration=group.configuration, arm=group.arm,
        cells=list(group.cells),
    )  # fmt: skip


def planned(folder):
    return "runner_on_ok", {
        "task_action": "crossover.lab.bench_plan",
        "res": {"run_folder": str(folder)},
    }


RECORDED = ("runner_on_ok", {"task_action": "crossover.lab.bench_record", "res": {}})


def test_plain_lines_without_a_terminal_one_a_change(folder):
    stream = io.StringIO()
    shown = Progress(stream)
    shown.on_event("playbook_on_task_start", {"task": "Ensure the run is planned"})
    shown.on_event(*planned(folder))
    group = groups_of(load_run(folder).plan)[0]
    begin(folder, group)
    shown.on_event(*RECORDED)
    shown.on_event(*RECORDED)
    shown.close()
    name = group.configuration + (" (A/A)" if group.arm else "")
    assert stream.getvalue().splitlines() == [
        "0 of 12 cells done, 12 left; preparing the hosts",
        f"0 of 12 cells done, 12 left; block 1/2, {name}",
    ]
    assert shown.folder == folder


def test_one_line_is_rewritten_on_a_terminal_and_taken_away_at_the_end(folder):
    stream = Terminal()
    shown = Progress(stream)
    shown.on_event("playbook_on_task_start", {"task": "Ensure the lab is up"})
    shown.on_event(*planned(folder))
    shown.close()
    assert stream.getvalue() == (
        "\r\x1b[KEnsure the lab is up"
        "\r\x1b[K0 of 12 cells done, 12 left; preparing the hosts"
        "\r\x1b[K"
    )


def test_the_rest_is_estimated_from_this_start_alone(folder, monkeypatch):
    now = iter([0.0, 100.0, 130.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    run = load_run(folder)
    journal.append(folder, "cell", cell_id=run.plan.order[0].cell_id, block=0, status="ok")
    shown = Progress(io.StringIO())
    shown.on_event(*planned(folder))  # one cell is of an earlier start
    for slot in run.plan.order[1:4]:
        journal.append(folder, "cell", cell_id=slot.cell_id, block=slot.block, status="ok")
    assert shown.line(load_run(folder)).startswith("4 of 12 cells done, 8 left; ")
    now = iter([130.0])
    assert shown.line(load_run(folder)).endswith("; about 1 min 20 s to go")


def test_nothing_is_estimated_before_the_first_cell_and_after_the_last(folder):
    shown = Progress(io.StringIO())
    shown.on_event(*planned(folder))
    assert "to go" not in shown.line(load_run(folder))
    for slot in load_run(folder).plan.order:
        journal.append(folder, "cell", cell_id=slot.cell_id, block=slot.block, status="ok")
    assert shown.line(load_run(folder)).startswith("12 of 12 cells done, 0 left")
    assert "to go" not in shown.line(load_run(folder))


def test_events_of_no_interest_are_ignored(folder):
    stream = io.StringIO()
    shown = Progress(stream)
    for kind, data in (
        ("runner_on_ok", {"task_action": "crossover.lab.bench_record", "res": {}}),
        ("runner_on_failed", {"task_action": "crossover.lab.bench_plan", "res": {}}),
        ("runner_on_ok", {"task_action": "crossover.lab.bench_plan", "res": "text"}),
        ("playbook_on_start", {}),
    ):
        shown.on_event(kind, data)
    shown.close()
    assert stream.getvalue() == ""
    assert shown.folder is None


def test_a_plan_in_words_says_when_it_is_too_short_and_what_is_skipped():
    assert planned_text(plan(), 83.0).splitlines() == [
        "small: 6 cells in 2 blocks, 12 measurements, about 1 min 23 s",
        "too few blocks for a verdict: 2 of at least 6",
        "skipped: NoPatch: needs another kernel",
    ]
    assert planned_text(plan(blocks=6), 83.0).splitlines()[1].startswith("skipped")
    assert planned_text(plan(blocks=1), 83.0).startswith("small: 6 cells in 1 block, 6 measure")

"""The journal: what it has is on disk, and a kill at any moment loses or doubles nothing."""

import json
import multiprocessing
import os
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_factory import plan_document

from collector.errors import InputError
from collector.run.plan import groups_of
from collector.run.record import write_json
from collector.runfolder import journal
from collector.runfolder.runfolder import load_run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(plan_document()))
    return tmp_path


def test_events_come_back_in_order_with_their_details(folder):
    journal.append(folder, "run", resumed=False)
    journal.append(folder, "cell", cell_id="a", block=0, status="ok", reason=None)
    events = load_run(folder).journal
    assert [event.event for event in events] == ["run", "cell"]
    assert events[0].details == {"resumed": False}
    assert (events[1].cell_id, events[1].block) == ("a", 0)
    assert events[1].time.endswith("Z")


def test_finished_counts_cells_by_block_whatever_their_result(folder):
    for block, status in ((0, "ok"), (1, "failed"), (1, "failed")):
        journal.append(folder, "cell", cell_id="a", block=block, status=status)
    journal.append(folder, "group", block=2, configuration="x", cells=["a"])
    assert journal.finished(load_run(folder).journal) == {("a", 0), ("a", 1)}


@given(cut=st.integers(1, 60))
def test_a_torn_line_is_dropped_and_cannot_swallow_the_next(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("run")
    (folder / "plan.json").write_text(json.dumps(plan_document()))
    journal.append(folder, "cell", cell_id="a", block=0, status="ok")
    before = (folder / "journal.jsonl").read_bytes()
    journal.append(folder, "cell", cell_id="b", block=0, status="ok")
    whole = (folder / "journal.jsonl").read_bytes()
    torn = before + whole[len(before) : len(before) + cut]
    (folder / "journal.jsonl").write_bytes(torn)
    assert load_run(folder).torn_journal_line
    assert journal.finished(load_run(folder).journal) == {("a", 0)}
    journal.append(folder, "cell", cell_id="c", block=0, status="ok")
    run = load_run(folder)
    assert not run.torn_journal_line
    assert journal.finished(run.journal) == {("a", 0), ("c", 0)}


def test_a_journal_that_is_only_a_torn_line_starts_anew(folder):
    (folder / "journal.jsonl").write_text('{"time": "2026')
    journal.append(folder, "run", resumed=True)
    assert [event.event for event in load_run(folder).journal] == ["run"]


def test_a_broken_line_inside_is_refused_with_its_number(folder):
    journal.append(folder, "run")
    with (folder / "journal.jsonl").open("a") as handle:
        handle.write("not json\n")
    journal.append(folder, "end")
    with pytest.raises(InputError, match=r"journal\.jsonl:2: found no JSON .*; wanted one JSON"):
        load_run(folder)


def test_every_append_waits_for_the_disk(folder, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(number) or real(number))
    journal.append(folder, "run")
    journal.append(folder, "end")
    assert len(synced) == 2


def worker(folder, told):
    """Runs cells of the plan one after another as a campaign does, telling each that is done."""
    run = load_run(folder)
    for group in groups_of(run.plan, journal.finished(run.journal)):
        for cell in group.cells:
            write_json(folder / "raw" / cell / str(group.block) / "result.json", {"cell": cell})
            journal.append(folder, "cell", cell_id=cell, block=group.block, status="ok")
            os.write(told, f"{cell} {group.block}\n".encode())


def start(folder):
    """A worker in a process of its own, and the pipe on which it tells what is done."""
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=worker, args=(folder, writing))
    child.start()
    os.close(writing)
    return child, reading


def heard(reading):
    """The cells that a worker told of, up to its end."""
    with os.fdopen(reading) as pipe:
        words = [line.split() for line in pipe if line.endswith("\n")]
    return {(cell, int(block)) for cell, block in words}


def test_kills_at_random_moments_lose_no_finished_cell_and_double_none(folder):
    (folder / "plan.json").write_text(json.dumps(plan_document(blocks=60)))
    planned = {(slot.cell_id, slot.block) for slot in load_run(folder).plan.order}
    moments = random.Random(5)
    told = set()
    for _attempt in range(30):
        child, reading = start(folder)
        time.sleep(moments.uniform(0.005, 0.05))
        child.kill()
        told |= heard(reading)
        child.join()
        child.close()
        assert told <= journal.finished(load_run(folder).journal)
    child, reading = start(folder)
    told |= heard(reading)
    child.join()
    assert child.exitcode == 0
    events = [(e.cell_id, e.block) for e in load_run(folder).journal if e.event == "cell"]
    assert len(events) == len(set(events))
    assert set(events) == planned
    for cell, block in planned:
        assert (folder / "raw" / cell / str(block) / "result.json").is_file()

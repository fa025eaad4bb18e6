"""Run folders, the samples file, and how old and new schemas are met."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_factory import campaign, lost, plan_document, run_folder, sample

from collector.errors import InputError
from collector.runfolder import runfolder, store
from collector.runfolder.runfolder import complete, load_run, parse_plan
from collector.runfolder.samples import Sample, SampleStatus


def test_a_run_folder_is_read_whole(tmp_path: Path) -> None:
    run = load_run(run_folder(tmp_path / "run", campaign(6)))
    assert run.plan.run_id == "r1"
    assert (run.plan.lab.kind, run.plan.lab.accelerator) == ("guests", "tcg")
    assert len(run.plan.cells) == 8
    assert len(run.plan.order) == 48
    assert run.journal[0].event == "started"
    assert not run.torn_journal_line
    assert run.provenance["server"]["kernel"] == {"release": "6.1.0-44"}


def test_optional_fields_have_their_documented_defaults() -> None:
    document = plan_document(campaign(6))
    for key in ("delta", "min_blocks"):
        del document[key]
    plan = parse_plan(document, "plan.json")
    assert (plan.delta, plan.min_blocks, plan.baselines) == (None, 6, {})
    assert plan.cells[0].skip is None


def changed(**changes: Any) -> dict[str, Any]:
    return plan_document(campaign(6), **changes)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (changed(colour="red"), "p: colour: found an unknown field; wanted only fields of docs/"),
        (changed(seed="7"), "p: seed: found '7'; wanted a whole number"),
        (changed(seed=True), "p: seed: found True; wanted a whole number"),
        (changed(delta=float("nan")), "p: delta: found nan; wanted a finite number"),
        (changed(cells={}), "p: cells: found {}; wanted a list"),
        (changed(baseline="Gone"), "p: baseline: found 'Gone'; wanted one of C_FlCat, C_NoCat, U"),
        (changed(baselines={"C_FlCat": "Gone"}), "p: baselines.C_FlCat: found 'Gone'; wanted"),
        (changed(baselines={"Gone": "C_FlCat"}), "p: baselines: found 'Gone'; wanted one of"),
        (
            changed(lab={"kind": "cloud", "accelerator": "tcg", "name": "x"}),
            "p: lab.kind: found 'cloud'; wanted one of guests, exact, netns, hardware",
        ),
        (
            changed(order=[{"block": 0, "sequence": 0, "cell_id": "x"}]),
            "p: order[0].cell_id: found 'x'; wanted a cell of the plan",
        ),
        (changed(tests=[]), "p: cells[0].test: found 'tcp_rr'; wanted one of "),
        (
            changed(schema=2),
            "p: schema: found 2, written by a newer version of Crossover; wanted at most 1"
            " (update Crossover to read it)",
        ),
        (changed(schema=0), "p: schema: found 0; wanted 1 to 1"),
        ([], "p: found []; wanted a mapping"),
    ],
)
def test_a_wrong_plan_names_file_and_key(document: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_plan(document, "p")
    assert str(caught.value).startswith(message)


def test_a_cell_twice_is_refused() -> None:
    document = changed()
    document["cells"].append(document["cells"][0])
    with pytest.raises(InputError, match="p: cells: found a cell_id twice; wanted every cell once"):
        parse_plan(document, "p")


def test_a_plan_of_an_older_schema_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runfolder, "PLAN_SCHEMA", 2)
    assert parse_plan(changed(), "p").run_id == "r1"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda run: (run / "plan.json").unlink(), "{run}: found no plan.json in it; wanted a run"),
        (
            lambda run: (run / "plan.json").write_text("{\n  nonsense"),
            "{run}/plan.json:2: found no JSON",
        ),
        (
            lambda run: (run / "journal.jsonl").write_text("{}\n"),
            "{run}/journal.jsonl:1: time: found nothing; wanted a string",
        ),
        (
            lambda run: (run / "journal.jsonl").write_text("oops\n"),
            "{run}/journal.jsonl:1: found no JSON",
        ),
        (
            lambda run: (run / "provenance" / "x.json").write_text("[]"),
            "{run}/provenance/x.json: found a JSON list; wanted an object",
        ),
        (
            lambda run: (run / "plan.json").write_bytes(b"\xff\xfe"),
            "{run}/plan.json: found bytes that are not UTF-8; wanted JSON text",
        ),
    ],
)
def test_a_broken_run_folder_says_where(tmp_path: Path, prepare: Any, message: str) -> None:
    run = run_folder(tmp_path / "run", campaign(6))
    prepare(run)
    with pytest.raises(InputError) as caught:
        load_run(run)
    assert str(caught.value).startswith(message.format(run=run))


def test_no_folder_says_so() -> None:
    with pytest.raises(InputError, match="gone: found no folder of that name; wanted a run folder"):
        load_run("gone")


def test_a_torn_last_line_of_the_journal_is_left_out(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", campaign(6))
    with (run / "journal.jsonl").open("a") as journal:
        journal.write('{"time": "2026-11-30T10:0')
    read = load_run(run)
    assert read.torn_journal_line
    assert [event.event for event in read.journal] == ["started"]


def test_a_run_that_has_not_started_has_an_empty_journal(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", campaign(6))
    (run / "journal.jsonl").unlink()
    assert load_run(run).journal == ()


def test_planned_repeats_without_a_sample_become_missing() -> None:
    samples = campaign(6)
    plan = parse_plan(plan_document(samples), "p")
    whole = complete(plan, samples[:10])
    assert len(whole) == 48
    missing = [one for one in whole if one.status is SampleStatus.MISSING]
    assert len(missing) == 38
    assert {one.reason for one in missing} == {"planned, never run"}
    assert whole[0].cell_id == plan.cells[0].cell_id


def test_cells_that_the_plan_skips_become_skipped() -> None:
    samples = campaign(6)
    document = plan_document(samples)
    document["cells"].append(
        {**document["cells"][0], "cell_id": "x", "configuration": "NoPatch", "skip": "no kernel"}
    )
    document["configurations"].append({"name": "NoPatch"})
    (extra,) = [
        one
        for one in complete(parse_plan(document, "p"), samples)
        if one.configuration == "NoPatch"
    ]
    assert (extra.status, extra.reason) == (SampleStatus.SKIPPED, "no kernel")


def test_samples_come_back_as_they_were_written(tmp_path: Path) -> None:
    samples = [
        sample(factors={"family": "ipv6", "mode": "tunnel"}, confidence_met=False),
        lost(sample(block=1), SampleStatus.INVALID),
        sample(block=2, elapsed_s=None, started_at=None, boot_ids=()),
    ]
    store.write_samples(tmp_path, samples)
    assert store.read_samples(tmp_path) == samples
    assert [file.name for file in tmp_path.iterdir()] == ["samples.parquet"]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=30, deadline=None)
@given(
    st.builds(
        replace,
        st.just(sample()),
        configuration=texts,
        factors=st.dictionaries(texts, texts, max_size=3),
        value=st.floats(allow_nan=False, allow_infinity=False),
        block=st.integers(0, 2**40),
        cpu_local_pct=st.none() | st.floats(0, 100),
        boot_ids=st.lists(texts, max_size=2).map(tuple),
    )
)
def test_any_sample_survives_the_file(tmp_path_factory: Any, made: Sample) -> None:
    folder = tmp_path_factory.mktemp("samples")
    store.write_samples(folder, [made])
    assert store.read_samples(folder) == [made]


@pytest.mark.parametrize(
    "wrong", [sample(value=None), replace(sample(), status=SampleStatus.INVALID)]
)
def test_a_value_without_ok_is_never_written(tmp_path: Path, wrong: Sample) -> None:
    with pytest.raises(ValueError, match="wanted a value if and only if the status is ok"):
        store.write_samples(tmp_path, [wrong])
    assert list(tmp_path.iterdir()) == []


def rewritten(folder: Path, change: Any, version: bytes | None = b"1") -> Path:
    """Write a samples file, then once more with other columns or another version."""
    file = store.write_samples(folder, [sample()])
    table = change(pq.read_table(file))
    metadata = {} if version is None else {store.VERSION_KEY: version}
    pq.write_table(table.replace_schema_metadata(metadata), file)
    return file


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def same(table: pa.Table) -> pa.Table:
    return table


@pytest.mark.parametrize(
    ("change", "version", "message"),
    [
        (same, b"3", ": metadata crossover.sample_schema: found 3, written by a newer version"),
        (same, None, ": metadata crossover.sample_schema: found ''; wanted the version"),
        (
            lambda t: t.append_column("mood", pa.array(["good"])),
            b"1",
            ": mood: found an unknown column; wanted a column of version 1",
        ),
        (lambda t: t.drop_columns(["unit"]), b"1", ": unit: found no such column; wanted a column"),
        (
            lambda t: with_column(t, "status", pa.array(["great"])),
            b"1",
            ": status: found 'great'; wanted one of ok, invalid, failed, skipped, missing",
        ),
        (
            lambda t: with_column(t, "unit", pa.nulls(1, pa.string())),
            b"1",
            ": unit of cell Unlabel/tcp_rr/, block 0: found null; wanted a value",
        ),
    ],
)
def test_a_samples_file_that_is_not_understood_is_refused(
    tmp_path: Path, change: Any, version: bytes | None, message: str
) -> None:
    file = rewritten(tmp_path, change, version)
    with pytest.raises(InputError) as caught:
        store.read_samples(tmp_path)
    assert str(caught.value).startswith(f"{file}{message}")


def test_samples_of_an_older_schema_open_with_nothing_for_what_they_lack(tmp_path: Path) -> None:
    rewritten(tmp_path, lambda t: t.drop_columns(["cpu_local_pct", "boot_ids"]))
    (read,) = store.read_samples(tmp_path)
    assert read == replace(sample(), cpu_local_pct=None, boot_ids=())


def test_files_that_are_no_samples_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"samples\.parquet: found no file of that name"):
        store.read_samples(tmp_path)
    (tmp_path / "samples.parquet").write_text("text")
    with pytest.raises(InputError, match=r"samples\.parquet: found no Parquet"):
        store.read_samples(tmp_path)


def test_the_document_lists_every_column() -> None:
    text = (Path(__file__).parents[3] / "docs" / "data-format.md").read_text(encoding="utf-8")
    for name in store.arrow_schema().names:
        assert f"`{name}`" in text


def test_plan_documents_are_plain_json() -> None:
    assert parse_plan(json.loads(json.dumps(changed())), "p").blocks == 6

"""Reading a run folder: the plan, the journal and the provenance. docs/data-format.md has every
field.

Readers are strict: a field that this version does not know is an error that names the file and
the field, because a result that is only half understood is worse than none. A document of an
older schema opens (what it lacks takes the default given here); one of a newer schema says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.runfolder.samples import Sample, SampleStatus
from collector.shape import Shape, read_json

PLAN_SCHEMA = 1
PLAN_FILE = "plan.json"
JOURNAL_FILE = "journal.jsonl"
PROVENANCE_FOLDER = "provenance"
SAMPLES_FILE = "samples.parquet"


@dataclass(frozen=True, slots=True)
class Lab:
    """Where a run is measured. ``kind``: guests, exact, netns or hardware; ``accelerator``: tcg,
    kvm or none; ``name``: the lab's own name; ``topology``: of forwarding tests, dut or chain."""

    kind: str
    accelerator: str
    name: str
    topology: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedConfiguration:
    """What is put on the hosts. ``subjects`` is the matrix's declaration, by role; ``kernel`` the
    entry that they run, None for what they ran."""

    name: str
    factors: dict[str, str]
    subjects: dict[str, Any]
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel that hosts boot, and what they must then say: ``release`` and ``version`` as
    ``uname -r`` and ``uname -v``."""

    identity: str
    release: str
    version: str
    config_sha256: str


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """What is run. ``settings`` are the test's own parameters, by name."""

    name: str
    kind: str
    unit: str
    higher_is_better: bool
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A configuration measured by a test; ``arm`` as in Sample. ``skip`` says why the cell cannot
    be run here at all, None for a cell that can."""

    cell_id: str
    configuration: str
    test: str
    arm: str
    factors: dict[str, str]
    skip: str | None


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in the order of execution."""

    block: int
    sequence: int
    cell_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``plan.json``: every cell, written before the first starts."""

    run_id: str
    matrix: str
    created_at: str  # UTC, ISO 8601
    lab: Lab
    seed: int  # of the order; the statistics use it too
    blocks: int
    baseline: str
    baselines: dict[str, str]  # configuration: its own baseline, where it is not `baseline`
    delta: float | None  # equivalence margin, a fraction; None: by lab kind
    min_blocks: int
    configurations: tuple[PlannedConfiguration, ...]
    tests: tuple[PlannedTest, ...]
    cells: tuple[PlannedCell, ...]
    order: tuple[Slot, ...]
    kernels: dict[str, PlannedKernel] = field(default_factory=dict)  # by entry
    boots: int = 1  # of each kernel, over which the blocks are spread


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """One line of ``journal.jsonl``; ``details`` holds what the event says besides."""

    time: str  # UTC, ISO 8601
    event: str
    cell_id: str | None
    block: int | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder, read. ``torn_journal_line`` tells that the last line of the journal was cut
    off (the run was killed while writing it); the line is not among the events."""

    path: Path
    plan: Plan
    journal: tuple[JournalEvent, ...]
    torn_journal_line: bool
    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)  # by host


def load_run(path: str | Path) -> Run:
    """Open a run folder. Raises InputError, naming file and key, for anything not as described.

    The samples are read apart (``store.read_samples``): they may be large.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(str(folder), "no folder of that name", "a run folder")
    if not (folder / PLAN_FILE).is_file():
        raise InputError(str(folder), f"no {PLAN_FILE} in it", "a run folder")
    journal, torn = _journal(folder / JOURNAL_FILE)
    return Run(
        path=folder,
        plan=load_plan(folder / PLAN_FILE),
        journal=journal,
        torn_journal_line=torn,
        provenance={
            file.stem: _object(file) for file in sorted(folder.glob(f"{PROVENANCE_FOLDER}/*.json"))
        },
    )


def load_plan(file: Path) -> Plan:
    """Read one ``plan.json``; raises InputError."""
    return parse_plan(read_json(file), str(file))


def parse_plan(document: Any, where: str) -> Plan:
    """Make a Plan of a decoded JSON document; ``where`` names it in errors (InputError)."""
    top = Shape(document, where)
    top.schema(PLAN_SCHEMA)
    lab = top.shape("lab")
    plan = Plan(
        run_id=top.text("run_id"),
        matrix=top.text("matrix"),
        created_at=top.text("created_at"),
        lab=Lab(
            kind=lab.choice("kind", ("guests", "exact", "netns", "hardware")),
            accelerator=lab.choice("accelerator", ("tcg", "kvm", "none")),
            name=lab.text("name"),
            topology=lab.optional_text("topology"),
        ),
        seed=top.integer("seed"),
        blocks=top.integer("blocks"),
        baseline=top.text("baseline"),
        baselines=top.texts("baselines", default={}),
        delta=top.number("delta", default=None),
        min_blocks=top.integer("min_blocks", default=6),
        configurations=tuple(_configuration(item) for item in top.shapes("configurations")),
        tests=tuple(_test(item) for item in top.shapes("tests")),
        cells=tuple(_cell(item) for item in top.shapes("cells")),
        order=tuple(_slot(item) for item in top.shapes("order")),
        kernels=_kernels(top),
        boots=top.integer("boots", default=1),
    )
    lab.done()
    top.done()
    _check_references(plan, where)
    return plan


def _configuration(item: Shape) -> PlannedConfiguration:
    made = PlannedConfiguration(
        name=item.text("name"),
        factors=item.texts("factors", default={}),
        subjects=item.anything("subjects", default={}),
        kernel=item.optional_text("kernel"),
    )
    item.done()
    return made


def _kernels(top: Shape) -> dict[str, PlannedKernel]:
    document = top.anything("kernels", default={})
    found = {}
    for name in document:
        item = Shape(document[name], top.where, f"kernels.{name}")
        found[name] = PlannedKernel(
            item.text("identity"),
            item.text("release"),
            item.text("version"),
            item.text("config_sha256"),
        )
        item.done()
    return found


def _test(item: Shape) -> PlannedTest:
    made = PlannedTest(
        name=item.text("name"),
        kind=item.text("kind"),
        unit=item.text("unit"),
        higher_is_better=item.boolean("higher_is_better"),
        settings=item.anything("settings", default={}),
    )
    item.done()
    return made


def _cell(item: Shape) -> PlannedCell:
    made = PlannedCell(
        cell_id=item.text("cell_id"),
        configuration=item.text("configuration"),
        test=item.text("test"),
        arm=item.text("arm"),
        factors=item.texts("factors", default={}),
        skip=item.optional_text("skip"),
    )
    item.done()
    return made


def _slot(item: Shape) -> Slot:
    made = Slot(
        block=item.integer("block"), sequence=item.integer("sequence"), cell_id=item.text("cell_id")
    )
    item.done()
    return made


def _check_references(plan: Plan, where: str) -> None:
    configurations = {configuration.name for configuration in plan.configurations}
    tests = {test.name for test in plan.tests}
    cells = {cell.cell_id for cell in plan.cells}
    known_configurations = f"one of {', '.join(sorted(configurations)) or 'none'}"
    if len(cells) != len(plan.cells):
        raise InputError(f"{where}: cells", "a cell_id twice", "every cell once")
    named = [("baseline", plan.baseline)]
    named += [(f"baselines.{key}", value) for key, value in plan.baselines.items()]
    named += [("baselines", key) for key in plan.baselines]
    for number, cell in enumerate(plan.cells):
        named.append((f"cells[{number}].configuration", cell.configuration))
        if cell.test not in tests:
            wanted = f"one of {', '.join(sorted(tests))}"
            raise InputError(f"{where}: cells[{number}].test", repr(cell.test), wanted)
    for key, name in named:
        if name not in configurations:
            raise InputError(f"{where}: {key}", repr(name), known_configurations)
    for number, planned in enumerate(plan.configurations):
        if planned.kernel is not None and planned.kernel not in plan.kernels:
            skipped = all(c.skip for c in plan.cells if c.configuration == planned.name)
            if not skipped:
                raise InputError(
                    f"{where}: configurations[{number}].kernel",
                    repr(planned.kernel),
                    "one of kernels",
                )
    for number, slot in enumerate(plan.order):
        if slot.cell_id not in cells:
            raise InputError(
                f"{where}: order[{number}].cell_id", repr(slot.cell_id), "a cell of the plan"
            )


def _object(file: Path) -> dict[str, Any]:
    document = read_json(file)
    if not isinstance(document, dict):
        raise InputError(str(file), f"a JSON {type(document).__name__}", "an object")
    return document


def _journal(file: Path) -> tuple[tuple[JournalEvent, ...], bool]:
    """The events of a journal; an absent file is an empty journal (nothing has started)."""
    if not file.exists():
        return (), False
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    torn = lines[-1] != ""
    return tuple(
        _event(line, f"{file}:{number}") for number, line in enumerate(lines[:-1], start=1) if line
    ), torn


def _event(line: str, where: str) -> JournalEvent:
    try:
        document = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(where, f"no JSON ({error.msg})", "one JSON object a line") from error
    item = Shape(document, where)
    time, event = item.text("time"), item.text("event")
    cell_id, block = item.optional_text("cell_id"), item.integer("block", default=None)
    return JournalEvent(time, event, cell_id, block, item.rest())


def complete(plan: Plan, samples: Iterable[Sample]) -> list[Sample]:
    """The samples in the plan's own order, with what the plan has and they lack.

    A planned repeat without a sample becomes a ``missing`` one (``skipped`` where the plan says
    that the cell cannot be run here), so that a table never gets smaller without a word.
    """
    present = list(samples)
    seen = {(sample.cell_id, sample.block) for sample in present}
    kernels: Mapping[str, str] = {sample.cell_id: sample.kernel for sample in present}
    tests = {test.name: test for test in plan.tests}
    planned = {(slot.cell_id, slot.block): slot.sequence for slot in plan.order}
    for cell in plan.cells:
        if cell.skip is not None:
            planned.setdefault((cell.cell_id, 0), 0)
    cells = {cell.cell_id: cell for cell in plan.cells}
    for (cell_id, block), sequence in planned.items():
        if (cell_id, block) in seen:
            continue
        cell = cells[cell_id]
        test = tests[cell.test]
        present.append(
            Sample(
                run_id=plan.run_id,
                matrix=plan.matrix,
                lab_kind=plan.lab.kind,
                accelerator=plan.lab.accelerator,
                kernel=kernels.get(cell_id, ""),
                cell_id=cell_id,
                configuration=cell.configuration,
                test=cell.test,
                arm=cell.arm,
                factors=cell.factors,
                block=block,
                sequence=sequence,
                status=SampleStatus.MISSING if cell.skip is None else SampleStatus.SKIPPED,
                reason="planned, never run" if cell.skip is None else cell.skip,
                value=None,
                unit=test.unit,
                higher_is_better=test.higher_is_better,
                elapsed_s=None,
                confidence_level_pct=None,
                confidence_wanted_pct=None,
                confidence_got_pct=None,
                confidence_met=None,
                cpu_local_pct=None,
                cpu_remote_pct=None,
                boot_ids=(),
                started_at=None,
            )
        )
    rank = {cell.cell_id: number for number, cell in enumerate(plan.cells)}
    return sorted(present, key=lambda s: (rank.get(s.cell_id, len(rank)), s.block, s.sequence))

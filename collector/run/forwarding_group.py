"""A forwarding group as the playbooks see it, and what it brings home written down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.files import write_json
from collector.forwarding.raw import SEARCH_FILE
from collector.forwarding.spec import KIND
from collector.proof import findings as findings_of
from collector.proof.findings import Finding
from collector.run.plan import Group
from collector.run.record import close_cell
from collector.runfolder.runfolder import Run
from collector.runfolder.samples import SampleStatus
from collector.shape import Shape, read_json

TRIALS_FILE = "trials.jsonl"

CALIBRATION_FILE = "calibration.json"
DUT_FILE = "dut.json"


def describe(
    run: Run,
    group: Group,
    testers: Mapping[str, Sequence[Mapping[str, Any]]],
    duts: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """A group with everything that the roles need of it; ``testers`` and ``duts`` are the hosts'
    links as the inventory has them, by name. Raises InputError as ``topology_of`` does."""
    plan = run.plan
    declared = next(item for item in plan.configurations if item.name == group.configuration)
    tests = {test.name: test for test in plan.tests}
    settings = {cell.cell_id: tests[cell.test].settings for cell in plan.cells}
    return {
        "kind": KIND,
        "title": group.title(plan.blocks),
        "block": group.block,
        "configuration": group.configuration,
        "arm": group.arm,
        "cells": list(group.cells),
        "subjects": declared.subjects,
        "testers": [{"name": name, "links": list(links)} for name, links in testers.items()],
        "dut": _device(testers, duts),
        "settings": {cell: settings[cell] for cell in group.cells},
    }


def topology_of(
    testers: Mapping[str, Sequence[Mapping[str, Any]]],
    duts: Mapping[str, Sequence[Mapping[str, Any]]],
) -> str:
    """What the links of an inventory amount to: ``dut``, or ``chain`` where two testers share
    them. Raises InputError for too few hosts of either group, or too many."""
    theirs = {str(link["name"]) for link in _device(testers, duts)["links"]}
    joined = [any(str(link["name"]) in theirs for link in links) for links in testers.values()]
    return "chain" if sum(joined) > 1 else "dut"


def _device(
    testers: Mapping[str, Sequence[Mapping[str, Any]]],
    duts: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """The one device under test. Raises InputError."""
    if not testers:
        raise InputError("inventory: group testers", "no host", "one, or two for three in a row")
    if len(duts) != 1:
        raise InputError("inventory: group duts", ", ".join(duts) or "no host", "one host")
    ((name, links),) = duts.items()
    return {"name": name, "links": list(links)}


class Raw:
    """The raw record of a group's trials: a line a trial in the folder of each cell, on disk
    before the next trial begins."""

    def __init__(self, folder: Path, block: int, cells: Sequence[str]) -> None:
        self._files = {cell: folder / "raw" / cell / str(block) / TRIALS_FILE for cell in cells}
        for file in self._files.values():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("", encoding="utf-8")  # of an attempt that was cut off

    def keep(self, cells: Sequence[str], line: Mapping[str, Any]) -> None:
        """Add a trial to the record of these cells."""
        text = json.dumps(line) + "\n"
        for cell in cells:
            with self._files[cell].open("a", encoding="utf-8") as stream:
                stream.write(text)


def record(
    folder: Path, group: Mapping[str, Any], hosts: Mapping[str, Any], findings: Sequence[Finding]
) -> dict[str, str]:
    """Record a measured group; returns each cell's status.

    ``hosts`` holds ``tester`` and ``dut`` as ``collector.proof.forwarding.prove`` takes them.
    """
    measured = hosts["tester"]["measured"]["forwarding"]
    identities = {
        part: {"kernel": found["kernel"]["release"], "boot_id": found["boot_id"]}
        for part, found in _parts(hosts).items()
    }
    shared = findings_of.first_failure(list(findings))
    block = group["block"]
    statuses = {}
    for cell in group["cells"]:
        raw = folder / "raw" / cell / str(block)
        search = measured["results"].get(cell)
        status, reason = judge_search(search, shared)
        if search is not None:
            write_json(raw / SEARCH_FILE, search)
        evidence = folder / "evidence" / cell / str(block)
        write_json(evidence / "proof.json", findings_of.document(list(findings)))
        write_json(raw / DUT_FILE, {"schema": 1, **hosts["dut"]["after"]})
        close_cell(
            folder,
            cell,
            block,
            (status, reason),
            {
                "started_at": None if search is None else search["started_at"],
                "elapsed_s": None if search is None else search["traffic_s"],
                "hosts": identities,
                "path": measured["path"],
                "warm_up": measured["warm_up"],
            },
        )
        statuses[cell] = status.value
    return statuses


def _parts(hosts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What ``provenance`` said of each host, by its part in the test."""
    kernels = hosts["tester"]["kernels"]
    path = hosts["tester"]["measured"]["forwarding"]["path"]
    near, far = path["first"]["host"], path["second"]["host"]
    found = {"dut": hosts["dut"]["kernel"], "tester": kernels[near]}
    return found if far == near else {**found, "far tester": kernels[far]}


def judge_search(
    search: Mapping[str, Any] | None, unproven: str | None
) -> tuple[SampleStatus, str | None]:
    """A cell's status and why it is not ok; ``unproven`` is the failed finding of its group."""
    if unproven is not None:
        return SampleStatus.INVALID, unproven
    if search is None:
        return SampleStatus.INVALID, "not measured"
    if search["error"] is not None:
        status = SampleStatus.INVALID if search["invalid"] else SampleStatus.FAILED
        return status, search["error"]
    if search["value"] is None:
        return SampleStatus.FAILED, "no load is forwarded as the test wants it"
    if search["value"] == 0:
        # No share of a baseline, and nothing to be a share of.
        return SampleStatus.FAILED, "not one frame came through at maximum load"
    return SampleStatus.OK, None


def known_capacity(folder: Path, boot_ids: Iterable[str]) -> dict[str, float]:
    """What the generator is known to do in these boots of the testers, by test."""
    return dict(_capacities(folder).get(" ".join(boot_ids), {}))


def remember_capacity(folder: Path, boot_ids: Iterable[str], fps: Mapping[str, float]) -> None:
    """Keep what the generator can do for the groups that follow in these boots."""
    known = {**_capacities(folder), " ".join(boot_ids): dict(fps)}
    write_json(folder / CALIBRATION_FILE, {"schema": 1, "boots": known})


def _capacities(folder: Path) -> dict[str, dict[str, float]]:
    file = folder / CALIBRATION_FILE
    if not file.is_file():
        return {}
    top = Shape(read_json(file), str(file))
    top.schema(1)
    return top.anything("boots")

"""From a matrix to a plan: every cell, and the order in which the blocks run them.

A block runs every configuration once, in an order shuffled from the run's seed; within a
configuration its tests run in an order of their own (docs/decisions/0003). The baseline comes
twice a block, as an A/A pair.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from collector.errors import UsageError
from collector.forwarding.spec import ForwardingSpec
from collector.matrix.choice import Choice
from collector.matrix.matrix import ConfigurationSpec, Form, Matrix
from collector.matrix.tests import AnyTest
from collector.results.netperf_command import length_s
from collector.runfolder.runfolder import Plan, Slot

PLAN_SCHEMA = 1
AA_ARM = "aa"
ALL = Choice()
# What a configuration costs beside its tests, and a test beside its duration, in an emulated
# lab, seconds; measured by benchmarks/cell_overhead. Only the plan's length depends on it.
CONFIGURATION_OVERHEAD_S = 2.7
TEST_OVERHEAD_S = 0.4
KERNEL_CHANGE_S = 15.0
# The first time in a boot, where there is no saved state to come back to.
BOOT_S = 60.0


@dataclass(frozen=True, slots=True)
class Group:
    """Slots that share one application of a configuration: the unit of execution. ``kernel`` is the
    entry that it runs on, None for what runs; ``boot`` counts that kernel's boots."""

    block: int
    configuration: str
    arm: str
    cells: tuple[str, ...]
    kernel: str | None = None
    boot: int = 0

    def title(self, blocks: int) -> str:
        """The group in words, of a run of so many blocks."""
        twin = " (A/A)" if self.arm else ""
        return f"block {self.block + 1}/{blocks}, {self.configuration}{twin}"


def cell_id(matrix: str, configuration: str, test: str, arm: str, factors: dict[str, str]) -> str:
    """The identity of a cell: 10 hex digits over what it is, not where or when it runs."""
    document = json.dumps([matrix, configuration, test, arm, sorted(factors.items())])
    return hashlib.sha256(document.encode()).hexdigest()[:10]


def estimate_block_s(matrix: Matrix, form: Form, choice: Choice = ALL) -> float:
    """Seconds that one block takes, roughly."""
    cells = [
        (item, arm, test)
        for item in matrix.configurations
        for arm in _arms(matrix, item)
        for test in matrix.tests
        if _skip(matrix, form, choice, item, test) is None
    ]
    groups = {(item.name, arm) for item, arm, _ in cells}
    tests = sum(_estimate_test_s(test, form) + TEST_OVERHEAD_S for _, _, test in cells)
    kernels = {item.kernel for item, _, _ in cells}
    changes = len(kernels) if kernels != {None} else 0
    return (
        len(groups) * (CONFIGURATION_OVERHEAD_S + form.warm_up_s / 2)
        + tests
        + changes * (BOOT_S if form.boots is None else KERNEL_CHANGE_S)
    )


def _estimate_test_s(test: AnyTest, form: Form) -> float:
    """Seconds that one cell of the test measures, at least."""
    if isinstance(test, ForwardingSpec):
        return test.estimate_s(form.duration_s)
    settings = _test(test, form)["settings"]
    confidence = settings["confidence"]
    return float(length_s(settings) * (confidence["min_iterations"] if confidence else 1))


def blocks_within(matrix: Matrix, form: Form, seconds: float, choice: Choice = ALL) -> int:
    """How many blocks of the form fit into so many seconds: at least one, at most all."""
    return max(1, min(form.blocks, int(seconds / estimate_block_s(matrix, form, choice))))


def blocks_of(matrix: Matrix, form: Form, choice: Choice = ALL) -> int:
    """How many blocks a form plans: all, or as many as its budget has room for, at least one."""
    if form.budget_s is None:
        return form.blocks
    return blocks_within(matrix, form, form.budget_s, choice)


def check_blocks(count: int) -> None:
    """Raises UsageError for a plan that would hold nothing."""
    if count < 1:
        raise UsageError(f"blocks: found {count}; wanted at least 1")


def make_plan(
    matrix: Matrix,
    form: Form,
    *,
    run_id: str,
    created_at: str,
    lab: dict[str, str],
    seed: int,
    blocks: int | None = None,
    choice: Choice = ALL,
    kernels: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The document ``plan.json`` (schema 1). ``blocks`` overrides the form's own number, ``choice``
    what the form leaves out; UsageError for less than one block, and for a choice of nothing.
    ``kernels`` are those that the configurations boot, by name."""
    choice.check(matrix)
    count = blocks if blocks is not None else blocks_of(matrix, form, choice)
    check_blocks(count)
    cells = [
        _cell(matrix, item, test, arm, _skip(matrix, form, choice, item, test))
        for item in matrix.configurations
        for arm in _arms(matrix, item)
        for test in matrix.tests
    ]
    document: dict[str, Any] = {
        "schema": PLAN_SCHEMA,
        "run_id": run_id,
        "matrix": matrix.name,
        "created_at": created_at,
        "lab": lab,
        "seed": seed,
        "blocks": count,
        "baseline": matrix.baseline,
        "baselines": {
            item.name: item.baseline
            for item in matrix.configurations
            if item.baseline is not None and item.skip is None
        },
        "min_blocks": matrix.min_blocks,
        "configurations": [
            {
                "name": item.name,
                "factors": item.factors,
                "kernel": item.kernel,
                "subjects": {"label": item.label, "family": item.family, **item.subjects},
            }
            for item in matrix.configurations
        ],
        "tests": [_test(test, form) for test in matrix.tests],
        "cells": cells,
        "order": _order(matrix, cells, count, seed),
    }
    if kernels:
        document.update(kernels=kernels, boots=form.boots or count)
    if matrix.delta is not None:
        document["delta"] = matrix.delta
    return document


def _arms(matrix: Matrix, item: ConfigurationSpec) -> tuple[str, ...]:
    return ("", AA_ARM) if item.name == matrix.baseline else ("",)


def _skip(
    matrix: Matrix, form: Form, choice: Choice, item: ConfigurationSpec, test: AnyTest
) -> str | None:
    """Why a cell is not run; None if it is."""
    if item.skip is not None:
        return item.skip
    not_chosen = choice.leaves_out(matrix, item.name, test.name)
    if not_chosen is not None:
        return not_chosen
    # A choice of configurations goes before what the form leaves out of them, one of tests before
    # what it leaves out of these.
    return form.leaves_out(
        {
            **({} if choice.configurations else item.factors),
            **({} if choice.tests else test.factors),
        }
    )


def _cell(
    matrix: Matrix, item: ConfigurationSpec, test: AnyTest, arm: str, skip: str | None
) -> dict[str, Any]:
    factors = {**item.factors, **test.factors}
    return {
        "cell_id": cell_id(matrix.name, item.name, test.name, arm, factors),
        "configuration": item.name,
        "test": test.name,
        "arm": arm,
        "factors": factors,
        "skip": skip,
    }


def _test(test: AnyTest, form: Form) -> dict[str, Any]:
    if isinstance(test, ForwardingSpec):
        return {
            "name": test.name,
            "kind": test.kind,
            "unit": test.unit,
            "higher_is_better": True,
            "settings": test.settings(form.duration_s, form.warm_up_s),
        }
    confidence = None
    if form.confidence is not None and test.sessions is None:
        confidence = {
            "level_pct": form.confidence.level_pct,
            "width_pct": form.confidence.width_pct,
            "max_iterations": form.confidence.max_iterations,
            "min_iterations": form.confidence.min_iterations,
        }
    sessions = {} if test.sessions is None else {"sessions": test.sessions, "start_s": test.start_s}
    return {
        "name": test.name,
        "kind": "netperf",
        "unit": test.unit,
        "higher_is_better": True,
        "settings": {
            "netperf": test.netperf,
            "duration_s": form.duration_s,
            "warm_up_s": form.warm_up_s,
            "confidence": confidence,
            "message_bytes": test.message_bytes,
            "request_bytes": test.request_bytes,
            "response_bytes": test.response_bytes,
            "local_socket_bytes": test.local_socket_bytes,
            "remote_socket_bytes": test.remote_socket_bytes,
            **sessions,
        },
    }


def _order(
    matrix: Matrix, cells: list[dict[str, Any]], blocks: int, seed: int
) -> list[dict[str, Any]]:
    kernels = {item.name: item.kernel for item in matrix.configurations}
    shuffler = random.Random(seed)
    groups: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell["skip"] is None:
            groups.setdefault((cell["configuration"], cell["arm"]), []).append(cell["cell_id"])
    order: list[dict[str, Any]] = []
    for block in range(blocks):
        keys = list(groups)
        shuffler.shuffle(keys)
        # A boot costs far more than a configuration: each kernel comes once a block.
        booted = list(dict.fromkeys(kernels[configuration] for configuration, _arm in groups))
        if len(booted) > 1:
            shuffler.shuffle(booted)
            keys.sort(key=lambda key: booted.index(kernels[key[0]]))
        for key in keys:
            members = list(groups[key])
            shuffler.shuffle(members)
            for member in members:
                order.append({"block": block, "sequence": len(order), "cell_id": member})
    return order


def groups_of(plan: Plan, done: Iterable[tuple[str, int]] = ()) -> list[Group]:
    """The units of execution in order, without the ``(cell_id, block)`` pairs already done."""
    finished = set(done)
    cells = {cell.cell_id: cell for cell in plan.cells}
    kernels = {item.name: item.kernel for item in plan.configurations}
    booting = any(kernels.values())

    def key(slot: Slot) -> tuple[int, str, str]:
        cell = cells[slot.cell_id]
        return slot.block, cell.configuration, cell.arm

    groups = []
    for (block, configuration, arm), slots in groupby(plan.order, key=key):
        members = tuple(
            slot.cell_id for slot in slots if (slot.cell_id, slot.block) not in finished
        )
        if members:
            boot = block % plan.boots if booting else 0
            groups.append(Group(block, configuration, arm, members, kernels[configuration], boot))
    return groups

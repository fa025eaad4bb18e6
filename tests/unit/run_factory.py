"""Simulated runs for tests: samples, plans and whole run folders with known effects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from collector.runfolder.samples import Sample, SampleStatus
from collector.runfolder.store import write_samples

CONFIGURATIONS = ("Unlabel", "C_NoCat", "C_FlCat")
TESTS = (("tcp_rr", "1/s", 12_000.0), ("tcp_stream", "bit/s", 9.4e8))


def sample(**changes: Any) -> Sample:
    """One valid sample; every field can be changed."""
    made = Sample(
        run_id="r1",
        matrix="netlabel_cipso",
        lab_kind="guests",
        accelerator="tcg",
        kernel="6.1.0-44",
        cell_id="Unlabel/tcp_rr/",
        configuration="Unlabel",
        test="tcp_rr",
        arm="",
        factors={},
        block=0,
        sequence=0,
        status=SampleStatus.OK,
        reason=None,
        value=12_000.0,
        unit="1/s",
        higher_is_better=True,
        elapsed_s=1.0,
        confidence_level_pct=None,
        confidence_wanted_pct=None,
        confidence_got_pct=None,
        confidence_met=None,
        cpu_local_pct=40.0,
        cpu_remote_pct=50.0,
        boot_ids=("a", "b"),
        started_at="2026-11-30T10:00:00Z",
    )
    return replace(made, **changes)


def lost(made: Sample, status: SampleStatus, reason: str | None = "no option 134") -> Sample:
    """The same repeat without a value."""
    return replace(made, status=status, reason=reason, value=None)


def campaign(
    blocks: int = 10,
    *,
    effects: Mapping[str, float] | None = None,
    noise: float = 0.003,
    seed: int = 1,
    aa: bool = True,
    **changes: Any,
) -> list[Sample]:
    """Samples of a whole matrix. ``effects`` maps configurations to the factor on their value;
    ``changes`` go into every sample."""
    rng = np.random.default_rng(seed)
    samples = []
    for block in range(blocks):
        for test, unit, level in TESTS:
            members = [(name, "") for name in CONFIGURATIONS]
            members += [(CONFIGURATIONS[0], "aa")] if aa else []
            for configuration, arm in members:
                value = level * (effects or {}).get(configuration, 1.0)
                fields: dict[str, Any] = {
                    "cell_id": f"{configuration}/{test}/{arm}",
                    "configuration": configuration,
                    "test": test,
                    "arm": arm,
                    "unit": unit,
                    "block": block,
                    "sequence": len(samples),
                    "value": float(value * np.exp(rng.normal(0, noise))),
                }
                samples.append(sample(**{**fields, **changes}))
    return samples


def plan_document(samples: list[Sample], **changes: Any) -> dict[str, Any]:
    """The plan.json that these samples are the result of."""
    cells = {made.cell_id: made for made in samples}
    tests = {made.test: made for made in samples}
    first = samples[0]
    return {
        "schema": 1,
        "run_id": first.run_id,
        "matrix": first.matrix,
        "created_at": "2026-11-30T10:00:00Z",
        "lab": {"kind": first.lab_kind, "accelerator": first.accelerator, "name": "lab"},
        "seed": 7,
        "blocks": 1 + max(made.block for made in samples),
        "baseline": "Unlabel",
        "delta": 0.02,
        "min_blocks": 6,
        "configurations": [
            {"name": name, "factors": {}, "subjects": {}}
            for name in dict.fromkeys(made.configuration for made in samples)
        ],
        "tests": [
            {
                "name": made.test,
                "kind": "netperf",
                "unit": made.unit,
                "higher_is_better": made.higher_is_better,
                "settings": {},
            }
            for made in tests.values()
        ],
        "cells": [
            {
                "cell_id": made.cell_id,
                "configuration": made.configuration,
                "test": made.test,
                "arm": made.arm,
                "factors": made.factors,
            }
            for made in cells.values()
        ],
        "order": [
            {"block": made.block, "sequence": made.sequence, "cell_id": made.cell_id}
            for made in samples
        ],
        **changes,
    }


def run_folder(
    folder: Path,
    samples: list[Sample],
    *,
    planned: list[Sample] | None = None,
    **changes: Any,
) -> Path:
    """Write a run folder; ``planned`` are the samples that the plan foresees, if others."""
    folder.mkdir(parents=True)
    plan = plan_document(planned or samples, **changes)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "journal.jsonl").write_text(
        '{"time": "2026-11-30T10:00:00Z", "event": "started"}\n', encoding="utf-8"
    )
    (folder / "provenance").mkdir()
    (folder / "provenance" / "server.json").write_text(
        '{"schema": 1, "kernel": {"release": "6.1.0-44"}}', encoding="utf-8"
    )
    write_samples(folder, samples)
    return folder

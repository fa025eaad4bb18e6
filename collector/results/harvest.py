"""From the raw output of a run to its samples.

A sample's number comes from netperf's own output, read strictly; everything else about it was
recorded when it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.forwarding.raw import search_of
from collector.forwarding.spec import KIND
from collector.proof.findings import Finding, equal
from collector.results.netperf_result import check_output, keys, number, read_omni_keyval
from collector.results.sample_fields import from_netperf, from_sessions
from collector.results.session_files import read_cpu, read_sessions
from collector.runfolder.runfolder import Plan, PlannedCell, PlannedTest, Run, Slot
from collector.runfolder.samples import Sample, SampleStatus
from collector.shape import Shape, read_json

RESULT_FILE = "result.json"
DUT = "dut"
# What a repeat without a number says of itself.
NOT_MEASURED: dict[str, Any] = dict.fromkeys(
    (
        "value",
        "elapsed_s",
        "confidence_got_pct",
        "confidence_met",
        "cpu_local_pct",
        "cpu_remote_pct",
    )
)


def check_result(
    result: Mapping[str, Any], settings: Mapping[str, Any], expected_mss: int | None
) -> tuple[list[Finding], str | None]:
    """Look at one command's result: findings about it, and why it has no number at all (None if
    it has one). ``expected_mss`` in bytes, None where nothing is known of it."""
    why = check_output(
        result["rc"],
        result["timed_out"],
        result["elapsed_s"],
        result["stdout"],
        result["stderr"],
        settings,
    )
    if why is not None:
        return [], why
    values = read_omni_keyval(result["stdout"], keys())
    findings = []
    if expected_mss is not None and str(values["PROTOCOL"]) == "TCP":
        mss = number(values, "TRANSPORT_MSS")
        findings.append(
            equal("TCP segment size of the test", expected_mss, None if mss is None else int(mss))
        )
    return findings, None


def read_samples_from_raw(run: Run) -> list[Sample]:
    """One sample for every repeat that was recorded, in the order executed. Raises InputError."""
    cells = {cell.cell_id: cell for cell in run.plan.cells}
    tests = {test.name: test for test in run.plan.tests}
    samples = []
    for slot in run.plan.order:
        raw = run.path / "raw" / slot.cell_id / str(slot.block)
        if not (raw / RESULT_FILE).is_file():
            continue  # not run (yet); runfolder.complete() shows it as missing
        cell = cells[slot.cell_id]
        samples.append(_sample(run.plan, slot, cell, tests[cell.test], raw))
    kernels = {item.name: item.kernel for item in run.plan.configurations}
    return _guard_identity(samples, kernels)


def _sample(plan: Plan, slot: Slot, cell: PlannedCell, test: PlannedTest, raw: Path) -> Sample:
    top = Shape(read_json(raw / RESULT_FILE), str(raw / RESULT_FILE))
    top.schema(1)
    status = SampleStatus(top.choice("status", [item.value for item in SampleStatus]))
    hosts = top.anything("hosts")
    known = top.rest()
    measured = _measured(test, status, raw, known)
    wish = test.settings.get("confidence")
    return Sample(
        run_id=plan.run_id,
        matrix=plan.matrix,
        lab_kind=plan.lab.kind,
        accelerator=plan.lab.accelerator,
        kernel=_kernel(hosts),
        cell_id=cell.cell_id,
        configuration=cell.configuration,
        test=cell.test,
        arm=cell.arm,
        factors=cell.factors,
        block=slot.block,
        sequence=slot.sequence,
        status=status,
        reason=known.get("reason"),
        confidence_level_pct=float(wish["level_pct"]) if wish else None,
        confidence_wanted_pct=float(wish["width_pct"]) if wish else None,
        higher_is_better=test.higher_is_better,
        boot_ids=tuple(str(host["boot_id"]) for _, host in sorted(hosts.items())),
        started_at=known.get("started_at"),
        **{**NOT_MEASURED, "unit": test.unit, **measured},
    )


def _measured(
    test: PlannedTest, status: SampleStatus, raw: Path, known: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields that the measurement itself says; what bounded a forwarding rate is known of one
    without a number too. Raises InputError."""
    if test.kind == KIND:
        found = search_of(raw)
        fields = {"bounded_by": found.bounded_by, "elapsed_s": known.get("elapsed_s")}
        ok = status is SampleStatus.OK
        return {**fields, "value": found.value_in(test.unit)} if ok else fields
    if status is not SampleStatus.OK:
        return {}
    if test.settings.get("sessions"):
        fields = from_sessions(*read_sessions(raw), test.settings, read_cpu(raw))
    else:
        text = (raw / "netperf.out").read_text(encoding="utf-8", errors="replace")
        fields = from_netperf(read_omni_keyval(text, keys()), test.settings)
    if fields["unit"] != test.unit:
        raise InputError(str(raw), f"a value in {fields['unit']}", f"one in {test.unit}")
    return fields


def _kernel(hosts: Mapping[str, Any]) -> str:
    """The kernel that was measured: of the device under test where there is one, else of all."""
    measured = [hosts[DUT]] if DUT in hosts else hosts.values()
    return " and ".join(sorted({str(host["kernel"]) for host in measured}))


def _guard_identity(samples: Sequence[Sample], kernels: Mapping[str, str | None]) -> list[Sample]:
    """Within a block every host must be in the same boot of each kernel that the plan boots: a
    repeat that is not becomes invalid, because a ratio across boots would measure the boots."""
    first: dict[tuple[int, str | None], tuple[tuple[str, ...], str]] = {}
    kept = []
    for sample in samples:
        if sample.status is SampleStatus.OK:
            own = (sample.boot_ids, sample.kernel)
            wanted = first.setdefault((sample.block, kernels.get(sample.configuration)), own)
            if own != wanted:
                kept.append(_invalid(sample, "a host was rebooted within the block"))
                continue
        kept.append(sample)
    return kept


def _invalid(sample: Sample, reason: str) -> Sample:
    from dataclasses import replace

    return replace(sample, status=SampleStatus.INVALID, reason=reason, value=None)

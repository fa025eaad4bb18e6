"""From the raw output of a run to its samples.

A sample's number comes from netperf's own output, read strictly; everything else about it was
recorded when it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.findings import Finding, equal
from collector.forwarding.raw import search_of
from collector.forwarding.spec import KIND
from collector.netperf_command import SELECTORS
from collector.parsers.netperf import read_omni_keyval
from collector.runfolder import Plan, PlannedCell, PlannedTest, Run, Slot
from collector.samples import Sample, SampleStatus
from collector.shape import Shape, read_json

RESULT_FILE = "result.json"
# netperf names the unit of THROUGHPUT itself; factors to the sample's unit.
UNITS = {"10^6bits/s": ("bit/s", 1e6), "Trans/s": ("1/s", 1.0)}


def keys() -> tuple[str, ...]:
    """The selectors that every run asks for."""
    return tuple(SELECTORS.split(","))


def check_result(
    result: Mapping[str, Any], settings: Mapping[str, Any], expected_mss: int | None
) -> tuple[list[Finding], str | None]:
    """Look at one command's result: findings about it, and why it has no number at all (None if
    it has one). ``expected_mss`` in bytes, None where nothing is known of it."""
    if result["timed_out"]:
        return [], f"netperf hung and was ended after {result['elapsed_s']:.0f} s"
    if result["rc"] != 0:
        text = (result["stderr"] or result["stdout"]).strip().splitlines()
        return [], f"netperf ended with {result['rc']}: {text[-1] if text else 'silently'}"
    try:
        values = read_omni_keyval(result["stdout"], keys())
        value_of(values, settings)
    except InputError as error:
        return [], str(error)
    findings = []
    if expected_mss is not None and str(values["PROTOCOL"]) == "TCP":
        mss = number(values, "TRANSPORT_MSS")
        findings.append(
            equal("TCP segment size of the test", expected_mss, None if mss is None else int(mss))
        )
    return findings, None


def number(values: Mapping[str, str | float | None], key: str) -> float | None:
    """A numeric value; None where netperf says that it has none (negative or not a number)."""
    value = values[key]
    return value if isinstance(value, (int, float)) and value >= 0 else None


def value_of(
    values: Mapping[str, str | float | None], settings: Mapping[str, Any]
) -> tuple[float, str]:
    """The headline value and its unit. Raises InputError for none, zero or a strange unit."""
    unit = str(values["THROUGHPUT_UNITS"])
    if unit not in UNITS:
        raise InputError("netperf THROUGHPUT_UNITS", repr(unit), f"one of {', '.join(UNITS)}")
    value = number(values, "THROUGHPUT")
    if not value:
        raise InputError(
            f"netperf {settings['netperf']} THROUGHPUT", str(values["THROUGHPUT"]), "more than 0"
        )
    name, factor = UNITS[unit]
    return value * factor, name


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
    return _guard_identity(samples)


def _sample(plan: Plan, slot: Slot, cell: PlannedCell, test: PlannedTest, raw: Path) -> Sample:
    top = Shape(read_json(raw / RESULT_FILE), str(raw / RESULT_FILE))
    top.schema(1)
    status = SampleStatus(top.choice("status", [item.value for item in SampleStatus]))
    hosts = top.anything("hosts")
    known = top.rest()
    bounded_by = None
    values: dict[str, str | float | None] = {}
    value = None
    if test.kind == KIND:
        found = search_of(raw)
        bounded_by = found.bounded_by
        if status is SampleStatus.OK:
            value = found.value_in(test.unit)
    elif status is SampleStatus.OK:
        text = (raw / "netperf.out").read_text(encoding="utf-8", errors="replace")
        values = read_omni_keyval(text, keys())
        value, unit = value_of(values, test.settings)
        if unit != test.unit:
            raise InputError(str(raw), f"a value in {unit}", f"one in {test.unit}")
    elapsed = number(values, "ELAPSED_TIME") if values else None
    if test.kind == KIND:
        elapsed = known.get("elapsed_s")
    wish = test.settings.get("confidence")
    got = number(values, "THROUGHPUT_CONFID") if values and wish else None
    return Sample(
        run_id=plan.run_id,
        matrix=plan.matrix,
        lab_kind=plan.lab.kind,
        accelerator=plan.lab.accelerator,
        kernel=" and ".join(sorted({str(host["kernel"]) for host in hosts.values()})),
        cell_id=cell.cell_id,
        configuration=cell.configuration,
        test=cell.test,
        arm=cell.arm,
        factors=cell.factors,
        block=slot.block,
        sequence=slot.sequence,
        status=status,
        reason=known.get("reason"),
        value=value,
        unit=test.unit,
        higher_is_better=test.higher_is_better,
        elapsed_s=elapsed,
        confidence_level_pct=float(wish["level_pct"]) if wish else None,
        confidence_wanted_pct=float(wish["width_pct"]) if wish else None,
        confidence_got_pct=got,
        confidence_met=None if not wish or got is None else got <= wish["width_pct"],
        cpu_local_pct=number(values, "LOCAL_CPU_UTIL") if values else None,
        cpu_remote_pct=number(values, "REMOTE_CPU_UTIL") if values else None,
        boot_ids=tuple(str(host["boot_id"]) for _, host in sorted(hosts.items())),
        started_at=known.get("started_at"),
        bounded_by=bounded_by,
    )


def _guard_identity(samples: Sequence[Sample]) -> list[Sample]:
    """Within a block every host must be in the same boot of the same kernel: a repeat that is not
    becomes invalid, because a ratio across boots would measure the boots."""
    first: dict[int, tuple[tuple[str, ...], str]] = {}
    kept = []
    for sample in samples:
        if sample.status is SampleStatus.OK:
            own = (sample.boot_ids, sample.kernel)
            wanted = first.setdefault(sample.block, own)
            if own != wanted:
                kept.append(_invalid(sample, "a host was rebooted within the block"))
                continue
        kept.append(sample)
    return kept


def _invalid(sample: Sample, reason: str) -> Sample:
    from dataclasses import replace

    return replace(sample, status=SampleStatus.INVALID, reason=reason, value=None)

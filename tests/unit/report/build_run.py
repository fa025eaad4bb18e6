"""Makes run folders for the tests of reports, through the store's own writer.

The samples are drawn from a fixed seed: a rate per cell, slow drift shared by the cells of a
block, and noise. Nothing here is a measurement.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.report.loading import build_report
from collector.report.model import Report
from collector.runfolder.runfolder import load_run
from collector.runfolder.samples import Sample, SampleStatus
from collector.runfolder.store import read_samples, write_samples

LABEL = "s0:c0.c239"


@dataclass(kw_only=True)
class Made:
    """What to make. ``rates`` maps (configuration, test) to the rate a second; cells not in it
    are skipped. ``spoilt`` maps (configuration, test) to the reason that makes it invalid."""

    matrix: str
    baseline: str
    configurations: dict[str, dict[str, str]]
    tests: dict[str, dict[str, Any]]  # name: unit, factors
    rates: dict[tuple[str, str], float]
    skip: dict[str, str] = field(default_factory=dict)
    spoilt: dict[tuple[str, str], str] = field(default_factory=dict)
    unmet: dict[tuple[str, str], float] = field(default_factory=dict)
    two_bands: set[tuple[str, str]] = field(default_factory=set)
    baselines: dict[str, str] = field(default_factory=dict)
    bounded: set[tuple[str, str]] = field(default_factory=set)  # by the generator
    cpu: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    together: set[tuple[str, str]] = field(default_factory=set)  # measured as sessions are
    left_out: dict[str, str] = field(default_factory=dict)  # tests that are not run, and why
    blocks: int = 10
    noise: float = 0.01
    lab_kind: str = "guests"
    accelerator: str = "tcg"


def netlabel(blocks: int = 10) -> Made:
    """A run of netlabel_cipso in which everything a table must show occurs."""
    shares = {
        "Unlabel": (1.0, 1.0, 1.0, 1.0),
        "C_NoCat": (0.93, 0.995, 0.90, 0.91),
        "C_FlCat": (0.70, 0.96, 0.78, 0.79),
        "C_F_LxV": (0.60, 0.96, 0.84, 0.85),
        "C_F_NoC": (0.40, 0.95, 0.52, 0.53),
    }
    full = {"tcp_stream": 412.0e6, "udp_stream": 301.0e6, "tcp_rr": 2210.0, "udp_rr": 2395.0}
    rates = {
        (name, test): full[test] * share
        for name, row in shares.items()
        for test, share in zip(full, row, strict=True)
    }
    no_build = "needs a kernel of its own, and none is given"
    return Made(
        matrix="netlabel_cipso",
        baseline="Unlabel",
        configurations={
            "NoPatch": {"label": "off", "kernel": "without_patch"},
            "Disable": {"label": "off", "kernel": "netlabel_off"},
            "Unlabel": {"label": "off"},
            "C_NoCat": {"label": "s0"},
            "C_FlCat": {"label": LABEL},
            "C_F_LxV": {"label": LABEL, "cipso_rbm_strictvalid": "0"},
            "C_F_NoC": {"label": LABEL, "cipso_cache_enable": "0"},
        },
        tests={
            name: {"unit": "1/s" if name.endswith("rr") else "bit/s", "factors": {}}
            for name in full
        },
        rates=rates,
        skip={"NoPatch": no_build, "Disable": no_build},
        spoilt={("C_F_NoC", "udp_stream"): "not proven: no option 134 in the captured packet"},
        unmet={("C_FlCat", "tcp_stream"): 9.8},
        two_bands={("C_NoCat", "udp_rr")},
        blocks=blocks,
    )


def labelled_ipsec(blocks: int = 8) -> Made:
    """Two families, labelled and not, three of the post's tests; one confidence missed."""
    configurations = {
        f"{name}_{family}": {"label": label, "family": family}
        for family in ("ipv4", "ipv6")
        for name, label in (("unlabelled", "off"), ("labelled", "process"))
    }
    full = {"tcp_stream_57344": 23.2e6, "tcp_rr_1_1": 877.0, "udp_rr_516_4": 690.0}
    return Made(
        matrix="labelled_ipsec",
        baseline="unlabelled_ipv4",
        baselines={"labelled_ipv6": "unlabelled_ipv6"},
        configurations=configurations,
        tests={
            name: {"unit": "bit/s" if "stream" in name else "1/s", "factors": {}} for name in full
        },
        rates={
            (name, test): full[test] * (0.96 if factors["label"] != "off" else 1.0)
            for name, factors in configurations.items()
            for test in full
        },
        unmet={("unlabelled_ipv4", "udp_rr_516_4"): 57.0},
        blocks=blocks,
    )


def forwarding(blocks: int = 6) -> Made:
    """Two kernels, three frame sizes, pinned and not; one cell that the generator bounded, and one
    that became slower."""
    configurations = {
        f"{kernel}{suffix}": {"kernel": kernel, "irq": irq}
        for irq, suffix in (("unpinned", ""), ("pinned", "_pinned"))
        for kernel in ("6.1.140", "6.12.27")
    }
    shares = {64: 20.0, 512: 85.0, 1518: 100.0}
    return Made(
        matrix="forwarding",
        baseline="6.1.140",
        configurations=configurations,
        tests={
            f"size_{size}": {"unit": "%", "factors": {"frame_bytes": str(size)}} for size in shares
        },
        rates={
            (name, f"size_{size}"): min(share * (1.4 if c["irq"] == "pinned" else 1.0), 100.0)
            for name, c in configurations.items()
            for size, share in shares.items()
        }
        | {("6.12.27", "size_64"): 18.0},
        blocks=blocks,
        noise=0.001,
        bounded={("6.12.27", "size_512")},
    )


def tunnels(blocks: int = 6) -> Made:
    """VXLAN and STT, one and five sessions, small packets beside large ones; STT could not be built
    for a third device, and nobody asked for 200 sessions."""
    configurations = {
        "vxlan": {"tunnel": "vxlan"},
        "stt": {"tunnel": "stt"},
        "gue": {"tunnel": "gue"},
    }
    tests = {
        f"{test}_{sessions}": {"unit": unit, "factors": {"sessions": str(sessions)}}
        for sessions in (1, 5)
        for test, unit in (("tcp_stream", "bit/s"), ("tcp_rr", "1/s"))
    }
    sizes = {"64": 4.0e6, "fit": 90.0e6}
    tests |= {
        f"udp_stream_{size}_1": {
            "unit": "bit/s",
            "factors": {"netperf": "UDP_STREAM", "sessions": "1", "bytes": size},
        }
        for size in sizes
    }
    tests["tcp_maerts_5"] = {
        "unit": "bit/s",
        "factors": {"netperf": "TCP_MAERTS", "sessions": "5"},
    }
    full = {test: 1.0e9 if "tcp_stream" in test else 2000.0 for test in tests}
    full |= {f"udp_stream_{size}_1": rate for size, rate in sizes.items()}
    full["tcp_maerts_5"] = 9.0e8
    cells = [(name, test) for name in ("vxlan", "stt") for test in tests]
    tests["tcp_rr_200"] = {"unit": "1/s", "factors": {"sessions": "200"}}
    return Made(
        matrix="tunnels",
        baseline="vxlan",
        configurations=configurations,
        tests=tests,
        rates={c: full[c[1]] * (1.1 if c[0] == "stt" else 1) for c in cells},
        cpu={c: (12.5, 38.25) for c in cells if "tcp_rr" not in c[1]},
        together={c for c in cells if c[1] in ("tcp_stream_5", "tcp_rr_5", "tcp_maerts_5")},
        skip={"gue": "this kernel has no fou module"},
        left_out={"tcp_rr_200": "sessions 200 is left out of the short form"},
        blocks=blocks,
    )


def tiny() -> Made:
    """Two configurations, one test, two blocks: the least a page can show."""
    return Made(
        matrix="tiny",
        baseline="plain",
        configurations={"plain": {"label": "off"}, "labelled": {"label": "s0"}},
        tests={"tcp_rr": {"unit": "1/s", "factors": {}}},
        rates={("plain", "tcp_rr"): 1000.0, ("labelled", "tcp_rr"): 900.0},
        blocks=2,
        lab_kind="hardware",
        accelerator="none",
    )


def report_of(folder: Path, made: Made) -> Report:
    """The report of a made run, with a folder name that does not depend on where it lies."""
    build_run(folder, made)
    run = load_run(folder)
    return build_report(run, read_samples(folder), folder="runs/demo")


def build_run(folder: Path, made: Made) -> Path:
    """Write the whole run folder (plan, samples, provenance, raw, evidence); returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = _cells(made)
    samples = _samples(made, cells)
    (folder / "plan.json").write_text(json.dumps(_plan(made, cells, samples), indent=1))
    (folder / "journal.jsonl").write_text("")
    write_samples(folder, [sample for sample in samples if sample.status.value != "skipped"])
    _provenance(folder)
    for cell in cells:
        if (cell["configuration"], cell["test"]) in made.rates:
            _raw(folder, cell)
            _evidence(folder, cell, made)
    return folder


def _cells(made: Made) -> list[dict[str, Any]]:
    cells = []
    for number, (name, factors) in enumerate(made.configurations.items()):
        for position, (test, declared) in enumerate(made.tests.items()):
            for arm in ("", "aa") if name == made.baseline else ("",):
                cells.append(
                    {
                        "cell_id": f"c{number}{position}{arm}",
                        "configuration": name,
                        "test": test,
                        "arm": arm,
                        "factors": {**factors, **declared["factors"]},
                        "skip": made.skip.get(name, made.left_out.get(test)),
                    }
                )
    return cells


def _samples(made: Made, cells: list[dict[str, Any]]) -> list[Sample]:
    rng = random.Random(20260101)
    samples = []
    drift = 1.0
    sequence = 0
    for block in range(made.blocks):
        drift *= 1 + rng.gauss(0, 0.01)
        shuffled = list(cells)
        rng.shuffle(shuffled)
        for cell in shuffled:
            key = (cell["configuration"], cell["test"])
            if key not in made.rates:
                continue
            value: float | None = made.rates[key] * drift * (1 + rng.gauss(0, made.noise))
            if key in made.two_bands and block % 2:
                value = value * 0.8 if value is not None else None
            if made.matrix == "forwarding" and value is not None:
                value = min(value, 100.0)
            reason = made.spoilt.get(key)
            if reason is not None:
                value = None
            unmet = made.unmet.get(key)
            cpu = made.cpu.get(key)
            samples.append(
                Sample(
                    run_id="20260101-demo",
                    matrix=made.matrix,
                    lab_kind=made.lab_kind,
                    accelerator=made.accelerator,
                    kernel="6.12.117-cloud-amd64",
                    cell_id=cell["cell_id"],
                    configuration=key[0],
                    test=key[1],
                    arm=cell["arm"],
                    factors=cell["factors"],
                    block=block,
                    sequence=sequence,
                    status=SampleStatus.OK if reason is None else SampleStatus.INVALID,
                    reason=reason,
                    value=value,
                    unit=made.tests[key[1]]["unit"],
                    higher_is_better=True,
                    elapsed_s=1.0,
                    confidence_level_pct=99.0 if unmet else None,
                    confidence_wanted_pct=5.0 if unmet else None,
                    confidence_got_pct=(unmet if block == 0 else 3.0) if unmet else None,
                    confidence_met=(block != 0) if unmet else None,
                    cpu_local_pct=cpu[0] if cpu else None,
                    cpu_remote_pct=cpu[1] if cpu else None,
                    boot_ids=("b1", "b2"),
                    started_at=f"2026-01-01T10:{block:02d}:00Z",
                    bounded_by="generator" if key in made.bounded else None,
                    **(_together(key, block, cpu) if key in made.together else {}),
                )
            )
            sequence += 1
    return samples


def _together(key: tuple[str, str], block: int, cpu: tuple[float, float] | None) -> dict[str, Any]:
    """What only sessions over a window have."""
    fields: dict[str, Any] = {"sessions": 5, "window_s": 2.0, "start_skew_s": 0.25}
    if cpu:
        for end, share in zip(("local", "remote"), cpu, strict=True):
            fields[f"cpu_{end}_kinds"] = {
                "user": share / 10,
                "system": share / 2,
                "softirq": share * 0.4,
                "steal": 0.0,
                "idle": 100.0 - share,
            }
            fields[f"sd_{end}_us"] = share + block / 10
    if "rr" in key[1]:
        fields |= {"latency_mean_us": 1000.0 + block, "latency_max_us": 9000.0}
        fields |= {"latency_p99_low_us": 2000.0 + block, "latency_p99_high_us": 3000.0 + block}
    return fields


def _plan(made: Made, cells: list[dict[str, Any]], samples: list[Sample]) -> dict[str, Any]:
    return {
        "schema": 1,
        "run_id": "20260101-demo",
        "matrix": made.matrix,
        "created_at": "2026-01-01T09:59:00Z",
        "lab": {"kind": made.lab_kind, "accelerator": made.accelerator, "name": "demo"},
        "seed": 7,
        "blocks": made.blocks,
        "baseline": made.baseline,
        "baselines": made.baselines,
        "delta": None,
        "min_blocks": 6,
        "configurations": [
            {"name": name, "factors": factors, "subjects": {}}
            for name, factors in made.configurations.items()
        ],
        "tests": [
            {
                "name": name,
                "kind": "netperf",
                "unit": declared["unit"],
                "higher_is_better": True,
                "settings": {},
            }
            for name, declared in made.tests.items()
        ],
        "cells": cells,
        "order": [
            {"block": s.block, "sequence": s.sequence, "cell_id": s.cell_id} for s in samples
        ],
    }


def _provenance(folder: Path) -> None:
    common: dict[str, Any] = {
        "kernel": {
            "release": "6.12.117-cloud-amd64",
            "config_sha256": "5b0f…91",
            "cmdline": "audit=1",
        },
        "cpu": {"model": "QEMU TCG CPU version 2.5+", "count": 1},
        "nic": {
            "driver": "virtio_net",
            "mtu": 1500,
            "offloads": {"tso": True, "gso": True, "gro": True, "rx_csum": None},
        },
        "selinux": {"mode": "enforcing", "policy": "default", "policy_sha256": "a1c3…07"},
        "tools": {"netperf": "2.7.0", "iproute2": "6.15.0"},
        "sysctls": {f"net.core.example_{i}": i for i in range(20)},
    }
    server = json.loads(json.dumps(common))
    server["nic"]["offloads"]["gro"] = False
    server["sysctls"]["net.core.example_3"] = 99
    (folder / "provenance").mkdir(exist_ok=True)
    for name, facts in (("client", common), ("server", server)):
        document = {"schema": 1, "hostname": name, **facts}
        (folder / "provenance" / f"{name}.json").write_text(json.dumps(document))


def _raw(folder: Path, cell: dict[str, Any]) -> None:
    for repeat in range(2):
        path = folder / "raw" / cell["cell_id"] / str(repeat)
        path.mkdir(parents=True)
        label = cell["factors"].get("label", "off")
        runcon = [] if label == "off" else ["runcon", "-l", label]
        netperf_test = cell["test"].upper()
        argv = [*runcon, "netperf", "-H", "10.0.2.3", "-Z", "secret", "-t", "omni", "-l", "1"]
        argv += ["--", "-H", "192.0.2.2", "-T", netperf_test, "-k", "all"]
        (path / "argv.json").write_text(json.dumps({"argv": argv}))
        (path / "netperf.out").write_text("THROUGHPUT=1\n")


def _evidence(folder: Path, cell: dict[str, Any], made: Made) -> None:
    label = cell["factors"].get("label", "off")
    proven = (cell["configuration"], cell["test"]) not in made.spoilt
    findings = [
        {
            "what": "IP option 134",
            "found": ("none" if label == "off" else f"DOI 16, level 0, {label}")
            if proven
            else "none",
            "wanted": None if proven else f"DOI 16, level 0, {label}",
            "ok": proven,
        },
        {"what": "peer label at the server", "found": label, "wanted": label, "ok": True},
    ]
    if "stream" in cell["test"]:
        findings.append({"what": "TCP MSS", "found": 1448 if label == "off" else 1408, "ok": True})
    for block in range(2):
        path = folder / "evidence" / cell["cell_id"] / str(block)
        path.mkdir(parents=True)
        (path / "proof.json").write_text(json.dumps({"schema": 1, "findings": findings}))
        (path / "probe.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")

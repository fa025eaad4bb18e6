"""Writing what a group brought home into the run folder: raw output, evidence, journal.

Every file appears whole (written beside and renamed), and the journal line of a cell comes last:
a cell that the journal has is complete on disk.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collector import findings as findings_of
from collector import journal
from collector.errors import InputError
from collector.findings import Finding
from collector.harvest import RESULT_FILE, check_result
from collector.samples import SampleStatus


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data if isinstance(data, bytes) else data.encode())
    temporary.rename(path)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document in one step."""
    write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def record_group(
    folder: Path,
    block: int,
    cells: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    proof: Sequence[Finding],
    measured: Mapping[str, Any],
    identities: Mapping[str, Mapping[str, Any]],
    expected_mss: int | None,
) -> dict[str, str]:
    """Record a measured group; returns each cell's status.

    ``settings`` are each cell's test settings, ``identities`` each host's kernel and boot id.
    """
    capture = base64.b64decode(measured["pcap"])
    results = {result["cell_id"]: result for result in measured["results"]}
    shared = findings_of.first_failure(list(proof))
    statuses = {}
    for cell in cells:
        evidence = folder / "evidence" / cell / str(block)
        raw = folder / "raw" / cell / str(block)
        found = list(proof)
        result = results.get(cell)
        status, reason = SampleStatus.INVALID, shared
        if result is None:
            reason = shared or "not measured"
        else:
            write_whole(raw / "netperf.out", result["stdout"])
            write_whole(raw / "netperf.err", result["stderr"])
            write_json(raw / "argv.json", {"argv": result["argv"]})
            own, failure = check_result(result, settings[cell], expected_mss)
            found += own
            if shared is None:
                if failure is not None:
                    status, reason = SampleStatus.FAILED, failure
                else:
                    reason = findings_of.first_failure(own)
                    status = SampleStatus.OK if reason is None else SampleStatus.INVALID
        write_whole(evidence / "probe.pcap", capture)
        write_json(evidence / "proof.json", findings_of.document(found))
        write_json(
            raw / RESULT_FILE,
            {
                "schema": 1,
                "status": status.value,
                "reason": reason,
                "rc": None if result is None else result["rc"],
                "timed_out": None if result is None else result["timed_out"],
                "started_at": None if result is None else result["started_at"],
                "elapsed_s": None if result is None else result["elapsed_s"],
                "hosts": dict(identities),
                "probe": measured["probe"],
            },
        )
        journal.append(
            folder, "cell", cell_id=cell, block=block, status=status.value, reason=reason
        )
        statuses[cell] = status.value
    return statuses


def record_failure(folder: Path, block: int, cells: Sequence[str], reason: str) -> None:
    """Record that a group could not be measured at all."""
    for cell in cells:
        write_json(
            folder / "raw" / cell / str(block) / RESULT_FILE,
            {"schema": 1, "status": "failed", "reason": reason, "hosts": {}},
        )
        journal.append(folder, "cell", cell_id=cell, block=block, status="failed", reason=reason)


def new_run_folder(runs: Path, run_id: str, plan: Mapping[str, Any]) -> Path:
    """Make a run folder with its plan. Raises InputError if there is one of that name."""
    folder = runs / run_id
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(str(folder), "a folder", "no folder of that name yet") from None
    write_json(folder / "plan.json", plan)
    return folder

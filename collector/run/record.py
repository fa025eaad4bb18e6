"""Writing what a group brought home into the run folder: raw output, evidence, journal.

Every file appears whole (written beside and renamed), and the journal line of a cell comes last:
a cell that the journal has is complete on disk.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.files import write_json, write_whole
from collector.proof import findings as findings_of
from collector.proof.findings import Finding
from collector.results.harvest import RESULT_FILE, check_result
from collector.results.session_files import window_of, write_sessions
from collector.results.session_results import check_sessions
from collector.runfolder import journal
from collector.runfolder.samples import SampleStatus
from collector.sessions.launch import unpack


def record_group(
    folder: Path,
    block: int,
    cells: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    proof: Sequence[Finding],
    measured: Mapping[str, Any],
    identities: Mapping[str, Mapping[str, Any]],
    expected_mss: int | None,
    peer: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Record a measured group; returns each cell's status.

    ``settings`` are each cell's test settings, ``identities`` each host's kernel and boot id,
    ``peer`` is what ``bench_peer`` returned when it stopped (needed with several sessions only).
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
            _write_raw(raw, result, measured["probe"], peer or {})
            own, failure = _check(result, settings[cell], expected_mss, peer or {})
            found += own
            if shared is None:
                if failure is not None:
                    status, reason = SampleStatus.FAILED, failure
                else:
                    reason = findings_of.first_failure(own)
                    status = SampleStatus.OK if reason is None else SampleStatus.INVALID
        write_whole(evidence / "probe.pcap", capture)
        write_json(evidence / "proof.json", findings_of.document(found))
        close_cell(
            folder,
            cell,
            block,
            (status, reason),
            {
                "rc": None if result is None else result["rc"],
                "timed_out": None if result is None else result["timed_out"],
                "started_at": None if result is None else result["started_at"],
                "elapsed_s": None if result is None else result["elapsed_s"],
                "hosts": dict(identities),
                "probe": measured["probe"],
            },
        )
        statuses[cell] = status.value
    return statuses


def _write_raw(
    raw: Path, result: Mapping[str, Any], probe: Mapping[str, Any], peer: Mapping[str, Any]
) -> None:
    """What the tool wrote, untouched, and the exact command line."""
    if "sessions" in result:
        write_sessions(raw, result, probe, peer.get("cpu", {}).get(result["cell_id"], {}))
        write_json(raw / "argv.json", {"argv": result["argv"], "sessions": result["sessions"]})
        return
    write_whole(raw / "netperf.out", result["stdout"])
    write_whole(raw / "netperf.err", result["stderr"])
    write_json(raw / "argv.json", {"argv": result["argv"]})


def _check(
    result: Mapping[str, Any],
    settings: Mapping[str, Any],
    expected_mss: int | None,
    peer: Mapping[str, Any],
) -> tuple[list[Finding], str | None]:
    """Findings about a result, and why it has no number at all; None if it has one."""
    if "sessions" not in result:
        return check_result(result, settings, expected_mss)
    hints = [f"client: {result['no_room']}"] if result.get("no_room") else []
    if peer.get("no_room"):
        hints.append(f"server: {peer['no_room']}")
    if peer.get("listen_drops"):
        hints.append(f"the server's listening sockets dropped {peer['listen_drops']} connections")
    own = check_sessions(
        unpack(result["packed"]),
        window_of(result),
        result["window_error"],
        settings,
        expected_mss,
        hints,
    )
    return own, None


def record_failure(folder: Path, block: int, cells: Sequence[str], reason: str) -> None:
    """Record that a group could not be measured at all."""
    for cell in cells:
        close_cell(folder, cell, block, (SampleStatus.FAILED, reason), {"hosts": {}})


def close_cell(
    folder: Path,
    cell: str,
    block: int,
    outcome: tuple[SampleStatus, str | None],
    details: Mapping[str, Any],
) -> None:
    """Write a cell's result file, with ``details`` beside its status and reason, and then its line
    in the journal: everything else of the cell is on disk before."""
    status, reason = outcome
    write_json(
        folder / "raw" / cell / str(block) / RESULT_FILE,
        {"schema": 1, "status": status.value, "reason": reason, **details},
    )
    journal.append(folder, "cell", cell_id=cell, block=block, status=status.value, reason=reason)


def new_run_folder(runs: Path, run_id: str, plan: Mapping[str, Any]) -> Path:
    """Make a run folder with its plan. Raises InputError if there is one of that name."""
    folder = runs / run_id
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(str(folder), "a folder", "no folder of that name yet") from None
    write_json(folder / "plan.json", plan)
    return folder

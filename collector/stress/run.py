"""A stress run in progress, as the playbooks see it: planned or taken up, recorded poll by poll."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collector.errors import CrossoverError
from collector.files import write_json, write_whole
from collector.proof import findings as findings_of
from collector.proof import proof
from collector.run import by_hand
from collector.stress import log
from collector.stress.plan import ROLES, agent_plan, load_stress, open_stress


def open_run(
    *,
    runs: Path,
    run: str | None,
    matrix: str | None,
    configuration: str | None,
    run_id: str | None,
    duration_s: float | None,
    interval_s: float,
    chunk_s: float,
    lab: Mapping[str, str] | None,
    client: Mapping[str, Any] | None,
    server: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Take up the run named by ``run``, or plan a new one of a matrix (then ``duration_s``,
    ``lab``, ``client`` and ``server`` are there). Raises CrossoverError.

    Returns ``run_folder``, ``run_id``, ``group`` (what the roles apply and prove), and by role
    ``agents`` (what the stress programs are started with) and ``offsets`` (how far they are read).
    """
    if run is not None:
        folder = runs / run
    else:
        if matrix is None or duration_s is None or lab is None or client is None or server is None:
            raise CrossoverError(
                "stress: found no matrix, length, lab and hosts; wanted all of them"
            )
        folder = open_stress(
            matrix=matrix,
            configuration=configuration,
            runs=runs,
            run_id=run_id,
            duration_s=duration_s,
            interval_s=interval_s,
            chunk_s=chunk_s,
            lab=lab,
            client=client,
            server=server,
        )
    plan = load_stress(folder)
    timeline = log.read_log(folder)
    return {
        "run_folder": str(folder),
        "run_id": plan.run_id,
        "group": plan.group,
        "agents": {role: agent_plan(plan, role) for role in ROLES},
        "offsets": {role: timeline.offset(role) for role in ROLES},
    }


def record(*, run_folder: str, event: str, hosts: Mapping[str, Any]) -> dict[str, Any]:
    """Write what happened. ``hosts`` by event:

    - ``provenance``: what ``provenance`` returned, by host name;
    - ``proven``: client and server (what ``bench_measure`` and ``bench_peer`` returned), cipso,
      ipsec, keyed and tunnels (what ``cipso``, ``ipsec_evidence``, ``ipsec`` or ``ike``, and
      ``tunnel`` returned, by role);
    - ``polled`` and ``stopped``: what ``stress`` returned, by role.

    Returns ``more``: whether a host has more lines than one answer holds. Raises CrossoverError
    for a configuration that is not proven.
    """
    folder = Path(run_folder)
    if event == "provenance":
        for name, result in hosts.items():
            write_json(folder / "provenance" / f"{name}.json", result["provenance"])
    elif event == "proven":
        _record_proof(folder, hosts)
    elif event == "started":
        log.append_event(folder, "started")
    else:
        for role in ROLES:
            log.append_poll(folder, role, hosts[role])
        if event == "stopped":
            log.append_event(folder, "stopped")
    return {"more": any(bool(hosts.get(role, {}).get("more")) for role in ROLES)}


def _record_proof(folder: Path, hosts: Mapping[str, Any]) -> None:
    plan = load_stress(folder)
    found = proof.prove_group(plan.group, hosts)
    evidence = folder / "evidence"
    for side, result in (("client", hosts["client"]), ("server", hosts["server"])):
        write_whole(evidence / f"{side}.pcap", base64.b64decode(result.get("pcap") or ""))
    write_json(evidence / "proof.json", findings_of.document(found))
    built = by_hand.commands(hosts, plan.group["label"])
    if built:
        by_hand.write(evidence / "setup.json", built)
    reason = findings_of.first_failure(found)
    if reason is not None:
        raise CrossoverError(f"stress {plan.configuration}: not proven: {reason}")

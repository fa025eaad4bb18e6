"""A run in progress, as the playbooks see it: planned or taken up again, recorded group by group.

The playbooks hand in what they know of the hosts and get back groups with everything that the
modules need; nothing here opens a connection.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collector.errors import InputError, UsageError
from collector.files import write_json
from collector.forwarding.spec import KIND, ForwardingSpec
from collector.kernel_state.context import LabelError
from collector.matrix import tunnel_links
from collector.matrix.choice import read_choice
from collector.matrix.matrix import Matrix, load_matrix
from collector.matrix.placeholders import addresses, resolve
from collector.matrix.skips import without_daemons
from collector.matrix.tunnels import without
from collector.proof import forwarding as proof_forwarding
from collector.proof import kernel as proof_kernel
from collector.proof import proof
from collector.results.harvest import read_samples_from_raw
from collector.results.netperf_command import Path as NetPath
from collector.results.netperf_command import command, sampling
from collector.run import by_hand, campaign_kernels
from collector.run import forwarding_group as forwarding
from collector.run.lab_kind import for_kernels, for_kind
from collector.run.plan import Group, groups_of, make_plan
from collector.run.record import new_run_folder, record_failure, record_group
from collector.runfolder import journal, store
from collector.runfolder.runfolder import Run, complete, load_run
from collector.shape import read_json

MATRICES = Path(__file__).resolve().parents[2] / "playbooks" / "matrices"
NETSERVER_PORT = 12865


def find_matrix(name: str) -> Path:
    """The file of a matrix: a path as it is, else a name among the project's own matrices."""
    path = Path(name)
    if path.suffix in (".yml", ".yaml"):
        return path
    found = MATRICES / f"{name}.yml"
    if not found.is_file():
        known = ", ".join(sorted(file.stem for file in MATRICES.glob("*.yml")))
        raise UsageError(f"matrix {name!r}: no such matrix; wanted one of {known}, or a .yml file")
    return found


def new_run_id(matrix: Matrix) -> str:
    """``<matrix>-<UTC time>``, to the second."""
    return f"{matrix.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def unfinished(runs: Path, matrix: str) -> Path | None:
    """The newest run of the matrix that was cut off, None if there is none."""
    for folder in sorted(runs.glob(f"{matrix}-*"), reverse=True):
        if not (folder / "plan.json").is_file():
            continue
        run = load_run(folder)
        if run.plan.matrix == matrix:
            ended = any(event.event == "end" for event in run.journal)
            return None if ended else folder
    return None


def open_campaign(
    *,
    matrix: str,
    form: str,
    runs: Path,
    resume: str | None,
    run_id: str | None,
    blocks: int | None,
    seed: int | None,
    configurations: str | None = None,
    tests: str | None = None,
    lab: Mapping[str, str],
    client: Mapping[str, Any],
    server: Mapping[str, Any],
    testers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    duts: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    missing: Mapping[str, str] | None = None,
    kernels: str | None = None,
    compile_: bool = False,
) -> dict[str, Any]:
    """Plan a new run, or take up the run named by ``resume``. Raises CrossoverError.

    ``lab`` is {kind, accelerator, name}; ``client`` and ``server`` are {name, control_address,
    link, links} with the links as the inventory has them; ``testers`` and ``duts`` are the links of
    the hosts of a forwarding test, by name. ``configurations`` and ``tests`` choose part of the
    matrix (collector.matrix.choice). ``missing`` says of types of tunnel and of IKE daemons why a
    host cannot have them, so that what needs them is skipped. ``kernels`` is
    ``LABEL=NAME,LABEL=NAME``: every configuration on each of them; ``compile_`` makes also kernels
    that take long. Returns the run folder and its groups.
    """
    for_kernels(lab["kind"], kernels)
    spec = for_kind(load_matrix(find_matrix(matrix)), lab["kind"])
    spec = without_daemons(without(spec, missing or {}), missing or {})
    home = campaign_kernels.home_of(lab)
    forwards = any(isinstance(test, ForwardingSpec) for test in spec.tests)
    if forwards:
        lab = {**lab, "topology": forwarding.topology_of(testers or {}, duts or {})}
    if resume:
        folder = runs / resume
    else:
        choice = read_choice(configurations, tests)
        spec, booted = campaign_kernels.decide(spec, kernels, lab["kind"], compile_, choice)
        document = make_plan(
            spec,
            spec.forms[form],
            run_id=run_id or new_run_id(spec),
            created_at=journal.now(),
            lab=dict(lab),
            seed=seed if seed is not None else random.SystemRandom().randrange(2**31),
            blocks=blocks,
            choice=choice,
            kernels=campaign_kernels.document(booted),
        )
        folder = new_run_folder(runs, document["run_id"], document)
        journal.append(folder, "run", resumed=False)
    run = load_run(folder)
    if run.plan.matrix != spec.name:
        raise InputError(str(folder), f"a run of {run.plan.matrix}", f"one of {spec.name}")
    if resume:
        _check_same_lab(run, lab)
        journal.append(folder, "run", resumed=True)
    left = groups_of(run.plan, journal.finished(run.journal))

    def describe(group: Group) -> dict[str, Any]:
        if forwards:
            return forwarding.describe(run, group, testers or {}, duts or {})
        return describe_group(run, group, client, server)

    groups, away = campaign_kernels.with_boots(run, left, home, describe)
    return {
        "run_folder": str(folder),
        "run_id": run.plan.run_id,
        "blocks": run.plan.blocks,
        "subjects": list(spec.subjects),
        "groups": groups,
        "forwarding": forwards,
        "home": campaign_kernels.describe(run.plan, None, home.boot, home) if away else None,
    }


def _check_same_lab(run: Run, lab: Mapping[str, str]) -> None:
    """Raises InputError where a run was begun on hosts of another kind, or joined otherwise."""
    begun = run.plan.lab
    if (begun.kind, begun.accelerator) != (lab["kind"], lab["accelerator"]):
        raise InputError(
            str(run.path),
            f"a run on {begun.kind} under {begun.accelerator}",
            f"one on {lab['kind']} under {lab['accelerator']}, to go on with it",
        )
    # Plans have not always said it.
    if begun.topology is not None and begun.topology != lab.get("topology"):
        raise InputError(
            str(run.path),
            f"a run in topology {begun.topology}",
            f"one in {lab.get('topology')}, to go on with it",
        )


def describe_group(
    run: Run, group: Group, client: Mapping[str, Any], server: Mapping[str, Any]
) -> dict[str, Any]:
    """A group of netperf tests with everything that the roles need of it; ``client`` and
    ``server`` as in ``open_campaign``. Raises InputError."""
    plan = run.plan
    declared = next(item for item in plan.configurations if item.name == group.configuration)
    link = client["link"]
    names = addresses(link)
    subjects = resolve(declared.subjects, names, f"{plan.matrix}: {declared.name}")
    mtu = int(link.get("mtu", proof.MTU))
    where = f"{plan.matrix}: {declared.name}"
    subjects = tunnel_links.over_path(subjects, proof.path_mtu(subjects, mtu), mtu)
    try:
        payload = proof.payload_that_fits(subjects, mtu)
    except LabelError as error:
        raise InputError(where, str(error), "a label that fits") from error
    inner = tunnel_links.inner_addresses(subjects, subjects["family"])
    outer = names[f"@client_{subjects['family']}"], names[f"@server_{subjects['family']}"]
    measured = inner or outer
    control = server.get("control_address")
    if not control:
        raise InputError(
            f"inventory: {server['name']}.bench_control_address",
            "nothing",
            "the management address of the server, for netperf's control connection",
        )
    path = NetPath(
        control=control,
        port=NETSERVER_PORT,
        server=measured[1],
        client=measured[0],
    )
    tests = {test.name: test for test in plan.tests}
    cells = {cell.cell_id: tests[cell.test].settings for cell in plan.cells}
    return {
        "kind": "netperf",
        "title": group.title(plan.blocks),
        "block": group.block,
        "configuration": group.configuration,
        "arm": group.arm,
        "cells": list(group.cells),
        "subjects": subjects,
        "label": subjects.get("label"),
        "device": link["device"],
        "server_device": server["link"]["device"],
        "client_address": path.client,
        "server_address": path.server,
        # In tunnels the flow's own ports are deep inside, so everything on the device is kept.
        "capture": "all" if "tunnels" in subjects else "flow",
        "control_address": path.control,
        "control_port": path.port,
        "mtu": mtu,
        "payload_bytes": payload,
        "expected_mss": proof.expected_mss(subjects, mtu),
        "warm_up_s": float(next(iter(cells.values()))["warm_up_s"]),
        "settings": {cell: cells[cell] for cell in group.cells},
        "commands": [command(cell, cells[cell], path, payload) for cell in group.cells],
        "sampling": sampling([cells[cell] for cell in group.cells]),
        "sessions": max(cells[cell].get("sessions") or 1 for cell in group.cells),
    }


def record(
    *,
    run_folder: str,
    group: Mapping[str, Any],
    event: str,
    hosts: Mapping[str, Any],
) -> dict[str, str]:
    """Write what happened. ``event``: begin, measured (of a group), provenance and changed
    (of the hosts), end.

    ``hosts`` holds, by event: for ``measured`` the keys client and server (what ``bench_measure``
    and ``bench_peer`` returned), cipso, keyed, ipsec and tunnels (what ``cipso``, ``ipsec`` or
    ``ike``, ``ipsec_evidence`` and ``tunnel`` returned, by host), or in forwarding tests tester and
    dut (as ``forwarding.group.record`` takes them); for ``provenance`` and ``changed`` what
    ``provenance`` returned on each host.
    """
    folder = Path(run_folder)
    if event == "begin":
        journal.append(
            folder,
            "group",
            block=group["block"],
            configuration=group["configuration"],
            arm=group["arm"],
            cells=group["cells"],
        )
    elif event == "provenance":
        for name, result in hosts.items():
            suffix = f"@{group['boot']['kernel']}" if group else ""
            write_json(folder / "provenance" / f"{name}{suffix}.json", result["provenance"])
    elif event == "changed":
        _record_changes(folder, hosts)
    elif event == "end":
        finish(folder)
    else:
        return _record_measured(folder, group, hosts)
    return {}


def _record_applied(folder: Path, group: Mapping[str, Any], hosts: Mapping[str, Any]) -> None:
    """How long the hosts took to change their SAs; nothing where nothing was changed."""
    applied = {
        name: {**result["applied"], "sas": result["state"]["sas_total"]}
        for name, result in hosts.items()
        if "applied" in result
    }
    if applied:
        journal.append(
            folder,
            "applied",
            block=group["block"],
            configuration=group["configuration"],
            hosts=applied,
        )


def _record_changes(folder: Path, hosts: Mapping[str, Any]) -> None:
    """Add to each host's document what was different at the end of the run."""
    for name, result in hosts.items():
        path = folder / "provenance" / f"{name}.json"
        document = read_json(path)
        document["changed_during_run"] = result["differences"]
        write_json(path, document)
        if result["differences"]:
            journal.append(folder, "changed", host=name, differences=result["differences"])


def _record_measured(
    folder: Path, group: Mapping[str, Any], hosts: Mapping[str, Any]
) -> dict[str, str]:
    built = by_hand.commands(hosts, group.get("label"))
    for cell in group["cells"] if built else ():
        by_hand.write(folder / "evidence" / cell / str(group["block"]) / "setup.json", built)
    if group.get("kind") == KIND:
        # Testers keep their own kernel.
        said = {"device under test": proof_kernel.of_provenance(hosts["dut"]["kernel"])}
        findings = proof_kernel.prove(group.get("boot"), said)
        findings += proof_forwarding.prove(group, hosts["tester"], hosts["dut"])
        applied = hosts.get("forwarding", {}).get(group["dut"]["name"], {})
        findings += proof_forwarding.check_held(applied.get("settings", {}), hosts["dut"]["after"])
        return forwarding.record(folder, group, hosts, findings)
    client, server = hosts["client"], hosts["server"]
    _record_applied(folder, group, hosts.get("keyed", {}))
    identities = {"client": client["identity"], "server": server["identity"]}
    said = {name: proof_kernel.of_identity(found) for name, found in identities.items()}
    findings = proof_kernel.prove(group.get("boot"), said)
    findings += proof.prove_group(group, hosts)
    return record_group(
        folder,
        group["block"],
        group["cells"],
        group["settings"],
        findings,
        client,
        identities,
        group["expected_mss"],
        server,
    )


def give_up_group(folder: Path, reason: str) -> bool:
    """Record the group that was begun last and never ended as failed; False if there is none."""
    run = load_run(folder)
    done = journal.finished(run.journal)
    for event in reversed(run.journal):
        if event.event == "group" and event.block is not None:
            left = [cell for cell in event.details["cells"] if (cell, event.block) not in done]
            if left:
                record_failure(folder, event.block, left, reason)
            return bool(left)
    return False


def finish(folder: Path) -> None:
    """Turn the raw output into samples and close the run; callable again at any time."""
    run = load_run(folder)
    samples = complete(run.plan, read_samples_from_raw(run))
    store.write_samples(folder, samples)
    if len(journal.finished(run.journal)) >= len(run.plan.order):
        journal.append(folder, "end")

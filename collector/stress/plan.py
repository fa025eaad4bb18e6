"""A stress run as planned: one configuration, the streams that run through it, for how long.

Its folder has ``stress.json`` (this plan), ``stress.jsonl`` (what the hosts noted,
``collector.stress.log``) and ``evidence/``; docs/data-format.md has every field. Nothing here
opens a connection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.errors import InputError, UsageError
from collector.files import write_json
from collector.matrix.matrix import ConfigurationSpec, Matrix, load_matrix
from collector.matrix.tests import TestSpec
from collector.results.netperf_command import Path as NetPath
from collector.results.netperf_command import data_options
from collector.run.campaign import describe_group, find_matrix
from collector.run.plan import groups_of, make_plan
from collector.runfolder import journal
from collector.runfolder.runfolder import Lab, Run, parse_plan
from collector.shape import Shape, read_json

SCHEMA = 1
PLAN_FILE = "stress.json"
ROLES = ("client", "server")
STREAMS = {"TCP_STREAM": "tcp", "UDP_STREAM": "udp"}
KEYINGS = ("none", "manual", "ike")
# Stands in a command line for the length of a chunk; plugins/module_utils/stress_agent.py.
SECONDS = "@seconds"
# All that a stream is asked for. No latencies: over long runs netperf's overflow.
SELECTORS = (
    "PROTOCOL,ELAPSED_TIME,THROUGHPUT_UNITS,LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,"
    "LOCAL_TRANSPORT_RETRANS"
)
# The server outlives the client's last chunk by this much.
SERVER_GRACE_S = 60
# systemd ends a program that is this much late.
UNIT_GRACE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the verdict allows. ``drift_pct``: loss of throughput over the run; ``leak_mib_h``:
    memory lost an hour; ``silent_intervals``: intervals without a sample; ``clock_step_s``: change
    of the clock against the one that nobody sets."""

    drift_pct: float = 5.0
    leak_mib_h: float = 4.0
    silent_intervals: int = 5
    clock_step_s: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StressPlan:
    """One stress run. ``group`` is what the roles take to apply and prove the configuration;
    ``streams`` are command lines by name; ``hosts`` inventory names by role."""

    run_id: str
    matrix: str
    configuration: str
    about: str
    created_at: str
    lab: Lab
    keying: str
    duration_s: float
    interval_s: float
    chunk_s: float
    limits: Limits
    streams: dict[str, tuple[str, ...]]
    hosts: dict[str, str]
    group: dict[str, Any]


def why_not(item: ConfigurationSpec) -> str | None:
    """Why a configuration cannot be put under stress, None if it can."""
    if item.skip is None and item.kernel is not None:
        return f"it wants the kernel {item.kernel}, and a stress run boots none"
    return item.skip


def choose(matrix: Matrix, name: str | None) -> ConfigurationSpec:
    """The configuration of that name, or the only one. Raises UsageError."""
    runnable = [item for item in matrix.configurations if why_not(item) is None]
    if name is None:
        if len(runnable) == 1:
            return runnable[0]
        names = ", ".join(item.name for item in runnable)
        raise UsageError(f"stress {matrix.name}: found no --configuration; wanted one of {names}")
    for item in matrix.configurations:
        if item.name == name and why_not(item) is not None:
            raise UsageError(f"stress {matrix.name}: {name} cannot run here: {why_not(item)}")
        if item.name == name:
            return item
    names = ", ".join(item.name for item in runnable)
    raise UsageError(f"stress {matrix.name}: found configuration {name!r}; wanted one of {names}")


def stream_tests(matrix: Matrix) -> tuple[TestSpec, ...]:
    """The first test of each kind of stream. Raises UsageError if there is none."""
    found: dict[str, TestSpec] = {}
    for test in matrix.tests:
        if isinstance(test, TestSpec) and test.netperf in STREAMS:
            found.setdefault(test.netperf, test)
    if not found:
        raise UsageError(f"stress {matrix.name}: found no stream; wanted a test of one")
    return tuple(found.values())


def keying_of(subjects: Mapping[str, Any]) -> str:
    """``none``, ``manual`` or ``ike``, from a configuration's declaration."""
    ipsec = subjects.get("ipsec") or {}
    if not ipsec.get("connections"):
        return "none"
    return "manual" if ipsec.get("keying", "manual") == "manual" else "ike"


def make_stress(
    matrix: Matrix,
    *,
    configuration: str | None,
    run_id: str | None,
    created_at: str,
    duration_s: float,
    interval_s: float,
    chunk_s: float,
    lab: Mapping[str, str],
    client: Mapping[str, Any],
    server: Mapping[str, Any],
) -> dict[str, Any]:
    """The document ``stress.json``. ``lab``, ``client`` and ``server`` as in
    ``campaign.open_campaign``. Raises UsageError and InputError."""
    for what, value, least in (
        ("duration", duration_s, 1),
        ("interval", interval_s, 1),
        ("chunk", chunk_s, 1),
    ):
        if value < least:
            raise UsageError(f"stress: {what}: found {value:g} s; wanted at least {least} s")
    chosen = dataclasses.replace(choose(matrix, configuration), baseline=None)
    tests = stream_tests(matrix)
    alone = dataclasses.replace(matrix, configurations=(chosen,), baseline=chosen.name, tests=tests)
    name = run_id or f"stress-{chosen.name}-{created_at[:19].replace('-', '').replace(':', '')}"
    plan = parse_plan(
        make_plan(
            alone,
            alone.forms["short"],
            run_id=name,
            created_at=created_at,
            lab=dict(lab),
            seed=0,
            blocks=1,
        ),
        f"stress of {matrix.name}",
    )
    run = Run(path=Path(name), plan=plan, journal=(), torn_journal_line=False)
    first = next(group for group in groups_of(plan) if group.arm == "")
    group = describe_group(run, first, client, server)
    settings = {test.name: test.settings for test in plan.tests}
    # Nothing is measured while the configuration is proven.
    group = {**group, "title": chosen.name, "commands": [], "cells": [], "settings": {}}
    return {
        "schema": SCHEMA,
        "run_id": name,
        "matrix": matrix.name,
        "configuration": chosen.name,
        "about": chosen.about,
        "created_at": created_at,
        "lab": dict(lab),
        "keying": keying_of(group["subjects"]),
        "duration_s": duration_s,
        "interval_s": interval_s,
        "chunk_s": chunk_s,
        "limits": dataclasses.asdict(Limits()),
        "streams": {
            STREAMS[test.netperf]: stream_argv(settings[test.name], group) for test in tests
        },
        "hosts": {"client": str(client["name"]), "server": str(server["name"])},
        "group": group,
    }


def stream_argv(settings: Mapping[str, Any], group: Mapping[str, Any]) -> list[str]:
    """The command line of a stream, under the group's label; SECONDS stands for its length."""
    path = NetPath(
        control=group["control_address"],
        port=int(group["control_port"]),
        server=group["server_address"],
        client=group["client_address"],
    )
    command = ["netperf", "-H", path.control, "-p", str(path.port), "-t", settings["netperf"]]
    command += ["-l", SECONDS, "-P", "0", "--"]
    command += data_options(settings, path, int(group["payload_bytes"]))
    return _under(group, [*command, "-k", SELECTORS])


def _under(group: Mapping[str, Any], argv: list[str]) -> list[str]:
    return ["runcon", "-l", group["label"], *argv] if group["label"] else argv


def agent_plan(plan: StressPlan, role: str) -> dict[str, Any]:
    """What the stress program of a host is started with: ``{plan, limit}``."""
    group = plan.group
    client = role == "client"
    duration = plan.duration_s if client else plan.duration_s + SERVER_GRACE_S
    address = group["control_address"]
    netserver = ["netserver", "-D", "-N", "-p", str(group["control_port"])]
    netserver += ["-L", f"{address},{6 if ':' in address else 4}"]
    return {
        "plan": {
            "schema": SCHEMA,
            "duration_s": duration,
            "interval_s": plan.interval_s,
            "chunk_s": plan.chunk_s,
            "device": group["device"],
            "ipsec": plan.keying != "none",
            "netserver": None if client else _under(group, netserver),
            "streams": [
                {"name": name, "argv": list(argv)} for name, argv in plan.streams.items() if client
            ],
        },
        "limit": int(duration + 2 * plan.chunk_s) + UNIT_GRACE_S,
    }


def open_stress(
    *,
    matrix: str,
    configuration: str | None,
    runs: Path,
    run_id: str | None,
    duration_s: float,
    interval_s: float,
    chunk_s: float,
    lab: Mapping[str, str],
    client: Mapping[str, Any],
    server: Mapping[str, Any],
) -> Path:
    """Plan a stress run and make its folder. Raises CrossoverError."""
    document = make_stress(
        load_matrix(find_matrix(matrix)),
        configuration=configuration,
        run_id=run_id,
        created_at=journal.now(),
        duration_s=duration_s,
        interval_s=interval_s,
        chunk_s=chunk_s,
        lab=lab,
        client=client,
        server=server,
    )
    folder = runs / str(document["run_id"])
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(str(folder), "a folder", "no folder of that name yet") from None
    write_json(folder / PLAN_FILE, document)
    return folder


def load_stress(folder: Path) -> StressPlan:
    """Read the plan of a stress run. Raises InputError."""
    path = folder / PLAN_FILE
    if not path.is_file():
        raise InputError(str(folder), f"no {PLAN_FILE} in it", "the folder of a stress run")
    return parse_stress(read_json(path), str(path))


def parse_stress(document: Any, where: str) -> StressPlan:
    """Make a StressPlan of a decoded document; ``where`` names it in errors (InputError)."""
    top = Shape(document, where)
    top.schema(SCHEMA)
    lab, limits = top.shape("lab"), top.shape("limits")
    streams, hosts = top.anything("streams"), top.texts("hosts")
    for role in ROLES:
        if role not in hosts:
            raise InputError(f"{where}: hosts.{role}", "nothing", "a host of the inventory")
    plan = StressPlan(
        run_id=top.text("run_id"),
        matrix=top.text("matrix"),
        configuration=top.text("configuration"),
        about=top.text("about"),
        created_at=top.text("created_at"),
        lab=Lab(kind=lab.text("kind"), accelerator=lab.text("accelerator"), name=lab.text("name")),
        keying=top.choice("keying", KEYINGS),
        duration_s=top.number("duration_s"),
        interval_s=top.number("interval_s"),
        chunk_s=top.number("chunk_s"),
        limits=Limits(
            drift_pct=limits.number("drift_pct"),
            leak_mib_h=limits.number("leak_mib_h"),
            silent_intervals=limits.integer("silent_intervals"),
            clock_step_s=limits.number("clock_step_s"),
        ),
        streams={name: tuple(str(word) for word in argv) for name, argv in streams.items()},
        hosts=hosts,
        group=top.anything("group"),
    )
    for shape in (lab, limits, top):
        shape.done()
    return plan

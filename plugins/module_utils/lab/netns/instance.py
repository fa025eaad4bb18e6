"""Bringing a netns lab up and down. It is there as a whole or not at all (see ``init``)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LabError
from ..paths import tool_environment
from ..process import Process, identify
from ..seed import hosts_file
from ..state import locked
from ..topology import Topology, mac_address, read_topology
from . import view
from .state import NetnsState, folder, load

PROGRAMS = {
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "unshare": "util-linux",
}
COMMAND_LIMIT_S = 60.0


@dataclass(frozen=True)
class Wish:
    """What the lab shall be; ``init`` is the source text of the hosts' first process."""

    name: str
    topology: dict[str, Any]
    tools: Path | None
    init: str


def require_machine() -> None:
    """Raise LabError where this machine cannot hold such a lab, with the reason and a way out."""
    if os.geteuid() != 0:
        raise LabError(
            f"the lab of network namespaces: found uid {os.geteuid()}; wanted root, because making"
            " network namespaces and cables is the superuser's (use sudo; the guests of"
            " inventories/qemu need no root)"
        )
    path = tool_environment()["PATH"]
    missing = {name: PROGRAMS[name] for name in PROGRAMS if shutil.which(name, path=path) is None}
    if missing:
        raise LabError(
            f"the lab of network namespaces: missing {', '.join(missing)}; wanted the packages"
            f" {', '.join(sorted(set(missing.values())))} (crossover setup --netns)"
        )


def up(wish: Wish) -> tuple[bool, NetnsState]:
    """Ensure the lab runs as wished; returns whether anything was done. Raises LabError."""
    require_machine()
    topology = read_topology(wish.topology)
    with locked(wish.name, folder=folder(wish.name)):
        found = load(wish.name)
        tools = str(wish.tools or "")
        same = found is not None and (found.topology, found.tools) == (wish.topology, tools)
        if found is not None and same and found.running():
            return False, found
        _end(found)
        began = time.monotonic()
        made = NetnsState(wish.name, wish.topology, tools)
        with _hosts(wish, topology) as (nodes, go):
            made.nodes = nodes
            _connect(wish.name, topology, nodes)
            made.start_s = round(time.monotonic() - began, 3)
            made.write()
            # One write, which the kernel does not tear apart: a byte for each host, or for none.
            os.write(go, b"+" * len(nodes))
        return True, made


def down(name: str) -> bool:
    """Ensure the lab does not run; returns whether it did. Raises LabError."""
    if not folder(name).is_dir():
        return False
    require_machine()
    with locked(name, folder=folder(name)):
        found = load(name)
        alive = found is not None and any(node.alive() for node in found.nodes.values())
        _end(found)
        # The lock stays: another process may be waiting for this very file.
        for path in folder(name).iterdir():
            if path.name != "lock":
                path.unlink()
        return alive


def _end(found: NetnsState | None) -> None:
    """End what is left of a lab; its cables go with the namespaces."""
    for process in found.nodes.values() if found is not None else ():
        process.end()


@contextlib.contextmanager
def _hosts(wish: Wish, topology: Topology) -> Iterator[tuple[dict[str, Process], int]]:
    """Start every host; gives their first processes and the descriptor of the last word. Without
    that word they end when the pipe closes, however this process ends."""
    own = folder(wish.name)
    program, names = own / "init.py", own / "hosts"
    program.write_text(wish.init)
    names.write_text(hosts_file(topology))
    listen, go = os.pipe()
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for node in topology.nodes:
            started[node] = _start(program, listen)
        nodes = {
            node: _arrived(wish, node, names, listen, child) for node, child in started.items()
        }
        yield nodes, go
    finally:
        # Hosts that run hold both open; others never will.
        for path in (program, names):
            path.unlink(missing_ok=True)
        os.close(listen)
        os.close(go)
        for child in started.values():
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    stream.close()


def _start(program: Path, listen: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        view.start(program, "/usr/bin/python3"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**view.ENVIRONMENT, "LC_ALL": "C"},
        cwd="/",
        pass_fds=(listen,),
    )
    child.wait(COMMAND_LIMIT_S)  # it only hands its descriptors on
    return child


def _arrived(
    wish: Wish, node: str, names: Path, listen: int, child: subprocess.Popen[str]
) -> Process:
    """Tell a host what it is and wait until its view is made."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    order = {
        "name": node,
        "steps": view.mounts(
            Path("/proc/self/mountinfo").read_text(),
            names,
            wish.tools,
            filter(os.path.exists, (*view.READ_ONLY, view.MACHINE_RECORDS)),
        ),
        "mark": {"path": view.MARK, "text": f"{wish.name}/{node}\n"},
        "go": listen,
    }
    try:
        child.stdin.write(json.dumps(order) + "\n")
        child.stdin.flush()
        answer = json.loads(child.stdout.readline())
    except (OSError, ValueError):
        said = child.stderr.read().strip() or "it ended without a word"
        raise LabError(f"lab {wish.name}: {node} does not start: {said}") from None
    process = identify(int(answer["pid"])) if "pid" in answer else None
    if process is None:
        raise LabError(
            f"lab {wish.name}: {node} does not start: {answer.get('error', 'it ended at once')}"
        )
    return process


def _connect(name: str, topology: Topology, nodes: dict[str, Process]) -> None:
    """Make the cables and give the devices their addresses."""
    for link in topology.links:
        ends = [
            (end.device, mac_address(name, end.node, end.device), nodes[end.node].pid)
            for end in link.ends
        ]
        _run(name, view.link_command(ends))
    for node, process in nodes.items():
        script = view.address_script(topology, node)
        _run(name, view.entry(process.pid, ["ip", "-batch", "-"]), script)


def _run(name: str, argv: list[str], text: str = "") -> None:
    done = subprocess.run(
        argv,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_LIMIT_S,
        env={**view.ENVIRONMENT, "LC_ALL": "C"},
    )
    if done.returncode:
        raise LabError(f"lab {name}: {' '.join(argv)}: {done.stderr.strip()}")

# SPDX-License-Identifier: GPL-2.0-or-later
"""Which types of tunnel a host cannot have, found by making one of each where nobody sees it.

The devices are made in a network namespace of their own, which ends with the process that made
it. The kernel loads the modules of a type when it is asked for one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Dict, List, Tuple

from .host.errors import NotInstalledError
from .host.run import environment, run
from .kernel_state.tunnel_link import Link
from .kernel_state.tunnel_types import TYPES
from .shell_step import Step
from .tunnel_commands import Place, make

LIMIT_S = 120


def sample(name: str) -> Link:
    """A link of a type between two addresses of this host's own loopback."""
    kind = TYPES[name]
    ends = ("127.0.0.1", "127.0.0.2") if 4 in kind.outer else ("::1", "2001:db8::1")
    return Link(
        name="probe", type=name, ends=ends, port=kind.port,
        id=1 if "id" in kind.options else None,
    )  # fmt: skip


def commands(name: str) -> List[Step]:
    """What makes the device of a type, without addresses and keys."""
    steps = make(Place(sample(name), 0, "below", 1280))
    return [step for step in steps if step.argv[0] in ("ip", "modprobe") and not _secret(step)]


def _secret(step: Step) -> bool:
    return any(word.startswith("$KEY_") for word in step.argv)


def missing(names: Iterable[str]) -> Dict[str, str]:
    """``type -> reason`` of those that this host cannot have."""
    found: Dict[str, str] = {}
    for name in names:
        reason = _tool(name) or ("" if name == "ovs" else _kernel(name))
        if reason:
            found[name] = reason
    return found


def _tool(name: str) -> str:
    for tool in TYPES[name].tools:
        # Open vSwitch's client is of no use without its daemons.
        argv = [tool, "--timeout=5", "show"] if tool == "ovs-vsctl" else [tool, "--version"]
        try:
            code, _out, err = run(argv)
        except NotInstalledError:
            return f"{tool} is not installed"
        if code != 0:
            return f"{' '.join(argv)}: {err.strip().splitlines()[-1] if err.strip() else code}"
    return ""


def _kernel(name: str) -> str:
    lines = ["link set lo up", "link add name below type veth peer name far"]
    for step in commands(name):
        if step.argv[0] == "modprobe":
            code, _out, err = run(step.argv)
            if code != 0:
                return f"modprobe {step.argv[1]}: {err.strip() or code}"
            continue
        lines.append(" ".join(step.argv[1:]))
    code, said = _unshared("\n".join(lines) + "\n")
    return "" if code == 0 else said


def _unshared(text: str) -> Tuple[int, str]:
    try:
        done = subprocess.run(
            ["unshare", "--net", "ip", "-batch", "-"], input=text, capture_output=True, text=True,
            check=False, timeout=LIMIT_S, env=environment(),
        )  # fmt: skip
    except FileNotFoundError:
        return 127, "unshare is not installed"
    except subprocess.TimeoutExpired:
        return 124, f"no answer of ip within {LIMIT_S} s"
    kept = [one for one in done.stderr.splitlines() if not one.startswith("Command failed")]
    said = [one.strip() for one in kept if one.strip()]
    words = "; ".join(said[:2]) or f"ip ended with {done.returncode}"
    return done.returncode, f"none can be made: {words}"

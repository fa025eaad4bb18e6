# SPDX-License-Identifier: GPL-2.0-or-later
"""The effects of the ipsec module: run ip, read SAs and policies, labels, addresses, the record."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .guard import DISARMED, Armed
from .host import record
from .host.errors import HostError
from .kernel_state.errors import StateError, redact
from .kernel_state.failures import classify_ip
from .kernel_state.xfrm import Policy, PolicyId, Selector, State, Vault
from .kernel_state.xfrm_policy import parse_policies
from .kernel_state.xfrm_stat import parse_xfrm_stat
from .kernel_state.xfrm_state import parse_states
from .labelled import under
from .xfrm_plan import IpsecState, Owned

# In memory like the kernel's SAs, so that a reboot forgets both together.
RECORD = Path("/run/crossover/ipsec.json")
COMMAND_LIMIT_S = 300
SEARCH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
SELINUX = Path("/sys/fs/selinux")
XFRM_STAT = Path("/proc/net/xfrm_stat")


class IpsecError(Exception):
    """The host refused; the text says what and why, and holds no key."""


@dataclass(frozen=True)
class Finished:
    """A finished command. ``err`` may quote a key: show it redacted only."""

    code: int
    out: str
    err: str


def ip(*words: str, stdin: Optional[str] = None) -> Finished:
    """Run ``ip`` without a shell, in the C locale. Raises :class:`IpsecError`."""
    program = shutil.which("ip", path=SEARCH)
    if program is None:
        raise IpsecError("ip: not installed; wanted the package iproute2")
    try:
        done = subprocess.run(
            [program, *words],
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT_S,
            env={"PATH": SEARCH, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise IpsecError(
            f"ip {' '.join(words)}: no end within {COMMAND_LIMIT_S} s; wanted an answer of the "
            "kernel"
        ) from None
    return Finished(done.returncode, done.stdout, done.stderr)


def refusal(what: str, done: Finished) -> IpsecError:
    """A failed ``ip`` as an error for people."""
    for line in done.err.splitlines():
        known = classify_ip(line)
        if known is not None:
            return IpsecError(
                redact(f"{what}: {known.text}" + (f" ({known.hint})" if known.hint else ""))
            )
    said = (done.err.strip().splitlines() or ["nothing said"])[-1]
    return IpsecError(redact(f"{what}: exit code {done.code}, {said}"))


def _listing(*words: str) -> str:
    done = ip(*words)
    if done.code:
        raise refusal(f"ip {' '.join(words)}", done)
    return done.out


def read_states(keys: Optional[Vault] = None) -> Tuple[State, ...]:
    """The SAs with limits and counters; their keys only where a vault is given for them."""
    words = ["-s", "xfrm", "state", "list"] + ([] if keys is not None else ["nokeys"])
    text = _listing(*words)
    try:
        return parse_states(text, keys)
    except StateError as error:
        raise IpsecError(f"ip xfrm state: {error}") from error


def read_policies() -> Tuple[Policy, ...]:
    """The policies with limits."""
    try:
        return parse_policies(_listing("-s", "xfrm", "policy", "list"))
    except StateError as error:
        raise IpsecError(f"ip xfrm policy: {error}") from error


def read_present(with_keys: bool = False) -> IpsecState:
    """All SAs and policies of the host."""
    keys = Vault() if with_keys else None
    states = read_states(keys)
    return IpsecState(states, read_policies(), keys or Vault())


def batch(text: str) -> Finished:
    """Feed lines to ``ip -batch -``; keys travel on its standard input, never in an argv."""
    return ip("-batch", "-", stdin=text)


def read_stat() -> Dict[str, int]:
    """The counters of dropped packets; empty on a kernel without them."""
    try:
        return parse_xfrm_stat(XFRM_STAT.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, StateError) as error:
        raise IpsecError(f"{XFRM_STAT}: {error}") from error


def disarm(armed: Armed) -> bool:
    """Stand a guard down from the host itself, as its change has been undone; whether it had not
    fired before."""
    done = subprocess.run(
        ["/bin/sh", armed.script, "disarm"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_LIMIT_S,
    )
    return DISARMED in done.stdout


# --- the host ---------------------------------------------------------------------------------


def is_local(address: str) -> bool:
    """Whether an address is this host's own: whether a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


def clock_base() -> float:
    """Wall clock less time since the boot: changes only when somebody sets the clock, seconds."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def process_context(level: Optional[str]) -> Optional[str]:
    """The context in which ``runcon -l level`` runs a program from here, as the kernel spells it.

    None without SELinux. Raises :class:`IpsecError` for a level that cannot be.
    """
    if not (SELINUX / "enforce").exists():
        return None
    try:
        done = subprocess.run(
            under(level, ["cat", "/proc/self/attr/current"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT_S,
            env={"PATH": SEARCH, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IpsecError(f"level {level!r}: runcon: {error}") from error
    if done.returncode:
        raise IpsecError(f"level {level!r}: {done.stderr.strip()}; wanted one of the loaded policy")
    return done.stdout.rstrip("\0\n")


def canonical_context(context: str) -> str:
    """A context as the kernel spells it. Raises :class:`IpsecError` for one that is not valid."""
    try:
        descriptor = os.open(SELINUX / "context", os.O_RDWR)
    except OSError:
        raise IpsecError(
            f"label {context}: this host has no SELinux; wanted it on for labelled IPsec"
        ) from None
    try:
        os.write(descriptor, context.encode() + b"\0")
        return os.read(descriptor, 4096).rstrip(b"\0\n").decode()
    except OSError:
        raise IpsecError(
            f"label {context}: not valid under the loaded policy; wanted user:role:type:range"
        ) from None
    finally:
        os.close(descriptor)


# --- the record -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """What this collection added. ``connections``: name -> generation, reqids, added, clock;
    ``policies``: each by its identity, as it may have no template, or one that was changed."""

    connections: Dict[str, Dict[str, Any]]
    policies: Tuple[PolicyId, ...] = ()

    def owned(self) -> Owned:
        """For the planner."""
        ranges = [tuple(item["reqids"]) for item in self.connections.values()]
        return Owned(
            reqids=tuple((int(low), int(high)) for low, high in ranges),
            policies=frozenset(self.policies),
        )

    def as_dict(self) -> Dict[str, Any]:
        """For the file."""
        return {
            "connections": self.connections,
            "policies": [
                [direction, ptype, vars(selector), list(mark), if_id, context]
                for direction, ptype, selector, mark, if_id, context in self.policies
            ],
        }


def _policy_id(row: List[Any]) -> PolicyId:
    direction, ptype, selector, mark, if_id, context = row
    return (direction, ptype, Selector(**selector), (mark[0], mark[1]), if_id, context)


def read_record() -> Record:
    """The record; empty when there is none. Raises :class:`IpsecError`."""
    try:
        data = record.load(RECORD) or {"connections": {}, "policies": []}
        return Record(data["connections"], tuple(_policy_id(row) for row in data["policies"]))
    except (HostError, KeyError, TypeError, ValueError) as error:
        raise IpsecError(f"{RECORD}: {error}") from error


def write_record(item: Record) -> None:
    """Replace the record; an empty one leaves no file behind."""
    if item.connections or item.policies:
        record.save(RECORD, item.as_dict())
    else:
        record.forget(RECORD)

# SPDX-License-Identifier: GPL-2.0-or-later
"""The ike module's steps: prepare, start the daemon, wait for SAs, read back, take away.

The daemon is started anew for every change of the declared set, so that what runs is what was
declared and nothing that was left over.
"""

from __future__ import annotations

import secrets as random
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from . import audit, guard, ike_commands, ike_config, ipsec_host
from .host import record, shared
from .host.errors import HostError
from .ike_daemons import DAEMONS, RECORD, UNIT, Daemon, unit_runs
from .ipsec_build import make_policies, own_end
from .ipsec_declared import Connection, Match, read_connections
from .ipsec_host import IpsecError
from .ipsec_prepare import check_policies_and_labels, labelled, read_seed
from .ipsec_view import shown_state_of
from .kernel_state.declared import DeclarationError
from .kernel_state.xfrm import State
from .labelled import under
from .xfrm_explain import Evidence, Reason, explain
from .xfrm_plan import IpsecState

DEFAULT_WAIT_S = 60
_TRIGGER = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[4] == "tcp" else socket.SOCK_DGRAM
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family, kind) as one:
    one.settimeout(0.2)
    one.bind((sys.argv[1], 0))
    try:
        one.connect((sys.argv[2], int(sys.argv[3])))
        kind == socket.SOCK_DGRAM and one.send(b"crossover")
    except OSError:
        pass
"""


class NotUpError(Exception):
    """SAs did not come up. ``reasons`` say why, ``log`` what the daemon said; ``fired``: the guard
    did before the change was complete."""

    def __init__(
        self, text: str, reasons: Sequence[Reason], log: Sequence[str], fired: bool = False
    ) -> None:
        super().__init__(text)
        self.reasons, self.log, self.fired = tuple(reasons), tuple(log), fired


@dataclass(frozen=True)
class Change:
    """What is declared and what runs. ``ends``: this host's end of each connection; ``level``:
    that of the measured processes."""

    connections: Tuple[Connection, ...]
    ends: Tuple[int, ...]
    context: Optional[str]
    level: Optional[str]
    keying: str
    config: str
    known: Optional[Dict[str, Any]]
    generation: str
    restart: bool
    remove: bool
    warnings: Tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything is to be done."""
        return self.restart or self.remove

    def result(self) -> Dict[str, Any]:
        """The module's result before anything is read back."""
        was = self.known["config"] if self.known else ""
        return {
            "changed": self.changed,
            "context": self.context,
            "diff": {"before": was, "after": self.config},
            "connections": [
                {"name": item.name, "generation": self.generation, "label": item.label}
                for item in self.connections
            ],
            "by_hand": ike_commands.by_hand(self.keying, self.connections, self.ends, self.level),
            "guard": None,
        }


def prepare(parameters: Mapping[str, Any]) -> Change:
    """Read the host and decide. Nothing is changed.

    Raises :class:`DeclarationError`, :class:`IpsecError` and :class:`~.guard.GuardError`.
    """
    waited = guard.settle()
    known = _known()
    present = parameters["state"] == "present"
    keying = parameters["keying"]
    wanted = parameters["connections"] if present else []
    connections, context = labelled(read_connections(wanted), parameters.get("level"))
    ends = tuple(own_end(item, ipsec_host.is_local) for item in connections)
    if not connections:
        return Change(
            (), (), None, None, keying, "", known, "", False, known is not None or unit_runs(),
            tuple(waited),
        )  # fmt: skip
    reason = shared.refusal(f"keying {keying} (an IKE daemon's files)")
    if reason is not None:
        raise IpsecError(reason)
    ike_config.check(connections, keying)
    for item in connections:
        if item.label is not None and item.label != context:
            raise DeclarationError(
                f"connection {item.name}.label: {item.label}, wanted process: IKE makes SAs for "
                f"the label of the process whose packet asks for them, here {context}"
            )
    policies = [
        policy
        for item, end in zip(connections, ends)  # noqa: B905 - Python 3.9
        for policy in make_policies(item, end)
        if policy.templates
    ]
    check_policies_and_labels(
        IpsecState((), tuple(policies)), connections, parameters.get("management")
    )
    config = ike_config.configuration(keying, connections, ends)
    DAEMONS[keying]().preflight()
    same = known is not None and known["config"] == config and known["keying"] == keying
    keep = same and unit_runs() and not parameters["rekey"]
    generation = known["generation"] if keep and known else parameters.get("generation")
    return Change(
        connections, ends, context, parameters.get("level"), keying, config, known,
        generation or random.token_hex(8), not keep, False, tuple(waited),
    )  # fmt: skip


def _known() -> Optional[Dict[str, Any]]:
    try:
        return record.load(RECORD)
    except HostError as error:
        raise IpsecError(str(error)) from error


def carry_out(change: Change, parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Make what is declared run, and read the SAs back.

    Raises :class:`NotUpError` when SAs do not come; then everything has been taken away again.
    """
    wait_s = int(parameters["wait"])
    request = parameters["guard"] or {}
    result = change.result()
    if change.remove:
        _remove(change)
        return {**result, **_read(change)}
    armed = _arm(request, wait_s) if change.restart else None
    daemon = DAEMONS[change.keying]()
    where, before = audit.position(), ipsec_host.read_stat()
    try:
        if armed:
            guard.begin(armed)
        if change.restart:
            _remove(change)
            seed = read_seed(parameters.get("seed"))
            maker = getattr(ike_config, f"{change.keying}_secrets")
            record.save(
                RECORD,
                {
                    "keying": change.keying,
                    "config": change.config,
                    "generation": change.generation,
                },
            )
            if armed:
                guard.check(armed)
            daemon.start(change.config, maker(change.connections, ike_config.keys_of(seed)))
        if wait_s:
            _await_sas(change, daemon, wait_s)
        if armed:
            guard.finish(armed)
    except (IpsecError, guard.FiredError, OSError) as error:
        reasons = _reasons(change, daemon, str(error), where, before)
        log = daemon.complaints()
        _remove(change)
        if armed is not None and not ipsec_host.disarm(armed):
            guard.roll_back(armed)
        fired = isinstance(error, guard.FiredError)
        raise NotUpError(str(error), reasons, log, fired) from error
    return {**result, **_read(change), "guard": armed.as_result() if armed else None}


def _arm(request: Mapping[str, Any], wait_s: int) -> guard.Armed:
    timeout = request.get("timeout") or wait_s + guard.DEFAULT_TIMEOUT_S
    if timeout <= wait_s:
        raise DeclarationError(
            f"guard.timeout: {timeout} s, wanted more than the {wait_s} s of wait, in which no "
            "connection can confirm"
        )
    operations: List[guard.Operation] = [
        # Not waited for: a daemon that tells its peers takes longer than a step of a rollback may.
        guard.Command(("systemctl", "stop", "--no-block", UNIT), tolerate="not loaded"),
        guard.RemoveFile(str(RECORD)),
    ]
    return guard.arm(request.get("token") or random.token_hex(6), timeout, operations)


def _remove(change: Change) -> None:
    """End our daemon; nothing of it may be left in the kernel."""
    keying = change.known["keying"] if change.known else change.keying
    DAEMONS[keying]().stop()
    if unit_runs():
        raise IpsecError(f"{UNIT}: still runs after it was stopped; see systemctl status {UNIT}")
    record.forget(RECORD)


# --- waiting ----------------------------------------------------------------------------------


def _await_sas(change: Change, daemon: Daemon, wait_s: int) -> None:
    """Until every connection has SAs both ways; labelled ones are asked for with a packet."""
    limit = time.monotonic() + wait_s
    starters = ike_config.starters(change.connections, change.ends)
    said = ""
    pause = 0.3
    asked = False
    while True:
        lacking = _lacking(change)
        if not lacking:
            return
        if starters and not asked:
            said, asked = daemon.initiate(starters), True
        _trigger(change, lacking)
        refused = _final_refusal(daemon)
        if refused or time.monotonic() > limit:
            names = ", ".join(sorted({item.name for item, _ in lacking}))
            trouble = "; ".join(daemon.complaints()) or said.strip() or "the daemon says nothing"
            why = "refused" if refused else f"not up within {wait_s} s"
            raise IpsecError(f"IKE: {names}: {why}: {trouble}")
        time.sleep(pause)
        pause = min(pause * 1.5, 2.0)


def _index(change: Change, connection: Connection) -> int:
    return change.connections.index(connection)


def _final_refusal(daemon: Daemon) -> bool:
    """Whether the peer said no to what no retry can change."""
    words = ("TS_UNACCEPTABLE", "NO_PROPOSAL_CHOSEN", "AUTHENTICATION_FAILED")
    lines = daemon.log()
    return sum(1 for line in lines if any(word in line for word in words)) >= 3


def _lacking(change: Change) -> List[Tuple[Connection, Match]]:
    """Connections, and which of their selectors, that lack an SA in either direction."""
    states = [one for one in ipsec_host.read_states() if one.spi and one.algorithms]
    found = []
    for item in change.connections:
        for match in item.selectors:
            ways = (item.ends, (item.ends[1], item.ends[0]))
            if not all(any(_serves(one, item, match, way) for one in states) for way in ways):
                found.append((item, match))
    return found


def _serves(state: State, item: Connection, match: Match, way: Tuple[str, str]) -> bool:
    chosen = state.selector
    if match.protocol is not None and chosen is not None and chosen.proto != match.protocol:
        return state.mode == "tunnel"
    return (
        (state.src, state.dst) == way
        and state.mode == item.mode
        and (item.label is None or state.context == item.label)
    )


def _trigger(change: Change, lacking: Sequence[Tuple[Connection, Match]]) -> None:
    """Send a packet under the label of the measured processes; the kernel asks for its SA.

    Only the first end does: libreswan does not sort out two ends that ask at the same time, and
    each then keeps SAs that the other has not.
    """
    for item, match in lacking:
        end = change.ends[_index(change, item)]
        if item.label is None or end != 0:
            continue
        argv = ["/usr/bin/python3", "-I", "-S", "-c", _TRIGGER, item.ends[end], item.ends[1 - end]]
        argv += [str(match.port or ike_commands.TRIGGER_PORT), match.protocol or "udp"]
        subprocess.run(
            under(change.level, argv), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=30,
        )  # fmt: skip


def _reasons(
    change: Change,
    daemon: Daemon,
    error: str,
    where: audit.Position,
    before: Mapping[str, int],
) -> List[Reason]:
    try:
        present, after = ipsec_host.read_present(), ipsec_host.read_stat()
    except IpsecError:
        present, after = IpsecState(), {}
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    text = "\n".join([*daemon.log(), error])
    return explain(
        Evidence(
            error=text,
            grown={name: count for name, count in grown.items() if count > 0},
            states=present.states,
            policies=present.policies,
            context=change.context,
            denials=audit.denials_since(where),
        )
    )


def _read(change: Change) -> Dict[str, Any]:
    """The SAs and policies between the declared ends, as they are now."""
    present = ipsec_host.read_present()
    pairs = {frozenset(item.ends) for item in change.connections}
    states = tuple(one for one in present.states if frozenset((one.src, one.dst)) in pairs)
    reqids = {one.reqid for one in states}
    policies = tuple(
        one
        for one in present.policies
        if any(template.reqid in reqids for template in one.templates)
    )
    return {"state": shown_state_of(IpsecState(states, policies))}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare a change of the host's IPsec connections, without effect.

Keys are new for a connection when any of its SAs is missing or differs, and are kept otherwise:
a run that changes nothing changes no key. Both hosts make them from the same seed; each names
the seed by its generation, so that two hosts can be told to hold keys of one seed.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Tuple

from . import guard, ipsec_host
from .ipsec_build import SEED_BYTES, make_keys, make_policies, make_states, own_end, with_label
from .ipsec_commands import by_hand
from .ipsec_declared import Connection, read_connections
from .ipsec_host import IpsecError, Record
from .ipsec_view import shown_commands, shown_diff, shown_result
from .kernel_state.declared import DeclarationError
from .kernel_state.xfrm import Policy, State, Vault, policy_id, state_id
from .management import find_ancestry, plain_address, refused_contexts
from .xfrm_compare import state_changes
from .xfrm_plan import IpsecState, Management, Owned, XfrmPlan, plan, validate


@dataclass(frozen=True)
class Change:
    """What is there, what shall be, the plan between, and the record before and after. ``ends``:
    this host's end of each connection."""

    present: IpsecState
    declared: IpsecState
    owned: Owned
    steps: XfrmPlan
    before: Record
    after: Record
    connections: Tuple[Connection, ...]
    ends: Tuple[int, ...]
    context: Optional[str]
    rekeyed: Tuple[str, ...]
    warnings: Tuple[str, ...]

    @property
    def risky(self) -> bool:
        """Whether it can cut the management connection: policies, and the first label."""
        labelled = any(state.context for state in self.declared.states)
        was = any(item.context for item in (*self.present.states, *self.present.policies))
        return (labelled and not was) or any(
            item.what == "policy" and item.verb != "delete" for item in self.steps.operations
        )

    def result(self) -> Dict[str, Any]:
        """The module's result, as if the target were reached."""
        return {
            "changed": bool(self.steps.operations),
            **shown_commands(self.steps),
            "by_hand": by_hand(self.connections, self.ends),
            **shown_result(self.declared, self.connections, self.after.connections),
            "context": self.context,
            "rekeyed": list(self.rekeyed),
            "diff": shown_diff(self.present, self.declared, self.steps),
            "guard": None,
        }


def prepare(parameters: Mapping[str, Any]) -> Change:
    """Read the host and plan. Nothing is changed.

    Raises :class:`DeclarationError` for what is declared wrongly, :class:`IpsecError` and
    :class:`~.guard.GuardError` for what the host refuses.
    """
    waited = guard.settle()
    before = ipsec_host.read_record()
    owned = before.owned()
    wanted = parameters["connections"] if parameters["state"] == "present" else []
    connections, context = labelled(read_connections(wanted), parameters.get("level"))
    ends = tuple(own_end(item, ipsec_host.is_local) for item in connections)
    states = [
        make_states(item, end)
        for item, end in zip(connections, ends)  # noqa: B905 - Python 3.9
    ]
    policies = [
        policy
        for item, end in zip(connections, ends)  # noqa: B905 - Python 3.9
        for policy in make_policies(item, end)
    ]
    present = ipsec_host.read_present()
    _check_foreign(present, owned, connections, states, policies)
    stale = _stale(before, present, connections, states, bool(parameters.get("rekey")))
    gone = [item for item in before.connections if item not in {one.name for one in connections}]
    if present.states and (stale or gone):
        # Only now are keys needed: to tell that they differ, and to put SAs back on failure.
        present = ipsec_host.read_present(with_keys=True)
    generation = parameters.get("generation") or secrets.token_hex(8)
    keys = _keys(connections, stale, parameters.get("seed"), states, present.keys)
    declared = IpsecState(tuple(one for some in states for one in some), tuple(policies), keys)
    if connections:
        # Without new keys the old ones were not read: then only what needs none is checked.
        checked = declared if stale else replace(declared, states=())
        check_policies_and_labels(checked, connections, parameters.get("management"))
    after = _record(before, connections, stale, generation, policies)
    return Change(
        present=present, declared=declared, owned=owned,
        steps=plan(present, declared, owned), before=before, after=after,
        connections=connections, ends=ends, context=context, rekeyed=tuple(stale),
        warnings=tuple(waited),
    )  # fmt: skip


def labelled(
    connections: Sequence[Connection], level: Optional[str]
) -> Tuple[Tuple[Connection, ...], Optional[str]]:
    """Connections with their real labels, and the context of the measured processes."""
    if not any(item.label for item in connections):
        return tuple(connections), None
    context = ipsec_host.process_context(level)
    found = []
    for item in connections:
        own = with_label(item, context)
        label = own.label and ipsec_host.canonical_context(own.label)
        policy = own.policy_label and ipsec_host.canonical_context(own.policy_label)
        found.append(replace(own, label=label, policy_label=policy))
    return tuple(found), context


def _check_foreign(
    present: IpsecState,
    owned: Owned,
    connections: Sequence[Connection],
    states: Sequence[Sequence[State]],
    policies: Sequence[Policy],
) -> None:
    """Nothing that others added may be in the way, or be taken for ours later."""
    ranges = [(*item.reqids, item.name) for item in connections]
    ours = {state_id(state): state for some in states for state in some}
    errors: List[str] = []
    for state in present.states:
        if owned.has_state(state):
            continue
        if state_id(state) in ours:
            errors.append(f"SA spi 0x{state.spi or 0:x} to {state.dst}")
        errors += [
            f"an SA of reqid {state.reqid} (of {name})"
            for low, high, name in ranges
            if state.reqid is not None and low <= state.reqid <= high
        ]
    names = {policy_id(policy) for policy in policies}
    for policy in present.policies:
        if policy.socket or owned.has_policy(policy):
            continue
        if policy_id(policy) in names:
            chosen = policy.selector
            errors.append(f"policy {policy.direction} {chosen.src} to {chosen.dst}")
    if errors:
        raise IpsecError(
            f"this host has {'; '.join(errors[:4])}, which this collection did not add; wanted "
            "them gone, or another spi and reqid"
        )


def _stale(
    before: Record,
    present: IpsecState,
    connections: Sequence[Connection],
    states: Sequence[Sequence[State]],
    rekey: bool,
) -> List[str]:
    """Names of the connections that need new keys."""
    have = {state_id(state): state for state in present.states}
    nothing = Vault()
    found = []
    for item, own in zip(connections, states):  # noqa: B905 - Python 3.9
        known = before.connections.get(item.name)
        same = known is not None and all(
            state_id(state) in have
            and not state_changes(have[state_id(state)], state, nothing, nothing)
            and not _later(have[state_id(state)], known)
            for state in own
        )
        if rekey or not same:
            found.append(item.name)
    return found


def _later(state: State, known: Mapping[str, Any]) -> bool:
    """Whether somebody else put the SA there after us."""
    added = state.usage.added if state.usage else None
    return bool(added and known.get("added") and added > known["added"])


def _keys(
    connections: Sequence[Connection],
    stale: Sequence[str],
    seed: Optional[str],
    states: Sequence[Sequence[State]],
    have: Vault,
) -> Vault:
    """New keys for stale connections; for the others those on the host, where they were read."""
    keys = Vault()
    for item, own in zip(connections, states):  # noqa: B905 - Python 3.9
        if item.name in stale:
            make_keys(item, read_seed(seed), keys)
            continue
        for state in own:
            for part in state.algorithms:
                key = have.get(state_id(state), part.kind)
                if key is not None:
                    keys.put(state_id(state), part.kind, key)
    return keys


def read_seed(text: Optional[str]) -> bytes:
    """The seed's bytes. Raises :class:`DeclarationError`, without what came: it is a secret."""
    try:
        seed = base64.b64decode(text or "", validate=True)
    except binascii.Error:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise DeclarationError(
            f"seed: wanted {SEED_BYTES} bytes in base64, as the action ipsec_keys makes them"
        )
    return seed


def check_policies_and_labels(
    declared: IpsecState,
    connections: Sequence[Connection],
    management: Optional[List[str]],
) -> None:
    """Raises when the set is wrong in itself, or would cut the management connection.

    ``management``: the addresses to protect; None: the other end of the SSH connection.
    """
    ancestry = find_ancestry()
    if management is None:
        protected = [ancestry.peer] if ancestry.peer else []
    else:
        protected = [plain_address(address) or address for address in management]
    errors = validate(declared, [Management(address) for address in protected])
    if errors:
        raise DeclarationError("; ".join(errors[:8]))
    if any(item.label for item in connections) and management != []:
        refused = refused_contexts(ancestry.contexts)
        if refused:
            raise IpsecError(
                f"SELinux is enforcing and lets {refused[0]} receive nothing from unlabelled peers "
                "(class peer, recv), so the first labelled SA would cut SSH; wanted the policy "
                "module crossover_netlabel (role selinux) or permissive mode"
            )


def _record(
    before: Record,
    connections: Sequence[Connection],
    stale: Sequence[str],
    generation: str,
    policies: Sequence[Policy],
) -> Record:
    rows: Dict[str, Dict[str, Any]] = {}
    for item in connections:
        known = before.connections.get(item.name, {})
        fresh = {"generation": generation, "clock": round(ipsec_host.clock_base(), 1)}
        rows[item.name] = {**known, **(fresh if item.name in stale else {})}
        rows[item.name].update(reqids=list(item.reqids), sas=2 * item.pairs)
    return Record(rows, tuple(policy_id(policy) for policy in policies))

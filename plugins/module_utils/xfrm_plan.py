"""From the present SAs and policies to the declared ones: operations, rollback and diff.

Pure: nothing here runs a command. A plan becomes text for the standard input of ``ip -batch -``.
That text holds keys; the operations, the diff and every message do not. Only what is declared, or
owned (added by an earlier run: told by reqid or SPI), is touched.

Order: SAs before the policies that want them, policies away before their SAs. The kernel cannot
change the key or mode of an SA, so a changed one is deleted and added in two neighbouring lines;
a policy is replaced at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from .kernel_state.xfrm import (
    Policy,
    PolicyId,
    Secret,
    State,
    StateId,
    Vault,
    policy_id,
    state_id,
)
from .kernel_state.xfrm_check import Management, check_policies, check_states
from .kernel_state.xfrm_command import (
    MissingKeyError,
    add_state,
    delete_policy,
    delete_state,
    policy_name,
    put_policy,
    state_name,
)
from .xfrm_compare import policy_changes, shown_policy, shown_state, state_changes

__all__ = [
    "IpsecState",
    "Management",
    "MissingKeyError",
    "Operation",
    "Owned",
    "Secret",
    "Vault",
    "XfrmPlan",
    "diff",
    "plan",
    "restore",
    "validate",
]


@dataclass(frozen=True)
class IpsecState:
    """SAs and policies, with the keys beside them (declared ones, or those read on the host)."""

    states: Tuple[State, ...] = ()
    policies: Tuple[Policy, ...] = ()
    keys: Vault = field(default_factory=Vault, repr=False, compare=False)


@dataclass(frozen=True)
class Owned:
    """What earlier runs added: inclusive ranges of reqids, SPIs, and single SAs and policies
    (such as policies that block, which have no template and so no reqid)."""

    reqids: Tuple[Tuple[int, int], ...] = ()
    spis: FrozenSet[int] = frozenset()
    policies: FrozenSet[PolicyId] = frozenset()
    states: FrozenSet[StateId] = frozenset()

    def _reqid(self, reqid: Optional[int]) -> bool:
        return reqid is not None and any(low <= reqid <= high for low, high in self.reqids)

    def has_state(self, state: State) -> bool:
        """Whether an SA is ours."""
        ours = self._reqid(state.reqid) or state.spi in self.spis
        return ours or state_id(state) in self.states

    def has_policy(self, policy: Policy) -> bool:
        """Whether a policy is ours; those of a socket never are."""
        if policy.socket:
            return False
        ours = any(self._reqid(template.reqid) for template in policy.templates)
        return ours or policy_id(policy) in self.policies


@dataclass(frozen=True)
class Operation:
    """One change. ``verb`` add, update or delete; ``what`` sa or policy; ``why`` the fields that
    differ. ``steps`` are (line, line that undoes it or None) and may hold keys."""

    verb: str
    what: str
    name: str
    why: Tuple[str, ...] = ()
    steps: Tuple[Tuple[str, Optional[str]], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class XfrmPlan:
    """Operations in order. ``irreversible`` names SAs whose key is not known, so that a rollback
    cannot put them back."""

    operations: Tuple[Operation, ...]
    irreversible: Tuple[str, ...]

    def _steps(self) -> List[Tuple[str, Optional[str]]]:
        return [step for operation in self.operations for step in operation.steps]

    def batch(self) -> str:
        """The text for ``ip -batch -``, one command a line. Holds keys."""
        return "".join(f"{line}\n" for line, _ in self._steps())

    def rollback(self) -> str:
        """The text that undoes the whole plan, last change first. Holds keys.

        ``ip xfrm`` ends at the first line it refuses, so this text fits a plan that was done as a
        whole. After a part of it, :func:`restore` says what is to be undone.
        """
        return "".join(f"{undo}\n" for _, undo in reversed(self._steps()) if undo is not None)


def validate(declared: IpsecState, management: Sequence[Management] = ()) -> List[str]:
    """Errors that name item and key; empty when the set can be applied."""
    errors = check_states(declared.states, declared.keys)
    return errors + check_policies(declared.policies, management)


# --- planning ---------------------------------------------------------------------------------


def plan(present: IpsecState, declared: IpsecState, owned: Optional[Owned] = None) -> XfrmPlan:
    """The operations that turn ``present`` into ``declared``; none when nothing differs.

    ``owned`` things that are not declared are deleted; others are left alone. Work grows with the
    number of SAs and policies, not with its square. Raises :class:`MissingKeyError` when a
    declared SA has no key (:func:`validate` says so first).
    """
    mine = owned or Owned()
    builder = _Builder(present, declared)
    sas: Dict[StateId, State] = {state_id(state): state for state in declared.states}
    have_sas = {state_id(state): state for state in present.states}
    policies: Dict[PolicyId, Policy] = {policy_id(item): item for item in declared.policies}
    have_policies = {policy_id(item): item for item in present.policies if not item.socket}
    gone_sas = [
        state for key, state in have_sas.items() if key not in sas and mine.has_state(state)
    ]
    gone_policies = [
        item for key, item in have_policies.items() if key not in policies and mine.has_policy(item)
    ]
    # An SA that goes may stand in the way of one that comes (same SPI, other mark).
    taken = {
        (state.dst, state.proto, state.spi) for key, state in sas.items() if key not in have_sas
    }
    blocking = [state for state in gone_sas if (state.dst, state.proto, state.spi) in taken]
    for state in blocking:
        builder.delete_sa(state)
    for key, state in sas.items():
        if key not in have_sas:
            builder.add_sa(state)
        else:
            builder.update_sa(have_sas[key], state)
    for name, item in policies.items():
        builder.put_policy(have_policies.get(name), item)
    for item in gone_policies:
        builder.delete_policy(item)
    for state in gone_sas:
        if (state.dst, state.proto, state.spi) not in taken:
            builder.delete_sa(state)
    return XfrmPlan(tuple(builder.operations), tuple(builder.irreversible))


def restore(
    now: IpsecState, before: IpsecState, declared: IpsecState, owned: Optional[Owned] = None
) -> XfrmPlan:
    """The plan that undoes an attempt to reach ``declared``, wherever it stopped.

    ``now`` is read after the attempt, ``before`` was read (with its keys) before it. Which
    operation was refused is the first one of ``plan(now, declared, owned)``.
    """
    mine = owned or Owned()
    touched = Owned(
        mine.reqids,
        mine.spis,
        mine.policies | {policy_id(item) for item in declared.policies},
        mine.states | {state_id(state) for state in declared.states},
    )
    target = IpsecState(
        tuple(state for state in before.states if touched.has_state(state)),
        tuple(item for item in before.policies if touched.has_policy(item)),
        before.keys,
    )
    return plan(now, target, touched)


class _Builder:
    """Collects operations with what undoes each of their lines."""

    def __init__(self, present: IpsecState, declared: IpsecState) -> None:
        self._have = present.keys
        self._want = declared.keys
        self.operations: List[Operation] = []
        self.irreversible: List[str] = []

    def _put_back(self, state: State) -> Optional[str]:
        try:
            return add_state(state, self._have)
        except MissingKeyError:
            self.irreversible.append(state_name(state))
            return None

    def add_sa(self, state: State) -> None:
        steps = ((add_state(state, self._want), delete_state(state)),)
        self.operations.append(Operation("add", "sa", state_name(state), (), steps))

    def update_sa(self, now: State, wanted: State) -> None:
        why = state_changes(now, wanted, self._have, self._want)
        if not why:
            return
        steps = (
            (delete_state(now), self._put_back(now)),
            (add_state(wanted, self._want), delete_state(wanted)),
        )
        self.operations.append(Operation("update", "sa", state_name(wanted), why, steps))

    def delete_sa(self, state: State) -> None:
        steps = ((delete_state(state), self._put_back(state)),)
        self.operations.append(Operation("delete", "sa", state_name(state), (), steps))

    def put_policy(self, now: Optional[Policy], wanted: Policy) -> None:
        name = policy_name(wanted)
        if now is None:
            steps = ((put_policy("add", wanted), delete_policy(wanted)),)
            self.operations.append(Operation("add", "policy", name, (), steps))
            return
        why = policy_changes(now, wanted)
        if why:
            steps = ((put_policy("update", wanted), put_policy("update", now)),)
            self.operations.append(Operation("update", "policy", name, why, steps))

    def delete_policy(self, policy: Policy) -> None:
        steps = ((delete_policy(policy), put_policy("add", policy)),)
        self.operations.append(Operation("delete", "policy", policy_name(policy), (), steps))


# --- showing ----------------------------------------------------------------------------------


def diff(
    present: IpsecState, declared: IpsecState, owned: Optional[Owned] = None
) -> Dict[str, Dict[str, Any]]:
    """``{"before": …, "after": …}`` for Ansible's diff: only what a plan would touch.

    No key and nothing made from one: a key that differs is shown as ``key: changed``.
    """
    before: Dict[str, Any] = {"sas": {}, "policies": {}}
    after: Dict[str, Any] = {"sas": {}, "policies": {}}
    have = {state_name(state): state for state in present.states}
    want = {state_name(state): state for state in declared.states}
    have_policies = {policy_name(item): item for item in present.policies if not item.socket}
    want_policies = {policy_name(item): item for item in declared.policies}
    for operation in plan(present, declared, owned).operations:
        name = operation.name
        if operation.what == "policy":
            if operation.verb != "add":
                before["policies"][name] = shown_policy(have_policies[name])
            if operation.verb != "delete":
                after["policies"][name] = shown_policy(want_policies[name])
            continue
        if operation.verb != "add":
            before["sas"][name] = shown_state(have[name])
        if operation.verb != "delete":
            after["sas"][name] = shown_state(want[name])
        if "key" in operation.why:
            after["sas"][name]["key"] = "changed"
    return {"before": before, "after": after}

# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry out a prepared change of IPsec connections as one step, and read it back."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional

from . import guard, ipsec_host
from .host.record import SCHEMA
from .ipsec_declared import Connection
from .ipsec_host import IpsecError, Record
from .ipsec_prepare import Change
from .ipsec_view import shown_result
from .kernel_state.errors import redact
from .kernel_state.failures import batch_failures
from .kernel_state.xfrm import policy_id, state_id
from .xfrm_explain import Evidence, Reason, explain
from .xfrm_plan import IpsecState, plan, restore

# What the slowest host is expected to apply: an emulated guest beside others.
LINES_A_SECOND = 20


class RefusedError(Exception):
    """A change that failed half-way. ``left`` names what could not be undone."""

    def __init__(
        self, text: str, left: Sequence[str], reasons: Sequence[Reason], fired: bool = False
    ) -> None:
        self.left, self.reasons, self.fired = tuple(left), tuple(reasons), fired
        end = f"undoing it failed in part: {'; '.join(left)}" if left else "undone"
        super().__init__(redact(f"{text}; {end}"))


def carry_out(change: Change, request: Mapping[str, Any]) -> Dict[str, Any]:
    """Apply the change as one step and read it back; the module's result. ``applied`` in it has
    the number of operations on SAs and policies and the seconds that they took, the reading back
    included; it is absent where nothing was changed.

    Raises :class:`RefusedError` after a failure half-way, :class:`~.guard.GuardError` when no
    guard can be armed, and then nothing has been changed.
    """
    result = change.result()
    if not result["changed"]:
        if change.before != change.after:
            ipsec_host.write_record(change.after)
        return result
    armed = _arm(change, request) if change.risky else None
    both = Record(
        {**change.before.connections, **change.after.connections},
        change.before.policies + change.after.policies,
    )
    began = time.monotonic()
    try:
        if armed:
            guard.begin(armed)
        ipsec_host.write_record(both)
        if armed:
            guard.check(armed)
        done = ipsec_host.batch(change.steps.batch())
        found = ipsec_host.read_present()
        left = plan(found, change.declared, change.owned).operations
        if done.code or left:
            raise _refusal(change, done, found, [f"{item.verb} {item.name}" for item in left])
        ipsec_host.write_record(_dated(change.after, change.connections, found))
        if armed:
            guard.finish(armed)
    except (IpsecError, guard.FiredError, OSError) as error:
        reasons = getattr(error, "reasons", ())
        fired = isinstance(error, guard.FiredError)
        raise RefusedError(str(error), _undo(change, armed), reasons, fired) from error
    return {
        **result,
        **shown_result(_ours(found, change), change.connections, change.after.connections),
        "guard": armed.as_result() if armed else None,
        "applied": {
            "operations": len(change.steps.operations),
            "seconds": round(time.monotonic() - began, 3),
        },
    }


class _StepError(IpsecError):
    """A refusal with its reasons."""

    def __init__(self, text: str, reasons: Sequence[Reason]) -> None:
        super().__init__(text)
        self.reasons = tuple(reasons)


def _refusal(
    change: Change, done: ipsec_host.Finished, found: IpsecState, left: Sequence[str]
) -> _StepError:
    """ip ends at the first line that the kernel refuses: the first operation that is left."""
    what = left[0] if left else "ip -batch"
    if not done.code:
        return _StepError(f"{what}: done without complaint, but not read back", ())
    failures = batch_failures(done.err)
    error = ipsec_host.refusal(what, done)
    reasons = explain(
        Evidence(
            error=redact(done.err),
            states=found.states,
            policies=found.policies,
            context=change.context,
        )
    )
    return _StepError(str(error), reasons if failures else ())


# Undoes as a whole what was done as a whole, and otherwise line by line: ip ends at the first line
# that does not fit what is there. printf is the shell's own, so that no key is in an argv.
_UNDO = r"""text=$(cat)
printf '%s\n' "$text" | ip -batch - >/dev/null 2>&1 && exit 0
said=$(printf '%s\n' "$text" | while IFS= read -r line; do
    printf '%s\n' "$line" | ip -batch - 2>&1 | grep -v \
        -e 'No such process' -e 'No such file or directory' -e 'File exists'
done)
[ -z "$said" ] && exit 0
printf '%s\n' "$said" | sed 's/0x[0-9a-f]\{9,\}/<key>/g'
exit 1"""


def _arm(change: Change, request: Mapping[str, Any]) -> guard.Armed:
    token = request.get("token") or secrets.token_hex(6)
    wanted = request.get("timeout") or guard.DEFAULT_TIMEOUT_S
    # A large table takes its time before anybody can confirm it.
    timeout = min(wanted + len(change.steps.operations) // LINES_A_SECOND, guard.MOST_TIMEOUT_S)
    path = str(ipsec_host.RECORD)
    operations: List[guard.Operation] = [
        guard.Command(("/bin/sh", "-c", _UNDO), stdin=change.steps.rollback())
    ]
    if change.before.connections or change.before.policies:
        text = json.dumps({"schema": SCHEMA, **change.before.as_dict()}) + "\n"
        operations.append(guard.WriteFile(path, text, 0o600))
    else:
        operations.append(guard.RemoveFile(path))
    return guard.arm(token, timeout, operations)


def _undo(change: Change, armed: Optional[guard.Armed]) -> List[str]:
    """Put back what was there; what could not be put back."""
    left: List[str] = []
    try:
        now = ipsec_host.read_present(with_keys=True)
        back = restore(now, change.present, change.declared, change.owned)
        done = ipsec_host.batch(back.batch())
        found = ipsec_host.read_present()
        rest = restore(found, change.present, change.declared, change.owned).operations
        left = [f"{item.verb} {item.name}" for item in rest]
        if done.code and left:
            left[0] = str(ipsec_host.refusal(left[0], done))
        if not left:
            ipsec_host.write_record(change.before)
    except (IpsecError, OSError) as error:
        left.append(str(error))
    if armed is None:
        return left
    if left or not ipsec_host.disarm(armed):
        return list(guard.roll_back(armed))
    return left


def _dated(after: Record, connections: Sequence[Connection], found: IpsecState) -> Record:
    """The record with the time of the last SA of each connection."""
    rows = {}
    for item in connections:
        low, high = item.reqids
        times = [
            state.usage.added
            for state in found.states
            if state.usage and state.usage.added and low <= (state.reqid or 0) <= high
        ]
        rows[item.name] = {**after.connections[item.name], "added": max(times, default=None)}
    return Record(rows, after.policies)


def _ours(found: IpsecState, change: Change) -> IpsecState:
    """What was read back of the declared."""
    states = {state_id(one) for one in change.declared.states}
    policies = {policy_id(one) for one in change.declared.policies}
    return IpsecState(
        tuple(one for one in found.states if state_id(one) in states),
        tuple(one for one in found.policies if not one.socket and policy_id(one) in policies),
    )

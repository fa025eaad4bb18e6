# SPDX-License-Identifier: GPL-2.0-or-later
"""What the ipsec module shows, without a key and of bounded size. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Dict, List

from .ipsec_declared import Connection
from .kernel_state.errors import redact
from .kernel_state.xfrm_command import policy_name, state_name
from .xfrm_compare import shown_policy, shown_state
from .xfrm_plan import IpsecState, XfrmPlan

# A table of thousands of SAs is not printed as a whole.
MOST_SHOWN = 64


def shown_commands(steps: XfrmPlan) -> Dict[str, Any]:
    """``commands``: the first lines for ``ip -batch -``, keys redacted; and how many there are."""
    lines: List[str] = []
    total = 0
    for operation in steps.operations:
        total += len(operation.steps)
        if len(lines) < MOST_SHOWN:
            lines += [f"ip {redact(line)}" for line, _ in operation.steps]
    return {"commands": lines[:MOST_SHOWN], "commands_total": total}


def shown_state_of(state: IpsecState) -> Dict[str, Any]:
    """SAs and policies, the first of each, and how many there are. SAs in the order of their SPI:
    that of the measured flow is the lowest of its table."""
    states = sorted(state.states, key=lambda one: one.spi or 0)
    policies = [one for one in state.policies if not one.socket]
    return {
        "sas": {state_name(one): shown_state(one) for one in states[:MOST_SHOWN]},
        "sas_total": len(state.states),
        "policies": {policy_name(one): shown_policy(one) for one in policies[:MOST_SHOWN]},
        "policies_total": len(policies),
    }


def shown_result(
    state: IpsecState,
    connections: Sequence[Connection],
    recorded: Mapping[str, Mapping[str, Any]],
) -> Dict[str, Any]:
    """``state`` and ``connections`` of the result."""
    return {
        "state": shown_state_of(state),
        "connections": [
            {
                "name": item.name,
                "generation": recorded.get(item.name, {}).get("generation"),
                "ends": list(item.ends),
                "mode": item.mode,
                "label": item.label,
                "policy_label": item.policy_label,
                "spis": [item.spi, item.spi + 2 * item.pairs - 1],
                "reqids": list(item.reqids),
            }
            for item in connections
        ],
    }


def shown_diff(
    present: IpsecState, declared: IpsecState, steps: XfrmPlan
) -> Dict[str, Dict[str, Any]]:
    """What the plan touches, for Ansible's diff; a key that differs is shown as changed."""
    sides: Dict[str, Dict[str, Any]] = {
        "before": {"sas": {}, "policies": {}},
        "after": {"sas": {}, "policies": {}},
    }
    left = steps.operations[MOST_SHOWN:]
    shown = steps.operations[:MOST_SHOWN]
    touched = {item.name for item in shown if item.what == "sa"}
    named = {item.name for item in shown if item.what == "policy"}
    for side, state in (("before", present), ("after", declared)):
        for one in state.states:
            if state_name(one) in touched:
                sides[side]["sas"][state_name(one)] = shown_state(one)
        for policy in state.policies:
            if policy_name(policy) in named and not policy.socket:
                sides[side]["policies"][policy_name(policy)] = shown_policy(policy)
    for item in shown:
        if "key" in item.why:
            sides["after"]["sas"][item.name]["key"] = "changed"
    if left:
        sides["after"]["more"] = f"{len(left)} changes not shown"
    return sides

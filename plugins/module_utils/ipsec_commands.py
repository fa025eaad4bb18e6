# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that build manually keyed connections by hand. Pure.

They are those that the module gives to ``ip -batch``, with placeholders in the place of keys. A
table of many pairs of SAs is built by a loop, which is as short for ten thousand as for two.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import List, Optional, Tuple

from .ipsec_build import labels_of, make_policies, make_states
from .ipsec_declared import Connection
from .kernel_state.context import low_level, parse_context
from .kernel_state.xfrm import Policy, Secret, State, Vault, state_id
from .kernel_state.xfrm_command import add_state, put_policy
from .shell_step import (
    IPSEC_WORKS,
    SSH_STAYS,
    Expanded,
    Step,
    expand,
    hashed,
    hexadecimal,
    key_line,
    placeholder,
    with_secret,
)

# The pair of SAs that a loop repeats is the second one.
_LOOPED = 2


def by_hand(connections: Sequence[Connection], ends: Sequence[int]) -> List[str]:
    """The shell commands that build connections on a host that has none, in order. ``ends``: which
    end of each it is."""
    lines = [SSH_STAYS, IPSEC_WORKS] if any(item.label for item in connections) else []
    both = list(zip(connections, ends))  # noqa: B905 - Python 3.9
    for item, end in both:
        lines += _states(item, end)
    for item, end in both:
        lines += _policies(item, end)
    return with_secret(lines)


def _states(item: Connection, end: int) -> List[str]:
    lines: List[str] = []
    for state in make_states(replace(item, pairs=1), end):
        lines += _state(item, state, f"0x{state.spi or 0:x}", f"{item.name}_{state.spi or 0:x}")
    if item.pairs == 1:
        return lines
    body: List[str] = []
    for way, state in enumerate(make_states(replace(item, pairs=_LOOPED), end)[-2:]):
        spi = f"$((0x{item.spi + way:x} + 2 * n))"
        body += _state(item, state, spi, f"{item.name}_way_{way + 1}", looped=True)
    return [*lines, _loop_of_labels(item, body) if item.vary == "label" else _loop(item, body)]


def _state(item: Connection, state: State, spi: str, owner: str, looped: bool = False) -> List[str]:
    """The lines that make the keys of an SA and add it; ``looped``: for any of its kind, after the
    number ``n`` in the shell."""
    keys = Vault()
    lines: List[str] = []
    for part in state.algorithms:
        if not part.key_bits:
            continue
        name = placeholder(owner, part.kind)
        keys.put(state_id(state), part.kind, Secret(name))
        purpose, then = f"{item.name} {spi} {part.kind}", hexadecimal(part.key_bits // 8)
        if looped:
            # Always anew: the variable is set, by the round before.
            lines.append(f"{name[1:]}=0x{hashed(purpose, then)}")
        else:
            lines.append(key_line(name, purpose, then, "0x"))
    values = {"spi": spi}
    if looped and item.vary == "selector":
        values["reqid"] = _reqid(item)
    elif looped:
        values["ctx"] = _label(item)
    return [*lines, _line(add_state(state, keys), values if looped else {})]


def _reqid(item: Connection) -> str:
    return f"$((0x{item.reqid:x} + n))"


def _label(item: Connection) -> str:
    context = parse_context(str(item.label))
    return f"{context.user}:{context.role}:{context.type}:$range"


def _line(text: str, values: Mapping[str, str]) -> str:
    """A line for ``ip -batch`` as a command; the words behind some others replaced by what the
    shell expands."""
    words = ["ip", *expand(shlex.split(text))]
    for at, word in enumerate(words[:-1]):
        if word in values:
            words[at + 1] = Expanded(values[word])
    return Step(tuple(words)).shell()


def _policies(item: Connection, end: int) -> List[str]:
    one = replace(item, pairs=1)
    lines = [_line(put_policy("add", policy), {}) for policy in make_policies(one, end)]
    if item.pairs == 1 or item.vary != "selector":
        return lines
    body = []
    for policy in make_policies(replace(item, pairs=_LOOPED), end):
        port = _filling(policy, item.reqid + 1)
        if port is not None:
            side, number = port
            value = f"$(({number - 1} + n))"
            body.append(_line(put_policy("add", policy), {side: value, "reqid": _reqid(item)}))
    return [*lines, _loop(item, body)]


def _filling(policy: Policy, reqid: int) -> Optional[Tuple[str, int]]:
    """Of a policy that only fills the table, and has this reqid, which port it selects."""
    if not any(template.reqid == reqid for template in policy.templates):
        return None
    chosen = policy.selector
    return ("sport", chosen.sport) if chosen.sport is not None else ("dport", chosen.dport or 0)


def _loop(item: Connection, body: Sequence[str]) -> str:
    lines = [f"for n in $(seq 1 {item.pairs - 1}); do", *(f"    {line}" for line in body), "done"]
    return "\n".join(lines)


def _loop_of_labels(item: Connection, body: Sequence[str]) -> str:
    """Every pair of categories in order, but the label of the measured flow."""
    _level, categories = low_level(parse_context(str(labels_of(item)[-1])).range or "")
    own = shlex.quote(parse_context(str(item.label)).range or "")
    lines = [
        "n=0",
        f"for low in $(seq 0 {min(categories)}); do for high in $(seq $((low + 1)) 1023); do",
        f"    range=s0:c$low,c$high; [ $range != {own} ] || continue",
        f"    n=$((n + 1)); [ $n -le {item.pairs - 1} ] || break",
        *(f"    {line}" for line in body),
        "done; done",
    ]
    return "\n".join(lines)

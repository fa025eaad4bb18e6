# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that build a NetLabel configuration by hand on a host as it boots. Pure.

The same plan as the module's, from the state that a kernel starts with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, List, Optional, Tuple

from .cipso_items import DOI, STATIC, SYSCTL, UNLABELLED_DEFAULT, Items, items_of, state_of
from .kernel_state.netlabel import Unlabelled
from .netlabel_plan import Argv, NetlabelState, plan
from .shell_step import SSH_STAYS, Expanded, Step

# A longer table of equal pairs is written as the range that it is.
_MOST_PAIRS = 8


def by_hand(declared: Mapping[Tuple[Any, ...], Any]) -> List[str]:
    """The shell commands for declared items, in order; none for none."""
    lines = [
        Step(("sysctl", "-w", f"net.ipv4.{key[1]}={value}")).shell()
        for key, value in declared.items()
        if key[0] == SYSCTL
    ]
    if any(key[0] in (DOI, STATIC) for key in declared):
        lines.append(SSH_STAYS)
    booted: Items = items_of(NetlabelState((), UNLABELLED_DEFAULT, Unlabelled(True)), {})
    steps = plan(state_of(booted), state_of({**booted, **declared}))
    return lines + [Step(_short(argv)).shell() for argv in steps.commands]


def _short(argv: Argv) -> Argv:
    """The command with its long tables as a shell makes them."""
    return tuple(_table(word) or word for word in argv)


def _table(word: str) -> Optional[Expanded]:
    """``categories:0=0,1=1,…`` as a substitution; None for a word that is short, or no range of
    equal pairs without a gap."""
    name, _colon, text = word.partition(":")
    pairs = text.split(",")
    if name not in ("levels", "categories") or len(pairs) <= _MOST_PAIRS:
        return None
    first = int(pairs[0].partition("=")[0])
    last = first + len(pairs) - 1
    if pairs != [f"{number}={number}" for number in range(first, last + 1)]:
        return None
    return Expanded(f"{name}:$(seq {first} {last} | sed 's/.*/&=&/' | paste -sd, -)")

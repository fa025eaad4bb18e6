# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet filters that look at every packet and have no rule: nftables' and iptables'.

A base chain costs each packet a call though it decides nothing; that is what is measured. So
neither "no rules" nor "empty rules" is true on a host where somebody else filters, and nothing of
others is ever removed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .forwarding_declared import EMPTY, IPTABLES, NFT, NO_RULES
from .host.errors import HostError, NotInstalledError
from .host.run import Run, environment, output

TABLE = "crossover_empty"
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
LEGACY_TABLES = Path("/proc/net/ip_tables_names")
# Filters of this collection on the ingress hook count test frames.
OURS = "crossover_"


def ruleset() -> Dict[str, Any]:
    """The nftables commands (libnftables-json(5)) that make a base chain without rules a hook."""
    place = {"family": "inet", "table": TABLE}
    chains = [
        {**place, "name": hook, "type": "filter", "hook": hook, "prio": 0, "policy": "accept"}
        for hook in HOOKS
    ]
    commands: List[Dict[str, Any]] = [{"add": {"table": {"family": "inet", "name": TABLE}}}]
    return {"nftables": [*commands, *({"add": {"chain": chain}} for chain in chains)]}


def base_chains(text: str) -> Tuple[str, ...]:
    """``nft -j list ruleset``: base chains as ``FAMILY TABLE CHAIN``. HostError on other text."""
    try:
        items = [item["chain"] for item in json.loads(text)["nftables"] if "chain" in item]
        return tuple(
            f"{item['family']} {item['table']} {item['name']}" for item in items if "hook" in item
        )
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"nft -j list ruleset: found other text ({error!r})") from None


def nft_state(text: str) -> str:
    """``empty`` when our chains are all there, ``none`` when there is no chain at all.

    HostError that names chains of somebody else.
    """
    chains = [chain for chain in base_chains(text) if not _counts(chain)]
    ours = {f"inet {TABLE} {hook}" for hook in HOOKS}
    theirs = [chain for chain in chains if chain not in ours]
    if theirs:
        raise HostError(
            f"rules: this host has chains of nftables of its own ({', '.join(theirs)}); wanted "
            "none, or rules undeclared"
        )
    # A part of ours, after an end in the middle, is made whole or removed as if it were none.
    return EMPTY if set(chains) == ours else NO_RULES


def _counts(chain: str) -> bool:
    family, table, _name = chain.split(" ", 2)
    return family == "netdev" and table.startswith(OURS)


def legacy_state(tables: Optional[Sequence[str]], chains: str) -> str:
    """``empty`` or ``none``, from the names of the tables and ``iptables -S`` of ``filter``.

    ``tables`` None: the kernel has no iptables. HostError that names what somebody else filters.
    """
    names = list(tables or ())
    others = [name for name in names if name != "filter"]
    if others:
        raise HostError(f"rules: this host has iptables' table {', '.join(others)}; wanted none")
    if "filter" not in names:
        return NO_RULES
    plain = {f"-P {chain} ACCEPT" for chain in ("INPUT", "FORWARD", "OUTPUT")}
    theirs = [line for line in chains.splitlines() if line.strip() and line.strip() not in plain]
    if theirs:
        raise HostError(
            f"rules: this host has rules of iptables ({theirs[0].strip()}); wanted none"
        )
    return EMPTY


def legacy_command() -> Optional[str]:
    """The iptables that speaks to the kernel's own tables and not to nftables; None without."""
    return shutil.which("iptables-legacy", path=environment()["PATH"])


def legacy_tables(path: Path = LEGACY_TABLES) -> Optional[List[str]]:
    """Names of iptables' own tables that see packets; None where the kernel has no iptables."""
    try:
        return path.read_text().split()
    except OSError:
        return None


def current(kind: str, run: Run) -> str:
    """The state of one kind of filter. HostError as above."""
    if kind == NFT:
        try:
            code, out, err = run(["nft", "-j", "list", "ruleset"])
        except NotInstalledError:
            return NO_RULES
        if code != 0:
            if "not supported" in err or "cache initialization failed" in err:
                return NO_RULES  # a kernel without nftables
            raise HostError(f"nft -j list ruleset: {err.strip()}")
        return nft_state(out)
    tables = legacy_tables()
    if "filter" not in (tables or ()):
        return legacy_state(tables, "")
    command = legacy_command()
    if command is None:
        raise HostError("rules: iptables' table filter is loaded and iptables-legacy is not here")
    return legacy_state(tables, output([command, "--table", "filter", "--list-rules"], run))


def change(kind: str, wanted: str, run: Run) -> None:
    """Make empty rules, or remove ours. HostError with the tool's reason.

    iptables' table goes with its kernel module, which is a setting of its own.
    """
    argv = command_of(kind, wanted)
    if kind == IPTABLES and argv is not None:
        command = legacy_command()
        if command is None:
            raise HostError("rules: wanted those of iptables, and iptables-legacy is not here")
        argv = (command, *argv[1:])
    if argv is not None:
        output(argv, run)


def command_of(kind: str, wanted: str) -> Optional[Tuple[str, ...]]:
    """The command that makes empty rules or removes them; None where none is needed."""
    if kind == IPTABLES:
        # The table is made when somebody looks at it.
        return ("iptables-legacy", "--table", "filter", "--list-rules") if wanted == EMPTY else None
    if wanted == EMPTY:
        return ("nft", "-j", json.dumps(ruleset()))
    return ("nft", "delete", "table", "inet", TABLE)

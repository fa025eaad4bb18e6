# SPDX-License-Identifier: GPL-2.0-or-later
"""The declared NetLabel configuration: from a module's parameters to typed state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple

from .kernel_state.declared import DeclarationError
from .kernel_state.netlabel import TAG_LOCAL, Doi, MapEntry, StaticLabel, Unlabelled
from .kernel_state.netlabel_declared import parse_pairs
from .netlabel_plan import NetlabelState

__all__ = [
    "SYSCTLS",
    "SYSCTL_DEFAULTS",
    "DeclarationError",
    "parse_pairs",
    "read_declaration",
    "show_pairs",
]

# Set in the kernel's net/ipv4/cipso_ipv4.c; its ip-sysctl.rst gives another default and a
# misspelt name for the last.
SYSCTL_DEFAULTS = {
    "cipso_cache_enable": 1,
    "cipso_cache_bucket_size": 10,
    "cipso_rbm_optfmt": 0,
    "cipso_rbm_strictvalid": 1,
}
SYSCTLS = tuple(SYSCTL_DEFAULTS)
DEFAULT_DOMAIN = "default"


def show_pairs(table: Mapping[int, int]) -> str:
    """The inverse of :func:`parse_pairs`, as short as it can be: ``"0-16,20=5"``."""
    parts: List[str] = []
    run: Optional[Tuple[int, int]] = None
    for local in [*sorted(table), None]:
        if local is not None and table[local] == local and run is not None and local == run[1] + 1:
            run = (run[0], local)
            continue
        if run is not None:
            parts.append(str(run[0]) if run[0] == run[1] else f"{run[0]}-{run[1]}")
            run = None
        if local is not None:
            if table[local] == local:
                run = (local, local)
            else:
                parts.append(f"{local}={table[local]}")
    return ",".join(parts)


def read_declaration(parameters: Mapping[str, Any]) -> Tuple[NetlabelState, Dict[str, int]]:
    """The module's parameters as (NetLabel state, sysctl name -> value).

    Unlabelled handling that is not declared stays None. Raises :class:`DeclarationError`.
    """
    dois = tuple(_doi(item, index) for index, item in enumerate(parameters.get("dois") or []))
    maps = tuple(_map(item) for item in parameters.get("maps") or [])
    given = parameters.get("sysctls") or {}
    sysctls = {name: int(given[name]) for name in SYSCTLS if given.get(name) is not None}
    for name, value in sysctls.items():
        if name != "cipso_cache_bucket_size" and value not in (0, 1):
            raise DeclarationError(f"sysctls.{name}: {value}, wanted 0 or 1")
        if value < 0:
            raise DeclarationError(f"sysctls.{name}: {value}, wanted 0 or more")
    return NetlabelState(dois, maps, _unlabelled(parameters.get("unlabelled"))), sysctls


def _doi(item: Mapping[str, Any], index: int) -> Doi:
    where = f"dois[{index}] (DOI {item['number']})"
    kind = item["type"]
    tags: Sequence[int] = item.get("tags") or (() if kind != "local" else (TAG_LOCAL,))
    return Doi(
        int(item["number"]),
        kind,
        tuple(int(tag) for tag in tags),
        parse_pairs(item.get("levels") or "", f"{where}.levels"),
        parse_pairs(item.get("categories") or "", f"{where}.categories"),
        item.get("protocol") or "cipso",
    )


def _map(item: Mapping[str, Any]) -> MapEntry:
    domain = item.get("domain") or DEFAULT_DOMAIN
    return MapEntry(
        None if domain == DEFAULT_DOMAIN else domain,
        item.get("address"),
        item.get("family"),
        item["protocol"],
        item.get("doi"),
    )


def _unlabelled(given: Optional[Mapping[str, Any]]) -> Optional[Unlabelled]:
    if given is None:
        return None
    accept = given.get("accept")
    return Unlabelled(
        True if accept is None else bool(accept),
        tuple(
            StaticLabel(item.get("interface"), item["address"], item["label"])
            for item in given.get("static") or []
        ),
    )

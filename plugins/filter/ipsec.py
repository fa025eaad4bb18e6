# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters of the role ipsec: whether the results of all hosts fit each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def _by_name(results: Iterable[Mapping[str, Any]], key: str) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    for result in results:
        for item in result.get("connections", ()):
            found.setdefault(item["name"], set()).add(item.get(key))
    return found


def ipsec_keys_differ(results: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the hosts hold keys of different seeds for a connection.

    ``results``: what the modules ipsec or ike returned, one a host.
    """
    return any(len(values) > 1 for values in _by_name(results, "generation").values())


def ipsec_label_conflicts(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """A text for each connection whose label is not the same at both ends; empty when all agree.

    The label ``process`` comes from the context of the connection to each host.
    """
    return [
        f"connection {name}: label {' and '.join(sorted(map(str, values)))}, wanted the same at "
        "both ends"
        for name, values in _by_name(results, "label").items()
        if len(values) > 1
    ]


def ipsec_sas_differ(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """A text for each way between two ends for which the hosts share no SA; empty when all do.

    Two IKE daemons that asked at the same time can each hold SAs that the other has not.
    """
    found: dict[tuple[str, str], list[set[str]]] = {}
    listed = [result.get("state", {}).get("sas", {}) for result in results]
    ways = {(sa["src"], name.split()[4]) for sas in listed for name, sa in sas.items()}
    for way in ways:
        found[way] = [
            {name for name, sa in sas.items() if (sa["src"], name.split()[4]) == way}
            for sas in listed
        ]
    return [
        f"SAs from {src} to {dst}: {'; '.join(', '.join(sorted(side)) or 'none' for side in sides)}"
        ", wanted at least one that all hosts have"
        for (src, dst), sides in sorted(found.items())
        if not set.intersection(*sides)
    ]


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Any]:
        """For Ansible."""
        return {
            "ipsec_keys_differ": ipsec_keys_differ,
            "ipsec_label_conflicts": ipsec_label_conflicts,
            "ipsec_sas_differ": ipsec_sas_differ,
        }

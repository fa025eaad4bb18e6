# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters of the role tunnel: whether both ends hold keys of one seed, and what was captured."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable


def tunnel_keys_differ(results: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the hosts hold keys of different seeds for a link.

    ``results``: what the module tunnel returned, one a host.
    """
    found: dict[str, set[Any]] = {}
    for result in results:
        for item in result.get("links", ()):
            found.setdefault(item["name"], set()).add(item.get("generation"))
    return any(len(values) > 1 for values in found.values())


def captured_outer(content: str, ports: Mapping[Any, str] | None = None) -> list[dict[str, Any]]:
    """The outermost header of each frame in a capture (pcap, base64).

    ``ports``: types by port that differ from the usual ones. Raises AnsibleFilterError for what is
    no capture.
    """
    from collector.errors import InputError
    from collector.wire.outer_headers import read_outer

    try:
        named = {int(port): name for port, name in (ports or {}).items()}
        found = read_outer(base64.b64decode(content), "capture", named)
        return [outer.as_dict() for outer in found]
    except (InputError, binascii.Error) as error:
        raise AnsibleFilterError(f"captured_outer: {error}") from error


def matrix_tunnels(matrix: str) -> list[str]:
    """The types of tunnel that a matrix uses. Raises AnsibleFilterError for one that is none."""
    from collector.errors import CrossoverError
    from collector.matrix.matrix import load_matrix
    from collector.matrix.tunnels import types_of
    from collector.run.campaign import find_matrix

    try:
        return types_of(load_matrix(find_matrix(matrix)))
    except CrossoverError as error:
        raise AnsibleFilterError(str(error)) from error


def tunnels_missing(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """``type -> host and reason`` of what preflight found missing. ``answers``: by host."""
    found: dict[str, str] = {}
    for host, answer in answers.items():
        for name, reason in (answer.get("tunnels_missing") or {}).items():
            found.setdefault(name, f"{name} on {host}: {reason}")
    return found


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Any]:
        """For Ansible."""
        return {
            "captured_outer": captured_outer,
            "matrix_tunnels": matrix_tunnels,
            "tunnel_keys_differ": tunnel_keys_differ,
            "tunnels_missing": tunnels_missing,
        }

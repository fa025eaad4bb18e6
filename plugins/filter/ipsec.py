# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters of the role ipsec: whether the results of all hosts fit each other, and captures."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.plugin_utils import offline  # noqa: F401 - makes the collector importable

ESP = 50


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


def captured_spis(content: str) -> list[int | None]:
    """The SPI of each IP packet in a capture (pcap, base64); None for one that is not ESP.

    Raises AnsibleFilterError for what is no capture.
    """
    from collector.errors import InputError
    from collector.wire.packets import read_pcap

    try:
        packets = read_pcap(base64.b64decode(content, validate=True), "capture")
    except (InputError, binascii.Error) as error:
        raise AnsibleFilterError(f"captured_spis: {error}") from error
    return [
        struct.unpack_from("!I", packet.payload)[0]
        if packet.protocol == ESP and len(packet.payload) >= 4
        else None
        for packet in packets
    ]


def matrix_ike(matrix: str) -> list[str]:
    """The IKE daemons that a matrix uses. Raises AnsibleFilterError for one that is none."""
    from collector.errors import CrossoverError
    from collector.matrix.matrix import load_matrix
    from collector.matrix.skips import daemons_of
    from collector.run.campaign import find_matrix

    try:
        return daemons_of(load_matrix(find_matrix(matrix)))
    except CrossoverError as error:
        raise AnsibleFilterError(f"matrix_ike: {error}") from error


def ike_missing(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Daemons that a host has not, with host and reason. ``answers``: what preflight returned."""
    found: dict[str, str] = {}
    for host, answer in answers.items():
        for name, reason in (answer.get("ike_missing") or {}).items():
            found.setdefault(name, f"keying {name} on {host}: {reason}")
    return found


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Any]:
        """For Ansible."""
        return {
            "captured_spis": captured_spis,
            "ike_missing": ike_missing,
            "ipsec_keys_differ": ipsec_keys_differ,
            "ipsec_label_conflicts": ipsec_label_conflicts,
            "ipsec_sas_differ": ipsec_sas_differ,
            "matrix_ike": matrix_ike,
        }

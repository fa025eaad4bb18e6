# SPDX-License-Identifier: GPL-2.0-or-later
"""IKE daemons' configuration from declared connections. Pure; texts with a secret say so.

libreswan: ipsec.conf(5), ipsec.secrets(5) of 5.2. strongSwan: swanctl.conf(5) of 6.0.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import List, Optional, Tuple

from .ipsec_algorithms import SUITES
from .ipsec_build import SEED_BYTES, material
from .ipsec_declared import Connection, Match
from .kernel_state.declared import DeclarationError
from .kernel_state.xfrm import Limits
from .kernel_state.xfrm_text import protocol_number

PREFIX = "crossover-"
# Where a daemon's files are, in memory. SELinux's policy gives IKE daemons of either kind one
# folder, /run/pluto.
FOLDERS = {"libreswan": "/run/pluto/crossover", "strongswan": "/run/pluto/crossover-strongswan"}
# An IKE daemon's defaults where nothing is declared.
DEFAULT_LIFETIME_S = 28800
# RFC 4861.
ICMPV6, NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT = 58, 135, 136
_KEY_PURPOSE = "ike psk "
# The pre-shared key of a connection as it stands in a daemon's file.
KeyOf = Callable[[Connection], str]


@dataclass(frozen=True)
class Child:
    """One connection of a daemon: a declared connection has one for each selector."""

    name: str
    connection: Connection
    match: Match

    @property
    def protocol(self) -> Optional[str]:
        """The number of the selected protocol, None for all."""
        # By number: a small system has no /etc/protocols, where daemons look names up.
        name = self.match.protocol
        return None if name is None else protocol_number(name)


def children(connections: Sequence[Connection]) -> Tuple[Child, ...]:
    """What the daemon is told, in order."""
    found: List[Child] = []
    for item in connections:
        for number, match in enumerate(item.selectors):
            suffix = f"-{number + 1}" if len(item.selectors) > 1 else ""
            found.append(Child(f"{PREFIX}{item.name}{suffix}", item, match))
    return tuple(found)


def starters(connections: Sequence[Connection], ends: Sequence[int]) -> List[str]:
    """What this host's daemon is to ask the peer for: one end asks, and for unlabelled SAs only,
    as labelled ones come when a packet needs them."""
    own = dict(zip((item.name for item in connections), ends))  # noqa: B905 - Python 3.9
    return [
        child.name
        for child in children(connections)
        if child.connection.label is None and own[child.connection.name] == 0
    ]


def configuration(keying: str, connections: Sequence[Connection], ends: Sequence[int]) -> str:
    """The daemon's file on the host that is end ``ends[n]`` of each connection; no secret."""
    if keying == "libreswan":
        return libreswan(connections, FOLDERS[keying])
    return strongswan(connections, ends)


def check(connections: Sequence[Connection], keying: str) -> None:
    """Raises :class:`DeclarationError` for what the daemon cannot do."""
    errors: List[str] = []
    ends = {}
    for item in connections:
        where = f"connection {item.name}"
        if item.pairs > 1:
            errors.append(f"{where}.pairs: {item.pairs}, wanted 1 or keying: manual")
        for key in ("if_id", "offload"):
            if getattr(item, key) is not None:
                errors.append(f"{where}.{key}: {getattr(item, key)}, wanted keying: manual with it")
        limits = item.limits or Limits()
        for key in ("soft_use_s", "hard_use_s", "soft_bytes", "soft_packets"):
            if getattr(limits, key) is not None:
                errors.append(f"{where}.lifetimes.{key}: wanted keying: manual with it")
        if limits.soft_add_s is not None and not limits.hard_add_s:
            errors.append(f"{where}.lifetimes.soft_add_s: wanted hard_add_s with it")
        if item.label and keying != "libreswan":
            errors.append(
                f"{where}.label: {item.label}, wanted keying: libreswan; strongSwan as Debian "
                "builds it has no SELinux labels"
            )
        other = ends.setdefault(frozenset(item.ends), item)
        if other is not item and (other.label is None) != (item.label is None):
            errors.append(f"{where}.label: wanted as {other.name}'s, which has the same ends")
    if errors:
        raise DeclarationError("; ".join(errors))


def purpose(connection: Connection) -> str:
    """What tells the pre-shared key of two ends from other keys of one seed."""
    return _KEY_PURPOSE + " ".join(sorted(connection.ends))


def shared_key(seed: bytes, connection: Connection) -> str:
    """The pre-shared key of two ends, base64. Secret. The same for every connection of theirs."""
    return base64.b64encode(material(seed, purpose(connection), SEED_BYTES)).decode()


def keys_of(seed: bytes) -> KeyOf:
    """The pre-shared keys that one seed gives. Secret."""
    return lambda connection: f"0s{shared_key(seed, connection)}"


def _lifetimes(connection: Connection) -> Tuple[int, int]:
    """Seconds of an SA's life, and how long before its end it is replaced."""
    limits = connection.limits or Limits()
    life = limits.hard_add_s or DEFAULT_LIFETIME_S
    margin = life - limits.soft_add_s if limits.soft_add_s else max(life // 10, 1)
    return life, margin


# --- libreswan --------------------------------------------------------------------------------


def libreswan(connections: Sequence[Connection], folder: str) -> str:
    """``ipsec.conf`` in ``folder``; it holds no secret."""
    lines = [
        "config setup",
        f"\tnssdir={folder}/nss",
        f"\tsecretsfile={folder}/secrets",
        f"\tlogfile={folder}/log",
        "\tlogappend=no",
        # Thousands of packets may ask for SAs at once; one daemon and one peer are no attack.
        "\tddos-mode=unlimited",
    ]
    for child in children(connections):
        lines += _libreswan_conn(child)
    return "\n".join(lines) + "\n"


def _libreswan_conn(child: Child) -> List[str]:
    item = child.connection
    suite = SUITES[item.algorithm]
    life, margin = _lifetimes(item)
    values = [
        ("left", item.ends[0]),
        ("right", item.ends[1]),
        ("leftid", item.ends[0]),
        ("rightid", item.ends[1]),
        ("authby", "secret"),
        ("type", item.mode),
        ("ikev2", "insist"),
        ("esp", suite.ike.format(bits=item.key_bits)),
        ("esn", "yes" if item.esn else "no"),
        ("replay-window", str(item.replay_window)),
        ("salifetime", f"{life}s"),
        ("rekeymargin", f"{margin}s"),
        ("rekeyfuzz", "0%"),
        # Both hosts are set up at the same time: the first to try waits for the other.
        ("keyingtries", "0"),
        ("auto", "ondemand"),
    ]
    if item.networks is not None:
        values += [("leftsubnet", item.networks[0]), ("rightsubnet", item.networks[1])]
    if child.protocol is not None:
        port = "%any" if child.match.port is None else str(child.match.port)
        values += [
            ("leftprotoport", f"{child.protocol}/%any"),
            ("rightprotoport", f"{child.protocol}/{port}"),
        ]
    if item.mark is not None:
        values.append(("mark", f"0x{item.mark.value:x}/0x{item.mark.mask:x}"))
    limits = item.limits or Limits()
    if limits.hard_bytes is not None:
        values.append(("ipsec-max-bytes", str(limits.hard_bytes)))
    if limits.hard_packets is not None:
        values.append(("ipsec-max-packets", str(limits.hard_packets)))
    if item.label is not None:
        values.append(("policy-label", str(item.policy_label)))
    return ["", f"conn {child.name}", *(f"\t{key}={value}" for key, value in values)]


def libreswan_secrets(connections: Sequence[Connection], key_of: KeyOf) -> str:
    """``ipsec.secrets``. Secret where the keys are."""
    lines = {f'{item.ends[0]} {item.ends[1]} : PSK "{key_of(item)}"' for item in connections}
    return "\n".join(sorted(lines)) + "\n"


# --- strongSwan -------------------------------------------------------------------------------


def strongswan(connections: Sequence[Connection], end_of: Sequence[int]) -> str:
    """``swanctl.conf`` on the host that is end ``end_of[n]`` of each connection; no secret."""
    lines = ["connections {"]
    for item, end in zip(connections, end_of):  # noqa: B905 - Python 3.9
        local, remote = item.ends[end], item.ends[1 - end]
        lines += [
            f"  {PREFIX}{item.name} {{",
            "    version = 2",
            f"    local_addrs = {local}",
            f"    remote_addrs = {remote}",
            "    keyingtries = 0",
            *("    local {", "      auth = psk", f"      id = {local}", "    }"),
            *("    remote {", "      auth = psk", f"      id = {remote}", "    }"),
            "    children {",
        ]
        for child in children([item]):
            lines += _strongswan_child(child, end)
        lines += _strongswan_neighbours(item, end)
        lines += ["    }", "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _strongswan_child(child: Child, end: int) -> List[str]:
    item = child.connection
    life, margin = _lifetimes(item)
    limits = item.limits or Limits()
    selectors = []
    for side in (end, 1 - end):
        network = item.protected()[side]
        if child.protocol is not None:
            port = f"/{child.match.port}" if side == 1 and child.match.port else ""
            network += f"[{child.protocol}{port}]"
        selectors.append(network)
    lines = [
        f"      {child.name} {{",
        f"        mode = {item.mode}",
        f"        local_ts = {selectors[0]}",
        f"        remote_ts = {selectors[1]}",
        f"        esp_proposals = {SUITES[item.algorithm].swan.format(bits=item.key_bits)}"
        + ("-esn" if item.esn else "-noesn"),
        f"        replay_window = {item.replay_window}",
        f"        life_time = {life}s",
        f"        rekey_time = {life - margin}s",
        "        rand_time = 0",
        "        start_action = trap",
    ]
    if item.mark is not None:
        for way in ("in", "out"):
            lines.append(f"        mark_{way} = 0x{item.mark.value:x}/0x{item.mark.mask:x}")
    if limits.hard_bytes is not None:
        lines.append(f"        life_bytes = {limits.hard_bytes}")
    if limits.hard_packets is not None:
        lines.append(f"        life_packets = {limits.hard_packets}")
    return [*lines, "      }"]


def _strongswan_neighbours(item: Connection, end: int) -> List[str]:
    """Neighbour discovery passes in clear, as libreswan does by itself: its answers are what IKE
    finds the peer with (swanctl.conf(5): an ICMP type stands in the place of a port)."""
    everything = any(match.protocol is None for match in item.selectors)
    if ":" not in item.ends[0] or not everything:
        return []
    lines: List[str] = []
    for kind in (NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT):
        lines += [
            f"      {PREFIX}{item.name}-neighbour-{kind} {{",
            "        mode = pass",
            f"        local_ts = {item.ends[end]}/128[{ICMPV6}/{kind}]",
            f"        remote_ts = {item.ends[1 - end]}/128[{ICMPV6}/{kind}]",
            "        start_action = trap",
            "      }",
        ]
    return lines


def strongswan_secrets(connections: Sequence[Connection], key_of: KeyOf) -> str:
    """The ``secrets`` section of ``swanctl.conf``. Secret where the keys are."""
    lines = ["secrets {"]
    seen = set()
    for item in connections:
        ends = tuple(sorted(item.ends))
        if ends in seen:
            continue
        seen.add(ends)
        lines += [
            f"  ike-{PREFIX}{item.name} {{",
            f"    id-1 = {item.ends[0]}",
            f"    id-2 = {item.ends[1]}",
            f"    secret = {key_of(item)}",
            "  }",
        ]
    return "\n".join([*lines, "}"]) + "\n"

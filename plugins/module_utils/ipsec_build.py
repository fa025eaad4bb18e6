# SPDX-License-Identifier: GPL-2.0-or-later
"""The SAs, policies and keys of declared connections on one host. Pure.

Both hosts get the same SAs: SPI base + 2n from the first end to the second, base + 2n + 1 back.
Policies depend on which end the host is.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Iterator, List, Optional, Tuple

from .ipsec_algorithms import SUITES, algorithms
from .ipsec_declared import PROCESS, Connection, Match
from .kernel_state import declared
from .kernel_state.context import LabelError, format_level, parse_context
from .kernel_state.declared import DeclarationError
from .kernel_state.xfrm import (
    Offload,
    Policy,
    Secret,
    Selector,
    State,
    StateId,
    Template,
    Vault,
    mark_of,
    varied,
)

SEED_BYTES = 32
_DOMAIN = b"crossover ipsec keys, version 1\0"
# Neighbour solicitation and advertisement (RFC 4861): protecting them would need the neighbour
# that they are to find.
_NEIGHBOUR_TYPES = (135, 136)
# Ports of the pairs that only fill the table: below the ports that hosts choose themselves.
_FIRST_PORT = 10000
_MOST_CATEGORY = 1023


def own_end(connection: Connection, is_local: Callable[[str], bool]) -> int:
    """0 or 1: which end this host is. Raises :class:`DeclarationError`."""
    local = [is_local(end) for end in connection.ends]
    return declared.own_end(f"connection {connection.name}", connection.ends, local)


def with_label(connection: Connection, process: Optional[str]) -> Connection:
    """The connection with the label of the measured processes in place of ``process``."""
    if connection.label != PROCESS:
        return connection
    if process is None:
        raise DeclarationError(
            f"connection {connection.name}.label: 'process', wanted a host with SELinux: this one "
            "has none"
        )
    return replace(connection, label=process)


def _varied_labels(label: str) -> Iterator[str]:
    """Contexts with two categories each, none of them the label itself."""
    try:
        own = parse_context(label)
    except LabelError as error:
        raise DeclarationError(f"label: {error}") from None
    pairs = itertools.combinations(range(_MOST_CATEGORY + 1), 2)
    for pair in pairs:
        level = format_level(0, frozenset(pair))
        if level != own.range:
            yield f"{own.user}:{own.role}:{own.type}:{level}"


def labels_of(connection: Connection) -> List[Optional[str]]:
    """The label of each pair of SAs, the measured flow's first."""
    if connection.label is None or connection.vary != "label":
        return [connection.label] * connection.pairs
    others = itertools.islice(_varied_labels(connection.label), connection.pairs - 1)
    return [connection.label, *others]


def make_states(connection: Connection, end: int) -> List[State]:
    """The SAs. ``end`` is this host's, which only matters to offload."""
    one, other = connection.ends
    found: List[State] = []
    per_selector = connection.vary == "selector"
    prototype = State(
        src=one, dst=other, proto="esp", spi=connection.spi, reqid=connection.reqid,
        mode=connection.mode, replay_window=connection.replay_window,
        flags=("esn",) if connection.esn else (), mark=connection.mark,
        algorithms=algorithms(connection.algorithm, connection.key_bits),
        if_id=connection.if_id,
        limits=connection.limits,
    )  # fmt: skip
    for number, label in enumerate(labels_of(connection)):
        for way, (src, dst) in enumerate(((one, other), (other, one))):
            state = varied(
                prototype,
                src=src,
                dst=dst,
                spi=connection.spi + 2 * number + way,
                reqid=connection.reqid + (number if per_selector else 0),
                context=label,
                offload=_offload(connection, way == end),
            )
            found.append(state)
    return found


def _offload(connection: Connection, outbound: bool) -> Optional[Offload]:
    if connection.offload is None:
        return None
    return Offload(connection.offload, "out" if outbound else "in")


def make_policies(connection: Connection, end: int) -> List[Policy]:
    """The policies on the host that is ``end``: out and in, and fwd for a tunnel."""
    found: List[Policy] = []
    for number in range(connection.pairs if connection.vary == "selector" else 1):
        matches = connection.selectors
        if number:
            matches = (Match("udp", _FIRST_PORT + number),)
        for match in matches:
            found += _protecting(connection, end, match, connection.reqid + number)
    if connection.family == 6 and any(item.protocol is None for item in connection.selectors):
        found += _neighbours(connection, end)
    return found


def _directions(connection: Connection, end: int) -> List[Tuple[str, int]]:
    """(direction, index of the end that packets come from)."""
    found = [("out", end), ("in", 1 - end)]
    return [*found, ("fwd", 1 - end)] if connection.mode == "tunnel" else found


def _protecting(connection: Connection, end: int, match: Match, reqid: int) -> List[Policy]:
    networks = connection.protected()
    policies = []
    for direction, source in _directions(connection, end):
        ports = {"dport" if source == 0 else "sport": match.port}
        selector = Selector(networks[source], networks[1 - source], match.protocol, **ports)
        ends = connection.ends[source], connection.ends[1 - source]
        policies.append(
            Policy(
                selector=selector,
                direction=direction,
                priority=connection.priority,
                templates=(Template(*ends, "esp", reqid, connection.mode),),
                mark=connection.mark,
                if_id=connection.if_id,
                context=connection.policy_label,
            )
        )
    return policies


def _neighbours(connection: Connection, end: int) -> List[Policy]:
    networks = connection.protected()
    return [
        Policy(
            selector=Selector(networks[source], networks[1 - source], "ipv6-icmp", kind),
            direction=direction,
            priority=max(connection.priority - 1, 0),
            mark=connection.mark,
            if_id=connection.if_id,
        )
        for direction, source in _directions(connection, end)
        for kind in _NEIGHBOUR_TYPES
    ]


def key_length(connection: Connection) -> int:
    """Bytes of key that each SA of a connection takes."""
    return sum(SUITES[connection.algorithm].key_bytes[connection.key_bits])


def material(seed: bytes, name: str, length: int) -> bytes:
    """``length`` bytes that nobody without the seed can tell from random ones (SHAKE256)."""
    if len(seed) != SEED_BYTES:
        raise DeclarationError(f"seed: {len(seed)} bytes, wanted {SEED_BYTES}")
    return hashlib.shake_256(_DOMAIN + seed + name.encode()).digest(length)


def make_keys(connection: Connection, seed: bytes, vault: Vault) -> None:
    """Put the key of every SA of a connection into the vault."""
    suite = SUITES[connection.algorithm]
    lengths = suite.key_bytes[connection.key_bits]
    kinds = [kind for kind, _, _ in suite.parts]
    stream = material(seed, connection.name, key_length(connection) * 2 * connection.pairs).hex()
    at = 0
    mark = mark_of(connection.mark)
    for number in range(2 * connection.pairs):
        identity: StateId = (
            connection.ends[1 - number % 2], "esp", connection.spi + number, *mark,
        )  # fmt: skip
        for kind, length in zip(kinds, lengths):  # noqa: B905 - Python 3.9
            if length:
                vault.put(identity, kind, Secret("0x" + stream[at : at + 2 * length]))
                at += 2 * length

# SPDX-License-Identifier: GPL-2.0-or-later
"""How large a datagram may be that goes through a policy in one packet: ESP takes room."""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterable
from typing import Dict, Optional, Tuple

from .kernel_state.xfrm import Policy
from .labelled import under

LIMIT_S = 30
MOST = 16  # destinations that are asked about: a table of thousands has the same overhead
# Asks the kernel for the MTU of the path (ip(7), ipv6(7): IP_MTU and IPV6_MTU of a connected
# socket) after a datagram that nothing could carry, so that no packet leaves the host. What is
# printed leaves room for the headers of IP and UDP.
_PROGRAM = """
import socket, sys
six = ":" in sys.argv[2]
level, discover, always, mtu, headers = (41, 23, 2, 24, 48) if six else (0, 10, 2, 14, 28)
with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.setsockopt(level, discover, always)
    one.bind((sys.argv[1], 0))
    one.connect((sys.argv[2], int(sys.argv[3])))
    try:
        one.send(bytes(65000))
    except OSError:
        pass
    print(one.getsockopt(level, mtu) - headers)
"""


def paths(policies: Iterable[Policy]) -> Tuple[Tuple[str, str, int], ...]:
    """Source, destination and port of a datagram for each outgoing policy between two hosts that
    takes UDP; each destination once."""
    found: Dict[str, Tuple[str, str, int]] = {}
    for policy in policies:
        chosen = policy.selector
        if policy.direction != "out" or not policy.templates or policy.socket:
            continue
        if chosen.proto not in (None, "udp"):
            continue
        source, target = (ipaddress.ip_network(text) for text in (chosen.src, chosen.dst))
        if source.num_addresses == target.num_addresses == 1:
            end = str(target.network_address)
            found.setdefault(end, (str(source.network_address), end, chosen.dport or 9))
    return tuple(found.values())[:MOST]


def largest(policies: Iterable[Policy], level: Optional[str]) -> Dict[str, int]:
    """Bytes of the largest datagram by destination, sent under a level; what cannot be found out
    (no SA, say) is left out."""
    found: Dict[str, int] = {}
    for source, target, port in paths(policies):
        argv = ["/usr/bin/python3", "-I", "-S", "-c", _PROGRAM, source, target, str(port)]
        try:
            done = subprocess.run(
                under(level, argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip().isdecimal():
            found[target] = int(done.stdout)
    return found

"""Names in a matrix that stand for a lab's own addresses.

A matrix is written once for every lab, so it says ``@test_ipv4`` where a lab has 198.18.0.0/24:

- ``@test_ipv4``, ``@test_ipv6``: the network of the test link;
- ``@client_ipv4``, ``@server_ipv4``, ``@client_ipv6``, ``@server_ipv6``: one host's address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from collector.errors import InputError

# What the names stand for while a matrix is only checked, not run.
EXAMPLE = {
    "@test_ipv4": "198.18.0.0/24",
    "@test_ipv6": "2001:db8:18::/64",
    "@client_ipv4": "198.18.0.1",
    "@server_ipv4": "198.18.0.2",
    "@client_ipv6": "2001:db8:18::1",
    "@server_ipv6": "2001:db8:18::2",
}


def addresses(link: Mapping[str, Any]) -> dict[str, str]:
    """The names' values for a link as the inventory tells it on the client (``bench_links``)."""
    found = {}
    for family in ("ipv4", "ipv6"):
        own = ipaddress.ip_interface(str(link[family]))
        peer = ipaddress.ip_interface(str(link[f"peer_{family}"]))
        found[f"@test_{family}"] = str(own.network)
        found[f"@client_{family}"] = str(own.ip)
        found[f"@server_{family}"] = str(peer.ip)
    return found


def resolve(value: Any, names: Mapping[str, str], where: str) -> Any:
    """A copy of ``value`` with every name replaced. Raises InputError for an unknown one."""
    if isinstance(value, str) and value.startswith("@"):
        if value not in names:
            raise InputError(where, repr(value), f"one of {', '.join(EXAMPLE)}")
        return names[value]
    if isinstance(value, Mapping):
        return {key: resolve(item, names, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, names, f"{where}[{i}]") for i, item in enumerate(value)]
    return value

"""Links for the tests of tunnels, as a user declares them."""

from __future__ import annotations

from typing import Any

from collector.kernel_state.tunnel_link import Link, read_links

ENDS4 = ["198.18.0.1", "198.18.0.2"]
ENDS6 = ["2001:db8:18::1", "2001:db8:18::2"]
INNER4 = ["198.19.0.1/24", "198.19.0.2/24"]
INNER6 = ["2001:db8:19::1/64", "2001:db8:19::2/64"]

# What each type needs beside its name and its ends, and which family its ends have.
NEEDED: dict[str, tuple[int, dict[str, Any]]] = {
    "vxlan": (4, {"id": 42}),
    "vxlan-gpe": (4, {"id": 42}),
    "geneve": (4, {"id": 42}),
    "gre": (4, {}),
    "gretap": (4, {}),
    "ip6gre": (6, {}),
    "ip6gretap": (6, {}),
    "ipip": (4, {}),
    "sit": (4, {"inner_ipv4": None, "inner_ipv6": INNER6}),
    "ip6tnl": (6, {}),
    "fou": (4, {}),
    "gue": (4, {}),
    "l2tp": (4, {"id": 42}),
    "wireguard": (4, {}),
    "macsec": (4, {}),
    "ovs": (4, {"id": 42}),
    "stt": (4, {}),
}


def declared(sort: str, **keys: Any) -> dict[str, Any]:
    """A declaration of a type with what it needs, and ``keys`` above that."""
    family, needed = NEEDED[sort]
    return {
        "name": "xt0",
        "type": sort,
        "ends": ENDS4 if family == 4 else ENDS6,
        "inner_ipv4": INNER4,
        **needed,
        **keys,
    }


def link(sort: str, **keys: Any) -> Link:
    """The same, read."""
    return read_links([declared(sort, **keys)])[0]

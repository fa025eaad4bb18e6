# SPDX-License-Identifier: GPL-2.0-or-later
"""The argument specification of the tunnel module."""

from __future__ import annotations

from . import guard
from .kernel_state.tunnel_types import CARRIED, MACSEC_CIPHERS, NAMES, OVS_PROTOCOLS
from .tunnel_offloads import OFF, ON, UNCHANGED

LINKS = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "name": {"type": "str", "required": True},
        "type": {"type": "str", "required": True, "choices": list(NAMES)},
        "ends": {"type": "list", "elements": "str", "required": True},
        "inner_ipv4": {"type": "list", "elements": "str"},
        "inner_ipv6": {"type": "list", "elements": "str"},
        "device": {"type": "str"},
        "mtu": {"type": "int"},
        "underlay_mtu": {"type": "int"},
        "id": {"type": "int"},
        # A number that tells tunnels apart, no secret.
        "key": {"type": "int", "no_log": False},
        "port": {"type": "int"},
        "source_ports": {"type": "list", "elements": "int"},
        "carries": {"type": "str", "choices": list(CARRIED)},
        "csum": {"type": "bool"},
        "udp6_zero_csum": {"type": "bool"},
        "ttl": {"type": "str"},
        "tos": {"type": "str"},
        "df": {"type": "str", "choices": ["set", "unset", "inherit"]},
        "seq": {"type": "bool"},
        "encap_limit": {"type": "int"},
        "encap": {"type": "str", "choices": ["udp", "ip"]},
        "cipher": {"type": "str", "choices": list(MACSEC_CIPHERS)},
        "encrypt": {"type": "bool"},
        "protocol": {"type": "str", "choices": list(OVS_PROTOCOLS)},
        "offloads": {"type": "dict"},
    },
}
ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "links": LINKS,
    "offloads": {"type": "str", "choices": [UNCHANGED, ON, OFF], "default": UNCHANGED},
    "offload_devices": {"type": "list", "elements": "str", "default": []},
    "seed": {"type": "str", "no_log": True},
    "generation": {"type": "str"},
    # The word key in its name is no reason to hide a boolean.
    "rekey": {"type": "bool", "default": False, "no_log": False},
    "management": {"type": "list", "elements": "str"},
    "guard": guard.ARGUMENT,
}

# SPDX-License-Identifier: GPL-2.0-or-later
"""The argument specification of a connection, which the modules ipsec and ike share."""

from __future__ import annotations

from .ipsec_algorithms import SUITES
from .ipsec_declared import DEFAULT_PRIORITY, LIMITS

CONNECTIONS = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "name": {"type": "str", "required": True},
        "ends": {"type": "list", "elements": "str", "required": True},
        "mode": {"type": "str", "choices": ["transport", "tunnel"], "default": "transport"},
        "networks": {"type": "list", "elements": "str"},
        "algorithm": {"type": "str", "choices": list(SUITES), "default": "aes-gcm"},
        "key_bits": {"type": "int", "no_log": False},
        "esn": {"type": "bool", "default": False},
        "replay_window": {"type": "int", "default": 32},
        "selectors": {
            "type": "list",
            "elements": "dict",
            "options": {"protocol": {"type": "str"}, "port": {"type": "int"}},
        },
        "mark": {
            "type": "dict",
            "options": {"value": {"type": "int", "required": True}, "mask": {"type": "int"}},
        },
        "if_id": {"type": "int"},
        "offload": {"type": "str"},
        "lifetimes": {"type": "dict", "options": {name: {"type": "int"} for name in LIMITS}},
        "label": {"type": "str"},
        "policy_label": {"type": "str"},
        "spi": {"type": "int"},
        "reqid": {"type": "int"},
        "priority": {"type": "int", "default": DEFAULT_PRIORITY},
        "pairs": {"type": "int", "default": 1},
        "vary": {"type": "str", "choices": ["label", "selector"], "default": "label"},
    },
}

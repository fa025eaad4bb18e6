"""A small forwarding matrix for tests."""

import copy
from typing import Any

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "name": "small_forwarding",
    "title": "Forwarding, small",
    "topology": "dut",
    "baseline": "old",
    "subjects": ["forwarding"],
    "configurations": [
        {
            "name": name,
            "about": f"the {name} kernel",
            "factors": {"kernel": name, "irq": irq},
            "forwarding": {},
        }
        for name, irq in (("old", "default"), ("new", "default"), ("pinned", "pinned"))
    ],
    "tests": [
        {
            "name": f"size_{size}",
            "forwarding": "max_load",
            "frame_bytes": size,
            "direction": "bidirectional",
        }
        for size in (64, 1518)
    ],
    "short": {
        "duration_s": 1,
        "blocks": 2,
        "warm_up_s": 1.0,
        "only": {"irq": ["default"]},
    },
    "full": {"duration_s": 60, "blocks": 10, "warm_up_s": 10.0},
}


def document(**tops: Any) -> dict[str, Any]:
    """A copy of DOCUMENT with some of its keys replaced."""
    return {**copy.deepcopy(DOCUMENT), **tops}


def with_test(**changes: Any) -> dict[str, Any]:
    """The same with one test, changed; a value of ``...`` takes the key away."""
    test = {**DOCUMENT["tests"][0], **changes}
    return document(tests=[{key: value for key, value in test.items() if value is not ...}])

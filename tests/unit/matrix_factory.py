"""Matrices and plans for tests, small and whole."""

import copy
from typing import Any

from collector.matrix.matrix import Matrix, read_matrix
from collector.run.plan import make_plan
from collector.runfolder.runfolder import Plan, parse_plan

CIPSO: dict[str, Any] = {
    "dois": [{"number": 16, "type": "trans", "tags": [1], "levels": "0-16", "categories": "0-256"}],
    "maps": [
        {"address": "0.0.0.0/0", "protocol": "unlbl"},
        {"address": "@test_ipv4", "protocol": "cipso", "doi": 16},
        {"address": "::/0", "protocol": "unlbl"},
    ],
}
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "name": "small",
    "title": "A small matrix",
    "topology": "pair",
    "baseline": "Unlabel",
    "subjects": ["cipso"],
    "configurations": [
        {"name": "Unlabel", "about": "nothing configured", "label": "s0", "cipso": {}},
        {"name": "C_FlCat", "about": "all categories", "label": "s0:c0.c239", "cipso": CIPSO},
        {"name": "NoPatch", "about": "not in the kernel", "skip": "needs another kernel"},
    ],
    "tests": [
        {"name": "tcp_rr", "netperf": "TCP_RR", "request_bytes": 1, "response_bytes": 1},
        {"name": "udp_stream", "netperf": "UDP_STREAM", "message_bytes": "fit"},
    ],
    "short": {"duration_s": 1, "blocks": 10, "budget_s": 60, "warm_up_s": 2.0},
    "full": {
        "duration_s": 60,
        "blocks": 10,
        "warm_up_s": 30,
        "confidence": {
            "level_pct": 99,
            "width_pct": 5,
            "max_iterations": 10,
            "min_iterations": 3,
        },
    },
}


def document(path: tuple[str | int, ...] = (), value: Any = None) -> dict[str, Any]:
    """A copy of DOCUMENT with one place set; ``...`` as the value takes it away."""
    made = copy.deepcopy(DOCUMENT)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    if path and value is ...:
        del place[path[-1]]
    elif path:
        place[path[-1]] = value
    return made


def matrix(path: tuple[str | int, ...] = (), value: Any = None) -> Matrix:
    """The matrix of ``document``."""
    return read_matrix(document(path, value), "m.yml")


def plan_document(form: str = "short", **changes: Any) -> dict[str, Any]:
    """A plan of the small matrix."""
    made = matrix()
    wanted: dict[str, Any] = {
        "run_id": "small-1",
        "created_at": "2026-11-30T10:00:00Z",
        "lab": {"kind": "guests", "accelerator": "tcg", "name": "default"},
        "seed": 1,
        "blocks": 2,
        **changes,
    }
    return make_plan(made, made.forms[form], **wanted)


def plan(form: str = "short", **changes: Any) -> Plan:
    """The same, read back as a run folder would be."""
    return parse_plan(plan_document(form, **changes), "plan.json")


KERNEL = {"identity": "0" * 16, "release": "6.12.1-x", "version": "#1", "config_sha256": "0" * 64}


def disable_matrix() -> Matrix:
    """The small matrix with a row that needs a kernel of its own, and one to hold it against."""
    made = document()
    made["kernel"] = "with"
    made["configurations"].append(
        {"name": "Disable", "about": "no NetLabel", "label": "s0", "kernel": "without",
         "cipso": {"netlabel": "absent"}}
    )  # fmt: skip
    return read_matrix(made, "m.yml")


def planned_over(
    matrix: Matrix, blocks: int = 4, seed: int = 1, kernels: tuple[str, ...] = ("with", "without")
) -> Plan:
    """A plan of a matrix that boots these kernels."""
    made = make_plan(
        matrix,
        matrix.forms["short"],
        run_id="r",
        created_at="2026-11-30T10:00:00Z",
        lab={"kind": "guests", "accelerator": "tcg", "name": "default"},
        seed=seed,
        blocks=blocks,
        kernels=dict.fromkeys(kernels, KERNEL),
    )
    return parse_plan(made, "plan.json")

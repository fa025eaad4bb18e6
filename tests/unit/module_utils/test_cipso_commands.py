"""NetLabel by hand: what is typed leaves the kernel as the module does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.cipso_commands import by_hand
from ansible_collections.crossover.lab.plugins.module_utils.cipso_declared import read_declaration
from ansible_collections.crossover.lab.plugins.module_utils.cipso_items import (
    canonical,
    items_of,
)
from ansible_collections.crossover.lab.plugins.module_utils.netlabel_plan import (
    MapEntry,
    NetlabelState,
    Unlabelled,
)
from tests.unit.typed import type_in

from .netlabel_kernel import Kernel

FRESH = NetlabelState((), (MapEntry(None, None, None, "unlbl"),), Unlabelled(True))
MAPS = [
    {"address": "0.0.0.0/0", "protocol": "unlbl"},
    {"address": "::/0", "protocol": "unlbl"},
    {"address": "198.18.0.0/24", "protocol": "cipso", "doi": 16},
]
TRANS = {"number": 16, "type": "trans", "tags": [1], "levels": "0-16", "categories": "0-256"}
GAPS = {**TRANS, "levels": "0-3,7=9", "categories": "0-20,22-30"}
LABEL = "system_u:object_r:netlabel_peer_t:s0"


def typed(folder: Path, **declared: Any) -> tuple[list[str], list[list[str]]]:
    """The lines, and what the programs were given."""
    state, sysctls = read_declaration(declared)
    lines = by_hand(items_of(canonical(state), sysctls))
    return lines, type_in(lines, folder, ["netlabelctl", "sysctl"])[0]


@pytest.mark.parametrize(
    "declared",
    [
        {"dois": [TRANS], "maps": MAPS},
        {"dois": [GAPS], "maps": MAPS},
        {"dois": [{**TRANS, "levels": "0", "categories": None}], "maps": MAPS},
        {"dois": [{"number": 16, "type": "pass", "tags": [5, 2, 1]}], "maps": MAPS},
        {"maps": [{"domain": "user_t", "protocol": "unlbl", "family": 4}]},
        {
            "unlabelled": {
                "static": [{"interface": "eth1", "address": "198.18.0.0/24", "label": LABEL}]
            }
        },
    ],
    ids=str,
)
def test_what_is_typed_makes_the_declared_state(declared: dict[str, Any], tmp_path: Path) -> None:
    _lines, argvs = typed(tmp_path, **declared)
    kernel = Kernel(FRESH)
    kernel.run([tuple(argv) for argv in argvs])
    state, _sysctls = read_declaration(declared)
    wanted = {**items_of(canonical(FRESH), {}), **items_of(canonical(state), {})}
    assert items_of(canonical(kernel.state()), {}) == wanted


def test_parameters_come_first_and_ssh_is_spoken_of(tmp_path: Path) -> None:
    sysctls = {"cipso_cache_enable": 0, "cipso_rbm_strictvalid": 0}
    lines, argvs = typed(tmp_path, dois=[TRANS], maps=MAPS, sysctls=sysctls)
    assert argvs[:2] == [
        ["sysctl", "-w", "net.ipv4.cipso_cache_enable=0"],
        ["sysctl", "-w", "net.ipv4.cipso_rbm_strictvalid=0"],
    ]
    assert "crossover_netlabel" in lines[2]
    assert lines[2].startswith("# ")


def test_a_long_table_is_typed_as_a_range(tmp_path: Path) -> None:
    lines, argvs = typed(tmp_path, dois=[TRANS], maps=MAPS)
    assert max(map(len, lines)) < 250
    assert argvs[0][-1] == "categories:" + ",".join(f"{number}={number}" for number in range(257))


def test_nothing_declared_is_nothing_to_type() -> None:
    assert by_hand({}) == []

"""Connections by hand: what a person types is what the module gives to ip, with keys of his own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.ipsec_algorithms import SUITES
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_build import (
    make_keys,
    make_policies,
    make_states,
    with_label,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_commands import by_hand
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_declared import (
    Connection,
    read_connections,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import Vault
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_plan import IpsecState, plan
from tests.unit.typed import type_in

ENDS4 = ["198.18.0.1", "198.18.0.2"]
ENDS6 = ["2001:db8:18::1", "2001:db8:18::2"]
PROCESS = "unconfined_u:unconfined_r:unconfined_t:"
SEED = bytes(range(32))
SECRET = "a text that both hosts are given"
KINDS = ("aead", "enc", "auth-trunc")


def declared(level: str = "s0:c0.c239", **values: Any) -> Connection:
    (item,) = read_connections([{"name": "test", "ends": ENDS4, **values}])
    return with_label(item, PROCESS + level)


def of_module(item: Connection, end: int) -> list[list[str]]:
    """What the module runs on a host without SAs, as argv lists."""
    keys = Vault()
    make_keys(item, SEED, keys)
    wanted = IpsecState(tuple(make_states(item, end)), tuple(make_policies(item, end)), keys)
    return [shlex.split(line) for line in plan(IpsecState(), wanted).batch().splitlines()]


def typed(item: Connection, end: int, folder: Path) -> list[list[str]]:
    """What ip is given when the commands are typed."""
    noted, _done = type_in(by_hand([item], [end]), folder, ["ip"], SECRET=SECRET)
    return [argv[1:] for argv in noted]


def spelled(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """A command with numbers as numbers and lengths in the place of keys, and those keys."""
    words, keys = list(argv), {}
    for at, word in enumerate(argv[:-1]):
        if word in KINDS:
            keys[word] = argv[at + 2]
            words[at + 2] = f"{len(argv[at + 2])} digits"
        if word in ("spi", "reqid"):
            words[at + 1] = str(int(argv[at + 1], 0))
    return words, keys


DECLARATIONS = [
    *({"algorithm": name} for name in SUITES),
    {"mode": "tunnel", "networks": ["10.1.0.0/16", "10.2.0.0/16"], "label": "process"},
    {"ends": ENDS6, "label": "process", "esn": True, "replay_window": 4096},
    {"selectors": [{"protocol": "tcp", "port": 5201}], "mark": {"value": 1, "mask": 255}},
    {"pairs": 5, "vary": "selector", "mode": "tunnel"},
    {"pairs": 5, "vary": "label", "label": "process", "algorithm": "aes-cbc-sha256"},
    {"pairs": 2, "vary": "selector", "ends": ENDS6},
]


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("values", DECLARATIONS, ids=str)
def test_what_is_typed_is_what_the_module_runs(
    values: dict[str, Any], end: int, tmp_path: Path
) -> None:
    item = declared(**values)
    by_module = [spelled(argv)[0] for argv in of_module(item, end)]
    assert sorted(spelled(argv)[0] for argv in typed(item, end, tmp_path)) == sorted(by_module)


@pytest.mark.parametrize("values", DECLARATIONS, ids=str)
def test_both_hosts_come_to_the_same_keys_and_no_two_sas_to_one(
    values: dict[str, Any], tmp_path: Path
) -> None:
    item = declared(**values)
    found = [
        [spelled(argv)[1] for argv in typed(item, end, tmp_path) if argv[1] == "state"]
        for end in (0, 1)
    ]
    assert found[0] == found[1]
    keys = [key for sa in found[0] for key in sa.values() if key]
    assert len(set(keys)) == len(keys) > 0


@pytest.mark.parametrize("level", ["s0:c0,c2", "s0:c0,c1023", "s0-s0:c0.c1023"])
def test_the_label_of_the_measured_flow_is_not_given_twice(level: str, tmp_path: Path) -> None:
    # Over the end of the first category.
    item = declared(level, pairs=1026, vary="label", label="process", algorithm="null")
    plain = ["ip() { echo $*; }", "sha512sum() { echo; }", "cut() { echo; }"]
    _noted, done = type_in([*plain, *by_hand([item], [0])], tmp_path, [], SECRET=SECRET)
    words = [line.split() for line in done.stdout.splitlines() if " state " in line]
    labels = [argv[argv.index("ctx") + 1] for argv in words]
    assert labels == [state.context for state in make_states(item, 0)]


def test_a_large_table_is_as_short_to_type_as_a_small_one() -> None:
    for vary in ("label", "selector"):
        small, large = (
            by_hand([declared(pairs=count, vary=vary, label="process")], [0])
            for count in (2, 10000)
        )
        assert len(small) == len(large)
        assert len("".join(large)) < len("".join(small)) + 40


def test_no_key_is_in_them_and_policies_come_last() -> None:
    lines = by_hand([declared(), declared(name="six", ends=ENDS6)], [0, 0])
    assert not any("0x" in line.replace("0x430", "").replace("0x$(", "").replace("0x43", "")
                   for line in lines)  # fmt: skip
    kinds = [line.split()[2] for line in lines if line.startswith("ip ")]
    assert kinds == sorted(kinds, reverse=True)
    assert by_hand([], []) == []

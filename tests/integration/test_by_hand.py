"""What is printed to build a configuration by hand makes the kernel state that the module makes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from by_hand import type_on
from ipsec_lab import ENDS4, ENDS6, LEVEL, SERVER6

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_command import (
    policy_name,
    state_name,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_policy import (
    parse_policies,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm_state import (
    parse_states,
)
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_compare import (
    shown_policy,
    shown_state,
)
from collector.run.runner import strategy_environment

# Slow: each configuration is built twice.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

HOSTS = ("client", "server")
GUARD_S = 120
WAIT_S = 240
LIMIT_S = 900
SEED = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

MAPS = [
    {"address": "0.0.0.0/0", "protocol": "unlbl"},
    {"address": "::/0", "protocol": "unlbl"},
    {"address": "198.18.0.0/24", "protocol": "cipso", "doi": 16},
]
LABELS = {
    "translated": {
        "dois": [
            {"number": 16, "type": "trans", "tags": [1], "levels": "0-16", "categories": "0-239"}
        ],
        "maps": MAPS,
        "sysctls": {"cipso_cache_enable": 0, "cipso_rbm_strictvalid": 0},
    },
    "passed": {"dois": [{"number": 16, "type": "pass", "tags": [2, 5, 1]}], "maps": MAPS},
    "static": {
        "unlabelled": {
            "static": [
                {
                    "interface": "eth1",
                    "address": "198.18.0.0/24",
                    "label": "system_u:object_r:netlabel_peer_t:s0",
                }
            ]
        }
    },
}
MANUAL = [
    {"name": "four", "ends": ENDS4, "label": "process", "pairs": 3},
    {
        "name": "six",
        "ends": ENDS6,
        "mode": "tunnel",
        "algorithm": "aes-cbc-sha256",
        "pairs": 4,
        "vary": "selector",
    },
]
IKE = {
    "labelled": [{"name": "four", "ends": ENDS4, "label": "process"}],
    "plain": [
        {"name": "four", "ends": ENDS4},
        {"name": "six", "ends": ENDS6, "mode": "tunnel", "algorithm": "aes-cbc-sha256"},
    ],
}


def task(name: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """A task that runs a module and keeps what it returns."""
    more = {"guard": {"timeout": WAIT_S + GUARD_S}}
    if name != "cipso" and arguments.get("state") != "absent":
        more |= {"seed": SEED, "generation": "test", "level": LEVEL}
    if name == "ike":
        more["wait"] = WAIT_S
    return {
        f"crossover.lab.{name}": {**more, **arguments},
        "check_mode": check,
        "register": "outcome",
    }


def play(lab: Any, folder: Path, *tasks: dict[str, Any]) -> dict[str, Any]:
    """Run tasks on both guests; what the last one returned, by host."""
    out = {
        "ansible.builtin.copy": {
            "content": "{{ outcome | to_json }}",
            "dest": str(folder) + "/{{ inventory_hostname }}.json",
            "mode": "0600",
        },
        "delegate_to": "localhost",
    }
    path = folder / "play.yml"
    path.write_text(yaml.safe_dump([{"hosts": "measured", "tasks": [*tasks, out]}]))
    done = lab.playbook(path, limit_s=LIMIT_S, **strategy_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return {host: json.loads((folder / f"{host}.json").read_text()) for host in HOSTS}


# What was typed is somebody else's to the modules, which would remember it and put it back: so it
# is taken back by hand too. A DOI is in use until its mappings are gone.
FORGET = """
ip xfrm policy flush; ip xfrm state flush
if netlabelctl cipso list | grep -q 16; then
    netlabelctl map del default; netlabelctl map add default protocol:unlbl
    for n in 1 2 3 4 5; do netlabelctl cipso del doi:16 && break; sleep 1; done
fi
if netlabelctl unlbl list | grep -q 198.18.0.0; then
    netlabelctl unlbl del interface:eth1 address:198.18.0.0/24
fi
sysctl -q -w net.ipv4.cipso_cache_enable=1 net.ipv4.cipso_rbm_strictvalid=1
"""


def forget(lab: Any) -> None:
    """Take back on both guests what was typed, whatever it was."""
    for host in HOSTS:
        type_on(lab, host, [FORGET])


@pytest.fixture
def clean(lab: Any, tmp_path: Path) -> Iterator[Any]:
    """The lab's guests as they boot, before and after, whoever built what was there."""
    gone = [task(name, state="absent") for name in ("ike", "ipsec", "cipso")]
    folder = tmp_path / "clean"
    folder.mkdir()
    play(lab, folder, *gone)
    yield lab
    play(lab, folder, *gone)
    forget(lab)


def labels(lab: Any, host: str) -> dict[str, str]:
    """What a guest's kernel has of NetLabel."""
    commands = ["cipso list", "map list", "unlbl list"]
    found = {command: lab.ssh(host, f"netlabelctl {command}") for command in commands}
    if "16" in found["cipso list"]:
        found["doi"] = lab.ssh(host, "netlabelctl cipso list doi:16")
    found["sysctls"] = lab.ssh(host, "sysctl -a -r '^net.ipv4.cipso_'")
    return found


def associations(lab: Any, host: str, spi: bool = True) -> dict[str, Any]:
    """The SAs and policies that a guest has; ``spi``: with the numbers of the SAs, which IKE
    chooses anew each time, as it does reqids and when exactly an SA is to be replaced."""
    states = parse_states(lab.ssh(host, "ip -s xfrm state list nokeys"))
    policies = parse_policies(lab.ssh(host, "ip -s xfrm policy list"))
    if spi:
        sas: Any = {state_name(one): shown_state(one) for one in states}
    else:
        drawn = {"reqid": 0, "limits": {}}
        made = [one for one in states if one.algorithms]
        rows = [{**shown_state(one), "dst": one.dst, **drawn} for one in made]
        sas = sorted(rows, key=json.dumps)
    templates = {}
    for one in policies:
        if one.socket:
            continue
        shown = shown_policy(one)
        if not spi:
            shown["tmpl"] = [text.partition(" reqid ")[0] for text in shown["tmpl"]]
        templates[policy_name(one)] = shown
    return {"sas": sas, "policies": templates}


@pytest.mark.parametrize("declared", list(LABELS))
def test_labels_typed_are_those_of_the_module(clean, tmp_path, declared):
    lab, wanted = clean, LABELS[declared]
    before = {host: labels(lab, host) for host in HOSTS}
    said = play(lab, tmp_path, task("cipso", check=True, **wanted))
    for host in HOSTS:
        type_on(lab, host, said[host]["by_hand"])
    typed = {host: labels(lab, host) for host in HOSTS}
    for host in HOSTS:
        assert typed[host] != before[host]
    forget(lab)
    done = play(lab, tmp_path, task("cipso", **wanted))
    for host in HOSTS:
        assert done[host]["by_hand"] == said[host]["by_hand"]
        assert labels(lab, host) == typed[host]


def test_sas_typed_are_those_of_the_module_and_the_hosts_share_keys(clean, tmp_path):
    lab = clean
    said = play(lab, tmp_path, task("ipsec", check=True, connections=MANUAL))
    for host in HOSTS:
        type_on(lab, host, said[host]["by_hand"])
    typed = {host: associations(lab, host) for host in HOSTS}
    assert len(typed["client"]["sas"]) == 2 * (3 + 4)
    keys = [lab.ssh(host, "ip xfrm state | grep -oE ' 0x[0-9a-f]{32,}' | sort") for host in HOSTS]
    # One of each labelled SA, two of each other.
    assert keys[0] == keys[1]
    assert len(set(keys[0].split())) == 2 * 3 + 2 * 2 * 4
    lab.ssh("client", f"ping -c 2 -W 5 {SERVER6}")
    forget(lab)
    done = play(lab, tmp_path, task("ipsec", connections=MANUAL))
    for host in HOSTS:
        assert done[host]["by_hand"] == said[host]["by_hand"]
        assert associations(lab, host) == typed[host]


@pytest.mark.parametrize("declared", list(IKE))
def test_sas_of_a_daemon_started_by_hand_are_those_of_the_module(clean, tmp_path, declared):
    lab, wanted = clean, IKE[declared]
    said = play(lab, tmp_path, task("ike", check=True, connections=wanted))
    # The other end first: the one that asks need not ask again.
    for host in reversed(HOSTS):
        type_on(lab, host, said[host]["by_hand"])
    await_sas(lab, 2 * len(wanted))
    typed = {host: associations(lab, host, spi=False) for host in HOSTS}
    for host in HOSTS:
        assert "secrets" not in lab.ssh(host, "ls /run/pluto/crossover").split()
    play(lab, tmp_path, task("ike", state="absent"))
    done = play(lab, tmp_path, task("ike", connections=wanted))
    await_sas(lab, 2 * len(wanted))
    for host in HOSTS:
        assert done[host]["by_hand"] == said[host]["by_hand"]
        assert associations(lab, host, spi=False) == typed[host]


def await_sas(lab: Any, count: int) -> None:
    """Until both guests have as many SAs, and no more is being asked for."""
    limit = time.monotonic() + WAIT_S
    while True:
        found = [parse_states(lab.ssh(host, "ip -s xfrm state list nokeys")) for host in HOSTS]
        if [len([one for one in states if one.algorithms]) for states in found] == [count] * 2:
            return
        assert time.monotonic() < limit, found
        time.sleep(2)

"""Tunnels between the lab's guests: the commands by hand against the module, stacks over IPsec."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from by_hand import type_on

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.tunnel_link import (
    read_links,
)
from ansible_collections.crossover.lab.plugins.module_utils.shell_step import Step
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_commands import Place, remove
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_keys import make_keys
from collector.run.runner import strategy_environment
from collector.runfolder.runfolder import load_run
from collector.runfolder.store import read_samples

# Slow: every type of tunnel by hand and by the module, one after the other.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 900
GUARD_S = 90
SEED = bytes(range(32))
HOSTS = ("client", "server")
LINKS = yaml.safe_load((ROOT / "molecule" / "tunnel" / "vars.yml").read_text())["tunnel_links"]
# What no two devices share, and what only counts or says how long.
OWN = {
    "ifindex", "address", "permaddr", "link_index", "link_netnsid", "ageing", "group", "stats64",
    "valid_life_time", "preferred_life_time", "created", "pn",
}  # fmt: skip
LISTINGS = (
    "ip -d -j address show", "ip -j fou show", "ip -j -6 fou show", "ip -j l2tp show tunnel",
    "ip -j l2tp show session", "ip -j macsec show", "ip -j route show table all",
)  # fmt: skip


def plain(value: Any) -> Any:
    """The same without what no two devices share."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in OWN}
    if isinstance(value, list):
        return sorted((plain(item) for item in value), key=json.dumps)
    return value


def kernel_state(lab: Any, host: str) -> dict[str, Any]:
    """What a guest's kernel has of tunnels."""
    found: dict[str, Any] = {}
    for command in LISTINGS:
        items = json.loads(lab.ssh(host, command) or "[]")
        if command.startswith(("ip -d -j address", "ip -j route")):
            names = {link["name"] for link in LINKS}
            items = [
                item for item in items
                if item.get("ifname") in names or item.get("dev") in names
                if not str(item.get("dst", "")).startswith(("fe80", "ff00", "multicast"))
            ]  # fmt: skip
            for item in items:
                # An address that the kernel makes of a device's own.
                item["addr_info"] = [
                    one for one in item.get("addr_info", []) if one.get("scope") != "link"
                ]
        found[command] = plain(items)
    found["wg"] = lab.ssh(host, "wg show xt-wg | grep -v -e handshake -e transfer")
    return found


def play(lab: Any, folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> dict[str, Any]:
    """Run tasks on both guests; what each host's ``tunnel_result`` is, by host."""
    out = {
        "ansible.builtin.copy": {
            "content": "{{ tunnel_result | default({}) | to_json }}",
            "dest": str(folder) + "/{{ inventory_hostname }}.json",
            "mode": "0600",
        },
        "delegate_to": "localhost",
    }
    path = folder / "play.yml"
    settings = {"tunnel_guard_timeout": GUARD_S, "ipsec_guard_timeout": GUARD_S, **variables}
    path.write_text(yaml.safe_dump([{"hosts": "measured", "vars": settings,
                                     "tasks": [*tasks, out]}]))  # fmt: skip
    done = lab.playbook(path, limit_s=LIMIT_S, **strategy_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return {host: json.loads((folder / f"{host}.json").read_text()) for host in HOSTS}


def module(check: bool = False, **arguments: Any) -> dict[str, Any]:
    """A task that applies links with the keys of this test's seed."""
    return {
        "crossover.lab.tunnel": {
            "seed": base64.b64encode(SEED).decode(),
            "generation": "test",
            "guard": {"timeout": GUARD_S},
            **arguments,
        },
        "check_mode": check,
        "register": "tunnel_result",
    }


ABSENT = module(state="absent")


@pytest.fixture
def clean(lab: Any, tmp_path: Path) -> Iterator[Any]:
    """The lab without tunnels, before and after."""
    folder = tmp_path / "clean"
    folder.mkdir()
    play(lab, folder, [ABSENT])
    yield lab
    play(lab, folder, [ABSENT])


def test_the_commands_by_hand_make_the_kernel_state_that_the_module_makes(clean, tmp_path):
    lab = clean
    said = play(lab, tmp_path, [module(check=True, links=LINKS)])
    links = read_links(LINKS)
    states: dict[str, list[Any]] = {host: [] for host in HOSTS}
    for end, host in enumerate(HOSTS):
        keys: dict[str, str] = {}
        for link in links:
            keys.update(make_keys(link, end, SEED))
        type_on(lab, host, said[host]["by_hand"], {name[1:]: key for name, key in keys.items()})
        states[host].append(kernel_state(lab, host))
    for end, host in enumerate(HOSTS):
        undo: list[Step] = []
        for link in reversed(links):
            undo += remove(Place(link, end, "eth1", 0))
        type_on(lab, host, [step.shell() for step in undo])
    done = play(lab, tmp_path, [module(links=LINKS)])
    for host in HOSTS:
        assert done[host]["by_hand"] == said[host]["by_hand"]
        states[host].append(kernel_state(lab, host))
        first, second = states[host]
        for what in first:
            assert first[what] == second[what], what
        assert len(first["ip -d -j address show"]) == len(LINKS)


def test_the_rest_of_a_link_whose_device_somebody_deleted_is_taken_back(clean, tmp_path):
    lab = clean
    names = ["xt-fou", "xt-gue", "xt-l2tp"]
    links = [link for link in LINKS if link["name"] in names]
    delete = (
        "ip link delete dev xt-fou && ip link delete dev xt-gue"
        " && ip l2tp del session tunnel_id 114 session_id 114"
    )
    play(lab, tmp_path, [module(links=links)])
    for host in HOSTS:
        lab.ssh(host, delete)
    done = play(lab, tmp_path, [module(links=links)])
    for host in HOSTS:
        actions = [(one["verb"], one["name"]) for one in done[host]["actions"]]
        assert actions == [
            *(("delete", name) for name in reversed(names)),
            *(("add", name) for name in names),
        ]
        lab.ssh(host, delete)
    play(lab, tmp_path, [ABSENT])
    for host in HOSTS:
        for command in ("ip -j fou show", "ip -j -6 fou show", "ip -j l2tp show tunnel"):
            assert plain(json.loads(lab.ssh(host, command) or "[]")) == []


MATRIX: dict[str, Any] = {
    "schema": 1,
    "name": "stacks",
    "title": "Tunnels over IPsec and over each other",
    "topology": "pair",
    "baseline": "plain",
    "subjects": ["ipsec", "tunnels"],
    "configurations": [
        {"name": "plain", "about": "the bare link"},
    ],
    "tests": [{"name": "rr", "netperf": "TCP_RR", "request_bytes": 1, "response_bytes": 1}],
    "short": {"duration_s": 1, "blocks": 1, "warm_up_s": 0.5},
    "full": {"duration_s": 1, "blocks": 1, "warm_up_s": 0.5},
}


def configuration(name: str, *links: dict[str, Any], **more: Any) -> dict[str, Any]:
    first = {
        "name": "xt0",
        "ends": ["@client_ipv4", "@server_ipv4"],
        "inner_ipv4": ["198.19.0.1/24", "198.19.0.2/24"],
    }
    listed = [{**first, **links[0]}, *links[1:]]
    return {"name": name, "about": name, "tunnels": {"links": listed}, **more}


TRANSPORT = {"connections": [{"name": "below", "ends": ["@client_ipv4", "@server_ipv4"]}]}
TOP = {
    "name": "top", "type": "gre", "ends": ["198.19.0.1", "198.19.0.2"],
    "inner_ipv4": ["198.19.1.1/24", "198.19.1.2/24"],
}  # fmt: skip


def setup_lines(run: Any, name: str) -> list[str]:
    """What a run says builds a configuration by hand on the client."""
    (cell,) = (one for one in run.plan.cells if one.configuration == name and not one.arm)
    (path,) = (run.path / "evidence" / cell.cell_id).glob("*/setup.json")
    found: list[str] = json.loads(path.read_text())["hosts"]["client"]
    return found


@pytest.mark.slow
def test_stacks_are_proven_and_measured(clean, tmp_path):
    made = {
        **MATRIX,
        "configurations": [
            *MATRIX["configurations"],
            configuration("esp_vxlan", {"type": "vxlan", "id": 1}, ipsec=TRANSPORT),
            configuration("esp_gre", {"type": "gre", "key": 1}, ipsec=TRANSPORT),
            configuration("vxlan_gre", {"type": "vxlan", "id": 1}, TOP),
            configuration("offloads_off", {"type": "geneve", "id": 1}, offloads="off"),
            configuration("ovs", {"type": "ovs", "id": 1}),
        ],
    }
    matrix = tmp_path / "stacks.yml"
    matrix.write_text(yaml.safe_dump(made))
    done = clean.playbook(
        ROOT / "playbooks" / "benchmark.yml", "-e", f"matrix={matrix}", "-e", "run_id=stacks",
        limit_s=LIMIT_S, CROSSOVER_RUNS=str(tmp_path), **strategy_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    run = load_run(tmp_path / "stacks")
    rows = {row.configuration: row for row in read_samples(run.path) if not row.arm}
    found = {name: (row.status.value, row.reason) for name, row in rows.items()}
    assert found.pop("ovs")[0] == "skipped"
    assert {status for status, _reason in found.values()} == {"ok"}, found
    over_esp = setup_lines(run, "esp_vxlan")
    below = [line.startswith("ip xfrm") for line in over_esp if line.startswith("ip ")]
    assert below == [True] * 4 + [False] * 4, over_esp
    assert any(line.startswith("ethtool -K eth1 ") for line in setup_lines(run, "offloads_off"))
    for host in HOSTS:
        assert "xt0" not in clean.ssh(host, "ip -brief link show")
        features = clean.ssh(host, "ethtool -k eth1")
        assert "generic-receive-offload: on" in features

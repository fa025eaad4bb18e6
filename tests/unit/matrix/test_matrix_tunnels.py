"""Tunnels in a matrix: read, skipped where a host cannot have them, measured inside."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.errors import InputError
from collector.matrix.matrix import Matrix, load_matrix, read_matrix
from collector.matrix.placeholders import EXAMPLE, resolve
from collector.matrix.tunnel_links import (
    carrying_link,
    inner_addresses,
    inner_mtu,
    measured_link,
    mtus,
    outer_addresses,
    over_path,
)
from collector.matrix.tunnels import types_of, without
from collector.run.campaign import find_matrix, open_campaign
from tests.unit.matrix_factory import DOCUMENT
from tests.unit.tunnel_factory import declared

LINK = {"name": "xt0", "type": "vxlan", "id": 42, "ends": ["@client_ipv4", "@server_ipv4"],
        "inner_ipv4": ["198.19.0.1/24", "198.19.0.2/24"]}  # fmt: skip
TOP = declared("vxlan", name="top", id=7, ends=["198.19.0.1", "198.19.0.2"],
               inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])  # fmt: skip


def document(*links: dict[str, Any], **keys: Any) -> dict[str, Any]:
    made = copy.deepcopy(DOCUMENT)
    made["subjects"] = ["tunnels"]
    made["baseline"] = "plain"
    made["configurations"] = [
        {"name": "plain", "about": "the bare link", "tunnels": {}},
        {"name": "tunnel", "about": "a tunnel", "tunnels": {"links": list(links)}, **keys},
    ]
    return made


def matrix(*links: dict[str, Any], **keys: Any) -> Matrix:
    return read_matrix(document(*links, **keys), "m.yml")


def subjects(*links: dict[str, Any]) -> dict[str, Any]:
    return {"family": "ipv4", "tunnels": {"links": list(links)}}


def test_the_types_of_a_matrix_are_those_of_what_it_runs():
    assert types_of(matrix(LINK, TOP | {"type": "geneve"})) == ["geneve", "vxlan"]
    assert types_of(matrix(LINK, skip="not here")) == []
    found = types_of(load_matrix(Path(find_matrix("tunnels"))))
    assert {"vxlan", "stt", "geneve", "gre", "ipip", "fou", "wireguard"} <= set(found)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"links": [{**LINK, "id": None}]}, "m.yml: configurations.tunnel.tunnels: found "
         "tunnels.links[0] (xt0).id: None, wanted a number"),
        ({"links": [], "more": 1}, "tunnels: more, wanted links and nothing else"),
        ({"links": [{**LINK, "inner_ipv4": None}]}, "xt0.inner_ipv4: none, wanted the measured"),
        ({"links": [{**LINK, "ends": ["@client_ipv4", "@server_ipv9"]}]}, "'@server_ipv9'"),
        ("vxlan", "configurations[1].tunnels: found 'vxlan'; wanted a mapping"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_named_with_its_configuration(keys, text):
    with pytest.raises(InputError) as seen:
        matrix(tunnels=keys)
    assert text in str(seen.value)


@pytest.mark.parametrize("given", ["off", False])
def test_offloads_are_a_word_or_what_yaml_makes_of_it(given):
    found = matrix(LINK, offloads=given).configurations[1]
    assert found.subjects["offloads"] == "off"
    assert "offloads" not in matrix(LINK).configurations[1].subjects
    with pytest.raises(InputError, match="offloads: found 'some'; wanted on or off"):
        matrix(LINK, offloads="some")


def test_offloads_need_the_subject_that_sets_them():
    made = copy.deepcopy(DOCUMENT)
    made["configurations"][0]["offloads"] = "off"
    with pytest.raises(InputError, match="offloads"):
        read_matrix(made, "m.yml")


def test_what_a_host_cannot_have_is_skipped_with_its_reason():
    reason = "geneve on server: none can be made: Error: Unknown device type."
    found = without(matrix({**LINK, "type": "geneve"}), {"geneve": reason})
    assert [item.skip for item in found.configurations] == [None, reason]
    same = matrix(LINK)
    assert without(same, {"geneve": reason}) == same
    kept = without(matrix(LINK, skip="too slow"), {"vxlan": reason})
    assert kept.configurations[1].skip == "too slow"


def test_a_baseline_that_a_host_cannot_have_is_an_error():
    made = document(LINK)
    made["baseline"] = "tunnel"
    with pytest.raises(InputError, match=r"m\.yml: tunnel: found no vxlan; wanted a baseline"):
        without(read_matrix(made, "m.yml"), {"vxlan": "no vxlan"})


def test_the_last_link_is_measured_and_the_lowest_is_on_the_wire():
    stack = resolve(subjects(LINK, TOP), EXAMPLE, "m.yml")
    measured, carrying = measured_link(stack), carrying_link(stack)
    assert measured is not None
    assert carrying is not None
    assert (measured.name, carrying.name) == ("top", "xt0")
    assert inner_addresses(stack, "ipv4") == ("198.19.1.1", "198.19.1.2")
    assert outer_addresses(stack) == ("198.18.0.1", "198.18.0.2")
    assert mtus(stack, 1500) == {"xt0": 1450, "top": 1400}
    assert inner_mtu(stack, 1500) == 1400
    assert inner_mtu({"family": "ipv4", "tunnels": {}}, 1500) == 1500


def test_an_mtu_that_cannot_be_is_found_before_the_run():
    with pytest.raises(InputError) as seen:
        mtus(subjects(declared("vxlan", mtu=1500)), 1500)
    assert str(seen.value) == (
        "tunnels.links[0] (xt0).mtu: found 1500; wanted at most 1450: 1500 of the path less 50 "
        "(IPv4 20, UDP 8, VXLAN 8, Ethernet 14)"
    )


def test_a_path_that_takes_less_than_its_device_is_told_to_the_lowest_links():
    narrowed = over_path(subjects(declared("vxlan"), TOP), 1466, 1500)
    first, second = narrowed["tunnels"]["links"]
    assert first["underlay_mtu"] == 1466
    assert "underlay_mtu" not in second
    wide = subjects(declared("vxlan"))
    assert over_path(wide, 1500, 1500) == wide


TEST_LINK = {
    "name": "test", "device": "eth1", "ipv4": "198.18.0.1/24", "ipv6": "2001:db8:18::1/64",
    "peer": "server", "peer_ipv4": "198.18.0.2/24", "peer_ipv6": "2001:db8:18::2/64",
}  # fmt: skip


def opened(folder: Path, made: dict[str, Any], **missing: str) -> dict[str, dict[str, Any]]:
    """The groups of a new run by configuration."""
    path = folder / "m.yml"
    path.write_text(yaml.safe_dump(made))
    server = {**TEST_LINK, "ipv4": "198.18.0.2/24", "peer_ipv4": "198.18.0.1/24"}
    found = open_campaign(
        matrix=str(path), form="short", runs=folder / "runs", resume=None, run_id="t", blocks=1,
        seed=1, lab={"kind": "guests", "accelerator": "tcg", "name": "x"},
        client={"name": "client", "control_address": "192.0.2.1", "link": TEST_LINK,
                "links": [TEST_LINK]},
        server={"name": "server", "control_address": "192.0.2.2", "link": server,
                "links": [server]},
        missing=missing,
    )  # fmt: skip
    return {group["configuration"]: group for group in found["groups"] if not group["arm"]}


def test_a_group_is_measured_inside_the_tunnel(tmp_path):
    groups = opened(tmp_path, document(LINK))
    plain, inside = groups["plain"], groups["tunnel"]
    assert (plain["client_address"], plain["server_address"]) == ("198.18.0.1", "198.18.0.2")
    assert (inside["client_address"], inside["server_address"]) == ("198.19.0.1", "198.19.0.2")
    assert (inside["device"], inside["capture"], inside["control_address"]) == (
        "eth1", "all", "192.0.2.2",
    )  # fmt: skip
    assert (plain["expected_mss"], inside["expected_mss"]) == (1448, 1398)
    assert (plain["payload_bytes"], inside["payload_bytes"]) == (1472, 1422)
    assert inside["subjects"]["tunnels"]["links"][0]["ends"] == ["198.18.0.1", "198.18.0.2"]


def test_over_ipsec_the_links_are_told_what_esp_leaves(tmp_path):
    made = document(LINK)
    made["subjects"] = ["ipsec", "tunnels"]
    made["configurations"][1]["ipsec"] = {
        "connections": [{"name": "c", "ends": ["@client_ipv4", "@server_ipv4"]}]
    }
    group = opened(tmp_path, made)["tunnel"]
    assert group["subjects"]["tunnels"]["links"][0]["underlay_mtu"] == 1466
    assert group["expected_mss"] == 1466 - 50 - 52


def test_what_is_missing_is_in_the_plan_with_its_reason(tmp_path):
    assert set(opened(tmp_path, document(LINK), vxlan="vxlan on server: no")) == {"plain"}
    plan = json.loads((tmp_path / "runs" / "t" / "plan.json").read_text())
    skips = {cell["configuration"]: cell["skip"] for cell in plan["cells"]}
    assert skips == {"plain": None, "tunnel": "vxlan on server: no"}

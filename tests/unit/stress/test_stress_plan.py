"""What a stress run is planned as, and what its programs are started with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matrix_factory
import pytest
import stress_factory

from collector.errors import InputError, UsageError
from collector.matrix.matrix import load_matrix
from collector.proof.findings import Finding
from collector.run.campaign import MATRICES
from collector.stress.plan import (
    SERVER_GRACE_S,
    agent_plan,
    choose,
    keying_of,
    load_stress,
    make_stress,
    open_stress,
    parse_stress,
    stream_tests,
)
from collector.stress.run import open_run, record

LINK = {
    "device": "eth1",
    "ipv4": "198.18.0.1/24",
    "peer_ipv4": "198.18.0.2/24",
    "ipv6": "2001:db8:18::1/64",
    "peer_ipv6": "2001:db8:18::2/64",
}
HOSTS: dict[str, Any] = {
    "lab": {"kind": "guests", "accelerator": "tcg", "name": "default"},
    "client": {"name": "client", "link": LINK},
    "server": {"name": "server", "control_address": "10.0.0.2", "link": LINK},
}
TIMES: dict[str, Any] = {"duration_s": 600.0, "interval_s": 60.0, "chunk_s": 60.0}


def made(matrix=None, **changes: Any) -> dict[str, Any]:
    wanted = {
        "configuration": "C_FlCat",
        "run_id": None,
        "created_at": "2026-11-30T10:00:00.000Z",
        **TIMES,
        **HOSTS,
        **changes,
    }
    return make_stress(matrix or matrix_factory.matrix(), **wanted)


def test_the_streams_run_under_the_label_and_in_chunks() -> None:
    document = made()
    assert document["run_id"] == "stress-C_FlCat-20261130T100000"
    (argv,) = document["streams"].values()
    words = " ".join(argv)
    assert words.startswith("runcon -l s0:c0.c239 netperf -H 10.0.0.2 -p 12865 -t UDP_STREAM")
    assert " -l @seconds -P 0 -- -H 198.18.0.2 -L 198.18.0.1 -4 -R 1 -m " in words
    # Statistics of latencies overflow in long runs: none is asked for.
    assert "LATENCY" not in words
    assert " -j " not in words
    assert document["group"]["commands"] == []
    assert document["keying"] == "none"


def test_each_host_gets_its_part_and_the_server_outlives_the_client() -> None:
    plan = parse_stress(made(), "stress.json")
    client, server = agent_plan(plan, "client"), agent_plan(plan, "server")
    assert [stream["name"] for stream in client["plan"]["streams"]] == ["udp"]
    assert client["plan"]["netserver"] is None
    assert server["plan"]["streams"] == []
    assert server["plan"]["netserver"] == [
        *("runcon", "-l", "s0:c0.c239", "netserver", "-D", "-N"),
        *("-p", "12865", "-L", "10.0.0.2,4"),
    ]
    assert server["plan"]["duration_s"] == client["plan"]["duration_s"] + SERVER_GRACE_S
    assert client["limit"] > client["plan"]["duration_s"] + 2 * plan.chunk_s


def test_the_published_configurations_can_all_be_planned() -> None:
    matrix = load_matrix(MATRICES / "ipsec_stress.yml")
    keyings = {}
    for item in matrix.configurations:
        document = made(matrix, configuration=item.name)
        keyings[item.name] = document["keying"]
        assert set(document["streams"]) == {"tcp", "udp"}
        family = "-6" if "ipv6" in item.name else "-4"
        assert all(family in argv for argv in document["streams"].values())
        assert agent_plan(parse_stress(document, "x"), "client")["plan"]["ipsec"] is True
    assert keyings == {
        "ipv4_transport_manual": "manual",
        "ipv6_transport_manual": "manual",
        "ipv4_transport_ike": "ike",
        "ipv4_tunnel_manual": "manual",
        "ipv6_tunnel_manual": "manual",
    }
    hours = [item.factors["published_hours"] for item in matrix.configurations]
    assert hours == ["24", "48", "18", "24", "24"]


def test_what_cannot_be_planned_says_why() -> None:
    matrix = matrix_factory.matrix()
    with pytest.raises(UsageError, match="found no --configuration; wanted one of Unlabel, C_FlC"):
        choose(matrix, None)
    with pytest.raises(UsageError, match="found configuration 'x'; wanted one of Unlabel"):
        choose(matrix, "x")
    with pytest.raises(UsageError, match="NoPatch cannot run here: needs another kernel"):
        choose(matrix, "NoPatch")
    with pytest.raises(UsageError, match="found no stream; wanted a test of one"):
        stream_tests(matrix_factory.matrix(("tests", 1), ...))
    with pytest.raises(UsageError, match="interval: found 0 s; wanted at least 1 s"):
        made(interval_s=0.0)


def test_a_configuration_without_connections_has_no_keying() -> None:
    assert keying_of({"ipsec": {}}) == "none"
    assert keying_of({"ipsec": {"connections": [{}]}}) == "manual"
    assert keying_of({"ipsec": {"keying": "libreswan", "connections": [{}]}}) == "ike"


def test_a_plan_is_read_back_strictly(tmp_path: Path) -> None:
    folder = open_stress(
        matrix="netlabel_cipso",
        configuration="C_FlCat",
        runs=tmp_path,
        run_id="mine",
        **TIMES,
        **HOSTS,
    )
    plan = load_stress(folder)
    assert (plan.run_id, plan.configuration, plan.duration_s) == ("mine", "C_FlCat", 600.0)
    with pytest.raises(InputError, match=r"mine: found a folder; wanted no folder of that name"):
        open_stress(
            matrix="netlabel_cipso",
            configuration="C_FlCat",
            runs=tmp_path,
            run_id="mine",
            **TIMES,
            **HOSTS,
        )
    with pytest.raises(InputError, match="wanted the folder of a stress run"):
        load_stress(tmp_path)
    for key, value, text in (
        ("schema", 2, "newer version"),
        ("x", 1, "unknown field"),
        ("keying", "x", "wanted one of none, manual, ike"),
        ("hosts", {"client": "a"}, "hosts.server"),
    ):
        with pytest.raises(InputError, match=text):
            parse_stress({**stress_factory.DOCUMENT, key: value}, "stress.json")


def test_a_run_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    arguments = {"runs": tmp_path, "run_id": "mine", **TIMES}
    new = open_run(run=None, matrix="netlabel_cipso", configuration="C_FlCat", **arguments, **HOSTS)
    assert new["offsets"] == {"client": 0, "server": 0}
    result = {
        "lines": [],
        "offset": 77,
        "active": True,
        "identity": {"boot_id": "b"},
        "time": 1.0,
        "words": "",
        "more": True,
    }
    hosts = {"client": result, "server": {**result, "offset": 5, "more": False}}
    assert record(run_folder=new["run_folder"], event="polled", hosts=hosts) == {"more": True}
    nothing = {"lab": None, "client": None, "server": None, "matrix": None, "configuration": None}
    again = open_run(run="mine", **arguments, **nothing)
    assert again["offsets"] == {"client": 77, "server": 5}
    assert again["group"] == new["group"]


def test_what_is_not_proven_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_stress(
        matrix="netlabel_cipso",
        configuration="C_FlCat",
        runs=tmp_path,
        run_id="mine",
        **TIMES,
        **HOSTS,
    )
    found = [Finding("peer label", "s0", "None", False)]
    monkeypatch.setattr("collector.stress.run.proof.prove", lambda *_: found)
    hosts = {
        "client": {"pcap": ""},
        "server": {"pcap": ""},
        "keyed": {"client": {"by_hand": ["ip xfrm …"]}},
    }
    with pytest.raises(
        Exception, match="stress C_FlCat: not proven: peer label: wanted s0, found None"
    ):
        record(run_folder=str(folder), event="proven", hosts=hosts)
    proof = json.loads((folder / "evidence" / "proof.json").read_text())
    assert proof["findings"][0]["ok"] is False
    setup = json.loads((folder / "evidence" / "setup.json").read_text())
    note = "# netserver and netperf run under: runcon -l s0:c0.c239"
    assert setup["hosts"] == {"client": ["ip xfrm …", note]}

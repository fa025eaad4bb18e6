"""What the roles ask of the results of all hosts, and of a capture."""

from __future__ import annotations

import base64

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.crossover.lab.plugins.filter.tunnel import (
    FilterModule,
    captured_outer,
    matrix_tunnels,
    tunnel_keys_differ,
    tunnels_missing,
)
from ansible_collections.crossover.lab.plugins.module_utils.capture import pcap


def answer(generation: str | None) -> dict[str, object]:
    return {"links": [{"name": "xt0", "generation": generation}]}


def test_keys_of_one_seed_are_told_from_keys_of_two():
    assert not tunnel_keys_differ([answer("a"), answer("a")])
    assert not tunnel_keys_differ([answer(None), answer(None)])
    assert not tunnel_keys_differ([{}, answer("a")])
    assert tunnel_keys_differ([answer("a"), answer("b")])
    assert tunnel_keys_differ([answer("a"), answer(None)])


def test_what_is_missing_names_host_and_reason():
    answers = {
        "client": {"tunnels_missing": {}},
        "server": {"tunnels_missing": {"stt": "none can be made"}},
    }
    assert tunnels_missing(answers) == {"stt": "stt on server: none can be made"}
    assert tunnels_missing({"client": {}}) == {}


def test_the_types_of_a_matrix_come_by_its_name():
    assert "vxlan" in matrix_tunnels("tunnels")
    assert matrix_tunnels("netlabel_cipso") == []
    with pytest.raises(AnsibleFilterError, match="no such matrix"):
        matrix_tunnels("nothing")


def test_a_capture_gives_outer_headers_and_anything_else_an_error():
    packet = b"\x45\0\0\x28" + bytes(5) + b"\x04" + bytes(2) + b"\xc6\x12\0\1\xc6\x12\0\2"
    frame = bytes(12) + b"\x08\0" + packet + b"\x45" + bytes(19)
    content = base64.b64encode(pcap([(0.0, len(frame), frame)])).decode()
    assert [one["type"] for one in captured_outer(content)] == ["ipip"]
    assert captured_outer(content, {"4790": "vxlan"})[0]["source"] == "198.18.0.1"
    with pytest.raises(AnsibleFilterError, match="captured_outer: capture: found no pcap header"):
        captured_outer(base64.b64encode(b"nothing").decode())


def test_the_filters_have_their_names():
    assert set(FilterModule().filters()) == {
        "captured_outer",
        "matrix_tunnels",
        "tunnel_keys_differ",
        "tunnels_missing",
    }

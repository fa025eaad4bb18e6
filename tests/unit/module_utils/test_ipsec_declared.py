"""Declared connections: what they mean on each host, and what is said when they cannot be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.ipsec_algorithms import (
    SUITES,
    algorithms,
    key_sizes,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_build import (
    labels_of,
    make_keys,
    make_policies,
    make_states,
    own_end,
    with_label,
)
from ansible_collections.crossover.lab.plugins.module_utils.ipsec_declared import (
    DEFAULT_POLICY_LABEL,
    FIRST_REQID,
    FIRST_SPI,
    MOST_PAIRS,
    read_connections,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import (
    Vault,
    policy_id,
    state_id,
)
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_plan import (
    IpsecState,
    Management,
    plan,
    validate,
)

ENDS4 = ["198.18.0.1", "198.18.0.2"]
ENDS6 = ["2001:db8:18::1", "2001:db8:18::2"]
PROCESS = "unconfined_u:unconfined_r:unconfined_t:s0:c0.c239"
SEED = bytes(range(32))


def one(**values):
    return read_connections([{"name": "test", "ends": ENDS4, **values}])[0]


def built(end=0, **values):
    connection = with_label(one(**values), PROCESS)
    keys = Vault()
    make_keys(connection, SEED, keys)
    states, policies = make_states(connection, end), make_policies(connection, end)
    return IpsecState(tuple(states), tuple(policies), keys)


def test_both_hosts_get_the_same_sas_and_mirrored_policies():
    first, second = built(0, label="process"), built(1, label="process")
    assert first.states == second.states
    assert [(one.src, one.dst, one.spi) for one in first.states] == [
        ("198.18.0.1", "198.18.0.2", FIRST_SPI),
        ("198.18.0.2", "198.18.0.1", FIRST_SPI + 1),
    ]
    assert {one.context for one in first.states} == {PROCESS}
    assert {one.context for one in first.policies} == {DEFAULT_POLICY_LABEL}
    ways = [
        [(item.direction, item.selector.src) for item in side.policies] for side in (first, second)
    ]
    assert ways == [
        [("out", "198.18.0.1/32"), ("in", "198.18.0.2/32")],
        [("out", "198.18.0.2/32"), ("in", "198.18.0.1/32")],
    ]


def test_a_tunnel_carries_networks_and_forwards_too():
    state = built(1, mode="tunnel", networks=["10.1.0.0/16", "10.2.0.0/16"])
    assert [(item.direction, item.selector.src) for item in state.policies] == [
        ("out", "10.2.0.0/16"),
        ("in", "10.1.0.0/16"),
        ("fwd", "10.1.0.0/16"),
    ]
    assert {item.templates[0].mode for item in state.policies} == {"tunnel"}


def test_ipv6_neighbours_are_found_in_clear_unless_a_protocol_is_chosen():
    state = built(ends=ENDS6)
    clear = [item for item in state.policies if not item.templates]
    assert {(item.direction, item.selector.sport) for item in clear} == {
        ("out", 135), ("out", 136), ("in", 135), ("in", 136),
    }  # fmt: skip
    assert all(item.priority < 1000 for item in clear)
    assert all(
        item.templates for item in built(ends=ENDS6, selectors=[{"protocol": "tcp"}]).policies
    )


def test_a_port_is_that_of_the_second_end():
    for end in (0, 1):
        policies = built(end, selectors=[{"protocol": "tcp", "port": 5201}]).policies
        to_second = [item for item in policies if item.selector.src == "198.18.0.1/32"]
        assert [(item.selector.sport, item.selector.dport) for item in to_second] == [(None, 5201)]
        back = [item for item in policies if item.selector.src == "198.18.0.2/32"]
        assert [(item.selector.sport, item.selector.dport) for item in back] == [(5201, None)]


@pytest.mark.parametrize("algorithm", SUITES)
@pytest.mark.parametrize("mode", ["transport", "tunnel"])
@pytest.mark.parametrize("ends", [ENDS4, ENDS6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("label", [None, "process"], ids=["plain", "labelled"])
def test_every_combination_can_be_applied(algorithm, mode, ends, label):
    for key_bits in key_sizes(algorithm):
        state = built(algorithm=algorithm, key_bits=key_bits, mode=mode, ends=ends, label=label)
        assert validate(state) == []
        lines = plan(IpsecState(), state).batch().splitlines()
        assert len(lines) == len(state.states) + len(state.policies)


@pytest.mark.parametrize("algorithm", SUITES)
def test_keys_are_of_the_declared_length_and_all_different(algorithm):
    state = built(algorithm=algorithm, pairs=3, vary="selector")
    lengths, seen = {}, set()
    for sa in state.states:
        for part in sa.algorithms:
            key = state.keys.get(state_id(sa), part.kind)
            text = key.reveal() if key else "0x"
            lengths.setdefault(part.kind, set()).add(4 * (len(text) - 2))
            assert text not in seen or text == "0x"
            seen.add(text)
    bits = {part.kind: {part.key_bits} for part in algorithms(algorithm, key_sizes(algorithm)[0])}
    assert lengths == bits


def test_another_seed_and_another_name_make_other_keys():
    def keys(seed, name):
        vault = Vault()
        make_keys(read_connections([{"name": name, "ends": ENDS4}])[0], seed, vault)
        return {vault.get(*entry).reveal() for entry in vault}

    assert keys(SEED, "a") == keys(SEED, "a")
    assert not keys(SEED, "a") & keys(SEED, "b")
    assert not keys(SEED, "a") & keys(bytes(32), "a")
    with pytest.raises(DeclarationError, match=r"seed: 3 bytes, wanted 32"):
        keys(b"abc", "a")


def test_pairs_that_fill_the_table_never_serve_the_flow():
    connection = with_label(one(label="process", pairs=500), PROCESS)
    labels = labels_of(connection)
    assert labels[0] == PROCESS
    assert len(set(labels)) == 500
    selectors = [item.selector for item in built(pairs=20, vary="selector").policies[2:]]
    assert {item.proto for item in selectors} == {"udp"}
    assert len(set(selectors)) == len(selectors)


@given(st.integers(1, 40), st.sampled_from(["label", "selector"]), st.integers(0, 1))
def test_identities_are_unique_whatever_fills_the_table(pairs, vary, end):
    state = built(end, label="process", pairs=pairs, vary=vary)
    assert len({state_id(item) for item in state.states}) == 2 * pairs
    assert len({policy_id(item) for item in state.policies}) == len(state.policies)


def test_connections_get_numbers_of_their_own():
    items = read_connections([{"name": name, "ends": ENDS4} for name in ("a", "b")])
    assert [item.reqid for item in items] == [FIRST_REQID, FIRST_REQID + MOST_PAIRS]
    assert items[1].spi == FIRST_SPI + 2 * MOST_PAIRS


FAULTS = [
    ({"name": "1a"}, "connections[0] (1a).name: '1a', wanted a letter, then letters, digits"),
    ({"ends": ["198.18.0.1"]}, ".ends: ['198.18.0.1'], wanted two addresses of one family"),
    ({"ends": ["198.18.0.1", "2001:db8::1"]}, "wanted two addresses of one family"),
    ({"ends": ["198.18.0.1", "198.18.0.1"]}, "wanted two addresses of one family"),
    ({"networks": ["10.0.0.0/8", "11.0.0.0/8"]}, "wanted mode tunnel with it"),
    ({"mode": "tunnel", "networks": ["10.0.0.1/8", "11.0.0.0/8"]}, "without host bits"),
    ({"key_bits": 192}, ".key_bits: 192, wanted 128 or 256 for aes-gcm"),
    ({"algorithm": "chacha20-poly1305", "key_bits": 128}, "wanted 256 for chacha20-poly1305"),
    ({"policy_label": "a:b:c"}, ".policy_label: 'a:b:c', wanted a label with it"),
    ({"pairs": 0}, f".pairs: 0, wanted 1 to {MOST_PAIRS}"),
    ({"pairs": 2}, ".vary: 'label', wanted a label with it, or vary: selector"),
    ({"spi": 5}, ".spi: 5, wanted 0x100 (lower ones are reserved)"),
    ({"reqid": 0}, ".reqid: 0, wanted 1 to 0xffffffff"),
    ({"mark": {"value": 1 << 32}}, "wanted value and mask below 2**32"),
    ({"selectors": [{"port": 80}]}, ".selectors[0].protocol: None, wanted tcp, udp or sctp"),
    ({"selectors": [{"protocol": "tcp", "port": 0}]}, ".selectors[0].port: 0, wanted 1 to 65535"),
]


@pytest.mark.parametrize(("values", "text"), FAULTS, ids=[text[:40] for _, text in FAULTS])
def test_faults_name_connection_key_value_and_the_wanted(values, text):
    with pytest.raises(DeclarationError, match=re.escape(text)):
        one(**values)


def test_names_and_reqids_are_given_once():
    with pytest.raises(DeclarationError, match=r"connections\[1\]\.name: 'a', the same as \[0\]"):
        read_connections([{"name": "a", "ends": ENDS4}] * 2)
    shared = [{"name": name, "ends": ENDS4, "reqid": 7} for name in ("a", "b")]
    with pytest.raises(DeclarationError, match="a and b share reqid 7"):
        read_connections(shared)


@pytest.mark.parametrize(
    ("local", "text"),
    [((), "neither is an address of this host"), (ENDS4, "both are an address of this host")],
)
def test_a_host_is_exactly_one_end(local, text):
    with pytest.raises(DeclarationError, match=text):
        own_end(one(), local.__contains__)
    assert own_end(one(), {"198.18.0.2"}.__contains__) == 1


def test_process_needs_selinux():
    with pytest.raises(DeclarationError, match="wanted a host with SELinux"):
        with_label(one(label="process"), None)


def test_selectors_that_cover_the_management_address_are_refused():
    state = built(mode="tunnel", networks=["192.0.2.0/24", "198.18.0.0/24"])
    (first, *_) = validate(state, [Management("192.0.2.9")])
    assert "covers the management address 192.0.2.9" in first

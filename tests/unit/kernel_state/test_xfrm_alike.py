"""A table of thousands is read as each of its blocks would be by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kernel_state.errors import StateError
from collector.kernel_state.xfrm import Vault
from collector.kernel_state.xfrm_policy import parse_policies
from collector.kernel_state.xfrm_state import parse_states

STATE = """src 198.18.0.1 dst 198.18.0.2
\tproto esp spi 0x{spi:08x}({spi}) reqid {reqid}(0x{reqid:08x}) mode transport
\treplay-window 32 seq 0x00000000 flag  (0x00000000)
\t{algorithm}
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
\tsel src 0.0.0.0/0 dst 0.0.0.0/0 uid 0
{label}"""
POLICY = """src 198.18.0.2/32 dst 198.18.0.1/32 proto udp sport {port} uid 0
\tdir in action allow index {index} priority 1000 ptype main share any flag  (0x00000000)
{templates}"""
TEMPLATE = """\ttmpl src 198.18.0.2 dst 198.18.0.1
\t\tproto esp spi 0x00000000(0) reqid {reqid}(0x{reqid:08x}) mode transport
\t\tlevel required share any 
"""  # noqa: W291 - as ip prints it

NUMBERS = st.integers(1, (1 << 32) - 1)
KEYS = st.integers(0, (1 << 128) - 1).map(lambda number: f"{number:032x}")
ALGORITHMS = st.one_of(
    KEYS.map(lambda key: f"aead rfc4106(gcm(aes)) 0x{key}00000000 (160 bits) 128"),
    st.tuples(KEYS, KEYS).map(
        lambda keys: (
            f"auth-trunc hmac(sha1) 0x{keys[0]}00000000 (160 bits) 96\n"
            f"\tenc cbc(aes) 0x{keys[1]} (128 bits)"
        )
    ),
    st.just("enc ecb(cipher_null) 0x (0 bits)"),
)
LABELS = st.one_of(
    st.just(""),
    st.integers(0, 1023).map(lambda one: f"\tsecurity context u:r:some_t:s0:c{one} \n"),
)
STATES = st.builds(
    lambda spi, reqid, algorithm, label: STATE.format(
        spi=spi, reqid=reqid, algorithm=algorithm, label=label
    ),
    NUMBERS, NUMBERS, ALGORITHMS, LABELS,
)  # fmt: skip
POLICIES = st.builds(
    lambda port, index, reqids: POLICY.format(
        port=port, index=index, templates="".join(TEMPLATE.format(reqid=one) for one in reqids)
    ),
    st.integers(0, (1 << 16) - 1), NUMBERS, st.lists(NUMBERS, max_size=2),
)  # fmt: skip


def kept(vault: Vault) -> dict[object, str]:
    found = {identity: vault.get(*identity) for identity in vault}
    return {identity: key.reveal() for identity, key in found.items() if key is not None}


@given(st.lists(STATES, min_size=2, max_size=12))
def test_sas_and_their_keys(blocks: list[str]) -> None:
    together, apart = Vault(), Vault()
    alone = [state for block in blocks for state in parse_states(block, apart)]
    assert parse_states("".join(blocks), together) == tuple(alone)
    assert kept(together) == kept(apart)
    assert parse_states("".join(blocks)) == tuple(alone)


@given(st.lists(POLICIES, min_size=2, max_size=12))
def test_policies(blocks: list[str]) -> None:
    alone = [policy for block in blocks for policy in parse_policies(block)]
    assert parse_policies("".join(blocks)) == tuple(alone)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sport 7 ", "sport 70000 "),
        ("index 9 ", "index 4294967296 "),
        ("reqid 5(", "reqid 5999999999("),
    ],
)
def test_a_number_out_of_range_is_told_with_its_line(old: str, new: str) -> None:
    good = POLICY.format(port=7, index=9, templates=TEMPLATE.format(reqid=5))
    assert old in good
    with pytest.raises(StateError, match=new.split()[1].rstrip("(")):
        parse_policies(good + good.replace(old, new))

"""Keys: one seed gives both hosts what belongs together, and nothing of it shows."""

from __future__ import annotations

import base64

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.declared import (
    DeclarationError,
)
from ansible_collections.crossover.lab.plugins.module_utils.shell_step import fill, hide
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_keys import (
    key_lines,
    make_keys,
    placeholder,
    x25519,
)
from tests.unit.tunnel_factory import link
from tests.unit.typed import type_in

SEED = bytes(range(32))


def test_x25519_gives_the_vectors_of_rfc_7748():
    # Section 5.2, first vector; section 6.1, Bob's public key and the shared secret.
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    wanted = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    assert x25519(scalar, int.from_bytes(point, "little")).hex() == wanted
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    wanted = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert x25519(bob).hex() == wanted
    wanted = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert x25519(bob, int.from_bytes(alice, "little")).hex() == wanted


def test_both_ends_of_wireguard_know_each_other():
    one, other = (make_keys(link("wireguard"), end, SEED) for end in (0, 1))
    assert one["$KEY_XT0_PEER"] == other["$KEY_XT0_PUBLIC"]
    assert other["$KEY_XT0_PEER"] == one["$KEY_XT0_PUBLIC"]
    assert one["$KEY_XT0_PRIVATE"] != other["$KEY_XT0_PRIVATE"]
    private = base64.b64decode(one["$KEY_XT0_PRIVATE"])
    assert base64.b64encode(x25519(private)).decode() == one["$KEY_XT0_PUBLIC"]


@pytest.mark.parametrize(("cipher", "digits"), [("gcm-aes-128", 32), ("gcm-aes-256", 64)])
def test_what_one_end_of_macsec_sends_with_the_other_receives_with(cipher, digits):
    one, other = (make_keys(link("macsec", cipher=cipher), end, SEED) for end in (0, 1))
    assert one["$KEY_XT0_TX"] == other["$KEY_XT0_RX"]
    assert one["$KEY_XT0_RX"] == other["$KEY_XT0_TX"]
    assert one["$KEY_XT0_TX"] != one["$KEY_XT0_RX"]
    assert len(one["$KEY_XT0_TX"]) == digits


def test_another_seed_or_name_gives_other_keys():
    first = make_keys(link("wireguard"), 0, SEED)
    assert make_keys(link("wireguard"), 0, SEED[::-1]) != first
    renamed = make_keys(link("wireguard", name="xt1"), 0, SEED)
    assert not set(renamed.values()) & set(first.values())


def test_a_link_without_keys_has_none():
    assert make_keys(link("vxlan"), 0, SEED) == {}


WG = """
if [ "$1" = pubkey ]; then printf 'public of '; cat; fi
"""


@pytest.mark.parametrize("sort", ["wireguard", "macsec"])
def test_two_hosts_that_are_given_one_text_make_keys_that_belong_together(sort, tmp_path):
    names = {"wireguard": ("PRIVATE", "PEER"), "macsec": ("TX", "RX")}[sort]
    found = []
    for end in (0, 1):
        lines = key_lines(link(sort), end)
        lines += [f'printf "%s\n" "$KEY_XT0_{name}"' for name in names]
        _noted, done = type_in(lines, tmp_path, ["wg"], WG, SECRET="one text")
        found.append(done.stdout.splitlines())
    (own, of_other), (others, of_own) = found
    if sort == "wireguard":
        assert len(base64.b64decode(own, validate=True)) == 32
        own, others = f"public of {own}", f"public of {others}"
    assert (of_other, of_own) == (others, own)
    assert own != others


def test_a_short_seed_is_refused():
    with pytest.raises(DeclarationError, match="seed: 3 bytes, wanted 32"):
        make_keys(link("wireguard"), 0, b"abc")


def test_keys_stand_for_their_placeholders_only_where_asked():
    keys = {"$KEY_XT0_TX": "ab" * 16}
    text = "macsec add xt0 tx sa 0 key 00 $KEY_XT0_TX"
    assert fill(text, keys) == f"macsec add xt0 tx sa 0 key 00 {'ab' * 16}"
    assert hide(fill(text, keys), keys) == text
    with pytest.raises(KeyError):
        fill("$KEY_XT1_TX", keys)
    assert placeholder(link("macsec", name="my-link"), "TX") == "$KEY_MY_LINK_TX"

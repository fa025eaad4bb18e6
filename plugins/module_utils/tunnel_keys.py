# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of a run's WireGuard and MACsec links, made of one seed on both hosts. Pure.

A step of a plan names a key by its placeholder (``$KEY_T0_PRIVATE``), see shell_step.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Dict, List

from . import shell_step
from .kernel_state.declared import DeclarationError
from .kernel_state.tunnel_link import Link
from .shell_step import Expanded, hexadecimal, key_line

SEED_BYTES = 32
_DOMAIN = b"crossover tunnel keys, version 1\0"
_PRIME = 2**255 - 19
_A24 = 121665
_BASE = 9


def placeholder(link: Link, what: str) -> Expanded:
    """How commands name a key of a link."""
    return shell_step.placeholder(link.name, what)


def material(seed: bytes, name: str, what: str, length: int) -> bytes:
    """``length`` bytes that nobody without the seed can tell from random ones (SHAKE256)."""
    if len(seed) != SEED_BYTES:
        raise DeclarationError(f"seed: {len(seed)} bytes, wanted {SEED_BYTES}")
    return hashlib.shake_256(_DOMAIN + seed + f"{name}\0{what}".encode()).digest(length)


def x25519(scalar: bytes, point: int = _BASE) -> bytes:
    """The X25519 function of RFC 7748, 5: 32 bytes of a 32-byte scalar and a u-coordinate."""
    bits = bytearray(scalar)
    bits[0] &= 248
    bits[31] = bits[31] & 127 | 64
    number = int.from_bytes(bits, "little")
    x1, x2, z2, x3, z3, swap = point, 1, 0, point, 1, 0
    for at in range(254, -1, -1):
        bit = number >> at & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % _PRIME, b * b % _PRIME, d * a % _PRIME, c * b % _PRIME
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % _PRIME, x1 * (da - cb) ** 2 % _PRIME
        x2, z2 = aa * bb % _PRIME, e * (aa + _A24 * e) % _PRIME
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, _PRIME - 2, _PRIME) % _PRIME).to_bytes(32, "little")


def make_keys(link: Link, end: int, seed: bytes) -> Dict[str, str]:
    """``placeholder -> key`` of a link on the host that is ``end``; empty without keys.

    WireGuard: PRIVATE, and PEER and PUBLIC, which are no secrets (base64); MACsec: TX and RX
    (hexadecimal).
    """
    if link.type == "wireguard":
        own, other = (material(seed, link.name, f"end {one}", 32) for one in (end, 1 - end))
        values = {"PRIVATE": own, "PUBLIC": x25519(own), "PEER": x25519(other)}
        return {
            placeholder(link, what): base64.b64encode(value).decode()
            for what, value in values.items()
        }
    if link.type == "macsec":
        length = _macsec_bytes(link)
        return {
            placeholder(link, what): material(seed, link.name, f"from {sender}", length).hex()
            for what, sender in (("TX", end), ("RX", 1 - end))
        }
    return {}


def key_lines(link: Link, end: int) -> List[str]:
    """The lines of a shell that make a link's keys by hand on the host that is ``end``."""
    if link.type == "wireguard":
        # Any 32 bytes are a private key: the kernel sets the bits that X25519 wants.
        private = "head -c 32 | base64"
        own, other = (f"{link.name} end {one}" for one in (end, 1 - end))
        return [
            key_line(placeholder(link, "PRIVATE"), own, private),
            key_line(placeholder(link, "PEER"), other, f"{private} | wg pubkey"),
        ]
    if link.type == "macsec":
        digits = hexadecimal(_macsec_bytes(link))
        return [
            key_line(placeholder(link, what), f"{link.name} from {sender}", digits)
            for what, sender in (("TX", end), ("RX", 1 - end))
        ]
    return []


def _macsec_bytes(link: Link) -> int:
    return int(link.cipher.rsplit("-", 1)[1]) // 8

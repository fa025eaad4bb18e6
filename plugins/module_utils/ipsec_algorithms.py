# SPDX-License-Identifier: GPL-2.0-or-later
"""The algorithms that a connection can declare. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

from .kernel_state.xfrm import Algorithm


@dataclass(frozen=True)
class Suite:
    """Algorithms under one declared name.

    ``parts`` are (kind, kernel's name, bits of integrity value); ``key_bytes`` maps a declared key
    size to the length of each part's key, salt included. ``ike`` and ``swan`` are the names that
    libreswan and strongSwan give the suite.
    """

    parts: Tuple[Tuple[str, str, int], ...]
    key_bytes: Dict[int, Tuple[int, ...]]
    ike: str
    swan: str


# Key lengths: RFC 4106, 3602, 2404, 4868, 7634, 2410.
SUITES: Dict[str, Suite] = {
    "aes-gcm": Suite(
        (("aead", "rfc4106(gcm(aes))", 128),),
        {128: (20,), 256: (36,)},
        "aes_gcm{bits}", "aes{bits}gcm16",
    ),
    "aes-cbc-sha1": Suite(
        (("enc", "cbc(aes)", 0), ("auth-trunc", "hmac(sha1)", 96)),
        {128: (16, 20), 256: (32, 20)},
        "aes{bits}-sha1", "aes{bits}-sha1",
    ),
    "aes-cbc-sha256": Suite(
        (("enc", "cbc(aes)", 0), ("auth-trunc", "hmac(sha256)", 128)),
        {128: (16, 32), 256: (32, 32)},
        "aes{bits}-sha2_256", "aes{bits}-sha256",
    ),
    "chacha20-poly1305": Suite(
        (("aead", "rfc7539esp(chacha20,poly1305)", 128),),
        {256: (36,)},
        "chacha20_poly1305", "chacha20poly1305",
    ),
    # Integrity without encryption: without either, ESP would prove nothing.
    "null": Suite(
        (("enc", "ecb(cipher_null)", 0), ("auth-trunc", "hmac(sha256)", 128)),
        {0: (0, 32)},
        "null-sha2_256", "null-sha256",
    ),
}  # fmt: skip


def key_sizes(name: str) -> Tuple[int, ...]:
    """The key sizes of a suite in bits; the first is the default."""
    return tuple(SUITES[name].key_bytes)


def algorithms(name: str, key_bits: int) -> Tuple[Algorithm, ...]:
    """A suite as the kernel's algorithms."""
    suite = SUITES[name]
    return tuple(
        Algorithm(kind, kernel, 8 * length, bits or None)
        for (kind, kernel, bits), length in zip(suite.parts, suite.key_bytes[key_bits])  # noqa: B905 - Python 3.9
    )

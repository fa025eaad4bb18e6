# SPDX-License-Identifier: GPL-2.0-or-later
"""The algorithms that a connection can declare, and how much room ESP takes with each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

from .kernel_state.xfrm import Algorithm


@dataclass(frozen=True)
class Suite:
    """Algorithms under one declared name.

    ``parts`` are (kind, kernel's name, bits of integrity value); ``key_bytes`` maps a declared key
    size to the length of each part's key, salt included. ``iv``, ``block`` and ``icv`` are bytes
    on the wire; ``ike`` and ``swan`` are the names that libreswan and strongSwan give the suite.
    """

    parts: Tuple[Tuple[str, str, int], ...]
    key_bytes: Dict[int, Tuple[int, ...]]
    iv: int
    block: int
    icv: int
    ike: str
    swan: str


# Key lengths: RFC 4106, 3602, 2404, 4868, 7634, 2410.
SUITES: Dict[str, Suite] = {
    "aes-gcm": Suite(
        (("aead", "rfc4106(gcm(aes))", 128),),
        {128: (20,), 256: (36,)},
        8, 4, 16, "aes_gcm{bits}", "aes{bits}gcm16",
    ),
    "aes-cbc-sha1": Suite(
        (("enc", "cbc(aes)", 0), ("auth-trunc", "hmac(sha1)", 96)),
        {128: (16, 20), 256: (32, 20)},
        16, 16, 12, "aes{bits}-sha1", "aes{bits}-sha1",
    ),
    "aes-cbc-sha256": Suite(
        (("enc", "cbc(aes)", 0), ("auth-trunc", "hmac(sha256)", 128)),
        {128: (16, 32), 256: (32, 32)},
        16, 16, 16, "aes{bits}-sha2_256", "aes{bits}-sha256",
    ),
    "chacha20-poly1305": Suite(
        (("aead", "rfc7539esp(chacha20,poly1305)", 128),),
        {256: (36,)},
        8, 4, 16, "chacha20_poly1305", "chacha20poly1305",
    ),
    # Integrity without encryption: without either, ESP would prove nothing.
    "null": Suite(
        (("enc", "ecb(cipher_null)", 0), ("auth-trunc", "hmac(sha256)", 128)),
        {0: (0, 32)},
        0, 4, 16, "null-sha2_256", "null-sha256",
    ),
}  # fmt: skip

IP_HEADER = {4: 20, 6: 40}
_ESP_HEADER = 8  # SPI and sequence number
_ESP_TRAILER = 2  # pad length and next header
_TCP_HEADER = 20
_TCP_TIMESTAMPS = 12
_UDP_HEADER = 8


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


def inner_mtu(name: str, mode: str, family: int, mtu: int = 1500) -> int:
    """Bytes of the largest IP packet, before ESP, that goes out in one packet of ``mtu`` bytes.

    ``family`` is that of the packet on the wire. As the kernel reckons (xfrm_state_mtu): in
    transport mode the packet keeps its IP header; in tunnel mode it gets another one.
    """
    suite = SUITES[name]
    header = _ESP_HEADER + suite.iv + (IP_HEADER[family] if mode == "tunnel" else 0)
    kept = IP_HEADER[family] if mode == "transport" else 0
    block = max(suite.block, 4)
    room = (mtu - header - suite.icv - kept) // block * block
    return room + kept - _ESP_TRAILER


def udp_payload(name: str, mode: str, family: int, mtu: int = 1500, inner: int = 0) -> int:
    """Bytes of the largest UDP payload that goes unfragmented; ``inner``: family of the packet in
    a tunnel where it is not that of the tunnel."""
    room = inner_mtu(name, mode, family, mtu)
    return room - IP_HEADER[inner or family] - _UDP_HEADER


def tcp_segment(name: str, mode: str, family: int, mtu: int = 1500, inner: int = 0) -> int:
    """Bytes of data in a full TCP segment with timestamps."""
    room = inner_mtu(name, mode, family, mtu)
    return room - IP_HEADER[inner or family] - _TCP_HEADER - _TCP_TIMESTAMPS

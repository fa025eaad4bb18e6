"""The proof of an IPsec configuration: what left each host, and what the sockets were told.

Pure: declared against observed. Packets are judged where they are sent: in tunnel mode a received
packet is seen once more after it was decrypted, and that copy was never on the wire.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.proof.findings import Finding, equal
from collector.wire.packets import Packet

ESP = 50
IP_HEADER = {"ipv4": 20, "ipv6": 40}
TCP_HEADER = 20
TCP_TIMESTAMPS = 12
UDP_HEADER = 8
ESP_HEADER = 8  # SPI and sequence number, RFC 4303, 2


@dataclass(frozen=True, slots=True)
class Cipher:
    """Sizes in bytes: initialisation vector, integrity check value, block."""

    iv: int
    icv: int
    block: int


# RFC 4106 (GCM), RFC 3602 with RFC 2404 and RFC 4868 (CBC with HMAC), RFC 7634, RFC 2410.
CIPHERS = {
    "aes-gcm": Cipher(8, 16, 4),
    "aes-cbc-sha1": Cipher(16, 12, 16),
    "aes-cbc-sha256": Cipher(16, 16, 16),
    "chacha20-poly1305": Cipher(8, 16, 4),
    "null": Cipher(0, 16, 4),
}


def connection_of(subjects: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The connection that carries the measured flow, None for a configuration without IPsec."""
    connections = (subjects.get("ipsec") or {}).get("connections") or []
    return connections[0] if connections else None


def inner_mtu(subjects: Mapping[str, Any], mtu: int) -> int:
    """What is left of a link's MTU for an IP packet before ESP, bytes.

    As Linux computes it (xfrm_state_mtu in net/xfrm/xfrm_state.c): what ESP and, in tunnel mode,
    the outer header take, rounded down to the cipher's block, less the two bytes of the trailer.
    """
    connection = connection_of(subjects)
    if connection is None:
        return mtu
    cipher = CIPHERS[connection.get("algorithm", "aes-gcm")]
    header = IP_HEADER[subjects["family"]]
    tunnel = connection.get("mode", "transport") == "tunnel"
    taken = ESP_HEADER + cipher.iv + cipher.icv + (header if tunnel else 0)
    kept = 0 if tunnel else header
    return (mtu - taken - kept) // cipher.block * cipher.block + kept - 2


def expected_mss(subjects: Mapping[str, Any], mtu: int) -> int:
    """The TCP segment size that the configuration must leave, bytes."""
    header = IP_HEADER[subjects["family"]]
    return inner_mtu(subjects, mtu) - header - TCP_HEADER - TCP_TIMESTAMPS


def payload_that_fits(subjects: Mapping[str, Any], mtu: int) -> int:
    """The largest UDP payload that goes unfragmented, bytes."""
    return inner_mtu(subjects, mtu) - IP_HEADER[subjects["family"]] - UDP_HEADER


def spi_of(packet: Packet) -> int:
    """The SPI of an ESP packet."""
    return int(struct.unpack_from("!I", packet.payload)[0])


def spis_read_back(state: Mapping[str, Any]) -> set[int]:
    """The SPIs of the SAs that a host has, from their names (``esp spi 0x1000 to …``)."""
    return {
        int(match[1], 16)
        for name in state["sas"]
        if (match := re.match(r"esp spi 0x([0-9a-f]+) ", name))
    }


def check_state(
    subjects: Mapping[str, Any], evidence: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """The SAs and policies that each host has, against the declared connection.

    ``evidence`` holds, by host, what the module ``ipsec_evidence`` returned after the traffic.
    """
    connection = connection_of(subjects)
    findings = []
    for host, seen in evidence.items():
        what = f"SAs of the {host}"
        state = seen["state"]
        if connection is None:
            found = f"{state['sas_total']} SAs, {state['policies_total']} policies"
            ok = state["sas_total"] == 0 and state["policies_total"] == 0
            findings.append(Finding(what, "0 SAs, 0 policies", found, ok))
            continue
        mode = connection.get("mode", "transport")
        wanted_label = seen["context"] if connection.get("label") == "process" else None
        # The pairs that only fill a table have each a label of their own.
        table = int(connection.get("pairs", 1)) > 1 and connection.get("vary", "label") == "label"
        own = [item.get("ctx") == wanted_label for item in state["sas"].values()].count(True)
        strays = [
            name
            for name, item in state["sas"].items()
            if item["mode"] != mode
            or (item.get("ctx") is None if table else item.get("ctx") != wanted_label)
        ]
        pair = (own == 2 if table else own >= 2) and state["policies_total"] >= 2
        wanted = f"a pair in {mode} mode, label {wanted_label or 'none'}"
        text = f"{state['sas_total']} SAs, {state['policies_total']} policies"
        if strays:
            item = state["sas"][strays[0]]
            text += f"; {strays[0]}: {item['mode']} mode, label {item.get('ctx') or 'none'}"
        findings.append(Finding(what, wanted, text, pair and not strays))
        if seen.get("missing"):
            findings.append(
                Finding(f"SAs missing on the {host}", "none", "; ".join(seen["missing"]), False)
            )
    return findings


def check_sent(
    subjects: Mapping[str, Any], packets: Iterable[Packet], sender: str, where: str, spis: set[int]
) -> Finding:
    """What a host sent of the flow: ESP with an SPI that the hosts know and nothing in clear, or,
    without IPsec, nothing but clear."""
    own = [packet for packet in packets if packet.source == sender]
    what = f"packets sent by the {where}"
    secret = [packet for packet in own if packet.protocol == ESP]
    clear = [packet for packet in own if packet.protocol != ESP]
    if connection_of(subjects) is None:
        found = f"{len(clear)} in clear, {len(secret)} in ESP"
        return Finding(what, "all in clear", found, bool(clear) and not secret)
    strange = sorted({spi_of(packet) for packet in secret} - spis)
    found = f"{len(secret)} in ESP, {len(clear)} in clear"
    used = sorted({spi_of(packet) for packet in secret})
    if used:
        found += ", SPI " + ", ".join(f"0x{spi:x}" for spi in used)
    wanted = "all in ESP with an SPI that was read back"
    return Finding(what, wanted, found, bool(secret) and not clear and not strange)


def check_probe(subjects: Mapping[str, Any], seen: Mapping[str, Any], mtu: int) -> list[Finding]:
    """What the sockets at both ends say: peer labels, segment size, the datagram."""
    connection = connection_of(subjects)
    labelled = connection is not None and bool(connection.get("label"))
    findings = []
    for what, sender, told in (
        ("peer label at the server", seen.get("label"), seen.get("server_peer_label")),
        ("peer label at the client", seen.get("server_label"), seen.get("peer_label")),
    ):
        if labelled:
            findings.append(equal(what, sender, told))
        else:
            ok = told is None or "unlabeled_t" in told
            findings.append(Finding(what, "none from the wire", str(told), ok))
    findings.append(equal("TCP segment size", expected_mss(subjects, mtu), seen.get("mss")))
    problem = seen.get("datagram_error")
    size = seen.get("datagram_bytes")
    found = "arrived" if problem is None else str(problem)
    findings.append(
        Finding(f"datagram of {size} bytes", "arrives unfragmented", found, problem is None)
    )
    return findings


def check_counters(evidence: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """No counter of /proc/net/xfrm_stat grew on either host, or why it did."""
    findings = []
    for host, seen in evidence.items():
        grown = {name: count for name, count in (seen.get("grown") or {}).items() if count}
        text = ", ".join(f"{name} {count}" for name, count in grown.items()) or "none"
        reasons: Sequence[Mapping[str, str]] = seen.get("explain") or []
        if reasons and grown:
            text += ": " + "; ".join(f"{item['text']} ({item['hint']})" for item in reasons)
        findings.append(Finding(f"packets dropped by IPsec on the {host}", "none", text, not grown))
    return findings


def explanations(evidence: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why traffic does not pass, in the user's terms; None if nothing shows it."""
    found = [
        f"{host}: {item['text']} ({item['hint']})"
        for host, seen in evidence.items()
        for item in seen.get("explain") or []
    ]
    return "; ".join(found) or None

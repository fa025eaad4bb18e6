"""The proof of a tunnel configuration: the devices as declared, and what is on the wire.

Pure: declared against observed. Packets are judged where they are sent and where they arrive, on
the device below the tunnels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from collector.kernel_state.tunnel_facts import differences, expected, kind_of
from collector.kernel_state.tunnel_link import Link
from collector.matrix.tunnel_links import (
    below_of,
    carrying_link,
    inner_mtu,
    links_of,
    mtus,
)
from collector.proof.findings import Finding, equal
from collector.proof.ipsec import IP_HEADER, TCP_HEADER, TCP_TIMESTAMPS, UDP_HEADER
from collector.wire.outer_headers import PLAIN, Outer

ENDS = ("client", "server")
ICMPV6 = 58
# The switches whose effect is the point; the others follow from them or are particular.
JUDGED_OFFLOADS = (
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)


def expected_mss(subjects: Mapping[str, Any], path_mtu: int) -> int:
    """The TCP segment size that the tunnels must leave, bytes."""
    header = IP_HEADER[subjects["family"]]
    return inner_mtu(subjects, path_mtu) - header - TCP_HEADER - TCP_TIMESTAMPS


def payload_that_fits(subjects: Mapping[str, Any], path_mtu: int) -> int:
    """The largest UDP payload that goes unfragmented, bytes."""
    return inner_mtu(subjects, path_mtu) - IP_HEADER[subjects["family"]] - UDP_HEADER


def check_state(
    subjects: Mapping[str, Any], applied: Mapping[str, Mapping[str, Any]], path_mtu: int
) -> list[Finding]:
    """The devices that each host has against the declared links. ``applied`` holds, by host, what
    the module ``tunnel`` returned."""
    links = links_of(subjects)
    sizes = mtus(subjects, path_mtu)
    findings = []
    for end, host in enumerate(ENDS):
        state = applied.get(host, {}).get("state") or {}
        strays = sorted(set(state) - {link.name for link in links})
        wanted = ", ".join(f"{link.name} ({link.type})" for link in links) or "none"
        wrong = [f"{name} beside them" for name in strays]
        for link in links:
            found = state.get(link.name)
            if found is None:
                wrong.append(f"{link.name} absent")
                continue
            facts = {**expected(link, end, path_mtu), "mtu": sizes[link.name]}
            wrong += [
                f"{link.name}: {key} {other}, not {value}"
                for key, (value, other) in differences(facts, found).items()
            ]
        text = "; ".join(wrong) or wanted
        findings.append(Finding(f"tunnels of the {host}", wanted, text, not wrong))
    return findings


def check_offloads(
    subjects: Mapping[str, Any], applied: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """The offloads of the tunnels and the devices below them are as declared, as far as a device
    can change them; switched off they must be off."""
    wanted = subjects.get("offloads")
    if wanted is None:
        return []
    findings = []
    for host in ENDS:
        devices = applied.get(host, {}).get("offloads") or {}
        wrong = [
            f"{name} of {device} {value}"
            for device, features in devices.items()
            for name, value in features.items()
            if name in JUDGED_OFFLOADS
            and value != wanted
            and (wanted == "off" or "(fixed)" not in value)
            # A feature that the device lacks is off and fixed, which is off enough.
            and not (wanted == "off" and value.startswith("off"))
        ]
        found = "; ".join(wrong) or (wanted if devices else "not read")
        ok = bool(devices) and not wrong
        findings.append(Finding(f"offloads of the {host}", wanted, found, ok))
    return findings


def check_sent(
    subjects: Mapping[str, Any], frames: Iterable[Outer], end: int, measured: tuple[str, str]
) -> list[Finding]:
    """What was captured at one end, on the device below the tunnels: everything between the ends
    inside the declared tunnel and nothing of the measured flow outside it; without tunnels,
    everything in clear. ``measured`` are the flow's own addresses, the client's first."""
    link = carrying_link(subjects)
    what = f"packets at the {ENDS[end]}"
    judged = [frame for frame in frames if not _is_neighbour(frame)]
    if link is None:
        clear = [frame for frame in judged if frame.type == PLAIN]
        kinds = sorted({frame.type for frame in judged} - {PLAIN})
        found = f"{len(clear)} in clear" + (f", others in {', '.join(kinds)}" if kinds else "")
        return [Finding(what, "all in clear", found, bool(clear) and not kinds)]
    hidden = _over_esp(subjects)
    inside = [frame for frame in judged if _is_declared(frame, link, hidden)]
    outside = [frame for frame in judged if not _is_declared(frame, link, hidden)]
    leaked = [frame for frame in outside if _is_measured(frame, measured)]
    found = f"{len(inside)} in {_named(inside[0]) if inside else 'none'}"
    if outside:
        found += f", {len(outside)} outside it ({_named(outside[0])})"
    if leaked:
        found += f", {len(leaked)} of the measured flow among them"
    ways = {(frame.source, frame.destination) for frame in inside}
    both = len(ways) == 2 or link.type == "macsec"
    wanted = f"all in {'ESP' if hidden else _wanted(link)}, both ways"
    return [Finding(what, wanted, found, bool(inside) and both and not outside)]


def _over_esp(subjects: Mapping[str, Any]) -> bool:
    return bool((subjects.get("ipsec") or {}).get("connections"))


def _is_neighbour(frame: Outer) -> bool:
    """Neighbour discovery and multicast listeners (RFC 4861, RFC 3810): what the device itself
    says, below every tunnel."""
    packet = frame.packet
    return (
        frame.type == PLAIN
        and packet is not None
        and ":" in packet.source
        and (packet.protocol in (0, ICMPV6))
        and (packet.protocol == 0 or packet.payload[:1] in b"\x85\x86\x87\x88\x89\x8f")
    )


def _is_measured(frame: Outer, measured: tuple[str, str]) -> bool:
    packet = frame.packet
    return packet is not None and {packet.source, packet.destination} == set(measured)


def _is_declared(frame: Outer, link: Link, hidden: bool) -> bool:
    if link.type != "macsec" and {frame.source, frame.destination} != set(link.ends):
        return False
    if hidden:
        return frame.type == "esp"
    if frame.type not in wire_types(link):
        return False
    if link.port is not None and frame.port != link.port:
        return False
    if link.type in ("fou", "gue") or (link.type == "stt" and frame.id is None):
        return True  # the key of GRE is a layer below; only a frame's first segment has STT's
    return frame.id == _number(link)


def _number(link: Link) -> int | None:
    """The identifier or key in the outer header."""
    if link.type == "stt":
        return link.key or 0
    return link.id if link.id is not None else link.key


def wire_types(link: Link) -> tuple[str, ...]:
    """How the decoder of outer headers calls what a link puts on the wire."""
    if link.type == "ip6tnl":
        return "ipip", "sit"
    return (wire_type(link),)


def wire_type(link: Link) -> str:
    """The usual one of :func:`wire_types`."""
    if link.type == "ovs":
        return "gretap" if link.protocol == "gre" else link.protocol
    kind = kind_of(link)
    if link.type in ("fou", "gue"):
        return link.type
    if kind in ("ip6gre", "ip6gretap"):
        return kind[len("ip6") :]
    return link.type


def _wanted(link: Link) -> str:
    text = " or ".join(wire_types(link))
    number = _number(link)
    if number is not None and link.type not in ("fou", "gue"):
        text += f" {number}"
    return text + (f", port {link.port}" if link.port is not None else "")


def _named(frame: Outer) -> str:
    text = frame.type + (f" {frame.id}" if frame.id is not None else "")
    return text + (f", port {frame.port}" if frame.port is not None else "")


def check_probe(
    subjects: Mapping[str, Any], seen: Mapping[str, Any], path_mtu: int
) -> list[Finding]:
    """What the sockets say: segment size, and the datagram that just fits."""
    problem = seen.get("datagram_error")
    found = "arrived" if problem is None else str(problem)
    what = f"datagram of {seen.get('datagram_bytes')} bytes"
    return [
        equal("TCP segment size", expected_mss(subjects, path_mtu), seen.get("mss")),
        Finding(what, "arrives unfragmented", found, problem is None),
    ]


def ports_of(subjects: Mapping[str, Any]) -> dict[int, str]:
    """Type by destination port, for the decoder of outer headers."""
    return {
        link.port: wire_type(link)
        for link in links_of(subjects)
        if link.port is not None and below_of(link, links_of(subjects)) is None
    }

"""The proof of a cell: findings that all must hold before its number counts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from collector.kernel_state.avc import allow_rules, parse_avcs
from collector.matrix import tunnel_links
from collector.proof import cipso, ipsec, tunnels
from collector.proof.findings import Finding
from collector.wire.outer_headers import Outer, read_outer
from collector.wire.packets import Packet, read_pcap

# Where nothing on the path changes packets, an Ethernet MTU.
MTU = 1500


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed of a group.

    ``measured`` and ``peer`` are what ``bench_measure`` and ``bench_peer`` returned; ``applied``
    what ``cipso`` returned, by host; ``evidence`` what ``ipsec_evidence`` returned after the
    traffic, by host; ``tunnels`` what ``tunnel`` returned, by host. A subject that the matrix has
    not has an empty mapping.
    """

    measured: Mapping[str, Any]
    peer: Mapping[str, Any]
    applied: Mapping[str, Mapping[str, Any]]
    evidence: Mapping[str, Mapping[str, Any]]
    tunnels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def packets(self, side: str) -> list[Packet]:
        """The probe's packets as captured on the client or the server."""
        return read_pcap(self._capture(side), f"{side}.pcap")

    def outer(self, side: str, ports: Mapping[int, str]) -> list[Outer]:
        """The outer headers of what was captured on the client or the server."""
        return read_outer(self._capture(side), f"{side}.pcap", ports)

    def _capture(self, side: str) -> bytes:
        source = self.measured if side == "client" else self.peer
        return base64.b64decode(source["pcap"])


def _by_tunnels(subjects: Mapping[str, Any]) -> bool:
    """Whether tunnels, or their absence, decide what a packet holds."""
    alone = "tunnels" in subjects and not (subjects.get("ipsec") or subjects.get("cipso"))
    return alone or tunnel_links.measured_link(subjects) is not None


def path_mtu(subjects: Mapping[str, Any], mtu: int) -> int:
    """What a link's MTU leaves for the outer packets of tunnels: less what ESP takes, bytes."""
    outer = tunnel_links.outer_addresses(subjects)
    if outer is None or ipsec.connection_of(subjects) is None:
        return mtu
    family = "ipv6" if ":" in outer[0] else "ipv4"
    return ipsec.inner_mtu({**subjects, "family": family}, mtu)


def expected_mss(subjects: Mapping[str, Any], mtu: int) -> int:
    """The TCP segment size that a configuration must leave, bytes."""
    if _by_tunnels(subjects):
        return tunnels.expected_mss(subjects, path_mtu(subjects, mtu))
    if "ipsec" in subjects:
        return ipsec.expected_mss(subjects, mtu)
    return cipso.expected_mss(subjects, mtu)


def payload_that_fits(subjects: Mapping[str, Any], mtu: int) -> int:
    """The largest UDP payload that goes unfragmented, bytes. Raises LabelError."""
    if _by_tunnels(subjects):
        return tunnels.payload_that_fits(subjects, path_mtu(subjects, mtu))
    if "ipsec" in subjects:
        return ipsec.payload_that_fits(subjects, mtu)
    return cipso.payload_that_fits(subjects, mtu)


def prove_group(group: Mapping[str, Any], hosts: Mapping[str, Any]) -> list[Finding]:
    """``prove`` for a group as ``campaign.describe_group`` makes it. ``hosts`` has by key what was
    brought home: client and server, and by host cipso, ipsec and tunnels, where there are any."""
    seen = Observed(
        hosts["client"],
        hosts["server"],
        *(hosts.get(subject, {}) for subject in ("cipso", "ipsec", "tunnels")),
    )
    return prove(
        group["subjects"],
        seen,
        group["client_address"],
        group["server_address"],
        int(group["mtu"]),
    )


def prove(
    subjects: Mapping[str, Any], seen: Observed, client: str, server: str, mtu: int = MTU
) -> list[Finding]:
    """Hold a configuration's declaration against what was observed at both ends; ``client`` and
    ``server`` are the addresses of the measured path."""
    findings = []
    if "cipso" in subjects:
        findings += cipso.check_state(subjects, seen.applied)
    if "ipsec" in subjects:
        findings += ipsec.check_state(subjects, seen.evidence)
    if "tunnels" in subjects:
        room = path_mtu(subjects, mtu)
        findings += tunnels.check_state(subjects, seen.tunnels, room)
        findings += tunnels.check_offloads(subjects, seen.tunnels)
    probe = seen.measured["probe"]
    if "error" in probe:
        text = str(probe["error"])
        why = ipsec.explanations(seen.evidence)
        findings.insert(
            0, Finding("connection of the probe", "made", f"{text}: {why}" if why else text, False)
        )
        return findings + check_denials(seen)
    findings += check_processes(subjects, probe)
    if "cipso" in subjects:
        findings += cipso.check_probe(subjects, probe, mtu)
        findings += cipso.check_packets(subjects, seen.packets("client"), client, server)
    if "ipsec" in subjects:
        outer = tunnel_links.outer_addresses(subjects)
        if outer is None:
            findings += ipsec.check_probe(subjects, probe, mtu)
        findings += _check_esp(subjects, seen, *(outer or (client, server)))
        findings += ipsec.check_counters(seen.evidence)
    if "tunnels" in subjects:
        findings += _check_tunnels(subjects, seen, (client, server), mtu)
    return findings + check_denials(seen)


def _check_esp(
    subjects: Mapping[str, Any], seen: Observed, client: str, server: str
) -> list[Finding]:
    spis = set().union(*(ipsec.spis_read_back(item["state"]) for item in seen.evidence.values()))
    return [
        ipsec.check_sent(subjects, seen.packets("client"), client, "client", spis),
        ipsec.check_sent(subjects, seen.packets("server"), server, "server", spis),
    ]


def _check_tunnels(
    subjects: Mapping[str, Any], seen: Observed, measured: tuple[str, str], mtu: int
) -> list[Finding]:
    ports = tunnels.ports_of(subjects)
    if not _by_tunnels(subjects):
        return []  # IPsec's or CIPSO's own proof says what may be on the wire
    findings = []
    for end, side in enumerate(tunnels.ENDS):
        frames = seen.outer(side, ports)
        findings += tunnels.check_sent(subjects, frames, end, measured)
    probe = seen.measured["probe"]
    return findings + tunnels.check_probe(subjects, probe, path_mtu(subjects, mtu))


def check_processes(subjects: Mapping[str, Any], probe: Mapping[str, Any]) -> list[Finding]:
    """The measuring processes at both ends run in the level that was wished for."""
    label = subjects.get("label")
    if label is None:
        return []
    findings = []
    for key, what in (("label", "label of the client"), ("server_label", "label of the server")):
        found = probe.get(key)
        exact = cipso.range_of(found) == label
        findings.append(Finding(what, f"level {label}", str(found), exact))
    return findings


def check_denials(seen: Observed) -> list[Finding]:
    """No AVC denial on either host, or what was denied and what would allow it."""
    findings = []
    for where, source in (("client", seen.measured), ("server", seen.peer)):
        lines = "\n".join(source.get("denials", ()))
        found = parse_avcs(lines)
        refused = [avc for avc in found if avc.permissive is not True]
        text = "none"
        if found:
            rules = "; ".join(allow_rules(found))
            text = f"{len(found)} ({len(refused)} enforced); would be allowed by: {rules}"
        findings.append(Finding(f"AVC denials on the {where}", "none", text, not found))
    return findings

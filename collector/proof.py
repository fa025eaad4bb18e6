"""The proof of a cell: findings that all must hold before its number counts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from collector import proof_cipso
from collector.findings import Finding
from collector.kernel_state.avc import allow_rules, parse_avcs
from collector.packets import read_pcap

# Where nothing on the path changes packets, an Ethernet MTU.
MTU = 1500


def prove(
    subjects: Mapping[str, Any],
    measured: Mapping[str, Any],
    peer: Mapping[str, Any],
    client: str,
    server: str,
    applied: Mapping[str, Mapping[str, Any]],
    mtu: int = MTU,
) -> list[Finding]:
    """Hold a configuration's declaration against what was observed at both ends.

    ``measured`` and ``peer`` are what the modules ``bench_measure`` and ``bench_peer`` returned;
    ``client`` and ``server`` the addresses; ``applied`` what the module ``cipso`` returned on each
    host.
    """
    findings = proof_cipso.check_state(subjects, applied)
    seen = measured["probe"]
    if "error" in seen:
        findings.append(Finding("connection of the probe", "made", str(seen["error"]), False))
        return findings + denials(measured, peer)
    findings += proof_cipso.check_probe(subjects, seen, mtu)
    packets = read_pcap(base64.b64decode(measured["pcap"]), "probe.pcap")
    findings += proof_cipso.check_packets(subjects, packets, client, server)
    return findings + denials(measured, peer)


def denials(measured: Mapping[str, Any], peer: Mapping[str, Any]) -> list[Finding]:
    """No AVC denial on either host, or what was denied and what would allow it."""
    findings = []
    for where, source in (("client", measured), ("server", peer)):
        lines = "\n".join(source.get("denials", ()))
        found = parse_avcs(lines)
        refused = [avc for avc in found if avc.permissive is not True]
        text = "none"
        if found:
            rules = "; ".join(allow_rules(found))
            text = f"{len(found)} ({len(refused)} enforced); would be allowed by: {rules}"
        findings.append(Finding(f"AVC denials on the {where}", "none", text, not found))
    return findings

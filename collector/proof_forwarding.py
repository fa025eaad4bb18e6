"""The proof of a forwarding group: the device under test itself forwarded what the tester saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collector.findings import Finding

# How far counters of the same frames on two hosts may lie apart: frames of neighbour discovery
# and the like, and a share. Frames that die on the wire between the hosts would be more.
STRAY = 100
SHARE = 0.001


def prove(
    group: Mapping[str, Any], tester: Mapping[str, Any], dut: Mapping[str, Any]
) -> list[Finding]:
    """Hold what the tester measured against what the device counted.

    ``tester`` is what ``bench_forwarding`` returned, ``dut`` what ``forwarding_evidence`` returned
    after the traffic.
    """
    measured = tester["forwarding"]
    path = measured["path"]
    ports = (path["first"], path["second"])
    findings = [
        _boot("device under test", dut["same_boot"]),
        _boot("tester", tester["same_boot"]),
    ]
    for port in ports:
        count = int(measured["warm_up"]["arrived"].get(port["device"], 0))
        findings.append(
            Finding(
                f"frames forwarded to the tester's {port['device']} while warming up",
                "some",
                str(count),
                count > 0,
            )
        )
    if not all(finding.ok for finding in findings):
        return findings
    grown = dut["grown"]
    for port in ports:
        findings.append(
            _counted(
                f"frames sent by the device's {port['dut_device']}",
                f"those that the tester's {port['device']} received",
                int(measured["arrived"].get(port["device"], 0)),
                grown.get(f"{port['dut_device']} tx", {}).get("packets"),
            )
        )
    findings.append(
        _counted(
            "datagrams that the device's IP layer forwarded",
            "at least those that the tester received",
            sum(int(count) for count in measured["arrived"].values()),
            grown.get("ip", {}).get("ForwDatagrams"),
            more=True,
        )
    )
    return findings


def _boot(host: str, same: bool) -> Finding:
    found = "the same" if same else "another boot or kernel"
    return Finding(f"boot of the {host} during the group", "the same", found, same)


def _counted(what: str, wish: str, wanted: int, found: int | None, more: bool = False) -> Finding:
    if found is None:
        return Finding(what, f"{wish}, {wanted}", "no such counter", False)
    slack = STRAY + SHARE * wanted
    ok = found >= wanted - slack if more else abs(found - wanted) <= slack
    return Finding(what, f"{wish}, {wanted}", str(found), ok)

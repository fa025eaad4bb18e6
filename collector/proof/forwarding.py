"""The proof of a forwarding group: the device under test is as declared, and itself forwarded what
the tester saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collector.forwarding.linerate import ETHERNET_BYTES, FCS_BYTES
from collector.proof.findings import Finding, equal

# How far counters of the same frames on two hosts may lie apart: frames of neighbour discovery
# and the like, and a share. Frames that die on the wire between the hosts would be more.
STRAY = 100
SHARE = 0.001


def prove(
    group: Mapping[str, Any], tester: Mapping[str, Any], dut: Mapping[str, Any]
) -> list[Finding]:
    """Hold what the tester measured against the declaration and what the device counted.

    ``tester`` is {measured, kernels}: what ``bench_forwarding`` returned, and what ``provenance``
    read of each tester's kernel afterwards, by name; ``dut`` is {before, after, kernel}: what
    ``forwarding_evidence`` returned before and after the traffic, and the same reading.
    """
    measured, after = tester["measured"]["forwarding"], dut["after"]
    path = measured["path"]
    ports = (path["first"], path["second"])
    boots = tester["measured"]["boot_ids"]
    findings = [
        equal(
            "boot of the device under test after the traffic",
            dut["before"]["evidence"]["boot_id"],
            dut["kernel"]["boot_id"],
        ),
        *(
            equal(
                f"boot of the tester{'' if len(boots) == 1 else f' {name}'} after the traffic",
                boot_id,
                tester["kernels"][name]["boot_id"],
            )
            for name, boot_id in boots.items()
        ),
        *check_state(group["subjects"].get("forwarding") or {}, ports, after["state"]),
        *check_mtu(
            max(int(own["frame_bytes"]) for own in group["settings"].values()), ports, after
        ),
    ]
    for port in ports:
        count = int(measured["warm_up"]["arrived"].get(port["end"], 0))
        what = f"frames forwarded to the tester's {port['end']} while warming up"
        findings.append(Finding(what, "some", str(count), count > 0))
    if all(finding.ok for finding in findings):
        findings += _check_counters(measured["arrived"], ports, after["grown"])
    return findings


def check_state(
    declared: Mapping[str, Any], ports: tuple[Mapping[str, Any], ...], state: Mapping[str, Any]
) -> list[Finding]:
    """The state of the device, as its kernel had it after the traffic, against the declaration
    (``irq``, ``rules``, ``rules_by`` as the role forwarding takes them)."""
    findings = []
    for port in ports:
        name, device = port["dut_device"], state["devices"][port["dut_device"]]
        findings.append(equal(f"IPv4 forwarding from {name}", True, device["forwards"]))
        permanent = port["ipv4"] in device["neighbours"]
        found = "permanent" if permanent else "not permanent"
        findings.append(
            Finding(f"neighbour {port['ipv4']} of {name}", "permanent", found, permanent)
        )
        if declared.get("irq") == "pinned":
            findings.append(_pinned(name, device["irq"]))
    return findings + _check_rules(declared, state)


def check_mtu(
    frame_bytes: int, ports: tuple[Mapping[str, Any], ...], after: Mapping[str, Any]
) -> list[Finding]:
    """Whether the device has room for the largest frame (with FCS): it drops others, or breaks
    them up, and both look like a device that forwards little."""
    wanted = frame_bytes - ETHERNET_BYTES - FCS_BYTES
    found = {port["dut_device"]: after["state"]["devices"][port["dut_device"]] for port in ports}
    return [
        Finding(f"MTU of {name}", f"{wanted} or more", str(device["mtu"]), device["mtu"] >= wanted)
        for name, device in found.items()
    ]


# What a setting of the role is called, and where the device's own word about it stands.
_HELD = {"offload": "offloads", "channels": "channels"}


def check_held(settings: Mapping[str, str], after: Mapping[str, Any]) -> list[Finding]:
    """Whether offloads and numbers of queues that the role has set on the device are still so after
    the traffic. ``settings`` are the role's, by key (``offload DEVICE NAME``)."""
    devices = after["state"]["devices"]
    findings = []
    for key, wanted in settings.items():
        kind, *words = key.split()
        if kind in _HELD and words[0] in devices:
            device, name = words
            found = devices[device].get(_HELD[kind], {}).get(name, "not there")
            findings.append(equal(f"{kind} {name} of {device}", wanted, found))
    return findings


def _pinned(name: str, affinities: Mapping[str, Any]) -> Finding:
    wide = [f"{irq} on {cpus}" for irq, cpus in affinities.items() if not str(cpus).isdecimal()]
    found = ", ".join(wide) or f"{len(affinities)} interrupts on one each"
    return Finding(f"interrupts of {name}", "one CPU each", found, bool(affinities) and not wide)


def _check_rules(declared: Mapping[str, Any], state: Mapping[str, Any]) -> list[Finding]:
    """Packet filters that a packet passes: as many kinds as declared, and no other."""
    kinds = {"nft": bool(state["base_chains"]), "iptables": bool(state["iptables"])}
    wanted = declared.get("rules_by", ["nft"]) if declared.get("rules") == "empty" else []
    return [
        equal(
            f"packet filter by {kind}",
            "without rules" if kind in wanted else "none",
            "without rules" if there else "none",
        )
        for kind, there in kinds.items()
    ]


def _check_counters(
    arrived: Mapping[str, int], ports: tuple[Mapping[str, Any], ...], grown: Mapping[str, Any]
) -> list[Finding]:
    findings = []
    for port in ports:
        wanted = int(arrived.get(port["end"], 0))
        found = grown["devices"].get(port["dut_device"], {}).get("tx", {}).get("packets")
        what = f"frames sent by the device's {port['dut_device']}"
        wish = f"about the {wanted} that the tester's {port['end']} received"
        near = found is not None and abs(found - wanted) <= STRAY + SHARE * wanted
        findings.append(
            Finding(what, wish, "no such counter" if found is None else str(found), near)
        )
    total = sum(int(count) for count in arrived.values())
    routed = int(grown["ip"].get("ForwDatagrams", 0))  # counters that did not move are left out
    findings.append(
        Finding(
            "datagrams that the device's IP layer forwarded",
            f"at least about the {total} that the tester received",
            str(routed),
            routed >= total - STRAY - SHARE * total,
        )
    )
    return findings

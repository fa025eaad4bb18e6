"""The proof of a NetLabel configuration: what must be on the wire and at the sockets.

Pure: declared against observed. Nothing that the kernel was told counts here, only what came out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from collector.kernel_state.cipso_option import (
    decode_option,
    label_option,
    mss_for,
    udp_payload_for,
)
from collector.kernel_state.context import LabelError, format_level, low_level, parse_context
from collector.kernel_state.netlabel import Doi
from collector.kernel_state.netlabel_check import review
from collector.kernel_state.netlabel_declared import declared_state
from collector.kernel_state.netlabel_map import describe
from collector.matrix.labels import labelled_doi, netlabel_state
from collector.proof.findings import Finding, equal
from collector.wire.packets import Packet, cipso_option

TCP, UDP = 6, 17


def without_netlabel(cipso: Mapping[str, Any]) -> bool:
    """Whether the configuration wants a kernel that has no NetLabel at all."""
    return cipso.get("netlabel") == "absent"


def _optfmt(cipso: Mapping[str, Any]) -> bool:
    return str((cipso.get("sysctls") or {}).get("cipso_rbm_optfmt", 0)) != "0"


def expected_option(subjects: Mapping[str, Any]) -> bytes | None:
    """The option that packets of the configuration must carry, None for none."""
    cipso = subjects.get("cipso") or {}
    doi = labelled_doi(cipso)
    if doi is None:
        return None
    return label_option(subjects["label"], doi, rbm_optfmt=_optfmt(cipso))


def expected_mss(subjects: Mapping[str, Any], mtu: int) -> int:
    """The TCP segment size that the label must leave, bytes."""
    cipso = subjects.get("cipso") or {}
    return mss_for(subjects["label"], labelled_doi(cipso), mtu=mtu, rbm_optfmt=_optfmt(cipso))


def payload_that_fits(subjects: Mapping[str, Any], mtu: int) -> int:
    """The largest UDP payload that goes unfragmented, bytes."""
    cipso = subjects.get("cipso") or {}
    return udp_payload_for(
        subjects["label"], labelled_doi(cipso), mtu=mtu, rbm_optfmt=_optfmt(cipso)
    )


def _number(doi: Doi) -> tuple[str, int]:
    return doi.protocol, doi.number


def check_state(
    subjects: Mapping[str, Any], applied: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """What each host's kernel was read back to have, against the declaration.

    ``applied`` holds, by host, what the module ``cipso`` returned.
    """
    cipso = subjects["cipso"]
    wish = "absent" if without_netlabel(cipso) else "present"
    there = {True: "present", False: "absent"}
    has = [
        equal(f"NetLabel in the kernel of the {host}", wish, there[bool(result["netlabel"])])
        for host, result in applied.items()
    ]
    if wish == "absent":
        return has
    if any(not finding.ok for finding in has):
        return [finding for finding in has if not finding.ok]
    wanted = review(netlabel_state(cipso)).state
    findings = []
    for host, result in applied.items():
        state = result["state"]
        differences = []
        present = declared_state(state["dois"], None).dois
        if sorted(present, key=_number) != sorted(wanted.dois, key=_number):
            differences.append(f"DOIs {[item['number'] for item in state['dois']]}")
        maps = sorted(describe(entry) for entry in wanted.maps)
        if sorted(state["maps"]) != maps:
            differences.append(f"maps {state['maps']}, wanted {maps}")
        for key, value in (cipso.get("sysctls") or {}).items():
            found = state.get("sysctls", {}).get(key)
            if str(found) != str(value):
                differences.append(f"net.ipv4.{key} wanted {value}, is {found}")
        text = "; ".join(differences) or "as declared"
        findings.append(
            Finding(f"kernel state of the {host}", "as declared", text, not differences)
        )
    return findings


def show_option(option: bytes | None) -> str:
    """An option in words: DOI, tag, level and categories, and its bytes."""
    if option is None:
        return "no option 134"
    try:
        found = decode_option(option)
    except LabelError as error:
        return f"option {option.hex()} ({error})"
    level = format_level(found.level or 0, frozenset(found.categories))
    return f"DOI {found.doi}, tag {found.tag}, {level} ({option.hex()})"


def check_packets(
    subjects: Mapping[str, Any], packets: Iterable[Packet], client: str, server: str
) -> list[Finding]:
    """Every captured packet of the probe carries exactly the declared option."""
    wanted = expected_option(subjects)
    findings = []
    listed = list(packets)
    for what, source, destination, protocol in (
        ("TCP packets sent", client, server, TCP),
        ("TCP packets received", server, client, TCP),
        ("UDP datagrams sent", client, server, UDP),
    ):
        own = [
            packet
            for packet in listed
            if (packet.source, packet.destination) == (source, destination)
            and packet.protocol == protocol
        ]
        if not own:
            findings.append(Finding(what, "at least one captured", "none", False))
            continue
        seen = {cipso_option(packet) for packet in own}
        strays = [option for option in seen if option != wanted]
        found = show_option(strays[0] if strays else wanted)
        findings.append(Finding(what, show_option(wanted), found, not strays))
    return findings


def range_of(label: str | None) -> str | None:
    """The range of a context; None for none, and for a label that is no SELinux context."""
    try:
        return None if label is None else parse_context(label).range
    except LabelError:
        return None


def _level_of(label: str | None) -> str | None:
    found = range_of(label)
    return None if found is None else format_level(*low_level(found))


def check_probe(subjects: Mapping[str, Any], seen: Mapping[str, Any], mtu: int) -> list[Finding]:
    """What the sockets at both ends say: peer labels, segment size, datagram."""
    label = subjects["label"]
    findings = []
    peers = (
        ("server_peer_label", "peer label at the server"),
        ("peer_label", "peer label at the client"),
    )
    labelled = expected_option(subjects) is not None
    for key, what in peers:
        found = seen.get(key)
        if labelled:
            ok = _level_of(found) == format_level(*low_level(label))
            findings.append(Finding(what, f"level {label}", str(found), ok))
        else:
            ok = found is None or "netlabel_peer" not in found
            findings.append(Finding(what, "none from the wire", str(found), ok))
    findings.append(equal("TCP segment size", expected_mss(subjects, mtu), seen.get("mss")))
    problem = seen.get("datagram_error")
    findings.append(
        Finding(
            f"datagram of {seen.get('datagram_bytes')} bytes",
            "arrives unfragmented",
            "arrived" if problem is None else str(problem),
            problem is None,
        )
    )
    return findings

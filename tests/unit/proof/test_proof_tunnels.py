"""The proof of tunnels: declared against devices and packets."""

from __future__ import annotations

from typing import Any

import pytest

from collector.kernel_state.tunnel_facts import expected
from collector.kernel_state.tunnel_types import NAMES
from collector.proof import proof
from collector.proof.tunnels import (
    check_offloads,
    check_probe,
    check_sent,
    check_state,
    ports_of,
    wire_types,
)
from collector.wire.outer_headers import Outer
from collector.wire.packets import Packet
from tests.unit.tunnel_factory import ENDS4, ENDS6, declared, link

MEASURED = ("198.19.0.1", "198.19.0.2")


def subjects(*links: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"family": "ipv4", "tunnels": {"links": list(links)} if links else {}, **more}


def applied(wanted: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What the module returns on both hosts, with one property of xt0 changed on the server."""
    found = {}
    for end, host in enumerate(("client", "server")):
        one = link(wanted["type"], **{k: v for k, v in wanted.items() if k != "type"})
        state = expected(one, end, 1500)
        found[host] = {"state": {"xt0": {**state, **(changes if end else {})}}}
    return found


def frame(kind: str, source: str, destination: str, **more: Any) -> Outer:
    packet = Packet(source, destination, more.pop("protocol", 17), b"", 100, None, False, b"\x80")
    return Outer(kind, source, destination, 100, packet=packet, **more)


def both(kind: str, ends: Any = ENDS4, **more: Any) -> list[Outer]:
    return [frame(kind, ends[0], ends[1], **more), frame(kind, ends[1], ends[0], **more)]


@pytest.mark.parametrize("sort", NAMES)
def test_devices_as_declared_are_proven_for_every_type(sort):
    wanted = declared(sort)
    findings = check_state(subjects(wanted), applied(wanted), 1500)
    assert [finding.ok for finding in findings] == [True, True]
    assert findings[0].wanted == f"xt0 ({sort})"


def test_a_property_that_differs_is_told():
    wanted = declared("vxlan")
    findings = check_state(subjects(wanted), applied(wanted, id=43), 1500)
    assert [finding.ok for finding in findings] == [True, False]
    assert str(findings[1]) == "tunnels of the server: wanted xt0 (vxlan), found xt0: id 43, not 42"


def test_a_device_that_is_missing_or_left_over_is_told():
    wanted = declared("vxlan")
    findings = check_state(subjects(wanted), {"client": {"state": {}}}, 1500)
    assert {finding.found for finding in findings} == {"xt0 absent"}
    left = check_state(subjects(), applied(wanted), 1500)
    assert {finding.found for finding in left} == {"xt0 beside them"}
    assert all(finding.ok for finding in check_state(subjects(), {}, 1500))


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        (declared("vxlan"), {"id": 42, "port": 4789}),
        (declared("gre", key=7), {"id": 7}),
        (declared("ipip"), {}),
        (declared("gue"), {"port": 6080}),
        (declared("wireguard"), {"port": 51820}),
        (declared("stt", key=9), {"id": 9, "port": 7471}),
        (declared("l2tp"), {"id": 42, "port": 1701}),
    ],
    ids=lambda value: value.get("type", ""),
)
def test_packets_in_the_declared_tunnel_are_proven(wanted, more):
    kind = wire_types(link(wanted["type"]))[0]
    (finding,) = check_sent(subjects(wanted), both(kind, **more), 0, MEASURED)
    assert finding.ok, finding
    for other in (both("plain"), both(kind, **more)[:1], both(kind, **more) + both("plain")):
        assert not check_sent(subjects(wanted), other, 0, MEASURED)[0].ok
    other = check_sent(subjects(wanted), both(kind, **{**more, "id": 43}), 0, MEASURED)[0]
    assert other.ok == (wanted["type"] in ("gue",))


def test_a_flow_beside_the_tunnel_is_told():
    wanted = declared("vxlan")
    frames = both("vxlan", id=42, port=4789) + both("plain", MEASURED)
    (finding,) = check_sent(subjects(wanted), frames, 1, MEASURED)
    assert not finding.ok
    assert finding.found == (
        "2 in vxlan 42, port 4789, 2 outside it (plain), 2 of the measured flow among them"
    )


def test_macsec_needs_no_addresses_and_takes_no_clear_packet():
    wanted = declared("macsec")
    assert check_sent(subjects(wanted), [Outer("macsec", "", "", 90)], 0, MEASURED)[0].ok
    clear = [Outer("macsec", "", "", 90), *both("plain", MEASURED)]
    assert not check_sent(subjects(wanted), clear, 0, MEASURED)[0].ok


def test_neighbour_discovery_below_the_tunnel_is_no_leak():
    wanted = declared("ip6tnl")
    echo = frame("plain", "fe80::1", "ff02::1", protocol=58)
    neighbour = Outer(
        "plain", "fe80::1", "ff02::1", 90,
        packet=Packet("fe80::1", "ff02::1", 58, b"", 90, None, False, b"\x87\0"),
    )  # fmt: skip
    frames = [*both("ipip", ENDS6), *both("sit", ENDS6), neighbour]
    assert check_sent(subjects(wanted), frames, 0, MEASURED)[0].ok
    assert not check_sent(subjects(wanted), [*frames, echo], 0, MEASURED)[0].ok


def test_the_bare_link_must_be_in_clear():
    assert check_sent(subjects(), both("plain"), 0, MEASURED)[0].ok
    (finding,) = check_sent(subjects(), both("plain") + both("vxlan"), 0, MEASURED)
    assert not finding.ok
    assert finding.found == "2 in clear, others in vxlan"
    assert not check_sent(subjects(), [], 0, MEASURED)[0].ok


def test_over_esp_only_esp_may_be_seen():
    ipsec = {"connections": [{"name": "c", "ends": ENDS4}]}
    wanted = subjects(declared("vxlan"), ipsec=ipsec)
    assert check_sent(wanted, both("esp"), 0, MEASURED)[0].ok
    assert not check_sent(wanted, both("vxlan", id=42, port=4789), 0, MEASURED)[0].ok
    # 1500 less ESP's header, IV, ICV and trailer, and VXLAN's 50.
    assert proof.path_mtu(wanted, 1500) == 1466
    assert proof.expected_mss(wanted, 1500) == 1466 - 50 - 52


def test_segment_size_and_payload_are_those_of_the_tunnel():
    wanted = subjects(declared("vxlan"))
    assert proof.expected_mss(wanted, 1500) == 1398
    assert proof.payload_that_fits(wanted, 1500) == 1422
    assert proof.expected_mss(subjects(), 1500) == 1448
    seen = {"mss": 1398, "datagram_bytes": 1422, "datagram_error": None}
    assert all(finding.ok for finding in check_probe(wanted, seen, 1500))
    assert not any(
        finding.ok
        for finding in check_probe(wanted, {"mss": 1448, "datagram_error": "too long"}, 1500)
    )


def test_offloads_must_be_as_declared():
    on = {"tcp-segmentation-offload": "on", "generic-receive-offload": "off (fixed)"}
    off = {"tcp-segmentation-offload": "off", "generic-receive-offload": "off (fixed)"}

    def judged(wish: str, found: dict[str, str]) -> list[bool]:
        hosts = {host: {"offloads": {"eth1": found}} for host in ("client", "server")}
        return [one.ok for one in check_offloads(subjects(offloads=wish), hosts)]

    assert judged("on", on) == judged("off", off) == [True, True]
    assert judged("on", off) == judged("off", on) == [False, False]
    assert judged("off", {"tx-checksumming": "on (fixed)"}) == [False, False]
    assert check_offloads(subjects(), {}) == []
    assert [one.ok for one in check_offloads(subjects(offloads="on"), {})] == [False, False]


def test_only_ports_on_the_wire_name_types():
    top = declared("geneve", name="top", id=5, ends=["198.19.0.1", "198.19.0.2"],
                   inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])  # fmt: skip
    assert ports_of(subjects(declared("vxlan", port=8472), top)) == {8472: "vxlan"}

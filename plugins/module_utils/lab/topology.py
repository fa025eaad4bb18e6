"""A topology is data: nodes, links between them, and what the inventory makes of both.

The file format (``roles/lab_qemu/files/topologies/*.yml``)::

    schema: 1
    name: pair
    nodes:
      client: {groups: [clients]}
    links:
      - name: test
        ends:
          - {node: client, device: eth1, ipv4: 198.18.0.1/24, ipv6: "2001:db8:18::1/64"}
          - {node: server, device: eth1, ipv4: 198.18.0.2/24, ipv6: "2001:db8:18::2/64"}

``eth0`` is every node's management device and never part of a link. A link with
``purpose: control`` joins two nodes for the control connections of measuring tools, which must
not cross the test link; no role configures it.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from typing import Any

from .errors import LabError

MANAGEMENT_DEVICE = "eth0"
TESTERS = "testers"
# Links of the lab carry no speed; shares of line rate need one, so one is declared.
DECLARED_SPEED_MBPS = 1000


@dataclass(frozen=True)
class End:
    """One end of a link: which device of which node, and its addresses with prefix length."""

    node: str
    device: str
    ipv4: str
    ipv6: str


@dataclass(frozen=True)
class Link:
    """A point-to-point link; ``purpose`` is test or control."""

    name: str
    ends: tuple[End, End]
    purpose: str = "test"

    def peer(self, node: str) -> End:
        """The other end as seen from ``node``."""
        return self.ends[1] if self.ends[0].node == node else self.ends[0]


@dataclass(frozen=True)
class Topology:
    """Nodes (name to inventory groups) and links, checked."""

    name: str
    nodes: dict[str, tuple[str, ...]]
    links: tuple[Link, ...]

    def ends_of(self, node: str) -> list[tuple[Link, End]]:
        """The links of a node with its own end, ordered by device name."""
        found = [(link, end) for link in self.links for end in link.ends if end.node == node]
        return sorted(found, key=lambda pair: pair[1].device)

    def boots_kernels(self, node: str) -> bool:
        """Whether a kernel that is to be measured is booted on the node. A tester keeps the image's
        own: what changes on it would be taken for the device under test."""
        return TESTERS not in self.nodes[node]

    def host_vars(self, node: str, lab: str | None = None) -> dict[str, Any]:
        """What the inventory says of a node: its test devices, addresses and peers, and the
        address on which others reach its control connections. MAC addresses depend on the lab's
        name; without it (the lab gives devices others) they are left out."""
        control = [end for link, end in self.ends_of(node) if link.purpose == "control"]
        links = []
        for link, end in self.ends_of(node):
            if link.purpose != "test":
                continue
            peer = link.peer(node)
            found: dict[str, Any] = {
                "name": link.name,
                "device": end.device,
                "ipv4": end.ipv4,
                "ipv6": end.ipv6,
                "peer": peer.node,
                "peer_ipv4": peer.ipv4,
                "peer_ipv6": peer.ipv6,
                "speed_mbps": DECLARED_SPEED_MBPS,
            }
            if lab is not None:
                found["mac"] = mac_address(lab, node, end.device)
                found["peer_mac"] = mac_address(lab, peer.node, peer.device)
            links.append(found)
        return {
            "bench_control_address": control[0].ipv4.split("/")[0] if control else None,
            "bench_links": links,
        }


def mac_address(lab: str, node: str, device: str) -> str:
    """A locally administered MAC address, the same for the same lab, node and device."""
    digest = hashlib.sha256(f"{lab}/{node}/{device}".encode()).hexdigest()
    return "52:54:00:" + ":".join(digest[i : i + 2] for i in (0, 2, 4))


def _fail(where: str, found: Any, wanted: str) -> LabError:
    return LabError(f"topology {where}: found {found!r}; wanted {wanted}")


def _address(where: str, value: Any, version: int) -> str:
    try:
        interface = ipaddress.ip_interface(str(value))
    except ValueError:
        raise _fail(where, value, f"an IPv{version} address with prefix length") from None
    if interface.version != version or "/" not in str(value):
        raise _fail(where, value, f"an IPv{version} address with prefix length")
    return str(interface)


def _end(where: str, data: Any, nodes: dict[str, tuple[str, ...]]) -> End:
    if not isinstance(data, dict) or set(data) != {"node", "device", "ipv4", "ipv6"}:
        raise _fail(where, data, "a dict of node, device, ipv4, ipv6")
    if data["node"] not in nodes:
        raise _fail(f"{where}.node", data["node"], f"one of {', '.join(nodes)}")
    if data["device"] == MANAGEMENT_DEVICE:
        raise _fail(f"{where}.device", data["device"], "a device other than the management one")
    return End(
        node=data["node"],
        device=data["device"],
        ipv4=_address(f"{where}.ipv4", data["ipv4"], 4),
        ipv6=_address(f"{where}.ipv6", data["ipv6"], 6),
    )


def read_topology(data: Any) -> Topology:
    """Check a topology description. Raises LabError that names the key at fault."""
    if not isinstance(data, dict):
        raise _fail("file", data, "a dict of schema, name, nodes, links")
    unknown = set(data) - {"schema", "name", "nodes", "links"}
    if unknown:
        raise _fail("file", sorted(unknown), "only schema, name, nodes, links")
    if data.get("schema") != 1:
        raise _fail("schema", data.get("schema"), "1")
    nodes_in = data.get("nodes")
    if not isinstance(nodes_in, dict) or not nodes_in:
        raise _fail("nodes", nodes_in, "a dict of at least one node")
    nodes = {str(name): tuple((spec or {}).get("groups", ())) for name, spec in nodes_in.items()}
    links = []
    used: set[tuple[str, str]] = set()
    for index, item in enumerate(data.get("links") or []):
        where = f"links[{index}]"
        ends_in = item.get("ends") if isinstance(item, dict) else None
        if not isinstance(ends_in, list) or len(ends_in) != 2:
            raise _fail(f"{where}.ends", ends_in, "two ends")
        ends = [_end(f"{where}.ends[{i}]", end, nodes) for i, end in enumerate(ends_in)]
        for end in ends:
            if (end.node, end.device) in used:
                raise _fail(where, f"{end.node} {end.device}", "each device in one link only")
            used.add((end.node, end.device))
        purpose = item.get("purpose", "test")
        if purpose not in ("test", "control"):
            raise _fail(f"{where}.purpose", purpose, "test or control")
        name = str(item.get("name", f"link{index}"))
        links.append(Link(name=name, ends=(ends[0], ends[1]), purpose=purpose))
    return Topology(name=str(data.get("name", "")), nodes=nodes, links=tuple(links))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The effects of the tunnel module: run commands, read devices, routes and the record."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from .host import record
from .host.errors import HostError, NotInstalledError
from .host.run import environment, output, run
from .kernel_state.errors import StateError
from .kernel_state.tunnel_facts import (
    Facts,
    decode,
    read_device,
    read_encap_route,
    read_fou,
    read_l2tp,
    read_macsec,
    read_wireguard,
)
from .kernel_state.tunnel_link import Link, from_dict
from .shell_step import Step, fill, hide
from .tunnel_commands import Place, port_of

# In memory like the devices, so that a reboot forgets both together.
RECORD = Path("/run/crossover/tunnel.json")
COMMAND_LIMIT_S = 120


class TunnelError(Exception):
    """The host refused; the text says what and why, and holds no key."""


# --- running ------------------------------------------------------------------------------------


def execute(steps: Sequence[Step], keys: Mapping[str, str]) -> Tuple[int, str]:
    """Run steps in order until one fails: how many were done, and what the next one said.

    Neighbouring ``ip`` commands are one ``ip -batch``, which reads them, and so any key, from its
    standard input.
    """
    at = 0
    while at < len(steps):
        group = [steps[at]]
        if steps[at].argv[0] == "ip":
            while at + len(group) < len(steps) and steps[at + len(group)].argv[0] == "ip":
                group.append(steps[at + len(group)])
            done, said = _batch(group, keys)
        else:
            done, said = _one(group[0], keys)
        at += done
        if done < len(group):
            return at, said
    return at, ""


def _batch(group: Sequence[Step], keys: Mapping[str, str]) -> Tuple[int, str]:
    lines = [" ".join(step.argv[1:]) for step in group]
    code, err = _feed(["ip", "-batch", "-"], fill("\n".join(lines) + "\n", keys))
    if code == 0:
        return len(group), ""
    said = hide(err, keys).strip().splitlines()
    # ip ends at the first line that the kernel refuses, and names it last.
    for line in reversed(said):
        word, _colon, number = line.rpartition(":")
        if word.startswith("Command failed") and number.strip().isdecimal():
            rest = [one for one in said if not one.startswith("Command failed")]
            return int(number) - 1, "; ".join(rest) or line
    return 0, "; ".join(said) or f"ip ended with {code}"


def _one(step: Step, keys: Mapping[str, str]) -> Tuple[int, str]:
    argv = [fill(word, keys) for word in step.argv]
    text = None if step.stdin is None else fill(step.stdin, keys) + "\n"
    code, err = _feed(argv, text)
    if code == 0:
        return 1, ""
    return 0, hide(err, keys).strip() or f"{step.argv[0]} ended with {code}"


def _feed(argv: Sequence[str], text: Optional[str]) -> Tuple[int, str]:
    try:
        done = subprocess.run(
            list(argv), input=text or "", capture_output=True, text=True, check=False,
            timeout=COMMAND_LIMIT_S, env=environment(),
        )  # fmt: skip
    except FileNotFoundError:
        return 127, f"{argv[0]}: not installed on this host"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]}: no end within {COMMAND_LIMIT_S} s"
    return done.returncode, done.stderr or done.stdout


# --- reading ------------------------------------------------------------------------------------


def _listing(*argv: str) -> List[Dict[str, Any]]:
    """A JSON listing; empty where the kernel does not have the subject (its module is not loaded,
    so nothing of it is there)."""
    code, out, err = run(argv)
    if code != 0:
        if "No such file or directory" in err or "not found" in err.lower():
            return []
        raise TunnelError(f"{' '.join(argv)}: {err.strip() or f'ended with {code}'}")
    try:
        return decode(out, " ".join(argv))
    except StateError as error:
        raise TunnelError(f"{' '.join(argv)}: {error}") from error


def read_devices() -> Dict[str, Dict[str, Any]]:
    """Every device of the host as ``ip -d -j address`` shows it, by name."""
    return {item["ifname"]: item for item in _listing("ip", "-d", "-j", "address", "show")}


def read_present(
    places: Sequence[Place], devices: Mapping[str, Mapping[str, Any]]
) -> Dict[str, Facts]:
    """The facts of those links whose device is there, by name. Raises :class:`TunnelError`."""
    try:
        return _read_present(places, devices)
    except (StateError, HostError, KeyError, ValueError) as error:
        raise TunnelError(f"tunnel devices cannot be read: {error}") from error


def _read_present(
    places: Sequence[Place], devices: Mapping[str, Mapping[str, Any]]
) -> Dict[str, Facts]:
    there = [place for place in places if place.link.name in devices]
    types = {place.link.type for place in there}
    fou = {}
    if types & {"fou", "gue"}:
        fou = read_fou(_listing("ip", "-j", "fou", "show"))
    tunnels: List[Dict[str, Any]] = []
    sessions: List[Dict[str, Any]] = []
    if "l2tp" in types:
        tunnels = _listing("ip", "-j", "l2tp", "show", "tunnel")
        sessions = _listing("ip", "-j", "l2tp", "show", "session")
    found: Dict[str, Facts] = {}
    for place in there:
        link, name = place.link, place.link.name
        facts = read_device(devices[name])
        if link.type in ("fou", "gue"):
            facts["listens"] = fou.get((link.family, link.port or 0))
        elif link.type == "l2tp":
            facts.update(read_l2tp(name, tunnels, sessions))
        elif link.type == "wireguard":
            facts.update(_wireguard(name))
        elif link.type == "macsec":
            for item in _listing("ip", "-j", "macsec", "show", name):
                facts.update(read_macsec(item))
        elif link.type == "vxlan-gpe":
            facts.update(_gpe(place))
        elif link.type == "ovs":
            facts.update(_ovs(name))
        found[name] = facts
    return found


def read_remains(places: Sequence[Place], devices: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Names of those links whose device is gone, deleted by others or never made, while their FOU
    port, L2TP tunnel or bridge is there and would be in the way. Raises :class:`TunnelError`."""
    gone = [place.link for place in places if place.link.name not in devices]
    types = {link.type for link in gone}
    there: Set[Tuple[Any, ...]] = set()
    try:
        if types & {"fou", "gue"}:
            there |= {("fou", *one) for one in read_fou(_listing("ip", "-j", "fou", "show"))}
        if "l2tp" in types:
            tunnels = _listing("ip", "-j", "l2tp", "show", "tunnel")
            there |= {("l2tp", one.get("tunnel_id")) for one in tunnels}
        there |= {("ovs", one.name) for one in gone if one.type == "ovs" and _has_bridge(one.name)}
    except (HostError, KeyError, ValueError) as error:
        raise TunnelError(f"tunnels whose device is gone cannot be read: {error}") from error
    return [link.name for link in gone if _holds(link) in there]


def _holds(link: Link) -> Tuple[Any, ...]:
    """What of a link outlives its device."""
    if link.type in ("fou", "gue"):
        return "fou", link.family, link.port
    return (link.type, link.id if link.type == "l2tp" else link.name)


def _has_bridge(name: str) -> bool:
    try:
        return run(["ovs-vsctl", "--timeout=5", "br-exists", name])[0] == 0
    except NotInstalledError:
        return False


def _wireguard(name: str) -> Facts:
    code, out, err = run(["wg", "show", name])
    if code != 0:
        raise TunnelError(f"wg show {name}: {err.strip()}")
    return read_wireguard(out)


def _gpe(place: Place) -> Facts:
    facts: Facts = {}
    for text in place.link.addresses(1 - place.end):
        peer, sixth = text.split("/")[0], ":" in text
        flag = ["-6"] if sixth else []
        routes = output(["ip", *flag, "route", "show", "dev", place.link.name])
        facts.update(read_encap_route(routes, peer))
    return facts


def _ovs(name: str) -> Facts:
    port = port_of(name)
    code, out, err = run(
        ["ovs-vsctl", "--format=json", "--columns=type,options", "list", "Interface", port]
    )
    if code != 0:
        raise TunnelError(f"ovs-vsctl list Interface {port}: {err.strip()}")
    row = json.loads(out)["data"][0]
    # The database protocol of Open vSwitch writes a map as ["map", [[key, value], …]] (RFC 7047).
    options = dict(row[1][1])
    port_text = options.get("dst_port")
    return {
        "kind": "openvswitch",
        "protocol": row[0],
        "local": options.get("local_ip"),
        "remote": options.get("remote_ip"),
        "id": int(options["key"]) if options.get("key", "").isdecimal() else None,
        "port": int(port_text) if port_text else None,
    }


def secrets_of(places: Sequence[Place], names: Sequence[str]) -> Dict[str, str]:
    """The keys of WireGuard links that are there, so that they can be put back on failure.

    MACsec's keys cannot be read back from the kernel.
    """
    from .tunnel_keys import placeholder

    found: Dict[str, str] = {}
    for place in places:
        if place.link.type != "wireguard" or place.link.name not in names:
            continue
        code, out, _err = run(["wg", "showconf", place.link.name])
        if code != 0:
            continue
        pairs = dict(line.split(" = ", 1) for line in out.splitlines() if " = " in line)
        if "PrivateKey" in pairs and "PublicKey" in pairs:
            found[placeholder(place.link, "PRIVATE")] = pairs["PrivateKey"]
            found[placeholder(place.link, "PEER")] = pairs["PublicKey"]
    return found


def device_of(local: str, remote: str) -> str:
    """The device that packets from ``local`` to ``remote`` leave by. Raises TunnelError."""
    argv = ["ip", "-j", "route", "get", remote]
    routes = _listing(*argv, "from", local) if local else _listing(*argv)
    if not routes or not routes[0].get("dev"):
        raise TunnelError(f"no route from {local} to {remote}; wanted one for the outer packets")
    return str(routes[0]["dev"])


# --- the record ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A link that was made: where it is, and the name of the seed of its keys."""

    place: Place
    generation: Optional[str]


@dataclass(frozen=True)
class Record:
    """What this collection added: links in order, and offloads (``DEVICE FEATURE``) before."""

    rows: Tuple[Row, ...] = ()
    offloads: Tuple[Tuple[str, str], ...] = ()

    @property
    def places(self) -> Tuple[Place, ...]:
        """The links."""
        return tuple(row.place for row in self.rows)

    def generation(self, name: str) -> Optional[str]:
        """The name of the seed of a link's keys, None without keys or link."""
        return next((row.generation for row in self.rows if row.place.link.name == name), None)

    def as_dict(self) -> Dict[str, Any]:
        """For the file."""
        return {
            "links": [
                {
                    "link": row.place.link.as_dict(),
                    "end": row.place.end,
                    "underlay": row.place.underlay,
                    "mtu": row.place.mtu,
                    "generation": row.generation,
                }
                for row in self.rows
            ],
            "offloads": [list(pair) for pair in self.offloads],
        }


def read_record() -> Record:
    """The record; empty when there is none. Raises :class:`TunnelError`."""
    try:
        data = record.load(RECORD)
        if data is None:
            return Record()
        rows = tuple(
            Row(
                Place(_link(item["link"]), item["end"], item["underlay"], item["mtu"]),
                item["generation"],
            )
            for item in data["links"]
        )
        return Record(rows, tuple((key, value) for key, value in data["offloads"]))
    except (HostError, KeyError, TypeError, ValueError) as error:
        raise TunnelError(f"{RECORD}: {error}") from error


def _link(data: Mapping[str, Any]) -> Link:
    return from_dict(data)


def write_record(item: Record) -> None:
    """Replace the record; an empty one leaves no file behind."""
    if item.rows or item.offloads:
        record.save(RECORD, item.as_dict())
    else:
        record.forget(RECORD)


def missing_tool(links: Sequence[Link]) -> Optional[str]:
    """A text for the first program that a declared link needs and the host has not."""
    for link in links:
        for tool in link.kind.tools:
            try:
                run([tool, "--version"])
            except NotInstalledError:
                return f"{link.name} ({link.type}): {tool} is not installed on this host"
    return None

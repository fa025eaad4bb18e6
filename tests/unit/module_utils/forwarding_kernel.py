"""A host of two test ports that answers as ip, nft and ethtool, and keeps what it is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ansible_collections.crossover.lab.plugins.module_utils import forwarding_rules as rules

PORTS = {"eth1": "02:00:00:00:01:02", "eth2": "02:00:00:00:02:02"}


class Kernel:
    """``ignores``: verbs that succeed and do nothing; ``fails``: verbs that are refused.

    ``eth0`` is the management device.
    """

    def __init__(self) -> None:
        self.unchecked: set[str] = set()
        self.addresses: dict[str, list[str]] = {"eth1": ["198.18.0.2/24"], "eth2": []}
        self.neighbours: dict[str, dict[str, str]] = {"eth1": {}, "eth2": {}}
        self.routes: dict[str, tuple[str, str]] = {}
        self.mtu = {"eth0": 1500, "eth1": 1500, "eth2": 1500}
        self.up = {"eth0": True, "eth1": True, "eth2": True}
        self.chains: list[tuple[str, str, str]] = []
        self.default: list[dict[str, str]] = []
        self.features = {name: {"large-receive-offload": "off"} for name in ("eth0", *PORTS)}
        self.calls: list[list[str]] = []
        self.ignores: set[str] = set()
        self.fails: set[str] = set()

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.calls.append(list(argv))
        tool, *words = argv
        if tool == "nft":
            return self._nft(words)
        if tool == "ethtool":
            return self._ethtool(words)
        assert tool == "ip", argv
        if "-j" in words:
            return 0, json.dumps(self._listing([w for w in words if not w.startswith("-")])), ""
        verb = f"{words[0]} {words[1]}"
        if verb in self.fails:
            return 2, "", f"RTNETLINK answers: {verb} is not permitted"
        if verb not in self.ignores:
            self._do(verb, words[2:])
        return 0, "", ""

    def _listing(self, words: list[str]) -> object:
        if words == ["link"]:
            macs = {"eth0": "02:00:00:00:00:02", **PORTS}
            return [
                {
                    "ifname": name,
                    "address": mac,
                    "mtu": self.mtu[name],
                    "flags": ["UP"] if self.up[name] else [],
                }
                for name, mac in macs.items()
            ]
        if words[:2] == ["route", "get"]:
            return [{"dst": words[2], "dev": "eth0"}]
        if words[:2] == ["route", "show"] and words[2] == "default":
            return self.default
        if words[:2] == ["route", "show"]:
            found = self.routes.get(words[3])
            return [{"dst": words[3], "gateway": found[0], "dev": found[1]}] if found else []
        if words[0] == "address":
            addresses = [text.split("/") for text in self.addresses.get(words[-1], [])]
            info: list[dict[str, Any]] = [
                {"local": a, "prefixlen": int(n), "scope": "global"} for a, n in addresses
            ]
            for item in info:
                if f"{item['local']}/{item['prefixlen']}" in self.unchecked:
                    item["nodad"] = True
            link = {"local": "fe80::1", "prefixlen": 64, "scope": "link"}
            return [{"addr_info": [*info, link]}]
        assert words[0] == "neighbour"
        return [{"dst": ip, "lladdr": mac} for ip, mac in self.neighbours[words[-1]].items()]

    def _do(self, verb: str, words: list[str]) -> None:
        device = words[words.index("dev") + 1] if "dev" in words else ""
        if verb == "address replace":
            self.addresses[device].append(words[0])
            (self.unchecked.add if "nodad" in words else self.unchecked.discard)(words[0])
        elif verb == "address delete":
            self.addresses[device].remove(words[0])
        elif verb == "neighbour replace":
            assert words[-2:] == ["nud", "permanent"]
            self.neighbours[device][words[0]] = words[4]
        elif verb == "neighbour delete":
            del self.neighbours[device][words[0]]
        elif verb == "route replace":
            self.routes[words[0]] = (words[2], device)
        elif verb == "route delete":
            del self.routes[words[0]]
        elif words[-2] == "mtu":
            self.mtu[device] = int(words[-1])
        else:
            self.up[device] = words[-1] == "up"

    def _nft(self, words: list[str]) -> tuple[int, str, str]:
        if words == ["-j", "list", "ruleset"]:
            chains = [
                {"chain": {"family": f, "table": t, "name": n, "hook": n}}
                for f, t, n in self.chains
            ]
            return 0, json.dumps({"nftables": chains}), ""
        if words[0] == "delete":
            self.chains = [chain for chain in self.chains if chain[1] != rules.TABLE]
        else:
            for command in json.loads(words[1])["nftables"]:
                chain = command["add"].get("chain")
                if chain:
                    self.chains.append((chain["family"], chain["table"], chain["name"]))
        return 0, "", ""

    def _ethtool(self, words: list[str]) -> tuple[int, str, str]:
        option, device, *pairs = words
        if option == "-k":
            lines = [f"{name}: {value}" for name, value in self.features[device].items()]
            return 0, f"Features for {device}:\n" + "\n".join(lines) + "\n", ""
        assert option == "-K"
        self.features[device].update(zip(pairs[::2], pairs[1::2], strict=True))
        return 0, "", ""

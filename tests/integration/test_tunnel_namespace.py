"""The module tunnel against the real kernel, in two network namespaces joined by a veth pair.

Needs no lab and root. Types that this machine's kernel lacks are skipped with ip's own words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tunnel_factory import ENDS4, INNER6, NEEDED, declared

ROOT = Path(__file__).resolve().parents[2]
# Run in a namespace: the module's parameters come on standard input, its result goes out.
PROGRAM = """
import json, pathlib, sys
from ansible_collections.crossover.lab.plugins.module_utils import (
    tunnel_apply, tunnel_host, tunnel_prepare, tunnel_probe)
tunnel_host.RECORD = pathlib.Path(sys.argv[1])
request = json.load(sys.stdin)
if isinstance(request, list):
    print(json.dumps(tunnel_probe.missing(request)))
else:
    try:
        change = tunnel_prepare.prepare(request)
        done = change.result() if request["check"] else tunnel_apply.carry_out(change, {})
    except Exception as error:
        done = {"error": str(error), "left": list(getattr(error, "left", ()))}
    print(json.dumps(done))
"""
DEFAULTS = {
    "state": "present", "links": [], "offloads": "unchanged", "offload_devices": [],
    "seed": "A" * 43 + "=", "generation": "g", "rekey": False, "management": [], "check": False,
}  # fmt: skip


class Pair:
    """Two namespaces joined as the lab's guests are: 198.18.0.1 and .2 on a device ``wire``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names = [f"crossover-test-{os.getpid()}-{end}" for end in "ab"]

    def open(self) -> str | None:
        """Make both; why not, None if it worked."""
        for name in self.names:
            done = ip("netns", "add", name)
            if done.returncode:
                return done.stderr.strip()
        one, other = self.names
        for words in (
            ("link", "add", "wire", "netns", one, "type", "veth",
             "peer", "name", "wire", "netns", other),
            *((
                ("-n", name, "address", "add", f"198.18.0.{end}/24", "dev", "wire"),
                ("-n", name, "address", "add", f"2001:db8:18::{end}/64", "dev", "wire", "nodad"),
                ("-n", name, "link", "set", "dev", "wire", "up"),
                ("-n", name, "link", "set", "dev", "lo", "up"),
            )[at] for end, name in enumerate(self.names, 1) for at in range(4)),
        ):  # fmt: skip
            done = ip(*words)
            if done.returncode:
                return f"ip {' '.join(words)}: {done.stderr.strip()}"
        return None

    def close(self) -> None:
        for name in self.names:
            ip("netns", "del", name)

    def run(self, end: int, *argv: str, text: str = "") -> str:
        """What a command prints at one end."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.names[end], *argv],
            input=text, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _program(self, end: int, request: Any) -> Any:
        record = str(self._folder / f"record-{end}.json")
        out = self.run(end, sys.executable, "-c", PROGRAM, record, text=json.dumps(request))
        return json.loads(out)

    def missing(self, sort: str) -> str | None:
        """Why this kernel cannot have a type, None if it can."""
        found: dict[str, str] = self._program(0, [sort])
        return found.get(sort)

    def module(self, end: int, *links: dict[str, Any], **parameters: Any) -> dict[str, Any]:
        """What the module answers at one end."""
        wanted = {**DEFAULTS, "links": list(links), **parameters}
        found: dict[str, Any] = self._program(end, wanted)
        return found

    def devices(self, end: int) -> list[str]:
        listed = json.loads(self.run(end, "ip", "-j", "link", "show"))
        return [item["ifname"] for item in listed if item["ifname"] not in ("lo", "wire")]


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    if os.geteuid() != 0:
        pytest.skip("named network namespaces need root")
    made = Pair(tmp_path)
    try:
        why = made.open()
        if why is not None:
            pytest.skip(f"this machine lets nobody make what the test needs: {why}")
        yield made
    finally:
        made.close()


# Sends one segment through the tunnel and says what TCP took as its size.
SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 9000), family=socket.AF_INET6 if ":" in sys.argv[1]
                                else socket.AF_INET)
print("ready", flush=True)
connection, _ = listener.accept()
connection.sendall(connection.recv(100))
"""
CLIENT = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 9000), 10)
connection.sendall(b"through")
assert connection.recv(100) == b"through"
print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
"""


def exchange(pair: Pair, address: str) -> int:
    """One exchange with the server's inner address; the segment size, bytes."""
    prefix = ["ip", "netns", "exec", pair.names[1], sys.executable, "-c", SERVER, address]
    with subprocess.Popen(prefix, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == "ready\n"
            return int(pair.run(0, sys.executable, "-c", CLIENT, address))
        finally:
            server.kill()


@pytest.mark.parametrize("sort", NEEDED)
def test_a_link_is_made_used_kept_and_taken_back(pair: Pair, sort: str) -> None:
    why = pair.missing(sort)
    if why is not None:
        pytest.skip(f"{sort}: {why}")
    wanted = declared(sort)
    answers = [pair.module(end, wanted) for end in (0, 1)]
    assert [answer.get("changed") for answer in answers] == [True, True], answers
    sixth = wanted["inner_ipv4"] is None
    address = "2001:db8:19::2" if sixth else "198.19.0.2"
    headers = 72 if sixth else 52
    assert exchange(pair, address) == answers[0]["links"][0]["mtu"] - headers
    assert pair.module(0, wanted)["changed"] is False
    assert pair.module(0, state="absent")["changed"] is True
    assert pair.devices(0) == []
    assert pair.module(0, state="absent")["changed"] is False


def test_check_mode_says_the_same_and_does_nothing(pair: Pair) -> None:
    said = pair.module(0, declared("vxlan"), check=True)
    assert pair.devices(0) == []
    done = pair.module(0, declared("vxlan"))
    for key in ("changed", "by_hand", "actions", "diff", "links"):
        assert said[key] == done[key]
    assert set(said["state"]["xt0"]) <= set(done["state"]["xt0"])


def test_a_stack_gets_its_mtu_from_below(pair: Pair) -> None:
    top = declared("vxlan", name="top", id=7, ends=["198.19.0.1", "198.19.0.2"],
                   inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])  # fmt: skip
    for end in (0, 1):
        assert "error" not in pair.module(end, declared("vxlan"), top)
    assert exchange(pair, "198.19.1.2") == 1400 - 52


def test_what_changes_in_place_leaves_the_device(pair: Pair) -> None:
    pair.module(0, declared("vxlan"))
    index = json.loads(pair.run(0, "ip", "-j", "link", "show", "dev", "xt0"))[0]["ifindex"]
    answer = pair.module(0, declared("vxlan", mtu=1400, inner_ipv6=INNER6))
    assert [action["verb"] for action in answer["actions"]] == ["change"]
    item = json.loads(pair.run(0, "ip", "-j", "address", "show", "dev", "xt0"))[0]
    assert (item["ifindex"], item["mtu"]) == (index, 1400)


def test_a_change_by_others_is_seen_and_put_right(pair: Pair) -> None:
    pair.module(0, declared("vxlan"))
    pair.run(0, "ip", "link", "set", "dev", "xt0", "down", "mtu", "1300")
    answer = pair.module(0, declared("vxlan"))
    assert answer["actions"] == [{"verb": "change", "name": "xt0", "why": ["mtu", "up"]}]


# The kernel deletes a device of L2TP with its session only.
DELETED = {"l2tp": ("l2tp", "del", "session", "tunnel_id", "42", "session_id", "42")}


@pytest.mark.parametrize("sort", ["fou", "gue", "l2tp"])
def test_a_link_whose_device_somebody_deleted_is_made_and_taken_back(pair: Pair, sort: str) -> None:
    why = pair.missing(sort)
    if why is not None:
        pytest.skip(f"{sort}: {why}")
    for state, verbs in (("present", ["delete", "add"]), ("absent", ["delete"])):
        assert "error" not in pair.module(0, declared(sort))
        pair.run(0, "ip", *DELETED.get(sort, ("link", "delete", "dev", "xt0")))
        answer = pair.module(0, declared(sort), state=state)
        assert [action["verb"] for action in answer["actions"]] == verbs
    assert "error" not in pair.module(0, declared(sort))


def test_a_device_of_others_is_in_the_way(pair: Pair) -> None:
    pair.run(0, "ip", "link", "add", "xt0", "type", "bridge")
    assert pair.module(0, declared("vxlan"))["error"] == (
        "device xt0 is there, and this role has not made it; wanted a name of its own"
    )
    pair.module(0, state="absent")
    assert pair.devices(0) == ["xt0"]


def test_what_fails_half_way_is_undone(pair: Pair) -> None:
    pair.module(0, declared("vxlan"))
    # The kernel has one VXLAN device a VNI and port: the second link is refused.
    again = declared("vxlan", name="xt1", inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])
    before = json.loads(pair.run(0, "ip", "-d", "-j", "address", "show", "dev", "xt0"))[0]
    answer = pair.module(0, declared("vxlan", mtu=1300), again)
    assert "ip link add name xt1 type vxlan id 42" in answer["error"]
    assert answer["error"].endswith("; undone")
    assert pair.devices(0) == ["xt0"]
    after = json.loads(pair.run(0, "ip", "-d", "-j", "address", "show", "dev", "xt0"))[0]
    assert after["mtu"] == before["mtu"] == 1450
    assert pair.module(0, declared("vxlan"))["changed"] is False


def test_a_link_that_is_replaced_comes_back_when_the_new_one_fails(pair: Pair) -> None:
    pair.module(0, declared("vxlan"))
    other = declared("vxlan", id=43)
    again = declared("vxlan", name="xt1", id=43, inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])
    assert pair.module(0, other, again)["error"].endswith("; undone")
    assert pair.module(0, declared("vxlan"))["changed"] is False


def test_a_wrong_mtu_is_refused_before_anything_is_done(pair: Pair) -> None:
    assert pair.module(0, declared("vxlan", mtu=1500))["error"] == (
        "xt0.mtu: 1500, wanted at most 1450: 1500 of the path less 50 (IPv4 20, UDP 8, VXLAN 8, "
        "Ethernet 14)"
    )
    assert pair.devices(0) == []


def test_the_management_device_is_left_alone(pair: Pair) -> None:
    over = pair.module(0, declared("vxlan"), management=["198.18.0.9"])
    assert over["error"] == (
        "xt0: runs over wire, the management device (198.18.0.9 is reached through it); wanted a "
        "device of a test link"
    )
    named = pair.module(0, offload_devices=["wire"], offloads="off", management=["198.18.0.9"])
    assert named["error"] == "offload_devices: wire is the management device; wanted another one"
    pair.run(0, "ip", "link", "add", "manage", "type", "veth", "peer", "name", "far")
    pair.run(0, "ip", "address", "add", "203.0.113.1/24", "dev", "manage")
    pair.run(0, "ip", "link", "set", "dev", "manage", "up")
    inside = declared("vxlan", inner_ipv4=["203.0.113.64/26", "203.0.113.65/26"])
    assert pair.module(0, inside, management=["203.0.113.70"])["error"] == (
        "xt0: 203.0.113.64/26 would take the way to 203.0.113.70, which manages this host through "
        "manage; wanted another network inside"
    )


def test_neither_end_here_is_an_error(pair: Pair) -> None:
    answer = pair.module(0, declared("vxlan", ends=["192.0.2.1", "192.0.2.2"]))
    assert answer["error"] == (
        "xt0.ends: 192.0.2.1 and 192.0.2.2, neither is an address of this host; wanted exactly one"
    )
    assert ENDS4[0] not in answer["error"]


def test_the_commands_by_hand_make_the_same_devices(pair: Pair) -> None:
    wanted = declared("vxlan", inner_ipv6=INNER6, ttl="64", df="set", csum=False)
    by_module = pair.module(0, wanted)
    commands = pair.module(1, wanted, check=True)["by_hand"]
    for line in commands:
        pair.run(1, "/bin/sh", "-c", line)
    made = [
        json.loads(pair.run(end, "ip", "-d", "-j", "address", "show", "dev", "xt0"))[0]
        for end in (0, 1)
    ]
    one, other = (item["linkinfo"]["info_data"] for item in made)
    assert {**one, "local": "", "remote": ""} == {**other, "local": "", "remote": ""}
    assert (one["local"], one["remote"]) == (other["remote"], other["local"])
    assert [item["mtu"] for item in made] == [by_module["links"][0]["mtu"]] * 2

"""STT links between the lab's guests, for the tests beside this file."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lab_plays import Lab

ENDS = {"client": ("198.18.0.1", "198.18.0.2"), "server": ("198.18.0.2", "198.18.0.1")}
ENDS6 = {
    "client": ("2001:db8:18::1", "2001:db8:18::2"),
    "server": ("2001:db8:18::2", "2001:db8:18::1"),
}
INNER = {"client": "10.9.0.1", "server": "10.9.0.2"}
MAC = {"client": "02:00:00:00:09:01", "server": "02:00:00:00:09:02"}
# What a kernel says when something is wrong with it.
TROUBLE = re.compile(
    r"WARNING:|BUG:|Oops|Call Trace|general protection|refcount|UBSAN|KASAN|Slab|objects remaining"
    r"|skb_warn|possible circular|unregister_netdevice: waiting"
)


def add_link(
    guests: Lab, host: str, ends: dict[str, tuple[str, str]] = ENDS, more: str = ""
) -> None:
    guests.ssh(
        host,
        f"ip link add stt1 address {MAC[host]} type stt key 1 remote {ends[host][1]} {more}"
        f" && ip address add {INNER[host]}/24 dev stt1 && ip link set stt1 up",
    )


@contextmanager
def links(guests: Lab, ends: dict[str, tuple[str, str]] = ENDS, more: str = "") -> Iterator[None]:
    """A link on each guest for as long as the block lasts."""
    try:
        for host in ENDS:
            add_link(guests, host, ends, more)
        yield
    finally:
        for host in ENDS:
            guests.ssh(host, "ip link delete stt1 2>&- || true")


def counters(guests: Lab, host: str, device: str = "stt1") -> dict[str, int]:
    """``ethtool -S`` of a link."""
    pairs = re.findall(r"^\s+(\S+): (\d+)$", guests.ssh(host, f"ethtool -S {device}"), re.MULTILINE)
    assert pairs
    return {name: int(value) for name, value in pairs}


@contextmanager
def process(guests: Lab, host: str, command: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs on a guest for as long as the block lasts (its connection holds it)."""
    running = subprocess.Popen(
        guests.ssh_argv(host, f"exec 3<&0; {command} & read -r _ <&3; kill $!"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.communicate("end\n", timeout=60)


def wait_until_empty(guests: Lab, host: str) -> dict[str, int]:
    """The counters once no segment waits any more."""
    deadline = time.monotonic() + 20
    while True:
        found = counters(guests, host)
        if not found["netns_reassembly_frames"]:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.5)

"""The parts of a forwarding test that a namespace of this machine can show. Needs no lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("namespace_trial.py")
PAIR = "; ".join(
    [
        "ip link add name left type veth peer name right",
        "ip link set left up",
        "ip link set right up",
        # The kernel checks link-local addresses for a second, and shows that it does.
        "echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad",
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
    ]
)
STATE = "; ".join(
    [
        "ip -oneline address | sort",
        "ip route",
        "ip neighbour show nud permanent",
        "cat /proc/sys/net/ipv4/conf/*/forwarding",
    ]
)


def inside(*words):
    """What a shell prints in a namespace of its own that has a veth pair."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(
        ["unshare", *rights, "--net", "sh", "-ec", f"{PAIR} 2>&1; {words[0]}", "sh", *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "veth" in done.stdout and done.returncode != 0:
        pytest.skip(f"this machine cannot make a pair of devices: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_packet_socket_counts_exactly_the_stream():
    found = json.loads(inside('exec "$1" "$2" count', sys.executable, str(SCRIPT)))
    # The kernel forgets what was read; the filter does not.
    assert found == {"matched": 10, "again": 10, "removed": True}


def test_the_first_frame_of_a_stream_is_seen_when_it_arrives():
    found = json.loads(inside('exec "$1" "$2" follow', sys.executable, str(SCRIPT)))
    # Not the frame of another stream, which was sent 0.3 s before.
    assert found["after"] > -0.1
    assert found["never"] is None


def test_a_device_under_test_is_made_once_and_put_back(tmp_path):
    script = f'{STATE}; echo =; "$1" "$2" forwarding "$3"; echo =; {STATE}'
    out = inside(script, sys.executable, str(SCRIPT), str(tmp_path / "record.json"))
    before, found, after = (part.strip() for part in out.split("=\n"))
    steps = json.loads(found)
    assert "address right 198.19.0.2/24" in steps["first"]
    assert "net.ipv4.conf.left.forwarding" in steps["first"]
    assert steps["second"] == []
    assert "198.18.0.1 dev left lladdr 02:00:00:00:01:01 PERMANENT" in steps["neighbours"]
    # Last made, first put back.
    assert steps["last"] == steps["first"][::-1]
    assert after == before
    assert not (tmp_path / "record.json").exists()

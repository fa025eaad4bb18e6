"""SSH into the lab: a client key and pinned host keys per lab, and one client configuration."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .errors import LabError

CONNECT_TIMEOUT_S = 10


def make_key(path: Path, comment: str) -> str:
    """An ed25519 key pair at ``path`` unless it is there; returns the public line.

    The public half is written last: without it, the private one is of a start that was cut off.
    """
    public = path.with_name(path.name + ".pub")
    if not public.exists() or not public.read_text():
        path.unlink(missing_ok=True)
        public.unlink(missing_ok=True)
        done = subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or f"ended with {done.returncode}"
            raise LabError(f"SSH key {path}: ssh-keygen: {said}")
    return public.read_text()


def client_config(
    known_hosts: Path, identity: Path, user: str, ports: dict[str, int], control: Path
) -> str:
    """The text of ``ssh_config``: each node by name, host keys checked against the lab's own."""
    lines = []
    for node, port in ports.items():
        lines += [
            f"Host {node}",
            "  HostName 127.0.0.1",
            f"  Port {port}",
            f"  HostKeyAlias crossover-{node}",
        ]
    lines += [
        "Host *",
        f"  User {user}",
        f"  IdentityFile {identity}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {known_hosts}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  PasswordAuthentication no",
        "  BatchMode yes",
        f"  ConnectTimeout {CONNECT_TIMEOUT_S}",
        f"  ControlPath {control}/ssh-%n",
        "  LogLevel ERROR",
    ]
    return "\n".join(lines) + "\n"


def run(
    config: Path, node: str, command: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command on a node over a new connection."""
    argv = ["ssh", "-F", str(config), "-o", "ControlPath=none", node, command]
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        env={**os.environ, "LC_ALL": "C"},
    )


def wait(config: Path, node: str, command: Callable[[], str], timeout_s: float) -> str:
    """Try until a command succeeds on the node; returns what it printed. LabError on time-out.

    ``command`` makes the command line of each attempt, as it may have to say the time.
    """
    deadline = time.monotonic() + timeout_s
    last = "no answer"
    while time.monotonic() < deadline:
        try:
            done = run(config, node, command(), max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            break
        if done.returncode == 0:
            return done.stdout
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no answer"
        time.sleep(0.1)
    raise LabError(f"node {node}: no SSH login within {timeout_s:.0f} s: {last}")

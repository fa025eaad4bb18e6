# SPDX-License-Identifier: GPL-2.0-or-later
"""How this process is managed: the peer of its SSH connection, and what SELinux lets SSH receive.

sudo clears the environment, and a resident interpreter inherits another one, so the connection
is looked for in the processes above this one as well.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

_VARIABLE = b"SSH_CONNECTION="


@dataclass(frozen=True)
class Ancestry:
    """``peer``: the address that manages this host over SSH, None without SSH.

    ``contexts``: the SELinux contexts of the SSH daemon's processes above this one.
    """

    peer: Optional[str]
    contexts: Tuple[str, ...]


def find_ancestry(proc: Path = Path("/proc"), pid: Optional[int] = None) -> Ancestry:
    """Walk from a process (this one) up to the first."""
    peer: Optional[str] = None
    contexts: List[str] = []
    current = os.getpid() if pid is None else pid
    while current > 1:
        folder = proc / str(current)
        if peer is None:
            peer = ssh_peer(_read(folder / "environ"))
        if _read(folder / "comm").strip().startswith(b"sshd"):
            context = _read(folder / "attr" / "current").rstrip(b"\0\n").decode()
            if context and context not in contexts:
                contexts.append(context)
        current = _parent(_read(folder / "status"))
    return Ancestry(peer, tuple(contexts))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # not ours to read, or gone


def _parent(status: bytes) -> int:
    for line in status.splitlines():
        if line.startswith(b"PPid:"):
            return int(line.split()[1])
    return 0


def ssh_peer(environment: bytes) -> Optional[str]:
    """The client's address in the environment of a process (``/proc/PID/environ``)."""
    for entry in environment.split(b"\0"):
        if entry.startswith(_VARIABLE):
            words = entry[len(_VARIABLE) :].decode(errors="replace").split()
            return plain_address(words[0]) if words else None
    return None


def plain_address(text: str) -> Optional[str]:
    """An address without scope, an IPv4 one also where it is written as IPv6; else None."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def refused_contexts(
    contexts: Tuple[str, ...], selinux: Path = Path("/sys/fs/selinux")
) -> Tuple[str, ...]:
    """Those contexts that may not receive from unlabelled peers under the loaded policy.

    The kernel asks for this permission (class peer, recv) as soon as any label is configured.
    Empty when SELinux is off or permissive.
    """
    if _read(selinux / "enforce").strip() != b"1":
        return ()
    unlabelled = _read(selinux / "initial_contexts" / "unlabeled").rstrip(b"\0\n").decode()
    index = _read(selinux / "class" / "peer" / "index").strip().decode()
    bit = _read(selinux / "class" / "peer" / "perms" / "recv").strip().decode()
    if not (unlabelled and index and bit):
        return ()  # a policy without the class does not ask
    return tuple(
        context
        for context in contexts
        if not _allowed(selinux / "access", context, unlabelled, index) >> (int(bit) - 1) & 1
    )


def _allowed(access: Path, source: str, target: str, index: str) -> int:
    """The bits of permissions that the kernel's policy grants (selinuxfs' ``access``)."""
    descriptor = os.open(access, os.O_RDWR)
    try:
        os.write(descriptor, f"{source} {target} {index}".encode())
        answer = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    return int(answer.split()[0], 16)

"""Who listens where: ``/proc/net/tcp`` and ``tcp6`` (Documentation/networking/proc_net_tcp.rst)."""

from __future__ import annotations

import ipaddress
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Optional, Tuple

from .errors import HostError
from .process import PROC

_LISTEN = "0A"


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket."""

    address: str
    port: int
    inode: int

    def takes(self, address: str) -> bool:
        """Whether a socket bound to ``address`` and the same port would get in its way.

        A socket on ``::`` takes IPv4 too unless it is IPV6_ONLY, which /proc does not show.
        """
        mine, other = ipaddress.ip_address(self.address), ipaddress.ip_address(address)
        if mine == other:
            return True
        if mine.version == other.version:
            return mine.is_unspecified or other.is_unspecified
        return (mine.version == 6 and mine.is_unspecified) or (
            other.version == 6 and other.is_unspecified
        )


def decode_address(text: str, byteorder: str = sys.byteorder) -> str:
    """An address as the kernel prints it: words of 32 bits, each in the machine's byte order."""
    raw = bytes.fromhex(text)
    if len(raw) not in (4, 16):
        raise HostError(f"/proc/net/tcp: found address {text!r}; wanted 8 or 32 hexadecimal digits")
    if byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def parse(text: str, byteorder: str = sys.byteorder) -> Tuple[Listener, ...]:
    """Listening sockets of a table (or of two tables, one after the other)."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 10 or words[3] != _LISTEN:
            continue
        address, _colon, port = words[1].partition(":")
        found.append(Listener(decode_address(address, byteorder), int(port, 16), int(words[9])))
    return tuple(found)


def read(pid: Optional[int] = None, proc: Path = PROC) -> Tuple[Listener, ...]:
    """Listeners in the network namespace of this process, or of another."""
    texts = []
    for name in ("tcp", "tcp6"):
        path = proc / (str(pid) if pid else "self") / "net" / name
        try:
            texts.append(path.read_text())
        except FileNotFoundError:
            continue  # a kernel without IPv6
    return parse("\n".join(texts))


def owner(inode: int, pids: Optional[Iterable[int]] = None, proc: Path = PROC) -> Optional[int]:
    """The lowest process that holds the socket: among ``pids``, or of all that may be looked at."""
    wanted = f"socket:[{inode}]"
    numbers = (
        sorted(pids)
        if pids is not None
        else sorted(int(item.name) for item in proc.iterdir() if item.name.isdecimal())
    )
    for pid in numbers:
        folder = proc / str(pid) / "fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # ended meanwhile, or not ours to look at
        for name in names:
            try:
                if os.readlink(folder / name) == wanted:
                    return pid
            except OSError:
                continue
    return None


def parse_dropped(text: str) -> int:
    """``TcpExt: ListenDrops`` of ``/proc/net/netstat``: a line of names, then one of values."""
    names: Tuple[str, ...] = ()
    for line in text.splitlines():
        words = tuple(line.split())
        if len(words) == len(names) and words[:1] == names[:1] and "ListenDrops" in names:
            return int(words[names.index("ListenDrops")])
        names = words
    return 0


def dropped(path: Path = Path("/proc/net/netstat")) -> int:
    """Connections that this host's listening sockets dropped since the boot."""
    return parse_dropped(path.read_text())

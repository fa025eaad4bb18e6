"""netserver processes that this collection started: find, start, stop; never by name.

Each is the leader of a session of its own, so that stopping it ends the children that it made for
tests. Its pid and start time stand in a file: a pid alone may be somebody else's by now.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import listeners, process, record
from .errors import BusyError, HostError, NotInstalledError
from .run import environment, output

FOLDER = record.RUN / "netserver"
DISTRIBUTION_UNIT = "netperf.service"
POLL_S = 0.02


@dataclass(frozen=True)
class Wish:
    """A netserver on one address. ``runcon`` holds the options that give it its label."""

    address: str
    port: int
    runcon: Tuple[str, ...] = ()
    netns: str = ""

    @property
    def argv(self) -> List[str]:
        """The command: stays in the foreground, writes no debug file."""
        family = ipaddress.ip_address(self.address).version
        argv = ["netserver", "-D", "-N", "-p", str(self.port), "-L", f"{self.address},{family}"]
        if self.runcon:
            argv = ["runcon", *self.runcon, *argv]
        if self.netns:
            # `ip netns exec` would hide the SELinux file system from runcon.
            argv = ["nsenter", f"--net=/run/netns/{self.netns}", *argv]
        return argv

    @property
    def name(self) -> str:
        """A file name for it."""
        return "-".join(filter(None, (self.netns, self.address.replace(":", "_"), str(self.port))))


@dataclass(frozen=True)
class Server:
    """A running netserver of ours."""

    address: str
    port: int
    pid: int
    start_ticks: int
    argv: Tuple[str, ...]
    netns: str = ""
    context: Optional[str] = None

    def as_dict(self) -> Dict[str, Any]:
        """For Ansible and for the pid file."""
        return {**asdict(self), "argv": list(self.argv)}


def wish(address: str, port: int, runcon: Tuple[str, ...] = (), netns: str = "") -> Wish:
    """Check and normalise. HostError on an address that is none or a port out of range."""
    try:
        plain = str(ipaddress.ip_address(address))
    except ValueError:
        raise HostError(f"netserver address: found {address!r}; wanted an IP address") from None
    if not 0 < port < 65536:
        raise HostError(f"netserver port: found {port}; wanted 1 to 65535")
    if "/" in netns or netns in (".", ".."):
        raise HostError(f"netserver netns: found {netns!r}; wanted the name of a namespace")
    return Wish(plain, port, runcon, netns)


def recorded(folder: Path = FOLDER) -> Dict[Path, Server]:
    """What the pid files of this boot say, whether it still runs or not."""
    found: Dict[Path, Server] = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        data = record.load(path)
        if data is None or data.get("boot_id") != record.boot_id():
            continue
        try:
            found[path] = Server(
                address=data["address"],
                port=data["port"],
                pid=data["pid"],
                start_ticks=data["start_ticks"],
                argv=tuple(data["argv"]),
                netns=data["netns"],
                context=process.label(data["pid"]),
            )
        except KeyError as error:
            raise HostError(f"{path}: found no {error}; wanted a netserver's pid file") from None
    return found


def runs(server: Server) -> bool:
    """Whether the process is the one that was started then."""
    found = process.stat(server.pid)
    return found is not None and found.alive and found.start_ticks == server.start_ticks


def listening(server: Server) -> bool:
    """Whether it holds a listening socket on its address and port."""
    return any(
        found.address == server.address
        and found.port == server.port
        and listeners.owner(found.inode, [server.pid]) is not None
        for found in listeners.read(server.pid)
    )


def in_the_way(wanted: Wish, ours: Dict[Path, Server]) -> Optional[str]:
    """Who else listens there, as a sentence for people; None when the port is free."""
    for found in _namespace_listeners(wanted.netns):
        if found.port != wanted.port or not found.takes(wanted.address):
            continue
        pid = listeners.owner(found.inode)
        if any(
            pid in process.session_members(server.pid, server.start_ticks)
            for server in ours.values()
        ):
            continue
        where = f"{found.address} port {found.port}"
        if pid is None:
            return f"{where} is taken by a process that cannot be seen from here"
        unit = process.unit(pid)
        text = f"{where} is taken by process {pid} ({process.command(pid)})"
        if unit == DISTRIBUTION_UNIT:
            return (
                f"{text}, started by the distribution's {unit}; "
                f"remedy: systemctl mask --now {unit}, which the role bench_host does"
            )
        return f"{text}{f' of {unit}' if unit else ''}; it is not ours and is left alone"
    return None


def _namespace_listeners(netns: str) -> Tuple[listeners.Listener, ...]:
    if not netns:
        return listeners.read()
    argv = ["nsenter", f"--net=/run/netns/{netns}", "cat", "/proc/net/tcp", "/proc/net/tcp6"]
    return listeners.parse(output(argv))


def start(wanted: Wish, timeout_s: float, folder: Path = FOLDER) -> Server:
    """Start it and wait until it listens. HostError with its own words when it does not."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    log = folder / f"{wanted.name}.log"
    pid = _spawn(wanted.argv, log)
    found = process.stat(pid)
    server = Server(
        address=wanted.address,
        port=wanted.port,
        pid=pid,
        start_ticks=found.start_ticks if found else 0,
        argv=tuple(wanted.argv),
        netns=wanted.netns,
    )
    path = folder / f"{wanted.name}.json"
    record.save(path, {"boot_id": record.boot_id(), **server.as_dict()})
    deadline = time.monotonic() + timeout_s
    while not listening(server):
        code = _exit_code(pid)
        if code is not None or time.monotonic() > deadline:
            words = log.read_text(errors="replace").strip() or "no word from it"
            stop(server, path, timeout_s)
            happened = (
                f"listens not within {timeout_s:g} s" if code is None else f"ended with {code}"
            )
            raise HostError(
                f"netserver on {wanted.address} port {wanted.port}: {happened}: {words} "
                f"(command: {' '.join(wanted.argv)})"
            )
        time.sleep(POLL_S)
    return Server(**{**asdict(server), "context": process.label(pid)})


def _spawn(argv: Sequence[str], log: Path) -> int:
    """Start a program as the leader of a new session; nothing waits for it. Returns its number."""
    variables = environment()
    program = shutil.which(argv[0], path=variables["PATH"])
    if program is None:
        raise NotInstalledError(f"{argv[0]}: not installed on this host")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(program, list(argv), variables, file_actions=actions, setsid=True)


def _exit_code(pid: int) -> Optional[int]:
    """How a child of ours ended (a signal is negative); None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def stop(server: Server, path: Path, timeout_s: float) -> None:
    """End it with the children that it made for tests and wait until nobody is left.

    HostError when a process survives SIGKILL (it hangs in the kernel).
    """
    if runs(server) or process.session_members(server.pid, server.start_ticks):
        _end(server, timeout_s)
    path.unlink(missing_ok=True)
    path.with_suffix(".log").unlink(missing_ok=True)


def _end(server: Server, timeout_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            members = process.session_members(server.pid, server.start_ticks)
            if not members:
                _reap(server.pid)
                return
            for pid in members:
                _signal(pid, number)
            time.sleep(POLL_S)
    raise HostError(
        f"netserver on {server.address} port {server.port}: process "
        f"{', '.join(map(str, members))} survives SIGKILL"
    )


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it ended between the look and the signal
        os.kill(pid, number)


def _reap(pid: int) -> None:
    """Under a resident interpreter the server is a child of ours and would stay a zombie."""
    with suppress(ChildProcessError):  # somebody else's child
        os.waitpid(pid, os.WNOHANG)


def wait_free(server: Server, timeout_s: float) -> None:
    """Wait until nobody listens on its address and port. BusyError that names who does."""
    deadline = time.monotonic() + timeout_s
    wanted = Wish(server.address, server.port, (), server.netns)
    while True:
        taken = in_the_way(wanted, {})
        if taken is None:
            return
        if time.monotonic() > deadline:
            raise BusyError(f"netserver stopped, but {taken}")
        time.sleep(POLL_S)

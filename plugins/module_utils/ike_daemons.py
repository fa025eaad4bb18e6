# SPDX-License-Identifier: GPL-2.0-or-later
"""The IKE daemons as this collection runs them: in a unit and a folder of their own, in memory.

Nothing under /etc is written, so that a daemon that the host's owner configured is not touched;
while one runs, ours cannot, and says so.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Dict, List, Optional, Tuple, Type

from . import ike_commands
from .host import process, shared
from .host.errors import HostError
from .host.run import run
from .ike_commands import STOP_LIMIT_S, UNIT
from .ike_config import FOLDERS
from .ipsec_host import IpsecError
from .kernel_state.errors import redact
from .labelled import selinux_active

START_LIMIT_S = 120.0
# Lines of a daemon's log that say what went wrong, for people.
_TELLING = re.compile(
    r"error|fail|reject|refus|unacceptable|no_proposal|no acceptable|denied|timeout|unable|cannot",
    re.I,
)
# Which daemon runs, with which configuration.
RECORD = Path("/run/crossover/ike.json")


def _output(argv: Sequence[str], timeout_s: float = 60) -> Tuple[int, str]:
    try:
        code, out, err = run(argv, timeout_s)
    except HostError as error:
        raise IpsecError(str(error)) from error
    return code, redact(out + err)


def write_private(path: Path, text: str) -> None:
    """A file that only root reads, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)


def unit_runs() -> bool:
    """Whether our unit is active."""
    return _output(["systemctl", "is-active", "--quiet", UNIT])[0] == 0


def foreign(names: Sequence[str]) -> Optional[str]:
    """A running process of these names that is not ours, as ``name (pid)``; else None."""
    for item in process.every():
        words = process.command(item.pid).split()
        name = os.path.basename(words[0]) if words else ""
        if name in names and process.unit(item.pid) != UNIT:
            return f"{name} (pid {item.pid}, {process.unit(item.pid) or 'no unit'})"
    return None


class Daemon:
    """What both daemons share. ``folder`` holds everything of ours; it is in memory."""

    name = ""
    packages = ""
    programs: Tuple[str, ...] = ()
    processes: Tuple[str, ...] = ()
    folder = Path()

    def lacking(self) -> Optional[str]:
        """Why this host has not the daemon, naming what it has instead; None if it has it."""
        missing = [item for item in self.programs if not os.access(item, os.X_OK)]
        if not missing:
            return None
        others = ", ".join(
            kind.name
            for kind in DAEMONS.values()
            if kind.name != self.name and all(os.access(item, os.X_OK) for item in kind.programs)
        )
        instead = f", which has {others}" if others else ", which has no other IKE daemon either"
        return (
            f"{self.name}: {', '.join(missing)} not on this host{instead}; wanted {self.packages}"
        )

    def preflight(self) -> None:
        """Raises :class:`IpsecError` where the daemon is not installed or another one runs."""
        lacking = self.lacking()
        if lacking:
            raise IpsecError(lacking)
        other = foreign(("pluto", "charon", "charon-systemd"))
        if other:
            raise IpsecError(
                f"{self.name}: {other} runs already and would share the kernel's policies; wanted "
                "no other IKE daemon"
            )

    def start(self, config: str, secrets: str) -> None:
        """Start the daemon with these connections; the secrets' file is gone afterwards."""
        raise NotImplementedError

    def initiate(self, names: Sequence[str]) -> str:
        """Ask the peer for SAs; what the daemon said."""
        raise NotImplementedError

    def log(self) -> List[str]:
        """The daemon's log so far."""
        raise NotImplementedError

    def complaints(self, most: int = 6) -> List[str]:
        """The last lines of the log that tell of trouble."""
        return [line for line in self.log() if _TELLING.search(line)][-most:]

    def stop(self) -> None:
        """Delete the connections with the peer, end the daemon and remove its folder."""
        if unit_runs():
            _output(["systemctl", "stop", UNIT], STOP_LIMIT_S + 30)
        _output(["systemctl", "reset-failed", UNIT])
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_folder(self) -> None:
        """The folder, for root only, with the type that SELinux's policy has for it: whoever makes
        it first would leave another one where no package has."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if selinux_active():
            code, said = _output(["restorecon", "-R", str(self.folder.parent)])
            if code:
                raise IpsecError(f"{self.name}: restorecon {self.folder.parent}: {said.strip()}")

    def _run_unit(self, argv: Sequence[str]) -> None:
        code, said = _output(argv, START_LIMIT_S)
        if code:
            lines = self.complaints() or said.strip().splitlines()[-1:]
            raise IpsecError(f"{self.name}: did not start: {'; '.join(lines)}")

    def _await(self, ready: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + START_LIMIT_S
        while not ready():
            if time.monotonic() > limit or not unit_runs():
                lines = "; ".join(self.complaints()) or "nothing said"
                raise IpsecError(f"{self.name}: {what}: {lines}")
            time.sleep(0.2)


class Libreswan(Daemon):
    """pluto. Its folder is under /run/pluto, whose type it may read and write under SELinux."""

    name = "libreswan"
    packages = "the package libreswan"
    programs = ("/usr/libexec/ipsec/pluto", "/usr/libexec/ipsec/whack", "/usr/sbin/ipsec")
    processes = ("pluto",)
    folder = Path(FOLDERS["libreswan"])

    def start(self, config: str, secrets: str) -> None:
        """Start pluto and wait until its addconn has loaded connections and secrets."""
        wanted = config.count("\nconn ")
        self._make_folder()
        (self.folder / "nss").mkdir(mode=0o700, exist_ok=True)
        write_private(self.folder / "ipsec.conf", config)
        write_private(self.folder / "secrets", secrets)
        try:
            code, said = _output(ike_commands.INITNSS)
            if code:
                raise IpsecError(f"libreswan: ipsec initnss: {said.strip()}")
            self._run_unit(ike_commands.PLUTO)
            self._await(lambda: self._loaded(wanted), f"{wanted} connections were not loaded")
        finally:
            # pluto holds the key in memory from here on.
            (self.folder / "secrets").unlink(missing_ok=True)

    def _loaded(self, wanted: int) -> bool:
        text = "\n".join(self.log())
        return (
            text.count("oriented IKEv2 connection") + text.count("added IKEv2 connection")
        ) >= wanted and "secrets" in text.rpartition("loading secrets from")[2]

    def initiate(self, names: Sequence[str]) -> str:
        """``whack --initiate`` without waiting; libreswan goes on trying by itself."""
        said = []
        for name in names:
            said.append(_output(ike_commands.initiate("libreswan", name))[1])
        return "".join(said)

    def log(self) -> List[str]:
        """pluto's log file."""
        try:
            text = (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return []
        return [redact(line) for line in text.splitlines()]


class Strongswan(Daemon):
    """charon-systemd with swanctl, unlabelled."""

    name = "strongSwan"
    packages = (
        "the packages charon-systemd and strongswan-swanctl (as Debian builds them, without "
        "SELinux labels)"
    )
    programs = ("/usr/sbin/charon-systemd", "/usr/sbin/swanctl")
    processes = ("charon-systemd",)
    folder = Path(FOLDERS["strongswan"])

    def start(self, config: str, secrets: str) -> None:
        """Start charon with its own configuration and load connections and secrets."""
        self._make_folder()
        write_private(self.folder / "strongswan.conf", ike_commands.CHARON_SETTINGS)
        path = self.folder / "swanctl.conf"
        write_private(path, config + secrets)
        try:
            self._run_unit(ike_commands.CHARON)
            code, said = _output(ike_commands.LOAD)
            if code:
                raise IpsecError(f"strongSwan: swanctl --load-all: {said.strip()}")
        finally:
            write_private(path, config)

    def initiate(self, names: Sequence[str]) -> str:
        """``swanctl --initiate``; the daemon goes on trying by itself."""
        said = []
        for name in names:
            said.append(_output(ike_commands.initiate("strongswan", name))[1])
        return "".join(said)

    def log(self) -> List[str]:
        """charon's log file."""
        try:
            text = (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return []
        return [redact(line) for line in text.splitlines()]


DAEMONS: Dict[str, Type[Daemon]] = {"libreswan": Libreswan, "strongswan": Strongswan}


def missing(names: Sequence[str]) -> Dict[str, str]:
    """Those daemons that this host has not, each with the reason."""
    found = {name: shared.refusal(f"keying {name}") or DAEMONS[name]().lacking() for name in names}
    return {name: reason for name, reason in found.items() if reason}

# SPDX-License-Identifier: GPL-2.0-or-later
"""The effects of the cipso module: run netlabelctl, read and write sysctls and the record."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .cipso_declared import SYSCTLS
from .cipso_items import (
    DELETE_TRIES,
    MISSING_TEXT,
    Items,
    RecordError,
    canonical,
    is_doi_deletion,
    items_of,
    load_record,
)
from .guard import GUARD_FOLDER, SYSTEMD
from .kernel_state.errors import StateError
from .kernel_state.failures import classify_netlabelctl
from .kernel_state.netlabel import Doi, parse_doi, parse_doi_list, parse_unlabelled
from .kernel_state.netlabel_map import parse_map
from .netlabel_plan import Argv, NetlabelState

COMMAND_LIMIT_S = 20
SEARCH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


class CipsoError(Exception):
    """The host refused; the text says which command and why."""


@dataclass(frozen=True)
class Finished:
    """A finished command."""

    code: int
    out: str
    err: str


Runner = Callable[[Sequence[str]], Finished]


def run(argv: Sequence[str]) -> Finished:
    """Run a command without a shell, in the C locale, for at most :data:`COMMAND_LIMIT_S`."""
    program = shutil.which(argv[0], path=SEARCH)
    if program is None:
        raise CipsoError(f"{argv[0]}: not installed; wanted the package netlabel-tools")
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT_S,
            env={"PATH": SEARCH, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise CipsoError(
            f"{_short(argv)}: no end within {COMMAND_LIMIT_S} s; wanted an answer of the kernel"
        ) from None
    return Finished(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Host:
    """Where things are on a host, and what runs its commands.

    The record is in memory like the kernel's configuration, so that a reboot forgets both.
    """

    runner: Runner = run
    record: Path = Path("/run/crossover/cipso.json")
    sysctls: Path = Path("/proc/sys/net/ipv4")
    guards: Path = GUARD_FOLDER
    systemd: Path = SYSTEMD


def _short(argv: Iterable[str]) -> str:
    text = " ".join(argv)
    return text if len(text) <= 120 else text[:117] + "..."


def refusal(argv: Sequence[str], done: Finished) -> CipsoError:
    """A failed command as an error for people."""
    lines = [line for line in (done.err + done.out).splitlines() if line.strip()]
    for line in lines:
        known = classify_netlabelctl(line)
        if known is not None and known.error_class == "netlabel_unavailable":
            return CipsoError(
                "CIPSO needs the initial network namespace of a kernel with NetLabel: real hosts "
                f"or VMs (netlabelctl: {known.text})"
            )
        if known is not None:
            hint = f" ({known.hint})" if known.hint else ""
            return CipsoError(f"{_short(argv)}: {known.text}{hint}")
    said = lines[-1].strip() if lines else "nothing said"
    return CipsoError(f"{_short(argv)}: exit code {done.code}, {said}")


# --- reading ----------------------------------------------------------------------------------


def _listing(argv: Sequence[str], runner: Runner) -> str:
    done = runner(argv)
    if done.code:
        raise refusal(argv, done)
    return done.out


def read_netlabel(unlabelled: bool, calipso: bool, runner: Runner) -> NetlabelState:
    """The kernel's NetLabel configuration, networks in canonical form.

    Each listing costs a process, so unlabelled handling and CALIPSO are read only when asked
    for, CALIPSO also when a mapping names it. Raises :class:`CipsoError`.
    """
    what = "cipso list"
    try:
        dois: List[Doi] = []
        for number in parse_doi_list(_listing(("netlabelctl", "cipso", "list"), runner)):
            what = f"cipso list doi:{number}"
            detail = parse_doi(_listing(("netlabelctl", "cipso", "list", f"doi:{number}"), runner))
            dois.append(Doi(number, detail.kind, detail.tags, detail.levels, detail.categories))
        what = "map list"
        maps = parse_map(_listing(("netlabelctl", "map", "list"), runner))
        if calipso or any(entry.protocol == "calipso" for entry in maps):
            what = "calipso list"
            listed = parse_doi_list(_listing(("netlabelctl", "calipso", "list"), runner))
            dois += [Doi(number, kind, protocol="calipso") for number, kind in listed.items()]
        found = None
        if unlabelled:
            what = "unlbl list"
            found = parse_unlabelled(_listing(("netlabelctl", "unlbl", "list"), runner))
    except StateError as error:
        raise CipsoError(f"netlabelctl {what}: {error}") from error
    return canonical(NetlabelState(tuple(dois), maps, found))


def read_sysctls(folder: Path) -> Dict[str, int]:
    """Those of CIPSO's parameters that this kernel has."""
    found: Dict[str, int] = {}
    for name in SYSCTLS:
        try:
            found[name] = int((folder / name).read_text())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise CipsoError(f"net.ipv4.{name}: {error}") from error
    return found


def has_netlabel(host: Host) -> bool:
    """Whether NetLabel is part of the running kernel.

    Its parameters are there only with CONFIG_NETLABEL (Linux, net/ipv4/sysctl_net_ipv4.c), but in
    the initial network namespace alone: elsewhere netlabelctl says itself why it does not work.
    """
    if (host.sysctls / "cipso_cache_enable").exists():
        return True
    try:
        return not os.path.samefile("/proc/self/ns/net", "/proc/1/ns/net")
    except OSError:
        return True


def read_items(unlabelled: bool, calipso: bool, host: Host) -> Items:
    """Everything the module manages, as it is now; nothing under a kernel without NetLabel."""
    if not has_netlabel(host):
        return {}
    netlabel = read_netlabel(unlabelled, calipso, host.runner)
    return items_of(netlabel, read_sysctls(host.sysctls))


def read_record(path: Path) -> Tuple[str, Items]:
    """The record as text (empty: none) and items. Raises :class:`CipsoError`."""
    try:
        text = path.read_text() if path.exists() else ""
        return text, load_record(text)
    except (OSError, RecordError) as error:
        raise CipsoError(f"{path}: {error}") from error


# --- writing ----------------------------------------------------------------------------------


def write_record(text: str, path: Path) -> None:
    """Replace the record as a whole; empty text removes it."""
    if not text:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.touch(mode=0o600)
    new.write_text(text)
    os.replace(new, path)


def write_sysctls(wanted: Mapping[str, int], folder: Path) -> None:
    """Write parameters. Raises :class:`CipsoError` for one that this kernel does not have."""
    for name, value in wanted.items():
        path = folder / name
        if not path.exists():
            raise CipsoError(
                f"net.ipv4.{name}: this kernel has no such parameter; wanted one with "
                "CONFIG_NETLABEL"
            )
        try:
            path.write_text(f"{value}\n")
        except OSError as error:
            raise CipsoError(f"net.ipv4.{name}: {error.strerror} when writing {value}") from error


def apply_commands(
    commands: Sequence[Argv],
    runner: Runner,
    check: Callable[[], Any],
    pause: Callable[[float], Any] = time.sleep,
) -> None:
    """Run commands in order, and stop with :class:`CipsoError` at the first that fails.

    ``check`` is called before each and may raise to stop. A deletion of what is not there is no
    failure. Deleting a DOI is tried again while its mappings go.
    """
    for argv in commands:
        check()
        for left in reversed(range(DELETE_TRIES)):
            done = runner(argv)
            if done.code == 0:
                break
            text = done.err + done.out
            if "del" in argv and MISSING_TEXT in text:
                break
            if left and is_doi_deletion(argv) and _in_use(text):
                pause(1.0)
                continue
            raise _explained(argv, done, runner)


def _in_use(text: str) -> bool:
    known = [classify_netlabelctl(line) for line in text.splitlines()]
    return any(item is not None and item.error_class == "doi_in_use" for item in known)


def _explained(argv: Argv, done: Finished, runner: Runner) -> CipsoError:
    """The refusal; for a DOI in use, with the mappings that still use it."""
    error = refusal(argv, done)
    if not (is_doi_deletion(argv) and _in_use(done.err + done.out)):
        return error
    number = int(argv[3].partition(":")[2])
    listed = runner(("netlabelctl", "map", "list"))
    users = [
        "default" if entry.domain is None else entry.domain
        for entry in (parse_map(listed.out) if listed.code == 0 else ())
        if entry.doi == number
    ]
    by = f"domains {', '.join(sorted(set(users)))}" if users else "no domain mapping that is listed"
    return CipsoError(f"{error}; used by {by}")

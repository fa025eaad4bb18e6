# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel as it is asked for, what a host runs, and what is to be done about the difference. Pure.

Reboots are counted on the host, so that a controller that is started again and again cannot reboot
it for ever.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Optional, Tuple

from .errors import HostError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]+")
# A word of a command line that a menu file and a shell take as it is.
_WORD = re.compile(r"[A-Za-z0-9_.,:=/+@%-]+")
# The word of a one-shot command line that says which attempt this boot is.
TOKEN_WORD = "crossover.boot"
ORDERED, CONFIRMED, FAILED = "ordered", "confirmed", "failed"
# There, and by itself back again.
REBOOTS_OF_A_FAILURE = 2
KEPT_ATTEMPTS = 50


@dataclass(frozen=True)
class Wanted:
    """A kernel that a host shall run. ``identity`` tells two contents of one name apart."""

    name: str
    release: Optional[str]
    config_sha256: Optional[str]
    identity: str
    package: Optional[str] = None
    version: Optional[str] = None
    append: Tuple[str, ...] = ()
    boot: Optional[int] = None  # which boot of this kernel; None: any will do


@dataclass(frozen=True)
class Attempt:
    """A reboot into a kernel that was ordered on this host, and what became of it.

    ``boot_id`` is that of the boot before; ``reboots`` what it has cost so far.
    """

    token: str
    name: str
    identity: str
    append: Tuple[str, ...]
    boot: Optional[int]
    boot_id: str
    at: float
    outcome: str = ORDERED
    reboots: int = 1
    reason: str = ""


@dataclass(frozen=True)
class Running:
    """What runs now. ``token`` is the attempt's that started it, None after an ordinary boot."""

    release: str
    config_sha256: Optional[str]
    config_source: Optional[str]
    boot_id: str
    words: Tuple[str, ...]
    token: Optional[str]


def wanted_kernel(params: Dict[str, Any]) -> Wanted:
    """The declared kernel, checked. HostError names the key."""
    name, release = params["name"], params.get("release")
    if not _NAME.fullmatch(name or ""):
        raise HostError(f"kernel name: found {name!r}; wanted letters, digits, '.', '_', '-'")
    where = f"kernel {name}"
    if release and not _RELEASE.fullmatch(release):
        raise HostError(f"{where}: release: found {release!r}; wanted what uname -r prints")
    digest = params.get("config_sha256")
    if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise HostError(f"{where}: config_sha256: found {digest!r}; wanted 64 hexadecimal digits")
    package = params.get("package")
    if package and not _PACKAGE.fullmatch(package):
        raise HostError(f"{where}: package: found {package!r}; wanted a package's name")
    for word in params.get("append") or []:
        if not _WORD.fullmatch(word) or word.partition("=")[0] in (TOKEN_WORD, "root"):
            raise HostError(
                f"{where}: append: found {word!r}; wanted a word of the kernel's command line"
                " without blanks or quotes, and none of the boot loader's own"
            )
    if not package and not release:
        raise HostError(f"{where}: release: found nothing; wanted what uname -r prints under it")
    content = {key: params.get(key) for key in ("package", "version", "content")}
    return Wanted(
        name=name,
        release=release,
        config_sha256=digest,
        identity=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16],
        package=package,
        version=params.get("version"),
        append=tuple(params.get("append") or ()),
        boot=params.get("boot"),
    )


def attempts_from(data: Sequence[Dict[str, Any]]) -> Tuple[Attempt, ...]:
    """The attempts of a record."""
    return tuple(Attempt(**{**item, "append": tuple(item["append"])}) for item in data)


def attempts_to(attempts: Sequence[Attempt]) -> List[Dict[str, Any]]:
    """The attempts for a record; the oldest are forgotten."""
    return [asdict(attempt) for attempt in attempts[-KEPT_ATTEMPTS:]]


def settled(attempts: Sequence[Attempt], running: Running) -> Tuple[Attempt, ...]:
    """The attempts with what this boot shows: one that was ordered and is not what runs has
    failed, and the host has come back by itself."""
    return tuple(
        failed(attempt, f"the host came back on {running.release}")
        if attempt.outcome == ORDERED
        and attempt.boot_id != running.boot_id
        and attempt.token != running.token
        else attempt
        for attempt in attempts
    )


def failed(attempt: Attempt, reason: str) -> Attempt:
    """The attempt as a failure, which costs the way back too."""
    return replace(attempt, outcome=FAILED, reboots=REBOOTS_OF_A_FAILURE, reason=reason)


def confirmed(attempts: Sequence[Attempt], token: str) -> Tuple[Attempt, ...]:
    """The attempts with the one of ``token`` confirmed; those of its kernel before it cost no
    more."""
    name = next(attempt.name for attempt in attempts if attempt.token == token)
    return tuple(
        replace(attempt, outcome=CONFIRMED, reboots=0)
        if attempt.token == token
        else replace(attempt, reboots=0)
        if attempt.name == name
        else attempt
        for attempt in attempts
    )


def spent(attempts: Sequence[Attempt], name: str) -> int:
    """Reboots for a kernel since one of them was last confirmed."""
    return sum(attempt.reboots for attempt in attempts if attempt.name == name)


def require_reboots(attempts: Sequence[Attempt], name: str, most: int) -> None:
    """HostError if another attempt, and the way back from it, might be more than ``most``."""
    used = spent(attempts, name)
    if used + REBOOTS_OF_A_FAILURE <= most:
        return
    reasons = [attempt.reason for attempt in attempts if attempt.name == name and attempt.reason]
    raise HostError(
        f"kernel {name}: this host was rebooted {used} times for it and none was confirmed"
        + (f" (last: {reasons[-1]})" if reasons else "")
        + f"; another attempt may take {REBOOTS_OF_A_FAILURE}, wanted at most {most} in all. Find"
        " out why, then take the kernel away (state absent) or set reboots_max higher"
    )


def attempt_of(attempts: Sequence[Attempt], token: Optional[str]) -> Optional[Attempt]:
    """The attempt that started this boot; None after an ordinary one."""
    return next((attempt for attempt in attempts if attempt.token == token), None)


def differences(wanted: Wanted, running: Running) -> List[str]:
    """What of the running kernel is not as wanted, in words; empty if all is."""
    found = []
    if wanted.release and running.release != wanted.release:
        found.append(f"uname -r prints {running.release}, wanted {wanted.release}")
    elif wanted.config_sha256 and running.config_sha256 is None:
        found.append(
            "its configuration is not to be had (/proc/config.gz, /boot/config-"
            f"{running.release}), wanted SHA-256 {wanted.config_sha256[:12]}…"
        )
    elif wanted.config_sha256 and running.config_sha256 != wanted.config_sha256:
        found.append(
            f"its configuration ({running.config_source}) has SHA-256 "
            f"{str(running.config_sha256)[:12]}…, wanted {wanted.config_sha256[:12]}…"
        )
    return found


def plan(
    state: str,
    wanted: Optional[Wanted],
    running: Running,
    attempts: Sequence[Attempt],
    added: Dict[str, Dict[str, Any]],
) -> Tuple[str, ...]:
    """What to do, in order: of ``home``, ``remove``, ``install``, ``boot``, ``confirm``.

    ``added`` is what the role has put on the host, by the kernel's name. ``home`` is a reboot into
    the default entry.
    """
    mine = attempt_of(attempts, running.token)
    if state == "home":
        return ("home",) if running.token else ()
    if state == "absent":
        names = [wanted.name] if wanted else list(added)
        steps = ["home"] if mine is None and running.token else []
        if mine is not None and mine.name in names:
            steps = ["home"]
        return (*steps, "remove") if any(name in added for name in names) else tuple(steps)
    assert wanted is not None
    steps = []
    known = added.get(wanted.name)
    here = mine is not None and mine.name == wanted.name
    if known is not None and not (known["complete"] and known["identity"] == wanted.identity):
        steps = ["home", "remove", "install"] if here else ["remove", "install"]
    elif known is None and not _suits(wanted, running, mine):
        steps = ["install"]
    if state == "installed":
        return tuple(steps)
    if steps or not _suits(wanted, running, mine):
        return (*steps, "boot")
    if mine is not None and mine.outcome == ORDERED:
        return ("confirm",)
    return ()


def _suits(wanted: Wanted, running: Running, mine: Optional[Attempt]) -> bool:
    """Whether what runs is the wanted kernel in the wanted boot."""
    if differences(wanted, running) or (wanted.release is None and mine is None):
        return False
    if mine is None:
        # An ordinary boot of the same kernel is as good, but none of its numbered ones.
        return not wanted.append and wanted.boot is None
    same = (mine.name, mine.append, mine.identity) == (wanted.name, wanted.append, wanted.identity)
    return same and wanted.boot in (None, mine.boot)

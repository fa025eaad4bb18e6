# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of booting another kernel on a host: read, install, arm, confirm, leave, remove.

A reboot lies between them, so each is a call of its own, and what one must know of another stands
in ``/var/lib/crossover/kernel_boot.json``.
"""

from __future__ import annotations

import gzip
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import boot_loader, boot_watch, grub, kernel_entry, kernel_install, record
from .errors import HostError
from .kernel_entry import TOKEN_WORD, Attempt, Running, Wanted
from .provenance import sha256
from .run import SEARCH, Run, output, run

GRUB, KEXEC, AUTO = "grub", "kexec", "auto"
REBOOT = ("systemctl", "reboot")
REBOOT_BY_KEXEC = ("systemctl", "kexec")
# An initramfs without its root device: initramfs-tools' goes by ``panic=``, dracut's would wait for
# somebody at a console (dracut.cmdline(7)).
NO_SHELL = ("rd.shell=0", "rd.emergency=reboot")
KEXEC_LOADED = "sys/kernel/kexec_loaded"


@dataclass
class Host:
    """The host that this runs on, or a folder that stands in for its root in a test."""

    root: Path = Path("/")
    run: Run = run
    slow: Run = kernel_install.slow
    added: Dict[str, Dict[str, Any]] = field(default_factory=dict)
    attempts: Tuple[Attempt, ...] = ()
    default_path: Optional[str] = None  # what a newer kernel's package must not take the place of

    @property
    def record_file(self) -> Path:
        """Where it is remembered what was added and tried."""
        return self.root / record.LIB.relative_to("/") / "kernel_boot.json"

    def load(self) -> Running:
        """Read the record and what runs, and settle what earlier attempts came to."""
        data = record.load(self.record_file) or {}
        self.added = data.get("added", {})
        self.attempts = kernel_entry.attempts_from(data.get("attempts", []))
        self.default_path = data.get("default_path")
        found = running(self.root)
        self.attempts = kernel_entry.settled(self.attempts, found)
        return found

    def save(self) -> None:
        """Write the record, on the disk before anything else happens."""
        if not (self.added or self.attempts):
            record.forget(self.record_file)
            return
        record.save(
            self.record_file,
            {
                "added": self.added,
                "attempts": kernel_entry.attempts_to(self.attempts),
                "default_path": self.default_path,
            },
        )
        os.sync()


def running(root: Path) -> Running:
    """What runs now."""
    words = boot_loader.command_line(root)
    release = (root / "proc/sys/kernel/osrelease").read_text().strip()
    own, kept = root / "proc/config.gz", root / "boot" / f"config-{release}"
    source = own if own.exists() else kept if kept.exists() else None
    digest = None
    if source is not None:
        data = source.read_bytes()
        digest = sha256(gzip.decompress(data) if source == own else data)
    return Running(
        release=release,
        config_sha256=digest,
        config_source=str(source) if source else None,
        boot_id=(root / "proc/sys/kernel/random/boot_id").read_text().strip(),
        words=words,
        token=boot_loader.word_of(words, TOKEN_WORD),
    )


def write_custom(host: Host, found: boot_loader.Grub, lines: Sequence[str] = ()) -> None:
    """Write our part of ``custom.cfg``: the default that is kept, and an armed entry."""
    file = found.custom_file
    before = file.read_text() if file.exists() else ""
    kept = grub.keep_default(host.default_path) if host.default_path else []
    text = grub.custom(before, [*kept, *lines])
    if text == before:
        return
    if not text:
        file.unlink(missing_ok=True)
        return
    part = file.with_name("custom.cfg.crossover")
    part.write_text(text)
    part.chmod(file.stat().st_mode & 0o777 if file.exists() else 0o644)
    try:
        output(["grub-script-check", str(part)], host.run)
    except HostError:
        part.unlink()
        raise
    part.replace(file)


def install(host: Host, wanted: Wanted, files: Optional[Path]) -> None:
    """Put the kernel on the host. HostError leaves nothing of it."""

    def remember(added: Dict[str, Any]) -> None:
        host.added = {**host.added, wanted.name: dict(added)}
        host.save()

    try:
        if wanted.package is None:
            if files is None:
                raise HostError(f"kernel {wanted.name}: found neither files nor a package of it")
            kernel_install.copied(host.root, wanted, files, remember, host.slow)
            return
        _keep_default(host)
        packages = sorted(files.glob("*.deb")) if files else []
        kernel_install.packaged(host.root, wanted, packages, remember, host.slow)
    except (HostError, OSError):
        if not host.added.get(wanted.name, {"complete": False})["complete"]:
            forget(host, [wanted.name])
        raise


def _keep_default(host: Host) -> None:
    """A package of a newer kernel becomes GRUB's first entry; the default shall stay what it is."""
    if host.default_path or not (host.root / boot_loader.GRUB_FOLDER / "grub.cfg").exists():
        return
    found = boot_loader.read_grub(host.root, host.run)
    host.default_path = grub.lasting_path(found.text, found.default())
    host.save()
    write_custom(host, found)


def forget(host: Host, names: Sequence[str]) -> None:
    """The host has nothing of these kernels any more; nor of the menu, once none is left."""
    host.added = {name: item for name, item in host.added.items() if name not in names}
    host.attempts = tuple(item for item in host.attempts if item.name not in names)
    if not any(item["package"] for item in host.added.values()):
        host.default_path = None
    folder = host.root / boot_loader.GRUB_FOLDER
    if (folder / "custom.cfg").exists() and (folder / "grub.cfg").exists():
        write_custom(host, boot_loader.Grub(folder, "", {}))
    if not host.added:
        boot_watch.remove(host.root)
    host.save()


def remove(host: Host, names: Sequence[str]) -> None:
    """Take kernels away that were added. HostError for one that runs."""
    mine = kernel_entry.attempt_of(host.attempts, running(host.root).token)
    if mine is not None and mine.name in names:
        raise HostError(f"kernel {mine.name}: runs now; wanted another to run before it goes")
    disarm(host, names)
    for name in [name for name in names if name in host.added]:
        kernel_install.remove(host.root, host.added[name], host.slow)
        forget(host, [name])


def disarm(host: Host, names: Sequence[str]) -> None:
    """Take back a boot of these kernels that was prepared and never ordered (whoever prepared it
    was cut off): the next reboot, whenever it is, would end in a kernel that is gone."""
    environment = host.root / boot_loader.GRUB_FOLDER / "grubenv"
    if environment.exists():
        following = grub.read_environment(environment.read_bytes()).get("next_entry")
        if following in [_identifier(name) for name in names]:
            _unset_next(host, environment)
    if any(item.name in names and item.outcome == kernel_entry.ORDERED for item in host.attempts):
        _unload(host)


def _identifier(name: str) -> str:
    return f"crossover-{name}"


def _unset_next(host: Host, environment: Path) -> None:
    output(["grub-editenv", str(environment), "unset", "next_entry"], host.run)


def _unload(host: Host) -> None:
    """Take away what kexec has loaded, into which systemd's ordinary reboot would go as well."""
    loaded = host.root / KEXEC_LOADED
    if loaded.exists() and loaded.read_text().strip() == "1":
        output(["kexec", "--unload"], host.run)


def choose_method(host: Host, asked: str) -> str:
    """``grub`` or ``kexec``. HostError if the asked one, or under ``auto`` neither, can be had."""
    has_kexec = shutil.which("kexec", path=SEARCH) is not None
    if asked == KEXEC:
        if not has_kexec:
            raise HostError("method kexec: this host has no kexec; wanted the package kexec-tools")
        return KEXEC
    try:
        boot_loader.read_grub(host.root, host.run).default()
    except HostError:
        if asked == AUTO and has_kexec:
            return KEXEC
        raise
    return GRUB


@dataclass(frozen=True)
class Armed:
    """A boot that is prepared: the command that starts it, and the word that will tell it."""

    token: str
    order: Tuple[str, ...]
    method: str


def arm(
    host: Host,
    wanted: Wanted,
    token: str,
    method: str,
    panic_s: int,
    timeout_s: int,
    most_reboots: int,
) -> Armed:
    """Prepare one boot of the kernel; the default stays. HostError, and then nothing is prepared.

    The attempt is counted before it is made.
    """
    kernel_entry.require_reboots(host.attempts, wanted.name, most_reboots)
    boot_watch.require_systemd(host.root)
    if wanted.package is None and boot_loader.secure_boot(host.root):
        raise HostError(
            f"kernel {wanted.name}: Secure Boot is on, which refuses a kernel that no known key has"
            " signed; wanted Secure Boot off, or a distribution's package"
        )
    chosen = choose_method(host, method)
    now = running(host.root)
    boot_watch.install(host.root, timeout_s)
    host.attempts = (
        *host.attempts,
        Attempt(
            token,
            wanted.name,
            wanted.identity,
            wanted.append,
            wanted.boot,
            now.boot_id,
            time.time(),
        ),
    )
    host.save()
    words = [f"panic={panic_s}", *NO_SHELL, *wanted.append, f"{TOKEN_WORD}={token}"]
    try:
        if chosen == GRUB:
            _arm_grub(host, wanted, words)
            return Armed(token, REBOOT, GRUB)
        _arm_kexec(host, wanted, words, now)
        return Armed(token, REBOOT_BY_KEXEC, KEXEC)
    except (HostError, OSError):
        host.attempts = host.attempts[:-1]
        host.save()
        raise


def _arm_grub(host: Host, wanted: Wanted, words: Sequence[str]) -> None:
    found = boot_loader.read_grub(host.root, host.run)
    kept = grub.find(grub.read_menu(found.text), host.default_path) if host.default_path else None
    identifier = _identifier(wanted.name)
    lines = grub.one_shot_entry(
        kept or found.default(), identifier, f"Crossover {wanted.name}",
        f"crossover/{wanted.name}", words,
    )  # fmt: skip
    write_custom(host, found, lines)
    output(["grub-reboot", identifier], host.run)
    read_back = grub.read_environment((found.folder / "grubenv").read_bytes()).get("next_entry")
    if read_back != identifier:
        raise HostError(f"grub-reboot: next_entry is {read_back!r} after it, wanted {identifier!r}")
    os.sync()


def _arm_kexec(host: Host, wanted: Wanted, words: Sequence[str], now: Running) -> None:
    mine = kernel_entry.attempt_of(host.attempts, now.token)
    ours = {"BOOT_IMAGE", "panic", TOKEN_WORD, *(word.partition("=")[0] for word in NO_SHELL)}
    own = set(mine.append) if mine else set()
    kept = [w for w in now.words if w.partition("=")[0] not in ours and w not in own]
    folder = kernel_install.boot_folder(host.root, wanted.name)
    line = " ".join([*kept, *words])
    argv = ["kexec", "--load", str(folder / "vmlinuz"), f"--initrd={folder / 'initrd'}"]
    output([*argv, f"--command-line={line}"], host.run)


def leave(host: Host) -> Tuple[str, ...]:
    """Make the next boot an ordinary one; returns the command that starts it."""
    environment = host.root / boot_loader.GRUB_FOLDER / "grubenv"
    if environment.exists() and grub.read_environment(environment.read_bytes()).get("next_entry"):
        _unset_next(host, environment)
    _unload(host)
    return REBOOT


def confirm(host: Host, wanted: Wanted, token: Optional[str], now: Running) -> List[str]:
    """Check what runs and call the watch off. Returns what is wrong, in words; then the watch is
    still on, and the attempt is counted as failed."""
    if now.token is None or (token or now.token) != now.token:
        return [f"the host is back on {now.release}"]
    mine = kernel_entry.attempt_of(host.attempts, now.token)
    if mine is None or mine.name != wanted.name:
        return ["the host runs a one-shot boot that its record does not know"]
    wrong = kernel_entry.differences(wanted, now)
    if wrong:
        host.attempts = tuple(
            kernel_entry.failed(item, "; ".join(wrong)) if item.token == now.token else item
            for item in host.attempts
        )
    else:
        boot_watch.call_off(host.run)
        host.attempts = kernel_entry.confirmed(host.attempts, now.token)
    host.save()
    return wrong


def with_release(wanted: Wanted, host: Host) -> Wanted:
    """A kernel whose release its package told once it was installed."""
    if wanted.release is None and wanted.name in host.added:
        return replace(wanted, release=host.added[wanted.name]["release"])
    return wanted

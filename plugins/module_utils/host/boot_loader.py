# SPDX-License-Identifier: GPL-2.0-or-later
"""Which boot loader a host has, and whether it can boot a kernel once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional, Tuple

from . import grub
from .errors import HostError
from .run import Run

GRUB_FOLDER = "boot/grub"
# Loaders write their name here under UEFI (Boot Loader Interface, systemd.io).
LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# Files by which other loaders are known.
OTHERS = (
    ("boot/grub2/grub.cfg", "GRUB with /boot/grub2"),
    ("boot/loader/loader.conf", "systemd-boot"),
    ("boot/efi/loader/loader.conf", "systemd-boot"),
    ("efi/loader/loader.conf", "systemd-boot"),
    ("boot/extlinux/extlinux.conf", "extlinux"),
    ("boot/syslinux/syslinux.cfg", "syslinux"),
    ("boot/boot.scr", "U-Boot"),
    ("etc/lilo.conf", "LILO"),
)
# Where GRUB can read but not write (grub-mkconfig's 00_header knows the same list).
UNWRITABLE_DEVICES = ("diskfilter", "lvm", "mdraid")
UNWRITABLE_FILE_SYSTEMS = ("btrfs", "cpiofs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs")


@dataclass(frozen=True)
class Grub:
    """A GRUB that can boot a kernel once."""

    folder: Path
    text: str
    environment: Dict[str, str]

    @property
    def custom_file(self) -> Path:
        """The file for menu entries of one's own."""
        return self.folder / "custom.cfg"

    def default(self) -> grub.Entry:
        """The entry that boots when nothing is asked for. HostError."""
        return grub.default_entry(self.text, self.environment)


def efi_name(data: bytes) -> str:
    """The text of an EFI variable's file: 4 bytes of attributes, then UTF-16."""
    return data[4:].decode("utf-16-le", errors="replace").rstrip("\0")


def found_loader(root: Path) -> str:
    """What is found of boot loaders, in words."""
    variable = root / LOADER_INFO
    if variable.exists():
        return efi_name(variable.read_bytes())
    for path, name in OTHERS:
        if (root / path).exists():
            return f"{name} (/{path})"
    return "none of its files (a kernel can come from outside, as in a virtual machine)"


def secure_boot(root: Path) -> bool:
    """Whether the firmware starts signed kernels only."""
    variable = root / SECURE_BOOT
    return variable.exists() and variable.read_bytes()[4:5] == b"\x01"


def read_grub(root: Path, run: Run) -> Grub:
    """The host's GRUB. HostError that says what was found if it is another loader, or a GRUB that
    cannot boot an entry just once."""
    folder = root / GRUB_FOLDER
    try:
        text = (folder / "grub.cfg").read_text(errors="replace")
    except FileNotFoundError:
        raise HostError(
            f"boot loader: found {found_loader(root)}; wanted GRUB with /{GRUB_FOLDER}/grub.cfg, or"
            " kexec (method kexec)"
        ) from None
    if "blscfg" in text:
        raise HostError(
            "boot loader: found GRUB that reads Boot Loader Specification entries (blscfg); wanted"
            " one with menu entries in grub.cfg, or kexec (method kexec)"
        )
    for needed, why in (
        ("next_entry", "it knows no one-shot entry"),
        ("custom.cfg", "it does not read custom.cfg (/etc/grub.d/41_custom)"),
    ):
        if needed not in text:
            raise HostError(
                f"boot loader: found a GRUB whose grub.cfg has no {needed}: {why}; wanted what"
                " grub-mkconfig writes"
            )
    _require_writable(folder, run)
    try:
        environment = grub.read_environment((folder / "grubenv").read_bytes())
    except FileNotFoundError:
        raise HostError(
            f"boot loader: found no {folder / 'grubenv'}; wanted GRUB's environment block"
            " (grub-editenv - create)"
        ) from None
    return Grub(folder, text, environment)


def _require_writable(folder: Path, run: Run) -> None:
    """GRUB clears a one-shot entry itself; where it cannot, it would boot it for ever."""
    for target, unwritable in (
        ("abstraction", UNWRITABLE_DEVICES),
        ("fs", UNWRITABLE_FILE_SYSTEMS),
    ):
        code, out, err = run(["grub-probe", f"--target={target}", str(folder)])
        if code != 0:
            raise HostError(f"boot loader: grub-probe --target={target} {folder}: {err.strip()}")
        for word in out.split():
            if word.startswith(unwritable):
                raise HostError(
                    f"boot loader: found {folder} on {word}, where GRUB cannot write: a one-shot"
                    " entry would be booted again and again; wanted a plain partition with, say,"
                    " ext4, or kexec (method kexec)"
                )


def command_line(root: Path) -> Tuple[str, ...]:
    """The words of the running kernel's command line."""
    return tuple((root / "proc/cmdline").read_text().split())


def word_of(words: Tuple[str, ...], name: str) -> Optional[str]:
    """The value of the last ``name=value`` word; None if there is none."""
    values = [word[len(name) + 1 :] for word in words if word.startswith(name + "=")]
    return values[-1] if values else None

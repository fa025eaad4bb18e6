"""What the guests of a wish boot: the image's own kernel, another one, or their disk's loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import LabError
from .guest_kernel import GuestKernel, prepare
from .qemu import Boot, append_line
from .wish import Wish


def own_loader(wish: Wish) -> Path | None:
    """The disk of a baked image that boots by itself, None if the image has none."""
    disk = wish.image / "disk.raw"
    return disk if not wish.cloud and disk.exists() else None


def boot_of(wish: Wish, kernel: GuestKernel | None) -> Boot:
    """Kernel, initramfs and command line of the guests. LabError for a command line that guests
    with a boot loader could not be given."""
    if own_loader(wish) and (wish.append or wish.selinux != "enforcing"):
        raise LabError(
            f"lab {wish.name}: found append {wish.append!r} and selinux {wish.selinux!r}; wanted"
            " neither, as guests with a boot loader have their command line from it"
        )
    if wish.cloud or own_loader(wish):
        return Boot(None, None, "")
    line = append_line(wish.selinux, wish.append)
    if kernel is not None:
        return Boot(kernel.vmlinuz, kernel.initrd, line, kernel.modules)
    return Boot(wish.image / "vmlinuz", wish.image / "initrd", line)


def guest_kernel(wish: Wish) -> GuestKernel | None:
    """The kernel that is wished for, ready for the image; None for the image's own. LabError."""
    if wish.kernel is None:
        return None
    if wish.cloud or own_loader(wish):
        raise LabError(
            f"kernel {wish.kernel}: guests of {wish.image} boot what their own disk says; wanted a"
            " baked image without a boot loader, or the role kernel"
        )
    return prepare(wish.image, wish.kernel)


def own_kernel(wish: Wish) -> dict[str, Any]:
    """What is known of the kernel that the image itself has, in the form of ``entry.json``."""
    release = ""
    if not wish.cloud:
        try:
            release = str(json.loads((wish.image / "image.json").read_text())["kernel_release"])
        except (OSError, ValueError, KeyError) as error:
            raise LabError(f"image {wish.image}: {error}; wanted a baked image") from error
    return {"name": None, "identity": None, "release": release}

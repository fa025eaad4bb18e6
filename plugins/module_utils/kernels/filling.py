"""Filling an artifact's folder: image, configuration and modules, whatever they came from."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Optional

from . import artifact
from .errors import KernelError


def depmod(root: Path, release: str) -> None:
    """Write the index of ``root/lib/modules/release`` (depmod(8)). KernelError."""
    try:
        done = subprocess.run(
            ["depmod", "-b", str(root), release],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            # depmod is in sbin, which an ordinary user's PATH has not on Debian.
            env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
        )
    except FileNotFoundError:
        raise KernelError("depmod is not installed (package kmod)") from None
    if done.returncode:
        raise KernelError(f"depmod of {release}: {done.stderr.strip()}")


def one_release(modules: Path) -> str:
    """The release that a ``lib/modules`` folder is for. KernelError for none or several."""
    found = sorted(path.name for path in modules.iterdir()) if modules.is_dir() else []
    if len(found) != 1:
        raise KernelError(
            f"{modules}: found {found or 'nothing'}; wanted the modules of one kernel"
        )
    return found[0]


def fill(
    folder: Path, vmlinuz: Path, config: Path, root: Optional[Path], initrd: Optional[Path]
) -> dict[str, object]:
    """Put everything but ``entry.json`` in the folder and return what was found out about it, as
    the fields of ``Artifact``. ``root`` holds ``lib/modules/RELEASE``; KernelError if that is of
    another release than the image."""
    release, version = artifact.image_version(vmlinuz)
    shutil.copyfile(vmlinuz, folder / "vmlinuz")
    shutil.copyfile(config, folder / "config")
    if initrd is not None:
        shutil.copyfile(initrd, folder / "initrd")
    stage = folder / "stage"
    target = stage / "lib" / "modules" / release
    if root is not None:
        found = one_release(root / "lib" / "modules")
        if found != release:
            raise KernelError(f"modules are of {found}, the image is of {release}; wanted the same")
        stage.mkdir()
        shutil.move(str(root / "lib"), str(stage / "lib"))
        for link in ("build", "source"):  # they lead out of the tree
            (target / link).unlink(missing_ok=True)
    else:
        target.mkdir(parents=True)
    shutil.copyfile(config, target / "config")
    depmod(stage, release)
    count = sum(1 for path in target.rglob("*.ko*") if path.is_file())
    _write_modules(stage, folder / "modules.tar")
    shutil.rmtree(stage)
    return {
        "release": release,
        "version": version,
        "config_sha256": artifact.sha256_of(folder / "config"),
        "vmlinuz_sha256": artifact.sha256_of(folder / "vmlinuz"),
        "modules": count,
        "initrd": initrd is not None,
    }


def _write_modules(stage: Path, target: Path) -> None:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    with tarfile.open(target, "w") as tar:
        tar.add(stage / "lib", "lib", filter=plain)

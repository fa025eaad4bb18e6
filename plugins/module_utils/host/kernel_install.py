# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts a kernel on a host, by copy or by package, and takes it away again.

A copied kernel stands in a folder of its own under ``/boot/crossover``, where ``update-grub`` does
not look, so the host's menu and its default stay as they are.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .errors import HostError
from .kernel_entry import Wanted
from .run import SEARCH, Run, output, run

BOOT_FOLDER = "boot/crossover"
INSTALL_LIMIT_S = 1800
COMPLAINT_LINES = 4
# INITRD is what the kernel packages' own script for initramfs-tools asks.
PACKAGE_ENVIRONMENT = ("DEBIAN_FRONTEND=noninteractive", "INITRD=No")
INITRD_TOOLS = ("mkinitramfs", "dracut")


def slow(argv: Sequence[str]) -> Tuple[int, str, str]:
    """A command that unpacks or compresses a whole kernel; of its complaints, the last lines."""
    code, out, err = run(argv, INSTALL_LIMIT_S)
    return code, out, "\n".join(err.splitlines()[-COMPLAINT_LINES:])


def boot_folder(root: Path, name: str) -> Path:
    """Where a kernel of this name is booted from."""
    return root / BOOT_FOLDER / name


def copied(
    root: Path,
    wanted: Wanted,
    files: Path,
    remember: Callable[[Dict[str, Any]], None],
    runner: Run = slow,
) -> None:
    """Install the files of a built kernel: ``vmlinuz``, ``config``, ``modules.tar`` and perhaps
    ``initrd``. ``remember`` is told before anything is written what will have to be removed.

    A host that has this very kernel already keeps its own files, under one more name. HostError if
    it has another one of that release; what was begun is taken back.
    """
    release = str(wanted.release)
    modules = root / "lib/modules" / release
    config = root / "boot" / f"config-{release}"
    folder = boot_folder(root, wanted.name)
    added = {
        "identity": wanted.identity,
        "release": release,
        "paths": [str(folder)],
        "package": None,
        "complete": False,
    }
    if _has_already(root, files, release) and not folder.exists():
        remember(added)
        _link(root, folder, release, runner)
        remember({**added, "complete": True})
        return
    for path in (modules, config, folder):
        if path.exists():
            raise HostError(
                f"kernel {wanted.name}: found {path} on the host already, not put there under this"
                f" name; wanted a kernel with a release of its own (CONFIG_LOCALVERSION), or"
                f" without {path}"
            )
    added["paths"] = [str(path) for path in (modules, config, folder)]
    remember(added)
    try:
        folder.mkdir(parents=True)
        _copy(files / "vmlinuz", folder / "vmlinuz")
        _copy(files / "config", config)
        _unpack_modules(files / "modules.tar", modules, release)
        output(["depmod", release], runner)
        if (files / "initrd").exists():
            _copy(files / "initrd", folder / "initrd")
        else:
            _make_initrd(root, folder / "initrd", release, runner)
        os.sync()
        remember({**added, "complete": True})
    except (OSError, HostError, tarfile.TarError) as error:
        remove(root, added, runner)
        raise HostError(f"kernel {wanted.name}: {error}; nothing of it is left") from None


def _has_already(root: Path, files: Path, release: str) -> bool:
    """Whether the host has the same kernel with the same configuration."""
    boot = root / "boot"
    return all(
        (boot / f"{name}-{release}").is_file()
        and filecmp.cmp(files / name, boot / f"{name}-{release}", shallow=False)
        for name in ("vmlinuz", "config")
    )


def _copy(source: Path, target: Path) -> None:
    # A new file with the label of its folder; a moved one would keep the label of where it was.
    shutil.copyfile(source, target)
    target.chmod(0o600 if target.name == "initrd" else 0o644)


def _unpack_modules(archive: Path, target: Path, release: str) -> None:
    """Unpack ``lib/modules/RELEASE`` of a tar archive; the folder appears whole or not at all."""
    part = target.with_name(f".{release}.part")
    prefix = f"lib/modules/{release}"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    part.chmod(0o755)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = os.path.normpath(member.name)
                if path == prefix or not path.startswith("lib/"):
                    continue
                if not path.startswith(prefix + "/") or not (
                    member.isfile() or member.isdir() or member.issym()
                ):
                    if prefix.startswith(path):
                        continue
                    raise HostError(f"modules.tar: found {member.name}; wanted {prefix}/… only")
                if member.issym():
                    # `build` and `source` point at the machine that compiled it.
                    continue
                member.name = os.path.relpath(path, prefix)
                member.uid = member.gid = 0
                member.mode &= 0o755
                tar.extract(member, part, set_attrs=True)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _make_initrd(root: Path, target: Path, release: str, runner: Run) -> None:
    """Have the host make an initrd with its own tool. HostError if it cannot load a module."""
    found = next((tool for tool in INITRD_TOOLS if shutil.which(tool, path=SEARCH)), None)
    if found is None:
        raise HostError(
            f"initrd: this host has none of {', '.join(INITRD_TOOLS)}; wanted one, or a kernel that"
            " brings its initrd"
        )
    part = target.with_name("initrd.part")
    # Both within Debian's SELinux policy: what is executed as mkinitramfs runs in a domain
    # (bootloader_t) that may not copy modules, so a shell reads it; and depmod, which it calls,
    # may write below /lib/modules but not below /var/tmp.
    work = root / "lib/modules" / f".{release}.initrd"
    work.mkdir()
    try:
        if found == "mkinitramfs":
            argv = ["env", f"TMPDIR={work}", *_read_by_shell(found), "-o", str(part), release]
            output(argv, runner)
            _require_modules(part, runner)
        else:
            output([found, "--tmpdir", str(work), "--kver", release, str(part)], runner)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    part.chmod(0o600)
    part.rename(target)


def _read_by_shell(script: str) -> List[str]:
    return ["/bin/sh", str(shutil.which(script, path=SEARCH))]


def _require_modules(initrd: Path, runner: Run) -> None:
    """mkinitramfs ends well even where depmod within it does not."""
    listed = output([*_read_by_shell("lsinitramfs"), str(initrd)], runner).split()
    if not any(path.endswith("/modules.dep") for path in listed):
        raise HostError(
            "initrd: mkinitramfs left modules.dep out, so that it could load no module; wanted it"
            " in (on a host with SELinux, see its denials: ausearch -m avc -ts recent)"
        )


def package_version(package: str, runner: Run) -> Optional[str]:
    """The installed version of a package; None if it is not installed."""
    form = "${db:Status-Status} ${Version}"
    code, out, _err = runner(["dpkg-query", "--show", f"--showformat={form}", package])
    status, _, version = out.partition(" ")
    return version if code == 0 and status == "installed" else None


def install_command(wanted: Wanted, files: Sequence[Path]) -> List[str]:
    """The argv that installs the kernel's package: from ``files`` (``.deb``) or the host's own
    archives."""
    # Without an initrd in /boot: ours is made afterwards, where only our menu entry finds it.
    argv = [
        "env",
        *PACKAGE_ENVIRONMENT,
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        "--no-remove",
    ]
    argv += ["--option=Dpkg::Options::=--force-confold"]
    if files:
        return [*argv, *(str(path) for path in files)]
    return [*argv, f"{wanted.package}={wanted.version}" if wanted.version else str(wanted.package)]


def package_release(package: str, runner: Run) -> str:
    """The release that a package's kernel has. HostError for a package without one kernel."""
    listed = output(["dpkg-query", "--listfiles", package], runner).split()
    found = [path for path in listed if path.startswith("/boot/vmlinuz-")]
    if len(found) != 1:
        raise HostError(
            f"package {package}: found {', '.join(found) or 'no kernel'} in it; wanted a package"
            " with one /boot/vmlinuz-…, not a metapackage"
        )
    return found[0][len("/boot/vmlinuz-") :]


def packaged(
    root: Path,
    wanted: Wanted,
    files: Sequence[Path],
    remember: Callable[[Dict[str, Any]], None],
    runner: Run = slow,
) -> str:
    """Install the kernel's package unless it is there; returns its release."""
    package = str(wanted.package)
    before = package_version(package, runner)
    fits = before is not None and wanted.version in (None, before)
    if before is not None and not fits:
        raise HostError(
            f"kernel {wanted.name}: found {package} {before} on the host already; wanted"
            f" {wanted.version}, which would replace a kernel that is the host's own"
        )
    folder = boot_folder(root, wanted.name)
    added: Dict[str, Any] = {
        "identity": wanted.identity,
        "release": None,
        "paths": [str(folder)],
        "package": None if fits else package,
        "complete": False,
    }
    remember(added)
    try:
        if not fits:
            output(install_command(wanted, files), runner)
        release = package_release(package, runner)
        if wanted.release and wanted.release != release:
            raise HostError(f"package {package}: has release {release}; wanted {wanted.release}")
        _link(root, folder, release, runner)
    except (OSError, HostError) as error:
        remove(root, added, runner)
        raise HostError(f"kernel {wanted.name}: {error}; nothing of it is left") from None
    remember({**added, "release": release, "complete": True})
    return release


def _link(root: Path, folder: Path, release: str, runner: Run) -> None:
    """The host's files under the names that our menu entry has; hard links cost nothing. An initrd
    is made where the host has none."""
    folder.mkdir(parents=True)
    for own, name in (("vmlinuz", "vmlinuz"), ("initrd", "initrd.img")):
        source = root / "boot" / f"{name}-{release}"
        if own == "initrd" and not source.exists():
            _make_initrd(root, folder / own, release, runner)
            continue
        try:
            os.link(source, folder / own)
        except OSError:  # /boot is FAT, say
            shutil.copyfile(source, folder / own)


def remove(root: Path, added: Dict[str, Any], runner: Run = slow) -> None:
    """Take away what was added under a name; what is gone already is no error."""
    package = added["package"]
    for path in added["paths"]:
        place = Path(path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    if package and package_version(package, runner) is not None:
        output(["env", *PACKAGE_ENVIRONMENT, "apt-get", "purge", "--yes", package], runner)
        if added["release"]:
            _drop_indexes(root / "lib/modules" / added["release"])
    parent = root / BOOT_FOLDER
    if parent.is_dir() and not any(parent.iterdir()):
        parent.rmdir()


def _drop_indexes(modules: Path) -> None:
    """Take away a folder in which only depmod's files are left: a package knows those of its own
    time alone (Debian's of 6.1 not ``modules.weakdep``), and leaves the folder for their sake."""
    left = list(modules.iterdir()) if modules.is_dir() else []
    if left and all(path.is_file() and path.name.startswith("modules.") for path in left):
        shutil.rmtree(modules)

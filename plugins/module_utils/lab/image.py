"""Bakes the guest image: Debian packages, labels, kernel and initramfs, cached by their hash.

Works as an ordinary user: mmdebstrap chooses its own way (``--mode=auto``), and the file system
is made under fakeroot. A folder ``images/<hash>`` appears complete or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import initramfs, labels, loader, stt
from .errors import LabError
from .paths import images_dir, tool_environment

# Raised when the way an image is made changes, so that older ones are not taken for new ones.
FORMAT = 3
# What a bake needs at its widest point: archive, unpacked tree and image.
BAKE_BYTES = 3_000_000_000


@dataclass(frozen=True)
class Recipe:
    """Everything that goes into an image."""

    suite: str
    components: tuple[str, ...]
    packages: tuple[str, ...]
    masked_units: tuple[str, ...]
    selinux_type: str
    selinux_modules: tuple[Path, ...]
    init: Path
    size_mib: int
    loader: str = "none"  # or "grub": a disk that boots by itself
    # Sources of the STT module, None for an image without it.
    stt_sources: Path | None = None

    def identity(self) -> str:
        """The hash of all inputs, 16 hex digits. The mirror is not one: it serves the same."""
        digest = hashlib.sha256()
        digest.update(
            json.dumps(
                [
                    FORMAT,
                    self.suite,
                    self.components,
                    sorted(self.packages),
                    sorted(self.masked_units),
                    self.selinux_type,
                    self.size_mib,
                ]
            ).encode()
        )
        for path in (*self.selinux_modules, self.init):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        if self.stt_sources:
            digest.update(stt.identity(self.stt_sources))
        if self.loader == "grub":
            digest.update(json.dumps(loader.bake_files("")).encode())
        return digest.hexdigest()[:16]


def host_archives() -> dict[str, str]:
    """The URIs of the archives that the host's own apt uses, by ``ORIGIN/LABEL``."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(LABEL)\t$(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {f"{row[0]}/{row[1]}": row[2].rstrip("/") for row in reversed(rows) if len(row) == 3}


def host_mirror(asked: str = "") -> str:
    """The URI of the Debian archive that the host's own apt uses, or ``asked`` if given."""
    if asked:
        return asked
    archives = host_archives()
    if "Debian/Debian" in archives:
        return archives["Debian/Debian"]
    found = ", ".join(sorted({name.split("/")[0] for name in archives} - {""})) or "none"
    raise LabError(
        f"guest image: this host's apt has archives of {found} and none of Debian"
        " (after 'apt-get update'); set lab_qemu_mirror to the URI of a Debian archive"
    )


def host_proxies() -> list[str]:
    """mmdebstrap options that hand on the proxies of the host's apt."""
    done = subprocess.run(
        ["apt-config", "dump", "--format", "%f=%v%n", "Acquire"],
        capture_output=True,
        text=True,
        check=False,
    )
    options = []
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        if re.fullmatch(r"Acquire::https?::Proxy", key, re.IGNORECASE) and value:
            options.append(f'--aptopt={key} "{value}"')
    return options


def bootstrap_command(recipe: Recipe, mirror: str, archive: Path) -> list[str]:
    """The argv of mmdebstrap that makes the guest's file system as a tar archive."""
    command = [
        "mmdebstrap",
        "--mode=auto",
        "--variant=minbase",
        "--format=tar",
        f"--include={','.join(recipe.packages)}",
        f"--components={','.join(recipe.components)}",
        # Nobody reads manuals in a lab guest, and its initramfs is the lab's own.
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        # update-initramfs.conf below is a conffile of the package: keep ours without a question.
        "--dpkgopt=force-confold",
        '--essential-hook=mkdir -p "$1/etc/initramfs-tools"',
        "--essential-hook="
        'echo "update_initramfs=no" > "$1/etc/initramfs-tools/update-initramfs.conf"',
        # Lists of the archive are not needed: nothing is installed in a running guest.
        '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*',
        "--customize-hook="
        'install -d -m 700 "$1/root/.ssh"'
        ' && install -m 600 /dev/null "$1/root/.ssh/authorized_keys"',
        '--customize-hook=install -m 600 /dev/null "$1/etc/ssh/ssh_host_ed25519_key"',
        '--customize-hook=: > "$1/etc/ssh/ssh_host_ed25519_key.pub"',
        '--customize-hook=: > "$1/etc/hosts"; : > "$1/etc/hostname"; : > "$1/etc/fstab"',
        '--customize-hook=echo uninitialized > "$1/etc/machine-id"',
        "--customize-hook="
        'chroot "$1" systemctl mask ' + " ".join(recipe.masked_units) + " >/dev/null",
        '--customize-hook=sed -i "s/^SELINUX=.*/SELINUX=enforcing/" "$1/etc/selinux/config"',
    ]
    for path in recipe.selinux_modules:
        target = f"/tmp/{path.name}"
        command.append(f"--customize-hook=upload {path} {target}")
        command.append(f'--customize-hook=chroot "$1" semodule --noreload -i {target}')
        command.append(f'--customize-hook=rm "$1{target}"')
    if recipe.stt_sources:
        command += stt.bake_hooks(recipe.stt_sources)
    if recipe.loader == "grub":
        command += loader.bake_hooks(recipe.identity(), archive.parent / "loader")
    command += host_proxies()
    components = " ".join(recipe.components)
    return [*command, recipe.suite, str(archive), f"deb {mirror} {recipe.suite} {components}"]


def _run(command: list[str], log: Path, what: str) -> None:
    with log.open("ab") as sink:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            check=False,
            env=tool_environment(),
        )
    if done.returncode:
        lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        complaint = next((line for line in lines if line.startswith("E:")), lines[-1])
        kept = images_dir() / "failed-bake.log"
        shutil.copy(log, kept)
        raise LabError(
            f"{what} failed (exit {done.returncode}): {complaint}; the whole log is {kept}"
        )


def _members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    return {"/" + member.name.lstrip("./"): member for member in tar.getmembers()}


def _content(members: dict[str, tarfile.TarInfo], tar: tarfile.TarFile, path: str) -> bytes:
    handle = tar.extractfile(members[path]) if path in members else None
    if handle is None:
        raise LabError(f"guest image has no {path}: is its package in lab_qemu_packages?")
    return handle.read()


_TYPE_BITS = {
    tarfile.REGTYPE: 0o100000,
    tarfile.AREGTYPE: 0o100000,
    tarfile.LNKTYPE: 0o100000,
    tarfile.SYMTYPE: 0o120000,
    tarfile.CHRTYPE: 0o020000,
    tarfile.BLKTYPE: 0o060000,
    tarfile.DIRTYPE: 0o040000,
    tarfile.FIFOTYPE: 0o010000,
}


def _kernel_release(members: dict[str, tarfile.TarInfo]) -> str:
    found = sorted(
        path.removeprefix("/boot/vmlinuz-") for path in members if path.startswith("/boot/vmlinuz-")
    )
    if len(found) != 1:
        raise LabError(f"guest image: found kernels {found or 'none'}; wanted exactly one")
    return found[0]


def _modules(
    members: dict[str, tarfile.TarInfo], tar: tarfile.TarFile, release: str
) -> dict[str, bytes]:
    """The kernel modules of the initramfs in the order of loading."""
    index = f"/modules/{release}/modules.dep"
    found = [path for path in members if path.endswith(index)]
    if not found:
        raise LabError(f"guest image has no {index}; wanted a kernel package that depmod has seen")
    base = found[0].removesuffix("modules.dep")
    return {
        initramfs.module_name(file): initramfs.plain_module(
            file, _content(members, tar, base + file)
        )
        for file in initramfs.load_order(_content(members, tar, found[0]).decode())
    }


def _write_contexts(
    recipe: Recipe,
    members: dict[str, tarfile.TarInfo],
    tar: tarfile.TarFile,
    folder: Path,
) -> None:
    """Unpack the policy's ``file_contexts`` with its companions: the aliases (``.subs_dist``),
    home folders and local additions that libselinux looks for beside it. Not the compiled ``.bin``
    forms, which depend on the regular expression library of the machine that made them."""
    folder.mkdir()
    prefix = f"/etc/selinux/{recipe.selinux_type}/contexts/files/file_contexts"
    for path in members:
        if path.startswith(prefix) and not path.endswith(".bin"):
            (folder / path.rsplit("/", 1)[-1]).write_bytes(_content(members, tar, path))
    if not (folder / "file_contexts").exists():
        raise LabError(f"guest image has no {prefix}: is its policy package installed?")


def _write_boot_files(recipe: Recipe, archive: Path, folder: Path) -> dict[str, Any]:
    """Kernel, initramfs and policy contexts of the tree, beside the image; facts of the kernel."""
    with tarfile.open(archive) as tar:
        members = _members(tar)
        release = _kernel_release(members)
        (folder / "vmlinuz").write_bytes(_content(members, tar, f"/boot/vmlinuz-{release}"))
        config = _content(members, tar, f"/boot/config-{release}")
        modules = _modules(members, tar, release)
        busybox = _content(members, tar, "/usr/bin/busybox")
        init = recipe.init.read_bytes()
        (folder / "initrd").write_bytes(initramfs.build(busybox, init, modules))
        # For the initramfs of other kernels that boot this image.
        (folder / "busybox").write_bytes(busybox)
        (folder / "init").write_bytes(init)
        _write_contexts(recipe, members, tar, folder / "contexts")
    return {
        "kernel_release": release,
        "kernel_config_sha256": hashlib.sha256(config).hexdigest(),
    }


def _label(archive: Path, folder: Path) -> int:
    """Write the labels of all paths into the file system; returns how many."""
    with tarfile.open(archive) as tar:
        labelled = sorted(
            (path, _TYPE_BITS[member.type] | member.mode) for path, member in _members(tar).items()
        )
    labeller = labels.Labeller(folder / "contexts" / "file_contexts")
    return labels.write_labels(folder / "root.ext4", labels.debugfs_commands(labelled, labeller))


def _make_filesystem(recipe: Recipe, archive: Path, folder: Path, log: Path) -> None:
    tree = folder / "tree"
    tree.mkdir()
    script = (
        'tar -xpf "$1" -C "$2" --numeric-owner && '
        'mke2fs -q -t ext4 -L root -d "$2" $5 "$3" "$4" && rm -rf "$2"'
    )
    # A guest that boots by itself may panic, so it gets what a file system needs to survive that.
    options = "-O ^has_journal"
    if recipe.loader == "grub":
        options = f"-J size=8 -U {loader.file_system_uuid(recipe.identity())}"
    command = ["sh", "-c", script, "bake"]
    command += [str(archive), str(tree), str(folder / "root.ext4"), f"{recipe.size_mib}M", options]
    _run(command if os.getuid() == 0 else ["fakeroot", *command], log, "making the file system")


def _make_bootable(archive: Path, folder: Path, identity: str) -> None:
    """Make ``disk.raw`` of the labelled file system, which it takes the place of."""
    with tarfile.open(archive) as tar:
        members = _members(tar)
        boot = _content(members, tar, f"{loader.GRUB_FOLDER}/boot.img")
        core = _content(members, tar, f"{loader.GRUB_FOLDER}/core.img")
    root = folder / "root.ext4"
    loader.write_disk(folder / "disk.raw", root, boot, core, identity)
    root.unlink()
    shutil.rmtree(folder / "loader")


def require_space(folder: Path, wanted: int, what: str) -> None:
    """LabError if the file system of ``folder`` has less than ``wanted`` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise LabError(
            f"{what}: {folder} has {free // 2**20} MiB free; wanted {wanted // 2**20} MiB"
        )


def present(identity: str) -> Path | None:
    """The folder of a baked image, None if it is not there."""
    folder = images_dir() / identity
    return folder if (folder / "image.json").is_file() else None


def bake(recipe: Recipe, mirror: str) -> Path:
    """Make the image unless it is there; returns its folder. Raises LabError."""
    identity = recipe.identity()
    ready = present(identity)
    if ready:
        return ready
    images_dir().mkdir(parents=True, exist_ok=True)
    require_space(images_dir(), BAKE_BYTES, "guest image")
    folder = images_dir() / f".{identity}.{os.getpid()}"
    folder.mkdir(mode=0o700)
    log = folder / "bake.log"
    try:
        archive = folder / "root.tar"
        # Under unshare another uid writes here through the inherited descriptor only.
        _run(bootstrap_command(recipe, host_mirror(mirror), archive), log, "mmdebstrap")
        facts = _write_boot_files(recipe, archive, folder)
        if recipe.loader == "grub":
            loader.add_initrd(archive, facts["kernel_release"], folder / "initrd")
        _make_filesystem(recipe, archive, folder, log)
        facts["labelled_paths"] = _label(archive, folder)
        if recipe.loader == "grub":
            _make_bootable(archive, folder, identity)
        archive.unlink()
        facts.update(schema=FORMAT, identity=identity, suite=recipe.suite)
        (folder / "image.json").write_text(json.dumps(facts, indent=2) + "\n")
        final = images_dir() / identity
        try:
            folder.rename(final)
        except OSError:  # another bake of the same inputs was quicker
            shutil.rmtree(folder)
        return final
    except OSError as error:
        raise LabError(f"guest image: {error.strerror}: {error.filename or folder}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)

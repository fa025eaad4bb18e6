"""A cloud image of the kind that distributions publish, made from Debian's packages: a partition
table, a boot loader, a kernel with its own initramfs, and cloud-init. Needs no root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = (
    "cloud-init", "e2fsprogs", "iproute2", "iputils-ping", "linux-image-cloud-amd64", "netplan.io",
    "openssh-server", "python3", "systemd-resolved", "systemd-sysv", "udev",
)  # fmt: skip
MIB = 1 << 20
BOOT_MIB, ROOT_MIB = 128, 1400
MBR = Path("/usr/lib/SYSLINUX/mbr.bin")
LOADER = """\
default linux
label linux
  kernel /vmlinuz
  append initrd=/initrd.img root=/dev/vda2 ro console=ttyS0 net.ifnames=0
"""
# Without shadowed copies of uids, so that an ordinary user keeps the owners of files.
MAKE_ROOT = 'tar -xpf "$1" -C "$2" --numeric-owner && mke2fs -q -t ext4 -d "$2" "$3" "$4"'


def _run(*argv: str | Path) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(
        [str(word) for word in argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{argv[0]}: {done.stdout}{done.stderr}"


def make(mirror: str, suite: str, folder: Path, target: Path) -> None:
    """Write the image (qcow2) to ``target``; ``folder`` is for everything on the way."""
    archive, tree = folder / "root.tar", folder / "tree"
    _run(
        "mmdebstrap", "--mode=auto", "--variant=minbase", f"--include={','.join(PACKAGES)}",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
        '--customize-hook=echo "/dev/vda2 / ext4 defaults 0 1" >"$1/etc/fstab"',
        '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*',
        '--customize-hook=echo uninitialized >"$1/etc/machine-id"',
        '--customize-hook=chroot "$1" systemctl enable systemd-networkd >/dev/null 2>&1',
        suite, archive, f"deb {mirror} {suite} main",
    )  # fmt: skip
    tree.mkdir()
    root = folder / "root.ext4"
    rights = [] if os.getuid() == 0 else ["fakeroot"]
    _run(*rights, "sh", "-c", MAKE_ROOT, "make", archive, tree, root, f"{ROOT_MIB}M")
    boot = folder / "boot.fat"
    with boot.open("wb") as handle:
        handle.truncate(BOOT_MIB * MIB)
    _run("mkfs.vfat", boot)
    (folder / "syslinux.cfg").write_text(LOADER)
    for name in ("vmlinuz", "initrd.img"):
        (found,) = (tree / "boot").glob(f"{name}-*")
        _run("mcopy", "-i", boot, found, f"::{name}")
    _run("mcopy", "-i", boot, folder / "syslinux.cfg", "::syslinux.cfg")
    _run("syslinux", "--install", boot)
    disk = folder / "disk.raw"
    with disk.open("wb") as handle:
        handle.truncate((1 + BOOT_MIB + ROOT_MIB) * MIB)
    table = f"start=1MiB,size={BOOT_MIB}MiB,type=6,bootable\nstart={1 + BOOT_MIB}MiB,type=83\n"
    subprocess.run(
        ["/usr/sbin/sfdisk", "-q", "--label", "dos", str(disk)], input=table, text=True, check=True
    )
    with disk.open("r+b") as handle:
        handle.write(MBR.read_bytes())
        for part, at in ((boot, 1), (root, 1 + BOOT_MIB)):
            handle.seek(at * MIB)
            with part.open("rb") as source:
                shutil.copyfileobj(source, handle, MIB)
    _run("qemu-img", "convert", "-O", "qcow2", disk, target)

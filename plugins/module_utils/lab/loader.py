"""A guest's disk with a boot loader of its own: GRUB for BIOS, put there without root.

A guest that boots through its loader goes the way of a real machine: the loader's menu, one-shot
entries, the default entry after a panic. What ``grub-install`` would write is written here into an
image file: ``boot.img`` into the master boot record, ``core.img`` behind it, and the rest of GRUB
comes from the guest's own packages in the bake (GRUB manual, "BIOS installation"; the offsets are
those of GRUB's ``include/grub/i386/pc/boot.h``).
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tarfile
import uuid
from pathlib import Path
from typing import BinaryIO, List, Tuple

from . import initramfs, qemu
from .errors import LabError

ROOT_DEVICE = "/dev/vda1"
GRUB_FOLDER = "/boot/grub/i386-pc"
SECTOR = 512
# Where the partition starts: what fdisk and installers leave free for a loader.
FIRST_SECTOR = 2048
LINUX_PARTITION = 0x83
# boot.img: its code ends where the disk's signature begins, and two bytes of it, a jump, are
# replaced by no-operations so that the drive which the BIOS names is believed.
BOOT_CODE_BYTES = 440
DRIVE_CHECK = 0x66
NO_OPERATIONS = b"\x90\x90"
_COPY_BYTES = 1 << 20

# The addresses of a node, set by the lab's initramfs where that one boots, by this unit otherwise.
ADDRESSES = "/etc/crossover/addresses"
_UNIT = """\
[Unit]
Description=Addresses of a lab guest
DefaultDependencies=no
After=local-fs.target
Before=network.target ssh.service
ConditionFileNotEmpty=/etc/crossover/addresses

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/crossover/set-addresses

[Install]
WantedBy=multi-user.target
"""
_SET_ADDRESSES = """\
# Sets what /etc/crossover/addresses lists: device, family, address.
ip link set lo up
while read -r device family address; do
	ip link set "$device" up
	ip "$family" addr replace "$address" dev "$device"
done </etc/crossover/addresses
"""
# What an initramfs made in an emulated guest has: what that guest needs, and no more, or making it
# takes minutes. By name: what is built into the running kernel (`dep`) may be a module in another.
_INITRAMFS = "MODULES=list\nCOMPRESSLEVEL=1\n"
# grub-mkconfig asks it about the disk, which in the bake is not there yet.
_PROBE = """\
#!/bin/sh
for word in "$@"; do
	case $word in --target=*) target=${word#--target=} ;; esac
done
case $target in
device) echo @device@ ;;
fs) echo ext2 ;;
fs_uuid) echo @uuid@ ;;
partmap) echo msdos ;;
drive) echo '(hd0,msdos1)' ;;
compatibility_hint) echo hd0,msdos1 ;;
esac
"""
_MAKE_GRUB = """\
set -e
mkdir -p /boot/grub/i386-pc
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /usr/lib/grub/i386-pc/boot.img \\
	/boot/grub/i386-pc
grub-mkimage -O i386-pc -o /boot/grub/i386-pc/core.img -p '(,msdos1)/boot/grub' \\
	biosdisk part_msdos ext2
grub-editenv /boot/grub/grubenv create
# The initramfs comes later; the menu wants it to be there now.
for kernel in /boot/vmlinuz-*; do
	: >"/boot/initrd.img-${kernel#/boot/vmlinuz-}"
done
mv /usr/sbin/grub-probe /usr/sbin/grub-probe.kept
cp /bake/probe /usr/sbin/grub-probe
chmod 755 /usr/sbin/grub-probe
grub-mkconfig -o /boot/grub/grub.cfg
mv /usr/sbin/grub-probe.kept /usr/sbin/grub-probe
systemctl enable crossover-addresses.service
# Kernels that a guest gets later have an initramfs of the distribution's kind.
rm /etc/initramfs-tools/update-initramfs.conf
rm -r /bake
"""


def default_grub() -> str:
    """``/etc/default/grub`` of a guest: no menu, no waiting, the lab's command line."""
    words = qemu.append_line("enforcing").split()
    line = " ".join(word for word in words if not word.startswith("root="))
    return (
        "GRUB_DEFAULT=0\n"
        "GRUB_TIMEOUT=0\n"
        "GRUB_DISTRIBUTOR=Debian\n"
        'GRUB_CMDLINE_LINUX_DEFAULT=""\n'
        f'GRUB_CMDLINE_LINUX="{line}"\n'
        "GRUB_TERMINAL=serial\n"
        'GRUB_SERIAL_COMMAND="serial --unit=0"\n'
        # The lab's initramfs knows devices, not identifiers of file systems.
        "GRUB_DISABLE_LINUX_UUID=true\n"
        "GRUB_DISABLE_OS_PROBER=true\n"
    )


def file_system_uuid(identity: str) -> str:
    """The UUID of an image's file system, by the image's identity."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"crossover-image-{identity}"))


def bake_files(identity: str) -> List[Tuple[str, str]]:
    """What a bake puts into the tree: (path, content)."""
    probe = _PROBE.replace("@device@", ROOT_DEVICE).replace("@uuid@", file_system_uuid(identity))
    return [
        ("/etc/default/grub", default_grub()),
        ("/etc/systemd/system/crossover-addresses.service", _UNIT),
        ("/etc/crossover/set-addresses", _SET_ADDRESSES),
        (ADDRESSES, ""),
        ("/etc/initramfs-tools/conf.d/crossover", _INITRAMFS),
        ("/etc/initramfs-tools/modules", "".join(f"{name}\n" for name in initramfs.MODULES)),
        ("/bake/probe", probe),
        ("/bake/make-grub", _MAKE_GRUB),
    ]


def bake_hooks(identity: str, folder: Path) -> List[str]:
    """mmdebstrap options that make the image bootable; their files are written to ``folder``."""
    folder.mkdir(parents=True)
    hooks = ['--customize-hook=mkdir -p "$1/bake" "$1/etc/default" "$1/etc/crossover"']
    for number, (path, content) in enumerate(bake_files(identity)):
        source = folder / str(number)
        source.write_text(content)
        hooks.append(f"--customize-hook=upload {source} {path}")
    return [*hooks, '--customize-hook=chroot "$1" sh /bake/make-grub']


def add_initrd(archive: Path, release: str, initrd: Path) -> None:
    """Put the lab's initramfs into the tree (a tar archive) as the kernel's own."""
    data = initrd.read_bytes()
    member = tarfile.TarInfo(f"./boot/initrd.img-{release}")
    member.size, member.mode = len(data), 0o600
    with tarfile.open(archive, "a") as tar:
        tar.addfile(member, io.BytesIO(data))


def boot_record(boot_image: bytes, identity: str, sectors: int) -> bytes:
    """The master boot record: GRUB's first 440 bytes, the disk's signature, one partition.

    ``sectors``: the length of the partition. LabError on a ``boot_image`` of another kind.
    """
    if len(boot_image) != SECTOR or boot_image[510:] != b"\x55\xaa":
        raise LabError(
            f"GRUB's boot.img: found {len(boot_image)} bytes that end in"
            f" {boot_image[-2:].hex() or 'nothing'}; wanted {SECTOR} that end in 55aa"
        )
    code = bytearray(boot_image[:BOOT_CODE_BYTES])
    code[DRIVE_CHECK : DRIVE_CHECK + 2] = NO_OPERATIONS
    signature = hashlib.sha256(identity.encode()).digest()[:4]
    # Cylinders and heads that say nothing: the sector numbers count.
    beyond = b"\xfe\xff\xff"
    entry = struct.pack("<B3sB3sII", 0x80, beyond, LINUX_PARTITION, beyond, FIRST_SECTOR, sectors)
    return bytes(code) + signature + b"\0\0" + entry + bytes(48) + b"\x55\xaa"


def _copy_data(source: BinaryIO, target: BinaryIO, offset: int) -> None:
    """Copy what is written of a sparse file; holes stay holes."""
    size = os.fstat(source.fileno()).st_size
    position = 0
    while position < size:
        try:
            position = os.lseek(source.fileno(), position, os.SEEK_DATA)
        except OSError:  # only a hole is left
            return
        end = os.lseek(source.fileno(), position, os.SEEK_HOLE)
        while position < end:
            data = os.pread(source.fileno(), min(_COPY_BYTES, end - position), position)
            os.pwrite(target.fileno(), data, offset + position)
            position += len(data)


def write_disk(disk: Path, root: Path, boot_image: bytes, core_image: bytes, identity: str) -> None:
    """Write a bootable disk: GRUB, and the file system ``root`` as its only partition."""
    room = (FIRST_SECTOR - 1) * SECTOR
    if len(core_image) > room:
        raise LabError(f"GRUB's core.img has {len(core_image)} bytes; wanted at most {room}")
    size = root.stat().st_size
    with disk.open("wb") as target, root.open("rb") as source:
        target.truncate(FIRST_SECTOR * SECTOR + size)
        target.write(boot_record(boot_image, identity, size // SECTOR))
        target.write(core_image)
        target.flush()
        _copy_data(source, target, FIRST_SECTOR * SECTOR)

"""A disk that boots by itself: where GRUB's parts lie, and what the bake puts into the tree."""

import struct
import tarfile

import pytest

from collector.lab import booting, loader, qemu
from collector.lab.errors import LabError
from collector.lab.wish import Wish

BOOT_IMAGE = bytes(range(1, 256)) * 2 + b"\x55\xaa"
MIB = 1 << 20


@pytest.fixture
def root(tmp_path):
    """A file system stand-in: sparse, with data at its begin and near its end."""
    path = tmp_path / "root.ext4"
    with path.open("wb") as handle:
        handle.truncate(3 * MIB)
        handle.write(b"first")
        handle.seek(2 * MIB)
        handle.write(b"later")
    return path


def test_the_disk_has_grub_in_front_and_the_file_system_as_its_partition(root, tmp_path):
    disk = tmp_path / "disk.raw"
    loader.write_disk(disk, root, BOOT_IMAGE, b"core" * 300, "0123")
    data = disk.read_bytes()
    assert len(data) == 4 * MIB
    assert data[: loader.DRIVE_CHECK] == BOOT_IMAGE[: loader.DRIVE_CHECK]
    assert data[loader.DRIVE_CHECK : loader.DRIVE_CHECK + 2] == b"\x90\x90"
    assert data[512 : 512 + 1200] == b"core" * 300
    flag, kind, start, length = struct.unpack("<B3xB3xII", data[446:462])
    assert (flag, kind, start, length) == (0x80, 0x83, 2048, 3 * MIB // 512)
    assert data[462:510] == bytes(48)
    assert data[510:512] == b"\x55\xaa"
    assert data[MIB : 4 * MIB] == root.read_bytes()


def test_holes_stay_holes(root, tmp_path):
    disk = tmp_path / "disk.raw"
    with root.open("r+b") as handle:
        handle.truncate(300 * MIB)
    loader.write_disk(disk, root, BOOT_IMAGE, b"core", "0123")
    assert disk.stat().st_size == 301 * MIB
    assert disk.stat().st_blocks * 512 < 8 * MIB


def test_two_images_are_two_disks_for_the_guest():
    first, second = (loader.boot_record(BOOT_IMAGE, name, 8)[440:444] for name in ("a", "b"))
    assert first != second


def test_parts_of_another_kind_are_refused(root, tmp_path):
    with pytest.raises(LabError) as caught:
        loader.boot_record(b"\0" * 512, "0123", 8)
    assert str(caught.value) == (
        "GRUB's boot.img: found 512 bytes that end in 0000; wanted 512 that end in 55aa"
    )
    with pytest.raises(LabError) as caught:
        loader.write_disk(tmp_path / "disk.raw", root, BOOT_IMAGE, b"x" * MIB, "0123")
    assert str(caught.value) == "GRUB's core.img has 1048576 bytes; wanted at most 1048064"


def test_the_command_line_is_the_labs_without_a_root_device():
    text = loader.default_grub()
    line = next(item for item in text.splitlines() if item.startswith("GRUB_CMDLINE_LINUX="))
    words = line.partition("=")[2].strip('"').split()
    assert words == qemu.append_line("enforcing").split()[1:]
    assert "root=/dev/vda" not in text


def test_the_labs_initramfs_takes_the_place_of_the_one_in_the_tree(tmp_path):
    archive, initrd = tmp_path / "root.tar", tmp_path / "initrd"
    (tmp_path / "empty").write_bytes(b"")
    with tarfile.open(archive, "w") as tar:
        tar.add(tmp_path / "empty", "./boot/initrd.img-6.12.1")
    initrd.write_bytes(b"070701")
    loader.add_initrd(archive, "6.12.1", initrd)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "tree", filter="data")
    assert (tmp_path / "tree/boot/initrd.img-6.12.1").read_bytes() == b"070701"


def wish(folder, **changes):
    wanted = {
        "name": "x", "topology": {}, "image": folder, "cloud": False, "cloud_packages": (),
        "accelerator": "tcg", "memory_mib": 768, "cpus": 1, "selinux": "enforcing", "append": "",
        "restrict": True, "boot_timeout_s": 600, **changes,
    }  # fmt: skip
    return Wish(**wanted)


def test_a_guest_with_a_loader_is_handed_no_kernel(tmp_path):
    assert booting.boot_of(wish(tmp_path), None).kernel == tmp_path / "vmlinuz"
    (tmp_path / "disk.raw").touch()
    assert booting.boot_of(wish(tmp_path), None) == qemu.Boot(None, None, "")


@pytest.mark.parametrize("change", [{"append": "quiet"}, {"selinux": "permissive"}])
def test_a_guest_with_a_loader_takes_no_command_line_from_outside(tmp_path, change):
    (tmp_path / "disk.raw").touch()
    with pytest.raises(LabError) as caught:
        booting.boot_of(wish(tmp_path, **change), None)
    assert "wanted neither, as guests with a boot loader have their command line from it" in str(
        caught.value
    )


def test_a_guest_with_a_loader_is_refused_a_kernel_of_the_lab(tmp_path):
    (tmp_path / "disk.raw").touch()
    with pytest.raises(LabError) as caught:
        booting.guest_kernel(wish(tmp_path, kernel=tmp_path / "built"))
    assert str(caught.value) == (
        f"kernel {tmp_path / 'built'}: guests of {tmp_path} boot what their own disk says; wanted a"
        " baked image without a boot loader, or the role kernel"
    )

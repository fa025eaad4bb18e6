"""Kernels in the lab: made ready for an image, and a saved state for each of their boots."""

from __future__ import annotations

import io
import json
import lzma
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from collector.lab import booting, guest_kernel, initramfs, instance, labels, qemu, saved, state
from collector.lab.errors import LabError
from collector.lab.topology import read_topology
from collector.lab.wish import Wish, from_document

TOPOLOGIES = Path(__file__).resolve().parents[3] / "roles" / "lab_qemu" / "files" / "topologies"
RELEASE = "6.12.1-x"
CONFIG = "".join(f"CONFIG_{name}=y\n" for name in guest_kernel.NEEDED)
DEPENDENCIES = """\
kernel/drivers/virtio/virtio_pci.ko.xz:
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2.ko
kernel/fs/jbd2.ko:
kernel/net/stt.ko:
"""
CONTEXTS = """\
/usr/lib/modules(/.*)?\tsystem_u:object_r:modules_object_t:s0
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def image(tmp_path):
    """A baked image, as far as a kernel needs one."""
    folder = tmp_path / "image"
    (folder / "contexts").mkdir(parents=True)
    (folder / "contexts" / "file_contexts").write_text(CONTEXTS)
    (folder / "busybox").write_bytes(b"busybox")
    (folder / "init").write_bytes(b"init")
    (folder / "image.json").write_text(json.dumps({"kernel_release": "6.12.0-own"}))
    return folder


def kernel(tmp_path, name="lab", config=CONFIG, dependencies=DEPENDENCIES):
    """A built kernel with modules."""
    folder = tmp_path / f"built-{name}"
    folder.mkdir()
    facts = {"schema": 1, "name": name, "identity": f"{name:0>16}", "release": RELEASE}
    (folder / "entry.json").write_text(json.dumps(facts))
    (folder / "config").write_text(config)
    (folder / "vmlinuz").write_bytes(b"kernel")
    base = f"lib/modules/{RELEASE}"
    files = {
        "modules.dep": dependencies.encode(),
        "config": config.encode(),
        "kernel/drivers/virtio/virtio_pci.ko.xz": lzma.compress(b"ELF virtio"),
        "kernel/fs/jbd2.ko": b"ELF jbd2",
        "kernel/fs/ext4/ext4.ko": b"ELF ext4",
    }
    with tarfile.open(folder / "modules.tar", "w") as tar:
        for path in ("lib", "lib/modules", base):
            member = tarfile.TarInfo(path)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
        for path, data in files.items():
            member = tarfile.TarInfo(f"{base}/{path}")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return folder


def debugfs(disk, request):
    done = subprocess.run(
        ["/sbin/debugfs", "-R", request, str(disk)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_kernel_gets_the_initramfs_of_the_lab_with_its_own_modules(image, tmp_path):
    made = guest_kernel.prepare(image, kernel(tmp_path))
    assert made.initrd.read_bytes() == initramfs.build(
        b"busybox",
        b"init",
        {"virtio_pci": b"ELF virtio", "jbd2": b"ELF jbd2", "ext4": b"ELF ext4"},
    )


def test_a_kernel_with_everything_built_in_needs_no_module(image, tmp_path):
    made = guest_kernel.prepare(image, kernel(tmp_path, dependencies=""))
    assert made.initrd.read_bytes() == initramfs.build(b"busybox", b"init", {})


def test_the_disk_of_modules_holds_them_labelled_as_the_policy_has_it(image, tmp_path):
    made = guest_kernel.prepare(image, kernel(tmp_path))
    assert debugfs(made.modules, "cat /kernel/fs/jbd2.ko") == "ELF jbd2"
    for path in ("/", "/config", "/kernel/fs/ext4/ext4.ko"):
        label = debugfs(made.modules, f"ea_get {path} security.selinux")
        assert "system_u:object_r:modules_object_t:s0" in label, path
    assert "User:     0" in debugfs(made.modules, "stat /config")


def test_a_kernel_is_made_ready_once_an_image(image, tmp_path, monkeypatch):
    built = kernel(tmp_path)
    first = guest_kernel.prepare(image, built)
    monkeypatch.setattr(labels, "write_labels", lambda *_: pytest.fail("made again"))
    assert guest_kernel.prepare(image, built) == first
    assert [path.name for path in (image / "kernels").iterdir()] == ["0000000000000lab"]


@pytest.mark.parametrize("name", ["VIRTIO_BLK", "EXT4_FS"])
def test_a_kernel_that_no_guest_can_boot_is_refused_before_anything_starts(image, tmp_path, name):
    config = CONFIG.replace(f"CONFIG_{name}=y", f"# CONFIG_{name} is not set")
    with pytest.raises(LabError) as refused:
        guest_kernel.prepare(image, kernel(tmp_path, config=config))
    assert str(refused.value) == (
        f"kernel lab: no guest can boot it: CONFIG_{name} is off; wanted {name} built in or as"
        " modules"
    )
    assert not (image / "kernels").exists()


def test_a_folder_that_holds_no_kernel_is_told(image, tmp_path):
    with pytest.raises(LabError, match="wanted the folder of a built kernel"):
        guest_kernel.prepare(image, tmp_path)


def wish(image, **changes):
    wanted = {
        "name": "x",
        "topology": yaml.safe_load((TOPOLOGIES / "pair.yml").read_text()),
        "image": image,
        "cloud": False,
        "cloud_packages": (),
        "accelerator": "tcg",
        "memory_mib": 768,
        "cpus": 1,
        "selinux": "enforcing",
        "append": "",
        "restrict": True,
        "boot_timeout_s": 600.0,
        **changes,
    }
    return Wish(**wanted)


def test_what_was_wished_for_comes_back_from_the_state_file(image):
    asked = wish(image, kernel=Path("/k"), boot=1, cloud_packages=("a",))
    assert from_document(json.loads(json.dumps(asked.document()))) == asked


def test_a_guest_boots_the_kernel_and_finds_its_modules_on_a_disk(image, tmp_path):
    found = guest_kernel.prepare(image, kernel(tmp_path))
    boot = booting.boot_of(wish(image), found)
    topology = read_topology(wish(image).topology)
    argv = qemu.command(
        "x", topology, "client", boot, qemu.Machine("tcg", 768, 1, True),
        qemu.NodeFiles(*(tmp_path / name for name in "abcdef")), 40022, None,
    )  # fmt: skip
    assert argv[argv.index("-kernel") + 1] == str(found.vmlinuz)
    assert argv[argv.index("-initrd") + 1] == str(found.initrd)
    disks = [word for word in argv if word.startswith("virtio-blk-pci")]
    # vda, vdb and vdc, as the lab's first process expects them.
    assert disks == ["virtio-blk-pci,drive=root", "virtio-blk-pci,drive=seed",
                     "virtio-blk-pci,drive=modules"]  # fmt: skip


def signature(wanted):
    return instance._Starter(wanted).state.signature


def test_each_kernel_and_each_of_its_boots_has_a_state_of_its_own(image, tmp_path):
    one, other = kernel(tmp_path), kernel(tmp_path, "other")
    own = wish(image)
    wanted = [own, replace(own, boot=1), replace(own, kernel=one), replace(own, kernel=other),
              replace(own, kernel=one, boot=1)]  # fmt: skip
    assert len({signature(item) for item in wanted}) == len(wanted)
    places = [instance._Starter(item).disks.name for item in wanted]
    assert places == ["_own.0", "_own.1", "lab.0", "other.0", "lab.1"]


def test_a_kernel_that_was_built_anew_does_not_go_on_from_the_old_state(image, tmp_path):
    built = kernel(tmp_path)
    asked = wish(image, kernel=built)
    before = signature(asked)
    facts = json.loads((built / "entry.json").read_text())
    (built / "entry.json").write_text(json.dumps({**facts, "identity": "f" * 16}))
    assert signature(asked) != before
    assert instance._Starter(asked).disks.name == "lab.0"


def test_a_cloud_image_is_refused_a_kernel(tmp_path):
    disk = tmp_path / "cloud.qcow2"
    disk.touch()
    with pytest.raises(LabError, match="boot what their own disk says"):
        booting.guest_kernel(wish(disk, cloud=True, kernel=tmp_path))


def test_a_lab_that_does_not_run_cannot_change_its_kernel():
    with pytest.raises(LabError) as refused:
        instance.switch("x", None, 0)
    assert str(refused.value) == "lab x does not run; start it first"
    state.lab_dir("x").mkdir(parents=True)
    state.LabState(name="x", topology={}).write()
    with pytest.raises(LabError, match="does not run"):
        instance.switch("x", None, 0)


def keep(kernel_name, boot, at, size=0):
    place = saved.folder("x", kernel_name, boot)
    place.mkdir(parents=True)
    (place / "client.qcow2").write_bytes(b"x" * size)
    saved.write(place, saved.Saved(kernel_name, boot, "s", at))
    return place


def test_only_the_states_used_last_are_kept():
    places = [keep(f"k{number}", 0, float(number)) for number in range(saved.KEPT + 2)]
    half_made = saved.folder("x", "half", 0)
    half_made.mkdir()
    saved.prune("x")
    assert [place.exists() for place in places] == [False, False] + [True] * saved.KEPT
    assert not half_made.exists()


def test_a_state_that_is_used_again_stays_longer():
    oldest = keep("k0", 0, 1.0)
    for number in range(1, saved.KEPT + 1):
        keep(f"k{number}", 0, float(number + 1))
    saved.used(oldest)
    saved.prune("x")
    assert oldest.exists()
    assert not saved.folder("x", "k1", 0).exists()


def test_states_are_listed_with_the_disk_that_they_take():
    keep(None, 0, 1.0, 100_000)
    keep("lab", 1, 2.0)
    found = saved.everything("x")
    assert [(item.kernel, item.boot) for item, _size in found] == [("lab", 1), (None, 0)]
    assert found[1][1] >= 100_000


@pytest.mark.parametrize("text", ["{", "{}", '{"kernel": null}'])
def test_a_damaged_description_counts_as_no_state(text):
    place = keep("lab", 0, 1.0)
    (place / "saved.json").write_text(text)
    assert saved.read(place) is None
    saved.used(place)
    assert saved.read(place) is None

"""What goes into a guest image and how it gets there; no archive is asked here."""

import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
from dataclasses import replace

import pytest

from collector.lab import accelerator, image, initramfs, labels, paths, seed, ssh
from collector.lab.errors import LabError
from collector.lab.topology import read_topology

CONTEXTS = """\
/.*             system_u:object_r:default_t:s0
/etc(/.*)?      system_u:object_r:etc_t:s0
/etc/shadow  -- system_u:object_r:shadow_t:s0
/proc           <<none>>
"""


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "init").write_text("#!/bin/busybox sh\n")
    (tmp_path / "one.cil").write_text("(allow a b (c (d)))\n")
    return image.Recipe(
        suite="trixie",
        components=("main",),
        packages=("openssh-server", "linux-image-cloud-amd64"),
        masked_units=("apt-daily.timer",),
        selinux_type="default",
        selinux_modules=(tmp_path / "one.cil",),
        init=tmp_path / "init",
        size_mib=64,
    )


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stands programs of the host in by scripts: ``programs("apt-get", "echo x")``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin")

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return make


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "crossover"


def test_the_order_of_packages_is_no_other_image(recipe):
    turned = replace(recipe, packages=tuple(reversed(recipe.packages)))
    assert turned.identity() == recipe.identity()


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "bookworm"},
        {"components": ("main", "non-free")},
        {"packages": ("openssh-server",)},
        {"masked_units": ()},
        {"selinux_type": "mls"},
        {"size_mib": 65},
        {"selinux_modules": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_input_makes_another_image(recipe, change):
    assert replace(recipe, **change).identity() != recipe.identity()


def test_the_content_of_files_counts_not_their_place(recipe, tmp_path):
    before = recipe.identity()
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(recipe.init, tmp_path / "elsewhere" / "init")
    assert replace(recipe, init=tmp_path / "elsewhere" / "init").identity() == before
    with open(moved, "a", encoding="utf-8") as handle:
        handle.write("# more\n")
    assert replace(recipe, init=tmp_path / "elsewhere" / "init").identity() != before


def test_the_bake_asks_for_exactly_the_packages_and_boots_enforcing(recipe, programs, tmp_path):
    programs("apt-config", "echo 'Acquire::http::Proxy=http://proxy.example:3128'")
    argv = image.bootstrap_command(recipe, "http://archive.example/debian", tmp_path / "x.tar")
    assert argv[:2] == ["mmdebstrap", "--mode=auto"]
    assert "--include=openssh-server,linux-image-cloud-amd64" in argv
    assert '--aptopt=Acquire::http::Proxy "http://proxy.example:3128"' in argv
    assert argv[-1] == "deb http://archive.example/debian trixie main"
    assert any("SELINUX=enforcing" in word for word in argv)
    assert any(word.startswith("--customize-hook=upload") for word in argv)


def test_stt_is_built_in_the_image_for_its_own_kernel_and_leaves_no_compiler(
    recipe, programs, tmp_path
):
    programs("apt-config", "true")
    (tmp_path / "stt" / "plugin").mkdir(parents=True)
    (tmp_path / "stt" / "device.c").write_text("int a;")
    (tmp_path / "stt" / "plugin" / "link_stt.c").write_text("int b;")
    (tmp_path / "stt" / "README.md").write_text("not compiled")
    with_stt = replace(recipe, stt_sources=tmp_path / "stt")
    argv = image.bootstrap_command(with_stt, "http://archive.example/debian", tmp_path / "x.tar")
    uploads = [word.split()[-1] for word in argv if word.startswith("--customize-hook=upload")]
    assert [name for name in uploads if "stt" in name] == [
        "/usr/src/crossover-stt/device.c",
        "/usr/src/crossover-stt/plugin/link_stt.c",
    ]
    (build,) = (word for word in argv if "KERNEL=$release" in word)
    assert build.startswith('--customize-hook=chroot "$1" ')
    assert build.index("purge --autoremove $packages") > build.index("all install")

    assert with_stt.identity() != recipe.identity()
    before = with_stt.identity()
    (tmp_path / "stt" / "README.md").write_text("reworded")
    assert with_stt.identity() == before
    (tmp_path / "stt" / "device.c").write_text("int c;")
    assert with_stt.identity() != before


def test_the_archive_is_the_one_of_the_hosts_own_apt(programs):
    programs(
        "apt-get",
        "printf 'Other\\tOther\\thttp://other.example/\\n"
        "Debian\\tDebian\\thttp://archive.example/debian/\\n'",
    )
    assert image.host_mirror() == "http://archive.example/debian"
    assert image.host_mirror("http://asked.example") == "http://asked.example"


def test_a_host_without_a_debian_archive_is_told_what_to_set(programs):
    programs("apt-get", "printf 'Ubuntu\\tUbuntu\\thttp://archive.example/\\n'")
    with pytest.raises(LabError) as caught:
        image.host_mirror()
    assert str(caught.value) == (
        "guest image: this host's apt has archives of Ubuntu and none of Debian"
        " (after 'apt-get update'); set lab_qemu_mirror to the URI of a Debian archive"
    )


def test_a_failed_bake_shows_the_complaint_and_leaves_only_its_log(recipe, programs, cache):
    programs("apt-config", "true")
    programs("mmdebstrap", "echo 'I: working'; echo 'E: no such suite'; echo 'I: cleaning'; exit 1")
    with pytest.raises(LabError) as caught:
        image.bake(recipe, "http://archive.example")
    log = cache / "images" / "failed-bake.log"
    assert str(caught.value) == (
        f"mmdebstrap failed (exit 1): E: no such suite; the whole log is {log}"
    )
    assert list((cache / "images").iterdir()) == [log]


def test_an_image_that_is_there_is_not_made_again(recipe, cache):
    ready = cache / "images" / recipe.identity()
    ready.mkdir(parents=True)
    assert image.present(recipe.identity()) is None
    (ready / "image.json").write_text("{}")
    assert image.bake(recipe, "") == ready


def test_too_little_space_is_told_before_anything_is_fetched(tmp_path):
    with pytest.raises(LabError) as caught:
        image.require_space(tmp_path, 2**70, "guest image")
    assert str(caught.value).startswith(f"guest image: {tmp_path} has ")
    assert str(caught.value).endswith(f" MiB free; wanted {2**50} MiB")


def test_labels_are_looked_up_in_the_images_own_policy_and_written(tmp_path):
    contexts = tmp_path / "file_contexts"
    contexts.write_text(CONTEXTS)
    tree = tmp_path / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc" / "shadow").write_text("")
    (tree / "proc").mkdir()
    target = tmp_path / "root.ext4"
    mke2fs = shutil.which("mke2fs", path="/usr/sbin:/sbin:/usr/bin")
    subprocess.run([mke2fs, "-q", "-t", "ext4", "-d", str(tree), str(target), "4M"], check=True)
    labeller = labels.Labeller(contexts)
    found = [("/etc", 0o40755), ("/etc/shadow", 0o100600), ("/proc", 0o40555)]
    commands = list(labels.debugfs_commands(found, labeller))
    assert len(commands) == 2  # /proc has no label of its own
    assert labels.write_labels(target, commands) == 2
    shown = subprocess.run(
        ["debugfs", "-R", "ea_get -x /etc/shadow security.selinux", str(target)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert b"system_u:object_r:shadow_t:s0\0".hex(" ") in " ".join(shown.split())


def test_a_missing_path_is_a_complaint_not_a_smaller_image(tmp_path):
    target = tmp_path / "root.ext4"
    mke2fs = shutil.which("mke2fs", path="/usr/sbin:/sbin:/usr/bin")
    subprocess.run([mke2fs, "-q", "-t", "ext4", str(target), "4M"], check=True)
    with pytest.raises(LabError, match="debugfs"):
        labels.write_labels(target, ['ea_set "/nothing" security.selinux "x\\000"'])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["root.ext4"]


def test_a_path_that_debugfs_cannot_name_is_refused(tmp_path):
    contexts = tmp_path / "file_contexts"
    contexts.write_text(CONTEXTS)
    with pytest.raises(LabError, match="has a quote or line end"):
        list(labels.debugfs_commands([('/a"b', 0o100644)], labels.Labeller(contexts)))


def test_a_missing_policy_is_told(tmp_path):
    with pytest.raises(LabError, match="wanted a file_contexts file"):
        labels.Labeller(tmp_path / "absent")


def newc_entries(data):
    """Name and content of each entry of a "newc" archive, read as its description says."""
    at, found = 0, []
    while True:
        assert data[at : at + 6] == b"070701"
        size, name_size = (int(data[at + k : at + k + 8], 16) for k in (54, 94))
        name = data[at + 110 : at + 110 + name_size - 1].decode()
        at += 110 + name_size + -(110 + name_size) % 4
        if name == "TRAILER!!!":
            return found
        found.append((name, data[at : at + size]))
        at += size + -size % 4


def test_the_initramfs_is_an_archive_as_the_kernel_reads_it():
    data = initramfs.build(b"busybox", b"#!init", {"virtio_blk": b"b", "virtio_net": b"net"})
    assert newc_entries(data) == [
        *((name, b"") for name in ("bin", "dev", "proc", "root", "seed", "modules")),
        ("bin/busybox", b"busybox"),
        ("init", b"#!init"),
        ("modules/virtio_blk.ko", b"b"),
        ("modules/virtio_net.ko", b"net"),
        # insmod resolves nothing: the order is the dependencies'.
        ("modules/order", b"virtio_blk\nvirtio_net\n"),
    ]


DEPENDENCIES = """\
kernel/fs/jbd2/jbd2.ko:
kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/mbcache.ko kernel/fs/jbd2/jbd2.ko
kernel/lib/crc16.ko:
kernel/drivers/net/virtio_net.ko.xz: kernel/net/core/net_failover.ko.xz kernel/core/failover.ko.xz
kernel/drivers/net/e1000.ko:
kernel/crypto/crc32c-generic.ko:
"""


def test_modules_are_loaded_after_what_they_need_and_nothing_else_is():
    assert initramfs.load_order(DEPENDENCIES) == [
        "kernel/crypto/crc32c-generic.ko",
        "kernel/fs/jbd2/jbd2.ko",
        "kernel/fs/mbcache.ko",
        "kernel/lib/crc16.ko",
        "kernel/fs/ext4/ext4.ko",
        "kernel/core/failover.ko.xz",
        "kernel/net/core/net_failover.ko.xz",
        "kernel/drivers/net/virtio_net.ko.xz",
    ]


def test_a_kernel_that_has_everything_built_in_loads_nothing():
    assert initramfs.load_order("kernel/drivers/net/e1000.ko:\n") == []


@pytest.mark.parametrize(
    ("name", "pack"), [("a.ko", bytes), ("a.ko.xz", lzma.compress), ("a.ko.gz", gzip.compress)]
)
def test_modules_are_unpacked_as_their_name_tells(name, pack):
    assert initramfs.plain_module(name, pack(b"elf")) == b"elf"


def test_an_unknown_compression_is_told():
    with pytest.raises(LabError, match=r"kernel module a.ko.zst: wanted .ko, .ko.xz or .ko.gz"):
        initramfs.plain_module("a.ko.zst", b"")


ENDS = [
    {"node": node, "device": "eth1", "ipv4": f"198.18.0.{i}/24", "ipv6": f"2001:db8::{i}/64"}
    for i, node in enumerate("ab", start=1)
]
TOPOLOGY = read_topology(
    {
        "schema": 1,
        "name": "pair",
        "nodes": {"a": {}, "b": {}},
        "links": [{"name": "test", "ends": ENDS}],
    }
)
IDENTITY = seed.Identity("lab", "a", "PRIVATE\n", "ssh-ed25519 PUB x\n", "ssh-ed25519 USER y\n")


def test_the_seed_of_a_baked_image_says_who_the_node_is():
    with tarfile.open(fileobj=io.BytesIO(seed.tar_seed(IDENTITY, TOPOLOGY))) as tar:
        files = {name: tar.extractfile(name).read().decode() for name in tar.getnames()}
    assert files["etc/hostname"] == "a\n"
    assert files["etc/ssh/ssh_host_ed25519_key"] == "PRIVATE\n"
    assert files["root/.ssh/authorized_keys"] == "ssh-ed25519 USER y\n"
    assert files["addresses"].splitlines() == [
        "eth0 -4 10.0.2.15/24",
        "eth1 -4 198.18.0.1/24",
        "eth1 -6 2001:db8::1/64",
    ]
    assert "198.18.0.2 b b.test" in files["etc/hosts"]


def test_the_seed_of_a_cloud_image_is_an_iso_that_cloud_init_finds(tmp_path):
    seed.cloud_seed(IDENTITY, TOPOLOGY, [], tmp_path / "seed.iso")
    data = (tmp_path / "seed.iso").read_bytes()
    assert data[32769:32774] == b"CD001"
    assert data[32808:32814] == b"cidata"
    assert b'"ed25519_private": "PRIVATE\\n"' in data
    assert b"#cloud-config\n" in data
    assert b"packages" not in data
    seed.cloud_seed(IDENTITY, TOPOLOGY, ["netperf"], tmp_path / "seed.iso")
    assert b'"package_update": true, "packages": ["netperf"]' in (
        (tmp_path / "seed.iso").read_bytes()
    )


def test_without_an_iso_tool_the_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="genisoimage is not installed on the controller"):
        seed.cloud_seed(IDENTITY, TOPOLOGY, [], tmp_path / "seed.iso")


def test_ssh_checks_host_keys_of_the_lab_alone(tmp_path):
    text = ssh.client_config(
        tmp_path / "known", tmp_path / "id", "root", {"a": 1, "b": 2}, tmp_path
    )
    assert "StrictHostKeyChecking yes" in text
    assert "StrictHostKeyChecking no" not in text
    shown = subprocess.run(
        ["ssh", "-F", "/dev/stdin", "-G", "b"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for line in ("hostname 127.0.0.1", "port 2", "hostkeyalias crossover-b", "user root",
                 f"userknownhostsfile {tmp_path}/known", "stricthostkeychecking true",
                 "globalknownhostsfile /dev/null", "identitiesonly yes"):  # fmt: skip
        assert line in shown


def test_keys_are_made_once(tmp_path):
    public = ssh.make_key(tmp_path / "id", "crossover-x")
    private = (tmp_path / "id").read_text()
    assert public.startswith("ssh-ed25519 ")
    assert ssh.make_key(tmp_path / "id", "crossover-x") == public
    assert (tmp_path / "id").read_text() == private
    assert (tmp_path / "id").stat().st_mode & 0o077 == 0


def test_a_key_that_an_earlier_start_left_unfinished_is_made_anew(tmp_path):
    (tmp_path / "id").write_text("")
    assert ssh.make_key(tmp_path / "id", "crossover-x").startswith("ssh-ed25519 ")
    assert "OPENSSH PRIVATE KEY" in (tmp_path / "id").read_text()


def test_a_key_that_cannot_be_made_is_an_error_in_words(tmp_path):
    with pytest.raises(LabError, match=r"^SSH key .*absent/id: ssh-keygen: "):
        ssh.make_key(tmp_path / "absent" / "id", "crossover-x")


def test_no_login_in_time_tells_the_last_complaint(tmp_path):
    config = tmp_path / "config"
    config.write_text(
        ssh.client_config(tmp_path / "known", tmp_path / "id", "root", {"a": 1}, tmp_path)
    )
    with pytest.raises(LabError) as caught:
        ssh.wait(config, "a", lambda: "true", 0.3)
    assert str(caught.value).startswith("node a: no SSH login within 0 s: ")
    assert "Connection refused" in str(caught.value)


@pytest.fixture
def emulator(programs, cache, monkeypatch, tmp_path):
    """A stand-in for QEMU whose guest does what the script says; KVM is said to be there."""
    cache.mkdir(parents=True)
    device = tmp_path / "kvm"
    device.write_text("")
    monkeypatch.setattr(accelerator, "KVM_DEVICE", str(device))
    monkeypatch.setattr(accelerator, "PROBE_SECONDS", 3.0)

    def guest(script):
        find = "for word; do case $word in file:*) console=${word#file:};; esac; done"
        version = '[ "$1" = --version ] && { echo "QEMU 1"; exit; }'
        programs("qemu-system-x86_64", "\n".join([version, find, script]))

    return guest


def test_kvm_is_taken_only_after_a_guest_came_up(emulator, tmp_path):
    emulator('echo crossover-probe-alive >"$console"; exec sleep 60')
    found = accelerator.choose("auto", tmp_path / "k", tmp_path / "i")
    assert (found.name, found.reason) == ("kvm", "a guest booted under KVM")


def test_a_guest_that_comes_up_and_powers_off_at_once_counts(emulator, tmp_path):
    emulator('echo crossover-probe-alive >"$console"')
    assert accelerator.choose("auto", tmp_path / "k", tmp_path / "i").name == "kvm"


def test_a_refusal_of_kvm_is_remembered_with_its_reason(emulator, tmp_path, cache):
    emulator("echo 'ioctl(KVM_CREATE_VM) failed' >&2; exit 1")
    found = accelerator.choose("auto", tmp_path / "k", tmp_path / "i")
    assert found.name == "tcg"
    assert found.reason == "emulation, as QEMU with KVM ended: ioctl(KVM_CREATE_VM) failed"
    emulator('echo crossover-probe-alive >"$console"; exec sleep 60')
    assert accelerator.choose("auto", tmp_path / "k", tmp_path / "i") == found
    assert sorted(file.name for file in cache.iterdir()) == ["accelerator.json"]


def test_a_guest_that_never_prints_is_given_up(emulator, tmp_path, monkeypatch):
    monkeypatch.setattr(accelerator, "PROBE_SECONDS", 0.3)
    emulator("exec sleep 60")
    found = accelerator.choose("auto", tmp_path / "k", tmp_path / "i")
    assert found.reason == "emulation, as a guest under KVM printed nothing within 0 s"


def test_what_is_asked_for_is_not_probed(cache, tmp_path):
    found = accelerator.choose("tcg", tmp_path / "k", tmp_path / "i")
    assert (found.name, found.reason) == ("tcg", "asked for (tcg)")


def test_a_damaged_memory_of_the_probe_is_tried_anew(emulator, tmp_path, cache):
    (cache / "accelerator.json").write_text("{")
    emulator('echo crossover-probe-alive >"$console"; exec sleep 60')
    assert accelerator.choose("auto", tmp_path / "k", tmp_path / "i").name == "kvm"
    assert paths.cache_root() == cache

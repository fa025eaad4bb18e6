"""Boot loaders that are found or refused, and the steps of a boot on a root folder of its own."""

import gzip
import hashlib
import os
import tarfile
from dataclasses import replace

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    boot_loader,
    boot_watch,
    grub,
    kernel_boot,
    kernel_entry,
    kernel_install,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

from . import grub_files

OWN = "6.12.43+deb13-cloud-amd64"
CONFIG = b"CONFIG_NETLABEL=y\n"
RELEASE = "6.1.0-x"
WORDS = f"BOOT_IMAGE=/boot/vmlinuz-{OWN} root=UUID=2f3e ro quiet"


class Commands:
    """What the host's programs do to a root folder; keeps what was run."""

    def __init__(self, root):
        self.root, self.ran, self.answers, self.watching = root, [], {}, True
        self.listing = "init\nusr/lib/modules/6.1.0-x/modules.dep\n"

    def __call__(self, argv):
        self.ran.append(list(argv))
        while argv[0] == "env" or "=" in argv[0]:
            argv = argv[1:]
        name = argv[0]
        if tuple(argv[:2]) in self.answers:
            return self.answers[tuple(argv[:2])]
        if name == "grub-probe":
            return 0, "ext2\n" if argv[1] == "--target=fs" else "\n", ""
        if name == "grub-reboot":
            (self.root / "boot/grub/grubenv").write_bytes(
                grub_files.environment(next_entry=argv[1])
            )
        elif name == "grub-editenv":
            (self.root / "boot/grub/grubenv").write_bytes(grub_files.environment())
        elif argv[:2] == ["/bin/sh", "/usr/sbin/mkinitramfs"]:
            with open(argv[3], "wb") as handle:
                handle.write(b"initrd")
        elif argv[:2] == ["/bin/sh", "/usr/sbin/lsinitramfs"]:
            return 0, self.listing, ""
        elif argv[:2] == ["systemctl", "stop"]:
            self.watching = False
        elif argv[:2] == ["systemctl", "is-active"]:
            return (0 if self.watching else 3), "", ""
        return 0, "", ""


@pytest.fixture
def root(tmp_path):
    """A Debian host with GRUB that runs its own kernel."""
    files = {
        "proc/cmdline": WORDS,
        "proc/sys/kernel/osrelease": f"{OWN}\n",
        "proc/sys/kernel/random/boot_id": "boot-1\n",
        f"boot/config-{OWN}": "CONFIG_OWN=y\n",
        "boot/grub/grub.cfg": grub_files.menu(OWN),
        "run/systemd/system/x": "",
        "lib/modules/x": "",
    }
    for path, text in files.items():
        place = tmp_path / "host" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "host/boot/grub/grubenv").write_bytes(grub_files.environment())
    return tmp_path / "host"


@pytest.fixture
def host(root, monkeypatch):
    monkeypatch.setattr(kernel_install.shutil, "which", lambda name, path: f"/usr/sbin/{name}")
    commands = Commands(root)
    return kernel_boot.Host(root, commands, commands)


@pytest.fixture
def built(tmp_path):
    """The files of a built kernel, and what is wanted of it."""
    folder = tmp_path / "built"
    inside = folder / "lib/modules" / RELEASE / "kernel"
    inside.mkdir(parents=True)
    (inside / "x.ko").write_bytes(b"module")
    (inside.parent / "build").symlink_to("/usr/src/elsewhere")
    with tarfile.open(folder / "modules.tar", "w") as tar:
        tar.add(folder / "lib", "lib")
    (folder / "vmlinuz").write_bytes(b"kernel")
    (folder / "config").write_bytes(CONFIG)
    asked = {"name": "new", "release": RELEASE, "content": "one"}
    asked["config_sha256"] = hashlib.sha256(CONFIG).hexdigest()
    return folder, kernel_entry.wanted_kernel(asked)


def reboot(root, token=None, release=OWN, number=2):
    """The host comes up again: with ``token`` it is the one-shot boot."""
    word = f" crossover.boot={token}" if token else ""
    (root / "proc/cmdline").write_text(WORDS + word)
    (root / "proc/sys/kernel/osrelease").write_text(f"{release}\n")
    (root / "proc/sys/kernel/random/boot_id").write_text(f"boot-{number}\n")


def tree(root):
    """Every file with its content, links with their targets; /proc left out."""
    found = {}
    for folder, _names, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, root)
            if not key.startswith("proc/"):
                link = os.path.islink(path)
                with open(path, "rb") if not link else open(os.devnull, "rb") as handle:
                    found[key] = os.readlink(path) if link else handle.read()
    return found


def arm(host, wanted, token="abc", **changes):
    options = {"method": "grub", "panic_s": 10, "timeout_s": 300, "most_reboots": 4, **changes}
    return kernel_boot.arm(host, wanted, token, **options)


# --- boot loaders -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "content", "found"),
    [
        ("boot/grub2/grub.cfg", b"", "GRUB with /boot/grub2 (/boot/grub2/grub.cfg)"),
        ("boot/efi/loader/loader.conf", b"", "systemd-boot (/boot/efi/loader/loader.conf)"),
        ("boot/extlinux/extlinux.conf", b"", "extlinux (/boot/extlinux/extlinux.conf)"),
        (
            boot_loader.LOADER_INFO,
            b"\x06\0\0\0" + "systemd-boot 257".encode("utf-16-le"),
            "systemd-boot 257",
        ),
        (
            "etc/x",
            b"",
            "none of its files (a kernel can come from outside, as in a virtual machine)",
        ),
    ],
)
def test_another_boot_loader_is_refused_by_its_name(tmp_path, path, content, found):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)
    with pytest.raises(HostError) as caught:
        boot_loader.read_grub(tmp_path, Commands(tmp_path))
    assert str(caught.value) == (
        f"boot loader: found {found}; wanted GRUB with /boot/grub/grub.cfg, or kexec (method kexec)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "blscfg\n", "found GRUB that reads Boot Loader Specification entries"),
        (lambda text: text.replace("next_entry", "x"), "no next_entry: it knows no one-shot entry"),
        (
            lambda text: text.replace("custom.cfg", "x"),
            "no custom.cfg: it does not read custom.cfg",
        ),
    ],
)
def test_a_grub_that_cannot_boot_once_is_refused(root, change, message):
    file = root / "boot/grub/grub.cfg"
    file.write_text(change(file.read_text()))
    with pytest.raises(HostError) as caught:
        boot_loader.read_grub(root, Commands(root))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("target", "answer"), [("abstraction", "lvm"), ("abstraction", "mdraid1x"), ("fs", "btrfs")]
)
def test_a_grub_that_cannot_clear_its_one_shot_entry_is_refused(root, target, answer):
    commands = Commands(root)
    commands.answers["grub-probe", f"--target={target}"] = (0, f"{answer}\n", "")
    with pytest.raises(HostError) as caught:
        boot_loader.read_grub(root, commands)
    assert f"on {answer}, where GRUB cannot write: a one-shot entry would be booted again" in str(
        caught.value
    )


def test_kexec_stands_in_where_grub_cannot_boot_once(host, root):
    (root / "boot/grub/grub.cfg").unlink()
    assert kernel_boot.choose_method(host, "auto") == "kexec"
    with pytest.raises(HostError, match="wanted GRUB"):
        kernel_boot.choose_method(host, "grub")


# --- steps ------------------------------------------------------------------------------------


def test_a_copied_kernel_is_put_where_the_menu_does_not_look_and_goes_without_a_trace(
    host, root, built
):
    folder, wanted = built
    before = tree(root)
    kernel_boot.install(host, wanted, folder)
    added = set(tree(root)) - set(before)
    assert added == {
        "boot/crossover/new/vmlinuz",
        "boot/crossover/new/initrd",
        f"boot/config-{RELEASE}",
        f"lib/modules/{RELEASE}/kernel/x.ko",
        "var/lib/crossover/kernel_boot.json",
    }
    kernel_boot.remove(host, ["new"])
    assert tree(root) == before


def test_a_release_that_the_host_has_by_other_means_is_left_alone(host, root, built):
    folder, wanted = built
    (root / "lib/modules" / RELEASE).mkdir()
    before = tree(root)
    with pytest.raises(HostError, match="on the host already, not put there under this name"):
        kernel_boot.install(host, wanted, folder)
    assert tree(root) == before


def test_the_hosts_own_kernel_is_booted_from_its_own_files(host, root, built):
    folder, wanted = built
    (root / "lib/modules" / RELEASE).mkdir()
    for name, content in (("vmlinuz", b"kernel"), ("config", CONFIG), ("initrd.img", b"own")):
        (root / f"boot/{name}-{RELEASE}").write_bytes(content)
    before = tree(root)
    kernel_boot.install(host, wanted, folder)
    assert (root / "boot/crossover/new/initrd").read_bytes() == b"own"
    kernel_boot.remove(host, ["new"])
    assert tree(root) == before


def test_an_install_that_fails_leaves_nothing(host, root, built):
    folder, wanted = built
    before = tree(root)
    host.slow.answers["depmod", RELEASE] = (1, "", "no space")
    with pytest.raises(HostError) as caught:
        kernel_boot.install(host, wanted, folder)
    assert str(caught.value) == f"kernel new: depmod {RELEASE}: no space; nothing of it is left"
    assert tree(root) == before


def test_an_initrd_that_could_load_no_module_is_refused(host, root, built):
    folder, wanted = built
    before = tree(root)
    host.slow.listing = "init\n"
    with pytest.raises(HostError, match=r"mkinitramfs left modules\.dep out"):
        kernel_boot.install(host, wanted, folder)
    assert tree(root) == before


def test_modules_of_another_place_are_refused(host, built, tmp_path):
    folder, wanted = built
    with tarfile.open(folder / "modules.tar", "a") as tar:
        tar.add(folder / "config", "lib/modules/other/x.ko")
    with pytest.raises(HostError, match=r"found lib/modules/other/x\.ko; wanted lib/modules/6\.1"):
        kernel_boot.install(host, wanted, folder)


def test_an_armed_boot_is_for_once_and_the_default_stays(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    default = boot_loader.read_grub(root, host.run).default()
    armed = arm(host, wanted)
    assert armed.order == ("systemctl", "reboot")
    found = boot_loader.read_grub(root, host.run)
    assert found.environment["next_entry"] == "crossover-new"
    assert found.default() == default
    custom = found.custom_file.read_text()
    (entry,) = grub.read_menu(custom).entries()
    assert entry.image == "/boot/crossover/new/vmlinuz"
    # Neither initramfs-tools nor dracut waits for somebody at a console.
    assert "panic=10 rd.shell=0 rd.emergency=reboot crossover.boot=abc" in custom
    assert "set default" not in custom
    assert "RuntimeMaxSec=300" in (root / boot_watch.UNIT_FILE).read_text()
    assert (root / boot_watch.WANTED_BY).resolve() == root / boot_watch.UNIT_FILE


def test_a_boot_that_is_as_wanted_is_confirmed_and_its_watch_called_off(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted)
    reboot(root, "abc", RELEASE)
    now = host.load()
    assert kernel_boot.confirm(host, wanted, "abc", now) == []
    assert not host.run.watching
    assert kernel_entry.spent(host.attempts, "new") == 0
    assert kernel_entry.plan("booted", wanted, now, host.attempts, host.added) == ()


def test_the_kernels_own_word_about_its_configuration_comes_first(host, root, built):
    (root / "proc/config.gz").write_bytes(gzip.compress(CONFIG))
    found = kernel_boot.running(root)
    assert found.config_sha256 == hashlib.sha256(CONFIG).hexdigest()
    assert found.config_source == str(root / "proc/config.gz")


def test_a_boot_that_is_not_as_wanted_keeps_its_watch_and_is_counted(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted)
    reboot(root, "abc", "6.1.0-y")
    wrong = kernel_boot.confirm(host, wanted, "abc", host.load())
    assert wrong == ["uname -r prints 6.1.0-y, wanted 6.1.0-x"]
    assert host.run.watching
    assert kernel_entry.spent(host.attempts, "new") == 2


def test_a_host_that_came_back_by_itself_is_told_and_counted(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted)
    reboot(root)
    now = host.load()
    assert kernel_boot.confirm(host, wanted, "abc", now) == [f"the host is back on {OWN}"]
    assert kernel_entry.spent(host.attempts, "new") == 2


def test_the_count_outlives_the_controller_and_ends_it(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    for number in (2, 3):
        arm(host, wanted, token=f"t{number}")
        reboot(root, number=number)
        host = replace(host, added={}, attempts=())  # another controller
        host.load()
    before = tree(root)
    with pytest.raises(HostError, match="rebooted 4 times for it and none was confirmed"):
        arm(host, wanted)
    assert tree(root) == before


def test_leaving_clears_a_boot_that_was_armed(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted)
    assert kernel_boot.leave(host) == ("systemctl", "reboot")
    assert boot_loader.read_grub(root, host.run).environment == {}


def loaded(root, text):
    """What the kernel says of kexec."""
    file = root / kernel_boot.KEXEC_LOADED
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("method", ["grub", "kexec"])
def test_a_boot_that_was_prepared_and_never_ordered_goes_with_its_kernel(host, root, built, method):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted, method=method)
    loaded(root, "1\n" if method == "kexec" else "0\n")
    kernel_boot.remove(host, ["new"])
    assert (["kexec", "--unload"] in host.run.ran) == (method == "kexec")
    assert boot_loader.read_grub(root, host.run).environment == {}


def test_what_others_have_loaded_or_chosen_for_the_next_boot_stays(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    loaded(root, "1\n")
    host.run(["grub-reboot", "theirs"])
    kernel_boot.remove(host, ["new"])
    assert ["kexec", "--unload"] not in host.run.ran
    assert boot_loader.read_grub(root, host.run).environment == {"next_entry": "theirs"}


def test_the_way_home_is_no_kexec(host, root, built):
    loaded(root, "1\n")
    kernel_boot.leave(host)
    assert ["kexec", "--unload"] in host.run.ran


def test_a_boot_that_cannot_be_prepared_is_not_counted(host, root, built, monkeypatch):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)

    def full(*_arguments):
        raise OSError(28, "No space left on device", "/boot/grub/custom.cfg")

    monkeypatch.setattr(kernel_boot, "write_custom", full)
    with pytest.raises(OSError, match="No space left"):
        arm(host, wanted)
    assert host.attempts == ()


def test_everything_goes_in_the_end_and_what_others_wrote_stays(host, root, built):
    folder, wanted = built
    (root / "boot/grub/custom.cfg").write_text("menuentry 'mine' {\n}\n")
    before = tree(root)
    kernel_boot.install(host, wanted, folder)
    arm(host, wanted)
    reboot(root)
    host.load()
    kernel_boot.leave(host)
    kernel_boot.remove(host, ["new"])
    assert tree(root) == before


def test_secure_boot_refuses_a_kernel_that_nobody_has_signed(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    variable = root / boot_loader.SECURE_BOOT
    variable.parent.mkdir(parents=True)
    variable.write_bytes(b"\x06\0\0\0\x01")
    with pytest.raises(HostError, match="kernel new: Secure Boot is on"):
        arm(host, wanted)
    assert host.attempts == ()


def test_a_host_without_systemd_is_not_risked(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    (root / "run/systemd/system/x").unlink()
    (root / "run/systemd/system").rmdir()
    with pytest.raises(HostError, match="does not run systemd"):
        arm(host, wanted)


def test_kexec_hands_over_the_running_command_line(host, root, built):
    folder, wanted = built
    kernel_boot.install(host, wanted, folder)
    armed = arm(host, wanted, method="kexec")
    assert armed.order == ("systemctl", "kexec")
    assert host.run.ran[-1] == [
        "kexec", "--load", f"{root}/boot/crossover/new/vmlinuz",
        f"--initrd={root}/boot/crossover/new/initrd",
        "--command-line=root=UUID=2f3e ro quiet panic=10 rd.shell=0 rd.emergency=reboot"
        " crossover.boot=abc",
    ]  # fmt: skip


# --- packages ---------------------------------------------------------------------------------


@pytest.fixture
def archive(host, root):
    """A package of a newer kernel, whose scripts put it first in the menu."""
    name = "linux-image-6.13"
    real = host.run.__call__

    def commands(words):
        argv = words[words.index("apt-get") :] if "apt-get" in words else words
        if argv[0] == "dpkg-query":
            there = (root / "boot/vmlinuz-6.13").exists()
            if argv[1] == "--listfiles":
                return 0, "/.\n/boot\n/boot/vmlinuz-6.13\n/boot/config-6.13\n", ""
            return (0, "installed 6.13-1", "") if there else (1, "", "no package")
        if argv[:2] == ["apt-get", "install"]:
            (root / "boot/vmlinuz-6.13").write_bytes(b"kernel")
            (root / "boot/grub/grub.cfg").write_text(grub_files.menu("6.13", OWN))
        elif argv[:2] == ["apt-get", "purge"]:
            (root / "boot/vmlinuz-6.13").unlink()
            (root / "boot/grub/grub.cfg").write_text(grub_files.menu(OWN))
        return real(words)

    host.slow = commands
    return kernel_entry.wanted_kernel({"name": "deb", "package": name})


def test_a_package_does_not_become_the_default_and_goes_again(host, root, archive):
    before = tree(root)
    kernel_boot.install(host, archive, None)
    assert boot_loader.read_grub(root, host.run).default().image == "/boot/vmlinuz-6.13"
    custom = (root / "boot/grub/custom.cfg").read_text()
    assert f"set default='{grub_files.ADVANCED}>gnulinux-{OWN}-advanced-2f3e'" in custom
    assert 'if [ "${boot_once}" != "true" ]; then' in custom
    arm(host, kernel_boot.with_release(archive, host))
    (entry,) = grub.read_menu((root / "boot/grub/custom.cfg").read_text()).entries()
    assert entry.image == "/boot/crossover/deb/vmlinuz"
    kernel_boot.leave(host)
    kernel_boot.remove(host, ["deb"])
    assert tree(root) == before


@pytest.mark.parametrize(
    ("left", "stays"), [("modules.weakdep", False), ("updates/dkms/stt.ko", True)]
)
def test_files_of_depmod_that_a_package_leaves_go_but_not_modules(host, root, archive, left, stays):
    kernel_boot.install(host, archive, None)
    folder = root / "lib/modules/6.13"
    file = folder / left
    file.parent.mkdir(parents=True)
    file.touch()
    kernel_boot.remove(host, ["deb"])
    assert folder.exists() == stays


def test_a_package_that_the_host_has_already_stays_its_own(host, root, archive):
    host.slow(["apt-get", "install"])
    before = tree(root)
    kernel_boot.install(host, archive, None)
    kernel_boot.remove(host, ["deb"])
    assert tree(root) == before


def test_a_metapackage_has_no_kernel(host, archive):
    def commands(argv):
        if argv[:2] == ["dpkg-query", "--listfiles"]:
            return 0, "/.\n/usr/share/doc/x\n", ""
        return 0, "installed 1", ""

    host.slow = commands
    with pytest.raises(HostError) as caught:
        kernel_boot.install(host, archive, None)
    assert str(caught.value) == (
        "kernel deb: package linux-image-6.13: found no kernel in it; wanted a package with one"
        " /boot/vmlinuz-…, not a metapackage; nothing of it is left"
    )

"""Kernels booted once, by a guest's own GRUB or by kexec: one that works, one that panics, one that
nobody reaches.

The guest is a lab of its own, for it is rebooted a dozen times.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import yaml
from lab_plays import running

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(2400)]

NODE = "host"
# Another version than the guest's own, from what this machine's own apt knows.
PACKAGE = "linux-image-cloud-amd64"
PLAY_LIMIT_S = 1200
# Seconds that a boot may take, and how long a guest is left alone that cannot be reached.
BOOT_S, DEAF_S = 600, 150


@pytest.fixture(scope="module")
def machine():
    """A running guest that boots by itself; the saved state brings back its first boot."""
    name = f"{os.environ.get('CROSSOVER_LAB', 'test')}-boot"
    with running(name, "single", CROSSOVER_LOADER="grub") as found:
        yield found


def command(*argv, folder):
    """What a command of this machine prints."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A Debian kernel's package: its name and its file."""
    folder = tmp_path_factory.mktemp("package")
    shown = command("apt-cache", "depends", PACKAGE, folder=folder)
    (name,) = [line.split()[-1] for line in shown.splitlines() if "Depends: linux-image-" in line]
    command("apt-get", "download", name, folder=folder)
    (file,) = folder.glob("*.deb")
    return {"package": name, "package_files": [str(file)]}


def run(machine, folder, *tasks):
    """What tasks of the module return, on the guest."""
    steps = []
    for number, arguments in enumerate(tasks):
        steps.append(
            {
                "crossover.lab.kernel_boot": {"timeout_s": BOOT_S, "panic_s": 1, **arguments},
                "register": f"outcome_{number}",
                "ignore_errors": True,
            }
        )
    outcomes = ", ".join(f"outcome_{number}" for number in range(len(tasks)))
    copy = {"content": "{{ [" + outcomes + "] | to_json }}", "dest": str(folder / "outcomes.json")}
    steps.append({"ansible.builtin.copy": {**copy, "mode": "0600"}, "delegate_to": "localhost"})
    play = folder / "play.yml"
    play.write_text(yaml.safe_dump([{"hosts": NODE, "tasks": steps}]))
    done = machine.playbook(play, limit_s=PLAY_LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "outcomes.json").read_text())


def places(machine):
    """What stands where a kernel leaves its traces."""
    folders = "/boot /boot/grub /lib/modules /etc/systemd/system"
    return machine.ssh(NODE, f"find {folders} -maxdepth 1; dpkg-query --show").splitlines()


def panics(machine):
    """Panics on the console."""
    console = machine.ssh_config.with_name(f"{NODE}.console").read_text(errors="replace")
    return console.count("Kernel panic - not syncing")


def boot_id(machine):
    return machine.ssh(NODE, "cat /proc/sys/kernel/random/boot_id").strip()


@pytest.mark.parametrize("method", ["grub", "kexec"])
def test_a_package_is_booted_once_and_the_host_comes_home_clean(machine, package, tmp_path, method):
    own, before = machine.ssh(NODE, "uname -r").strip(), places(machine)
    first, again = run(machine, tmp_path, *[{"name": "deb", **package, "method": method}] * 2)
    assert not first["failed"], first["msg"]
    release = package["package"].removeprefix("linux-image-")
    assert machine.ssh(NODE, "uname -r").strip() == release != own
    assert (first["actions"], first["kernel"]) == (["install", "boot"], "deb")
    # GRUB says what it loaded, kexec does not.
    assert ("BOOT_IMAGE=" in machine.ssh(NODE, "cat /proc/cmdline")) == (method == "grub")
    assert first["running"]["config_source"] == f"/boot/config-{release}"
    assert (again["changed"], again["actions"]) == (False, [])
    (left,) = run(machine, tmp_path, {"state": "absent"})
    assert not left["failed"], left["msg"]
    assert left["actions"] == ["home", "remove"]
    assert machine.ssh(NODE, "uname -r").strip() == own
    assert places(machine) == before


@pytest.mark.parametrize("method", ["grub", "kexec"])
def test_a_panic_is_survived_and_not_tried_more_often_than_allowed(
    machine, package, tmp_path, method
):
    own, before = machine.ssh(NODE, "uname -r").strip(), boot_id(machine)
    seen = panics(machine)
    # The kernel finds no first process in its initramfs, nor a root device without one.
    bad = {
        "name": f"bad-{method}",
        **package,
        "method": method,
        "append": ["rdinit=/nonexistent"],
        "reboots_max": 2,
    }
    (failed,) = run(machine, tmp_path, bad)
    assert failed["msg"] == (
        f"kernel bad-{method} did not stay up on {NODE}, which is back on {own}: it panicked or"
        " could not be reached in time (2 of at most 2 reboots for it)"
    )
    assert panics(machine) > seen
    after = boot_id(machine)
    assert after != before
    # Another controller, and another: each finds the count on the host.
    for _ in range(2):
        (refused,) = run(machine, tmp_path, bad)
        assert refused["msg"].startswith(
            f"{NODE}: kernel bad-{method}: this host was rebooted 2 times for it and none was"
            f" confirmed (last: the host came back on {own}); another attempt may take 2, wanted at"
            " most 2"
        )
    assert boot_id(machine) == after
    (left,) = run(machine, tmp_path, {"state": "absent"})
    assert left["actions"] == ["remove"]
    assert boot_id(machine) == after


def test_a_kernel_that_nobody_can_reach_is_left_by_the_host_itself(machine, package, tmp_path):
    own = machine.ssh(NODE, "uname -r").strip()
    deaf = ["systemd.mask=ssh.service", "systemd.mask=ssh.socket"]
    (failed,) = run(
        machine, tmp_path, {"name": "deaf", **package, "append": deaf, "timeout_s": DEAF_S}
    )
    assert f"kernel deaf did not stay up on {NODE}, which is back on {own}" in failed["msg"]
    (left,) = run(machine, tmp_path, {"state": "absent"})
    assert not left["failed"], left["msg"]
    assert machine.ssh(NODE, "cat /proc/cmdline").count("crossover") == 0

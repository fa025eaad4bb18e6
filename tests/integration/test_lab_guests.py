"""Other users, other guests, other command lines: each bakes or boots, so they take minutes."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import cloud_image
import pytest
from lab_process import OwnLab, processes_naming

from collector.lab import state
from collector.lab.image import host_mirror

ROOT = Path(__file__).resolve().parents[2]
NODES = ("client", "server")
pytestmark = [pytest.mark.lab, pytest.mark.slow]


def test_another_command_line_gives_the_saved_state_up(lab):
    found = OwnLab(f"{lab.name}-3", state.load(lab.name).image)
    try:
        assert found.ok("up")["how"] == "booted"
        found.ok("down")
        assert found.ok("up")["how"] == "restored"
        assert found.ok("up", "--append", "crossover.other=1")["how"] == "booted"
        assert "crossover.other=1" in found.ssh("client", "cat /proc/cmdline")
        found.ok("down")
        assert found.ok("up", "--append", "crossover.other=1")["how"] == "restored"
    finally:
        found.ok("absent")
    assert not found.folder.exists()


def test_a_disk_that_fills_up_meanwhile_is_told_as_such(lab, tmp_path):
    found = OwnLab("filling", state.load(lab.name).image)
    cache = tmp_path / "cache"
    cache.mkdir()
    fill = 'dd if=/dev/zero of="$XDG_CACHE_HOME/fill" bs=1M 2>/dev/null'
    script = (
        f'mount -t tmpfs -o size=1400m none "$1" && shift && '
        f'{{ ("$@"; echo "$?" >"$XDG_CACHE_HOME/../code") & }} && '
        f'while ! [ -e "$XDG_CACHE_HOME"/crossover/labs/filling/server.pid ]; do sleep 0.1; done; '
        f'{fill}; wait; ls "$XDG_CACHE_HOME"/crossover/labs/filling'
    )
    rights = ["--mount"] if os.getuid() == 0 else ["--user", "--map-root-user", "--mount"]
    starting = found.argv("up", "--boot-timeout", "90")
    done = subprocess.run(
        ["unshare", *rights, "sh", "-c", script, "sh", str(cache), *starting],
        env={**lab.environment, "XDG_CACHE_HOME": str(cache)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (tmp_path / "code").read_text() == "1\n"
    assert "QEMU stopped the guest (io-error)" in done.stderr
    assert "Traceback" not in done.stderr
    assert ".qcow2" not in done.stdout
    assert processes_naming("crossover-filling-") == []


@pytest.fixture
def ordinary_user():
    """A user of this machine with a home folder and sub-uids, deleted afterwards."""
    if os.getuid() != 0:
        pytest.skip("only root can make a user; whoever runs this is an ordinary one already")
    name = "crossover-test"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder) / "home"
        Path(folder).chmod(0o755)
        subprocess.run(["useradd", "--create-home", "--home-dir", str(home), name], check=True)
        try:
            yield pwd.getpwnam(name)
        finally:
            subprocess.run(["userdel", name], check=True)


def interpreter(user):
    """A Python of this version that the user may run, and the environment that has our packages."""
    site = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        argv = [path, "-c", "import ansible, qemu.qmp, yaml"]
        if path and as_user(user, argv, {"PYTHONPATH": site}).returncode == 0:
            return path, {"PYTHONPATH": site}
    return pytest.skip(f"no {version} here that an ordinary user may run with {site}")


def as_user(user, argv, environment):
    """Run a command as the user, with nothing of this process's environment but the PATH."""
    return subprocess.run(
        ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", *argv],
        cwd=ROOT,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": user.pw_dir,
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "CROSSOVER_LAB": "theirs",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )


def test_an_ordinary_user_bakes_and_boots_an_enforcing_lab(ordinary_user):
    python, environment = interpreter(ordinary_user)
    playbook = [python, "-m", "ansible", "playbook"]
    up = as_user(ordinary_user, [*playbook, "playbooks/lab_up.yml"], environment)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        cache = Path(ordinary_user.pw_dir) / ".cache" / "crossover"
        config = str(cache / "labs" / "theirs" / "ssh_config")
        script = "getenforce; id -Z; ls -Z /etc/shadow; command -v netlabelctl netperf"
        for node in NODES:
            seen = as_user(ordinary_user, ["ssh", "-F", config, node, script], {})
            assert seen.returncode == 0, seen.stderr
            assert seen.stdout.splitlines()[:2] == [
                "Enforcing",
                "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023",
            ]
            assert ":shadow_t:" in seen.stdout
        (image,) = (cache / "images").glob("*/image.json")
        assert image.owner() == ordinary_user.pw_name
    finally:
        down = as_user(ordinary_user, [*playbook, "playbooks/lab_down.yml"], environment)
    assert down.returncode == 0, down.stdout + down.stderr
    assert processes_naming("crossover-theirs-") == []
    assert not Path(f"/tmp/crossover-{ordinary_user.pw_uid}").exists()


def test_debian_12_guests_measure_the_same_matrix(lab, tmp_path):
    name = f"{lab.name}-bookworm"
    own = {**lab.environment, "CROSSOVER_LAB": name, "CROSSOVER_SUITE": "bookworm"}
    own["CROSSOVER_RUNS"] = str(tmp_path)
    crossover = [sys.executable, "-m", "collector"]
    done = subprocess.run(
        [*crossover, "run", "netlabel_cipso", "--blocks", "1"],
        cwd=ROOT,
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        statuses = [
            line.split('"status": "')[1].split('"')[0]
            for line in next(tmp_path.glob("*/journal.jsonl")).read_text().splitlines()
            if '"event": "cell"' in line
        ]
        assert statuses == ["ok"] * 24
    finally:
        forget = [*crossover, "lab", "down", "--forget"]
        subprocess.run(forget, cwd=ROOT, env=own, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A cloud image as a distribution would publish it."""
    for program in ("mcopy", "syslinux", "mkfs.vfat"):
        found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
        assert found, f"{program} is missing; crossover setup --tests installs it"
    folder = tmp_path_factory.mktemp("cloud")
    target = folder / "cloud.qcow2"
    cloud_image.make(host_mirror(), "trixie", folder, target)
    return target


def test_a_cloud_image_boots_in_place_of_the_bake(lab, image):
    own = {"CROSSOVER_LAB": f"{lab.name}-cloud"}
    wanted = ["-e", f"lab_qemu_cloud_image={image}"]
    up = lab.playbook(ROOT / "playbooks" / "lab_up.yml", *wanted, limit_s=1800, **own)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        found = OwnLab(own["CROSSOVER_LAB"], str(image))
        for node, address in zip(NODES, ("198.18.0.1/24", "198.18.0.2/24"), strict=True):
            assert found.ssh(node, "hostname") == f"{node}\n"
            assert found.ssh(node, "id -u") == "0\n"
            assert address in found.ssh(node, "ip -4 -o address show dev eth1")
            assert found.ssh(node, "cloud-init status") == "status: done\n"
        assert "1 received" in found.ssh("client", "ping -c 1 -W 10 198.18.0.2")
        before = found.ssh("client", "cat /proc/sys/kernel/random/boot_id")
        found.ok("down")
        again = lab.playbook(ROOT / "playbooks" / "lab_up.yml", *wanted, limit_s=600, **own)
        assert again.returncode == 0, again.stdout + again.stderr
        assert found.ssh("client", "cat /proc/sys/kernel/random/boot_id") == before
        assert abs(int(found.ssh("client", "date +%s")) - time.time()) < 120
    finally:
        OwnLab(own["CROSSOVER_LAB"], str(image)).ok("absent")

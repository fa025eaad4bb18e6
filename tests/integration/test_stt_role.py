"""The role tunnel builds the STT module where a link needs it, as on a real machine: on guests with
a compiler and headers, and without the module."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_plays import Lab, running

from collector.run.runner import strategy_environment

# Slow: an image of its own is baked, and the module is compiled on emulated guests.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

LIMIT_S = 1500
HOSTS = ("client", "server")
# What a machine has that builds modules, and Ansible's own way to ask for packages.
PACKAGES = ["dkms", "gcc", "libc6-dev", "linux-headers-cloud-amd64", "make", "python3-apt"]
LINK = {
    "name": "xt0",
    "type": "stt",
    "key": 1,
    "ends": ["198.18.0.1", "198.18.0.2"],
    "inner_ipv4": ["198.19.0.1/24", "198.19.0.2/24"],
}


@pytest.fixture(scope="module")
def guests() -> Iterator[Lab]:
    """A lab whose guests can compile, and have no STT."""
    name = f"{os.environ.get('CROSSOVER_LAB', 'test')}-build"
    with running(name, "pair", {"lab_qemu_extra_packages": PACKAGES}) as lab:
        yield lab


def play(lab: Lab, folder: Path, entry: str = "main", **variables: Any) -> str:
    """Run the role on both guests as if they were real machines; what Ansible said."""
    role = {
        "ansible.builtin.include_role": {"name": "crossover.lab.tunnel", "tasks_from": entry},
        "vars": {"tunnel_guard_timeout": 120, "lab_kind": "hardware", **variables},
    }
    path = folder / "play.yml"
    path.write_text(yaml.safe_dump([{"hosts": "measured", "any_errors_fatal": True,
                                     "tasks": [role]}]))  # fmt: skip
    done = lab.playbook(path, limit_s=LIMIT_S, **strategy_environment())
    (folder / "said").write_text(done.stdout + done.stderr)
    return f"rc={done.returncode}\n{done.stdout}{done.stderr}"


def changed(said: str) -> list[int]:
    """How many tasks changed something, by host."""
    rows = [line for line in said.splitlines() if line.split(" ")[0] in HOSTS and "ok=" in line]
    return [int(row.partition("changed=")[2].split()[0]) for row in rows]


def test_a_link_brings_the_module_and_a_second_run_changes_nothing(
    guests: Lab, tmp_path: Path
) -> None:
    for host in HOSTS:
        assert "stt" not in guests.ssh(host, "find /lib/modules -name 'stt.ko*'")
    said = play(guests, tmp_path, tunnel_links=[LINK], tunnel_stt_build=False)
    assert said.startswith("rc=2\n"), said
    assert "xt0" in said
    for host in HOSTS:
        assert "stt" not in guests.ssh(host, "ls /usr/src")
    said = play(guests, tmp_path, tunnel_links=[LINK])
    assert said.startswith("rc=0\n"), said
    guests.ssh("client", "ping -c2 -i0.2 -W5 198.19.0.2")
    for host in HOSTS:
        record = json.loads(guests.ssh(host, "cat /var/lib/crossover/stt.json"))
        assert record["method"] == "dkms"
        assert "crossover-stt/1.0" in guests.ssh(host, "dkms status")
    said = play(guests, tmp_path, tunnel_links=[LINK])
    assert said.startswith("rc=0\n"), said
    assert changed(said) == [0, 0], said


def test_taking_links_back_leaves_the_module_which_has_an_end_of_its_own(
    guests: Lab, tmp_path: Path
) -> None:
    said = play(guests, tmp_path, tunnel_state="absent")
    assert said.startswith("rc=0\n"), said
    for host in HOSTS:
        assert "xt0" not in guests.ssh(host, "ip -brief link")
        assert "stt.ko" in guests.ssh(host, "modinfo -F filename stt")
    for _ in range(2):
        said = play(guests, tmp_path, "stt", tunnel_stt_state="absent")
        assert said.startswith("rc=0\n"), said
    assert changed(said) == [0, 0], said
    for host in HOSTS:
        assert guests.ssh(host, "find /lib/modules -name 'stt.ko*'; dkms status; ls /usr/src") \
            .find("stt") == -1  # fmt: skip


def test_before_a_matrix_a_host_that_cannot_build_is_no_error(guests: Lab, tmp_path: Path) -> None:
    guests.ssh("server", "mv /usr/bin/make /usr/bin/make.away")
    try:
        said = play(guests, tmp_path, "stt_wanted")
    finally:
        guests.ssh("server", "mv /usr/bin/make.away /usr/bin/make")
    assert said.startswith("rc=0\n"), said
    assert "STT cannot be had on server" in said
    assert "STT cannot be had on client" not in said
    assert "stt.ko" in guests.ssh("client", "modinfo -F filename stt")

"""Finding how a host is managed, from a /proc and a selinuxfs of our own."""

from __future__ import annotations

import os

import pytest

from ansible_collections.crossover.lab.plugins.module_utils import management
from ansible_collections.crossover.lab.plugins.module_utils.management import (
    Ancestry,
    find_ancestry,
    plain_address,
    refused_contexts,
    ssh_peer,
)

SSHD = "system_u:system_r:sshd_t:s0"


def process(proc, pid, parent, comm, context="", environment=b""):
    folder = proc / str(pid)
    (folder / "attr").mkdir(parents=True)
    (folder / "status").write_text(f"Name:\t{comm}\nPPid:\t{parent}\n")
    (folder / "comm").write_text(comm + "\n")
    (folder / "attr" / "current").write_text(context + "\0")
    (folder / "environ").write_bytes(environment)


def test_the_peer_is_found_above_sudo(tmp_path):
    process(tmp_path, 1, 0, "systemd")
    process(tmp_path, 10, 1, "sshd", SSHD)
    process(tmp_path, 20, 10, "sshd-session", SSHD)
    process(
        tmp_path, 30, 20, "sh", "u:r:t:s0", b"A=1\0SSH_CONNECTION=203.0.113.7 5000 192.0.2.1 22\0"
    )
    process(tmp_path, 40, 30, "sudo", "u:r:t:s0", b"SUDO_USER=admin\0")
    process(tmp_path, 50, 40, "python3", "u:r:t:s0", b"")
    assert find_ancestry(tmp_path, 50) == Ancestry("203.0.113.7", (SSHD,))


def test_without_ssh_there_is_no_peer(tmp_path):
    process(tmp_path, 50, 1, "python3")
    assert find_ancestry(tmp_path, 50) == Ancestry(None, ())
    assert find_ancestry(tmp_path, 999) == Ancestry(None, ())


def test_this_process_can_be_walked():
    assert isinstance(find_ancestry(), Ancestry)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::1"),
        ("UNKNOWN", None),
    ],
)
def test_addresses_are_made_plain(text, address):
    assert plain_address(text) == address


@pytest.mark.parametrize("text", [b"", b"SSH_CONNECTION=\0", b"XSSH_CONNECTION=192.0.2.1 1 1 1\0"])
def test_an_environment_without_a_peer(text):
    assert ssh_peer(text) is None


def selinuxfs(folder, enforce="1"):
    (folder / "class" / "peer" / "perms").mkdir(parents=True)
    (folder / "initial_contexts").mkdir()
    (folder / "enforce").write_text(enforce)
    (folder / "initial_contexts" / "unlabeled").write_text("system_u:object_r:unlabeled_t:s0\0")
    (folder / "class" / "peer" / "index").write_text("68")
    (folder / "class" / "peer" / "perms" / "recv").write_text("1")
    return folder


@pytest.mark.parametrize(
    ("enforce", "bits", "refused"),
    [("1", 0, (SSHD,)), ("1", 3, ()), ("1", 2, (SSHD,)), ("0", 0, ())],
)
def test_the_policy_is_asked_only_when_it_is_enforced(
    tmp_path, monkeypatch, enforce, bits, refused
):
    asked = []

    def allowed(access, source, target, index):
        asked.append((source, target, index))
        return bits

    monkeypatch.setattr(management, "_allowed", allowed)
    assert refused_contexts((SSHD,), selinuxfs(tmp_path, enforce)) == refused
    assert asked == [(SSHD, "system_u:object_r:unlabeled_t:s0", "68")] * int(enforce)


def test_a_kernel_without_selinux_refuses_nothing(tmp_path):
    assert refused_contexts((SSHD,), tmp_path) == ()


def test_the_kernels_answer_is_read_from_the_same_descriptor(tmp_path):
    access = tmp_path / "access"
    os.mkfifo(access)
    # A pipe gives back what was written, which stands for the kernel's hexadecimal answer.
    assert management._allowed(access, "3f", "x", "y") == 0x3F

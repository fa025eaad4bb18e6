"""Guests that boot a kernel which is not their image's own: fetched, booted, gone on from, left."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.kernels import build
from collector.lab import instance, saved, state
from collector.lab.wish import from_document
from collector.run.kernel_entries import find_entry

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def kernel():
    """Debian 12's kernel, from the archive."""
    return build.ensure(find_entry("debian-6.1"), lambda *_step: None)[1]


@pytest.fixture(scope="module")
def home(lab):
    """The kernel that the lab ran before; it runs again afterwards."""
    before = from_document(state.load(lab.name).wish)
    yield before
    instance.switch(lab.name, before.kernel, before.boot)


def boot_ids(lab):
    return [
        lab.ssh(node, "cat /proc/sys/kernel/random/boot_id").strip()
        for node in ("client", "server")
    ]


def test_a_kernel_boots_once_and_is_gone_on_from_ever_after(lab, home, kernel):
    instance.switch(lab.name, home.kernel, home.boot)
    for boot in (0, 1):
        saved.forget(saved.folder(lab.name, kernel.name, boot))
    _changed, first = instance.switch(lab.name, kernel.folder, 0)
    assert (first.kernel, first.how) == ("debian-6.1", "booted")
    for node in ("client", "server"):
        assert lab.ssh(node, "uname -r; uname -v").splitlines() == [kernel.release, kernel.version]
        assert lab.ssh(node, "getenforce").strip() == "Enforcing"
    booted = boot_ids(lab)

    _changed, second = instance.switch(lab.name, kernel.folder, 1)
    assert second.how == "booted"
    assert set(boot_ids(lab)).isdisjoint(booted)

    _changed, again = instance.switch(lab.name, kernel.folder, 0)
    assert again.how == "restored"
    assert boot_ids(lab) == booted


def test_its_modules_are_there_labelled_and_can_be_loaded(lab, home, kernel):
    instance.switch(lab.name, kernel.folder, 0)
    folder = f"/lib/modules/{kernel.release}"
    labelled = lab.ssh("client", f"ls -dZ {folder} {folder}/kernel {folder}/config")
    assert labelled.count("system_u:object_r:modules_object_t:s0") == 3
    lab.ssh("client", "modprobe vxlan && modprobe pktgen")
    assert "vxlan" in lab.ssh("client", "cat /proc/modules")
    said = lab.ssh("client", f"sha256sum {folder}/config").split()[0]
    assert said == kernel.config_sha256


def test_the_image_has_its_own_kernel_back(lab, home, kernel):
    instance.switch(lab.name, kernel.folder, 0)
    instance.switch(lab.name, None, 0)
    image = Path(from_document(state.load(lab.name).wish).image)
    release = lab.ssh("client", "uname -r").strip()
    assert release in (image / "image.json").read_text()
    assert lab.ssh("client", "ls /lib/modules").split() == [release]

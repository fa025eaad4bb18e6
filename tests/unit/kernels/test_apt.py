"""Kernel packages: a metapackage is followed to what it stands for."""

from __future__ import annotations

import pytest

from collector.kernels import apt
from collector.kernels.errors import KernelError

SHOWN = {
    "linux-image-amd64": "Package: linux-image-amd64\nVersion: 6.12.1-1\n"
                         "Depends: linux-image-6.12.1-amd64 (= 6.12.1-1)\n",
    "linux-image-6.12.1-amd64": "Package: linux-image-6.12.1-amd64\nVersion: 6.12.1-1\n"
                                "Depends: kmod, linux-base (>= 4.3), linux-modules-6.12.1-amd64,"
                                " initramfs-tools | linux-initramfs-tool\n",
    "linux-modules-6.12.1-amd64": "Package: linux-modules-6.12.1-amd64\nVersion: 6.12.1-1\n",
    "linux-image-6.1.0-9-amd64": "Package: linux-image-6.1.0-9-amd64\nVersion: 6.1.9-1\n"
                                 "Depends: kmod\nDescription: one\n two\n\nPackage: other\n",
    "linux-image-6.1": "Package: linux-image-6.1.0-9-amd64\nVersion: 6.1.9-1\n",
    "linux-source-6.1": "Package: linux-source-6.1\nVersion: 6.1.9-1\n",
}  # fmt: skip


@pytest.fixture
def archive(monkeypatch):
    def answer(argv, what, folder=None):
        name = argv[-1].partition("=")[0]
        if name not in SHOWN:
            raise KernelError(f"{what}: apt-cache ended with 100: E: No packages found")
        return SHOWN[name]

    monkeypatch.setattr(apt, "_run", answer)
    return apt.Archive(None)


def test_a_metapackage_stands_for_image_and_modules(archive):
    assert archive.kernel("linux-image-amd64", None) == [
        ("linux-image-6.12.1-amd64", "6.12.1-1"),
        ("linux-modules-6.12.1-amd64", "6.12.1-1"),
    ]


def test_an_image_with_its_modules_inside_is_one_package(archive):
    assert archive.kernel("linux-image-6.1.0-9-amd64", "6.1.9-1") == [
        ("linux-image-6.1.0-9-amd64", "6.1.9-1")
    ]


def test_a_name_that_apt_takes_for_a_pattern_is_no_package(archive):
    with pytest.raises(KernelError) as refused:
        archive.kernel("linux-image-6.1", None)
    assert str(refused.value) == (
        "package linux-image-6.1 of this machine's apt sources: no such package"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("linux-source-6.1", "package linux-source-6.1: wanted a linux-image package"),
        ("linux-image-9", "package linux-image-9 of this machine's apt sources: apt-cache ended"
                          " with 100: E: No packages found"),
    ],
)  # fmt: skip
def test_what_is_no_kernel_package_is_refused(archive, name, text):
    with pytest.raises(KernelError) as refused:
        archive.kernel(name, None)
    assert str(refused.value) == text


def test_another_suite_has_its_security_updates_where_this_machine_has_them(monkeypatch):
    monkeypatch.setattr(apt.Path, "exists", lambda path: True)
    signed = f"[signed-by={apt.KEYRING}] "
    assert apt.sources("trixie", "http://a/debian", "http://a/security") == (
        f"deb {signed}http://a/debian trixie main\n"
        f"deb {signed}http://a/security trixie-security main\n"
    )
    monkeypatch.setattr(apt.Path, "exists", lambda path: False)
    assert apt.sources("trixie", "http://a/debian", None) == "deb http://a/debian trixie main\n"

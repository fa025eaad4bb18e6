"""An artifact appears whole or not at all, and a bzImage says which kernel it is."""

from __future__ import annotations

import struct

import pytest

from collector.kernels import artifact
from collector.kernels.errors import KernelError


def bzimage(release="6.12.1-x", version="#1 SMP Debian 6.12.1-1"):
    """The first bytes of a bzImage, as its boot protocol lays them out."""
    head = bytearray(0x8000)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x3000)
    text = f"{release} (who@where) {version}".encode() + b"\0"
    head[0x3200 : 0x3200 + len(text)] = text
    return bytes(head)


def made(identity="0123456789abcdef", **changes):
    values = {
        "name": "lab",
        "about": "a kernel",
        "identity": identity,
        "kind": "source",
        "release": "6.12.1-x",
        "version": "#1 SMP",
        "config_sha256": "0" * 64,
        "vmlinuz_sha256": "0" * 64,
        "modules": 3,
        "initrd": False,
        "compiler": "gcc 12",
        "made_of": {"source": {"tarball": "x.tar"}},
        "built_at": "2026-11-30T10:00:00Z",
        "build_s": 1.5,
    }
    return artifact.Artifact(**{**values, **changes})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_what_was_written_is_read_back():
    with artifact.being_made("0123456789abcdef") as folder:
        artifact.write(folder, made())
    assert artifact.find("0123456789abcdef") == made()
    assert artifact.find("fedcba9876543210") is None


def test_a_build_that_fails_leaves_nothing(cache):
    def build():
        with artifact.being_made("0123456789abcdef") as folder:
            (folder / "vmlinuz").write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    assert list((cache / "crossover" / "kernels" / "built").iterdir()) == []


def test_the_quicker_of_two_builds_stays():
    with artifact.being_made("0123456789abcdef") as mine:
        other = mine.parent / "0123456789abcdef"
        other.mkdir()
        artifact.write(other, made(name="other"))
        artifact.write(mine, made())
    assert artifact.find("0123456789abcdef").name == "other"
    assert [path.name for path in artifact.built_dir().iterdir()] == ["0123456789abcdef"]


@pytest.mark.parametrize("text", ["[]", '{"schema": 2}', '{"schema": 1, "name": "x"}', "{"])
def test_a_document_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "entry.json").write_text(text)
    with pytest.raises(KernelError, match=r"entry\.json"):
        artifact.read(tmp_path)


def test_a_folder_without_a_document_is_no_kernel(tmp_path):
    with pytest.raises(KernelError, match="wanted the folder of a built kernel"):
        artifact.read(tmp_path)


def test_a_bzimage_names_its_release_and_version(tmp_path):
    file = tmp_path / "vmlinuz"
    file.write_bytes(bzimage())
    assert artifact.image_version(file) == ("6.12.1-x", "#1 SMP Debian 6.12.1-1")


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(0x400), bzimage(version="")[:0x208]])
def test_another_file_is_no_bzimage(tmp_path, data):
    file = tmp_path / "vmlinuz"
    file.write_bytes(data)
    with pytest.raises(KernelError, match="wanted a bzImage"):
        artifact.image_version(file)

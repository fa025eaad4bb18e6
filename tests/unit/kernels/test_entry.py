"""Entries: what is declared is read strictly, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.kernels.entry import (
    Git,
    Image,
    Package,
    Source,
    Tarball,
    expanded,
    raw_entries,
    read_entry,
)
from collector.kernels.errors import KernelError

FILE = Path("/etc/x/kernels.yml")
SOURCE = {"about": "a", "source": {"package": "linux-source-6.12"}}


def entry(**document):
    """The entry of a file with nothing else in it."""
    raw = raw_entries({"schema": 1, "kernels": {"lab": document}}, FILE)
    return read_entry("lab", expanded("lab", raw, str(FILE)), str(FILE))


def refusal(document):
    with pytest.raises(KernelError) as refused:
        entry(**document)
    return str(refused.value)


def test_each_kind_is_read_with_paths_from_the_folder_of_the_file():
    found = entry(about="a", package={"name": "linux-image-amd64", "suite": "trixie"})
    assert found.kind == "package"
    assert found.made_of == Package("linux-image-amd64", "trixie", None)
    found = entry(
        **{**SOURCE, "base": "mine.conf", "fragments": ["lab.config", "/abs.config"]},
        patches=["p/1.patch"],
        external_modules=["stt"],
    )
    assert found.made_of == Source(
        Package("linux-source-6.12", None, None),
        Path("/etc/x/mine.conf"),
        (Path("/etc/x/lab.config"), Path("/abs.config")),
        (Path("/etc/x/p/1.patch"),),
        (Path("/etc/x/stt"),),
    )
    found = entry(about="a", source={"tarball": "linux.tar"})
    assert isinstance(found.made_of, Source)
    assert found.made_of.origin == Tarball(Path("/etc/x/linux.tar"), None)
    assert found.made_of.base == "defconfig"
    found = entry(about="a", source={"git": "linux", "ref": "v6.12"})
    assert isinstance(found.made_of, Source)
    assert found.made_of.origin == Git(Path("/etc/x/linux"), "v6.12")
    found = entry(about="a", image={"vmlinuz": "bzImage", "config": ".config"})
    assert found.made_of == Image(Path("/etc/x/bzImage"), None, Path("/etc/x/.config"), None)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "lab.about: found None; wanted a text"),
        ({"about": "a"}, "lab: found none; wanted exactly one of package, source, image"),
        ({**SOURCE, "package": {}}, "lab: found package and source; wanted exactly one of package,"
                                    " source, image"),
        ({**SOURCE, "speed": 1}, "lab: unknown key 'speed'"),
        ({"about": "a", "package": {"name": "Linux"}}, "lab.package.name: found 'Linux'; wanted a"
                                                       " text like [a-z0-9][a-z0-9+.-]+"),
        ({"about": "a", "package": {"name": "linux", "suite": "a b"}},
         "lab.package.suite: found 'a b'; wanted a text like [a-z][a-z0-9-]*"),
        ({"about": "a", "package": {"name": "linux", "x": 1}}, "lab.package: unknown key 'x'"),
        ({"about": "a", "package": []}, "lab.package: found []; wanted a mapping"),
        ({"about": "a", "source": {"url": "x"}}, "lab.source: found {'url': 'x'}; wanted one of"
                                                 " package, tarball, git"),
        ({"about": "a", "source": {"git": "x", "ref": "--upload-pack=x"}},
         "lab.source.ref: found '--upload-pack=x'; wanted a text like [^\\s-]\\S*"),
        ({**SOURCE, "fragments": "x"}, "lab.fragments: found 'x'; wanted a list of paths"),
        ({**SOURCE, "patches": [1]}, "lab.patches: found [1]; wanted a list of paths"),
        ({"about": "a", "image": {"vmlinuz": "x"}}, "lab.image.config: found None; wanted a text"),
        ({**SOURCE, "like": "other"}, "lab.like: no kernel 'other'"),
        ({**SOURCE, "like": "lab"}, "lab.like: 'lab' leads back to itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(document, text):
    assert refusal(document) == f"{FILE}: {text}"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "schema: found []; wanted 1"),
        ({"schema": 2}, "schema: found 2; wanted 1"),
        ({"schema": 1}, "kernels: found None; wanted a mapping of names to entries"),
        ({"schema": 1, "kernels": {"a": 1}}, "a: found 1; wanted an entry"),
        ({"schema": 1, "kernels": {}, "x": 1}, "unknown key 'x'"),
        ({"schema": 1, "kernels": {"../x": {}}}, "kernel name '../x': wanted 1 to 40 letters,"
                                                 " digits, '.', '_' and '-', not starting with a"
                                                 " sign"),
    ],
)  # fmt: skip
def test_another_file_is_refused(document, text):
    with pytest.raises(KernelError) as refused:
        raw_entries(document, FILE)
    assert str(refused.value) == f"{FILE}: {text}"


def test_what_an_entry_is_like_comes_first_and_adds_up():
    raw = raw_entries(
        {
            "schema": 1,
            "kernels": {
                "one": {**SOURCE, "base": "allnoconfig", "fragments": ["a.config"]},
                "two": {"about": "b", "like": "one", "fragments": ["b.config"]},
                "three": {"about": "c", "like": "two", "patches": ["c.patch"], "base": "defconfig"},
            },
        },
        FILE,
    )
    found = read_entry("three", expanded("three", raw, "f"), "f")
    assert isinstance(found.made_of, Source)
    assert [path.name for path in found.made_of.fragments] == ["a.config", "b.config"]
    assert [path.name for path in found.made_of.patches] == ["c.patch"]
    assert (found.about, found.made_of.base) == ("c", "defconfig")


def test_drivers_for_virtual_machines_only_are_told_and_taken_over():
    assert not entry(**SOURCE).virtual
    raw = {"lab": {**SOURCE, "virtual": True}, "mine": {"about": "b", "like": "lab"}}
    assert read_entry("mine", expanded("mine", raw, "f"), "f").virtual
    assert "lab.virtual: found 1; wanted true or false" in refusal({**SOURCE, "virtual": 1})

"""``crossover kernel``: entries listed, added and built with a progress line."""

from __future__ import annotations

import io
import os
import signal

import pytest
import yaml

from collector import cli
from collector.commands import kernel
from collector.commands.kernel import Line
from collector.kernels.entry import Source
from collector.kernels.paths import user_entries
from collector.run.kernel_entries import entry_document, find_entry, load_entries


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def add(*words):
    return cli.main(["kernel", "add", *words])


def test_the_shipped_kernels_are_listed_with_their_state(capsys):
    assert cli.main(["kernel", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == set(load_entries())
    assert lines["debian-6.12"].split("  ")[-1] == "Debian 13's kernel for virtual machines"
    assert "never built" in lines["lab-6.12-disable"]


def test_kernels_that_are_compared_differ_in_one_fragment():
    plain, without = find_entry("lab-6.12").made_of, find_entry("lab-6.12-disable").made_of
    assert isinstance(plain, Source)
    assert isinstance(without, Source)
    assert without.origin == plain.origin
    assert without.base == plain.base
    assert [path.name for path in without.fragments] == ["lab.config", "no-netlabel.config"]


def test_an_entry_goes_to_others_whole():
    document = entry_document("lab-6.12-disable")
    assert "like" not in document
    assert all(path.startswith("/") for path in document["fragments"])


@pytest.mark.parametrize(
    ("words", "document"),
    [
        (["--package", "linux-image-amd64", "--suite", "trixie"],
         {"about": "package linux-image-amd64",
          "package": {"name": "linux-image-amd64", "suite": "trixie"}}),
        (["--source-package", "linux-source-6.1", "--package-version", "6.1.9-1"],
         {"about": "source of linux-source-6.1",
          "source": {"package": "linux-source-6.1", "version": "6.1.9-1"}}),
        (["--git", "/src/linux", "--ref", "v6.12", "--base", "defconfig"],
         {"about": "checkout /src/linux at v6.12",
          "source": {"git": "/src/linux", "ref": "v6.12"}, "base": "defconfig"}),
        (["--like", "lab-6.12", "--patch", "/p/1.patch", "--about", "with the fix"],
         {"about": "with the fix", "like": "lab-6.12", "patches": ["/p/1.patch"]}),
        (["--vmlinuz", "/k/bzImage", "--config", "/k/.config"],
         {"about": "image bzImage",
          "image": {"vmlinuz": "/k/bzImage", "config": "/k/.config"}}),
    ],
)  # fmt: skip
def test_an_own_kernel_is_written_as_it_was_said(capsys, words, document):
    assert add("mine", *words) == 0
    assert yaml.safe_load(user_entries().read_text()) == {
        "schema": 1,
        "kernels": {"mine": document},
    }
    assert find_entry("mine").about == document["about"]
    assert capsys.readouterr().out == (
        f"kernel mine: added to {user_entries()}; build it with: crossover kernel build mine\n"
    )


def test_paths_of_an_own_kernel_do_not_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        add("mine", "--tarball", "linux.tar.xz", "--fragment", "a.config", "--base", "b.conf") == 0
    )
    document = entry_document("mine")
    assert document["source"] == {"tarball": str(tmp_path / "linux.tar.xz")}
    assert document["fragments"] == [str(tmp_path / "a.config")]
    assert document["base"] == str(tmp_path / "b.conf")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lab-6.12", "--git", "/x"], "kernel 'lab-6.12': there is one of that name; wanted another"
                                      " name"),
        (["mine", "--git", "/x", "--suite", "trixie"], "kernel add: --suite goes with --package or"
                                                       " --source-package only"),
        (["mine", "--package", "x", "--ref", "v1"], "kernel add: --ref goes with --git only"),
        (["mine", "--package", "x", "--patch", "p"], "kernel add: --patch goes with a source"
                                                     " only"),
        (["mine", "--git", "/x", "--config", "c"], "kernel add: --config goes with --vmlinuz only"),
        (["mine", "--vmlinuz", "/x"], "mine.image.config: found None; wanted a text"),
        (["mine", "--like", "nosuch"], "mine.like: no kernel 'nosuch'"),
        (["a b", "--git", "/x"], "kernel name 'a b': wanted 1 to 40 letters"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_told_and_nothing_is_written(capsys, words, text):
    assert add(*words) != 0
    assert text in capsys.readouterr().err
    assert not user_entries().exists()


def test_a_name_in_both_files_is_refused(capsys):
    user_entries().parent.mkdir(parents=True)
    user_entries().write_text(
        yaml.safe_dump(
            {"schema": 1, "kernels": {"lab-6.12": {"about": "a", "source": {"git": "/x"}}}}
        )
    )
    assert cli.main(["kernel", "list"]) != 0
    assert "lab-6.12: the project has a kernel of that name" in capsys.readouterr().err


def test_a_file_that_is_no_yaml_is_named(capsys):
    user_entries().parent.mkdir(parents=True)
    user_entries().write_text("a: [")
    assert cli.main(["kernel", "list"]) != 0
    assert "kernels.yml:1: found text that is not YAML" in capsys.readouterr().err


def test_a_name_that_stands_twice_is_refused(capsys):
    user_entries().parent.mkdir(parents=True)
    entry = "{about: a, package: {name: linux-image-amd64}}"
    user_entries().write_text(f"schema: 1\nkernels:\n  mine: {entry}\n  mine: {entry}\n")
    assert cli.main(["kernel", "list"]) != 0
    assert "kernels.yml:4: found text that is not YAML (found the key 'mine' twice)" in (
        capsys.readouterr().err
    )


def test_what_an_added_kernel_lacks_is_told_at_once(capsys, tmp_path):
    assert add("mine", "--tarball", str(tmp_path / "gone.tar")) == 0
    assert capsys.readouterr().err == (
        f"kernel mine: cannot be built yet: {tmp_path / 'gone.tar'}: no such file\n"
    )
    assert add("other", "--package", "linux-image-amd64") == 0
    assert capsys.readouterr().err == ""


def test_building_what_cannot_be_had_is_one_line(capsys, tmp_path):
    add("mine", "--tarball", str(tmp_path / "gone.tar"))
    capsys.readouterr()
    assert cli.main(["kernel", "build", "mine"]) == 1
    assert capsys.readouterr().err == f"crossover: {tmp_path / 'gone.tar'}: no such file\n"
    assert cli.main(["kernel", "build", "nosuch"]) != 0
    assert "kernel 'nosuch': no such entry; wanted one of debian-6.12" in capsys.readouterr().err


def test_a_build_that_is_ended_ends_in_order(monkeypatch):
    def ensure(*_arguments):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(kernel.build, "ensure", ensure)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        cli.main(["kernel", "build", "lab-6.12"])
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


class Terminal(io.StringIO):
    """A stream that rewrites one line."""

    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_is_rewritten_and_gone_at_the_end():
    stream = Terminal()
    line = Line("lab", stream)
    line.tell("unpacking the source", 0, None)
    line.tell("unpacking the source", 0, None)
    line.close()
    assert stream.getvalue() == "\r\x1b[Kkernel lab: unpacking the source\r\x1b[K"


def test_elsewhere_there_are_few_lines():
    stream = io.StringIO()
    line = Line("lab", stream)
    line.tell("unpacking the source", 0, None)
    for step in range(1, 500):
        line.tell("net/ipv4/tcp.o", step, 1800)
    line.close()
    assert stream.getvalue() == "kernel lab: unpacking the source\n"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (("a.o", 7, None), "kernel lab: step 7, 5 s: a.o"),
        (("a.o", 7, 90), "kernel lab: step 7 of about 90, 5 s: a.o"),
        (("a.o", 99, 90), "kernel lab: step 99 of about 99, 5 s: a.o"),
    ],
)
def test_the_line_tells_how_far_the_build_is(step, text):
    assert Line("lab", io.StringIO()).text(*step, 5.0) == text

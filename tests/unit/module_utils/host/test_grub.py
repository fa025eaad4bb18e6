"""GRUB's menu, its default, its environment block, and the entry that is added to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.host import grub
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

from . import grub_files

OLD, NEW = "6.1.0-50-amd64", "6.12.43+deb13-amd64"
TEXT = grub_files.menu(NEW, OLD)


def lasting(release):
    return f"{grub_files.ADVANCED}>gnulinux-{release}-advanced-{grub_files.UUID}"


def test_every_entry_is_read_with_its_path_and_kernel():
    found = {entry.path: entry.image for entry in grub.read_menu(TEXT).entries()}
    assert next(iter(found)) == grub_files.SIMPLE
    assert found[lasting(OLD)] == f"/boot/vmlinuz-{OLD}"
    assert found["uefi-firmware"] is None
    assert len(found) == 6


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("0", grub_files.SIMPLE),
        (grub_files.SIMPLE, grub_files.SIMPLE),
        ("Debian GNU/Linux", grub_files.SIMPLE),
        ("1>2", lasting(OLD)),
        (lasting(OLD), lasting(OLD)),
        ("Advanced options for Debian GNU/Linux>0", lasting(NEW)),
        (grub_files.ADVANCED, lasting(NEW)),
    ],
)
def test_an_entry_is_found_by_number_title_or_identifier(name, path):
    assert grub.find(grub.read_menu(TEXT), name).path == path


@pytest.mark.parametrize("name", ["7", "1>9", "gone", f"{grub_files.SIMPLE}>0"])
def test_a_name_of_nothing_finds_nothing(name):
    assert grub.find(grub.read_menu(TEXT), name) is None


@pytest.mark.parametrize(
    ("default", "saved", "name"),
    [
        ("0", {}, "0"),
        ("1>2", {}, "1>2"),
        ("${saved_entry}", {"saved_entry": "1>2"}, "1>2"),
        ("${saved_entry}", {}, "0"),
    ],
)
def test_the_default_is_not_the_one_shot_entry(default, saved, name):
    assert grub.default_name(grub_files.menu(NEW, default=default), saved) == name


def test_a_default_that_boots_nothing_is_told():
    with pytest.raises(HostError) as caught:
        grub.default_entry(grub_files.menu(NEW, default="gone"), {})
    assert "its default is 'gone', which names no entry; wanted" in str(caught.value)
    with pytest.raises(HostError) as caught:
        grub.default_entry(grub_files.menu(NEW, default="uefi-firmware"), {})
    assert "its default is 'uefi-firmware', which boots no Linux; wanted" in str(caught.value)


def test_a_default_lasts_when_a_newer_kernel_becomes_the_first():
    first = grub.default_entry(grub_files.menu(OLD), {})
    path = grub.lasting_path(grub_files.menu(OLD), first)
    assert path == lasting(OLD)
    assert grub.find(grub.read_menu(TEXT), path).image == f"/boot/vmlinuz-{OLD}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("}\n", "grub.cfg: line 1: found a '}' that closes nothing"),
        ("menuentry 'a' {\n", "grub.cfg: menuentry 'a' is never closed"),
        (
            "set x=1\nmenuentry 'a {\n}\n",
            'grub.cfg: line 2: "menuentry \'a {": No closing quotation',
        ),
    ],
)
def test_a_menu_that_is_none_names_the_line(text, message):
    with pytest.raises(HostError) as caught:
        grub.read_menu(text)
    assert str(caught.value) == message


def test_the_environment_block_is_read():
    block = grub_files.environment(saved_entry="a b", next_entry="x>y")
    assert grub.read_environment(block) == {"saved_entry": "a b", "next_entry": "x>y"}
    assert grub.read_environment(grub_files.environment()) == {}
    odd = b"# GRUB Environment Block\na=1\\\\2\\\n3\n".ljust(1024, b"#")
    assert grub.read_environment(odd) == {"a": "1\\2\n3"}


def test_a_block_of_another_size_is_none():
    with pytest.raises(HostError) as caught:
        grub.read_environment(b"")
    assert str(caught.value) == (
        "grubenv: found 0 bytes that begin with ''; wanted an environment block of 1024"
    )


def test_the_one_shot_entry_boots_as_the_default_does_with_words_of_its_own():
    template = grub.default_entry(TEXT, {})
    words = ["panic=10", "crossover.boot=abc"]
    lines = grub.one_shot_entry(template, "crossover-x", "Crossover x", "crossover/x", words)
    assert lines[0] == "menuentry 'Crossover x' --id 'crossover-x' {"
    assert (
        f"\tlinux /boot/crossover/x/vmlinuz root=UUID={grub_files.UUID} ro quiet panic=10"
        " crossover.boot=abc"
    ) in lines
    assert "\tsearch --no-floppy --fs-uuid --set=root 2f3e" in lines
    assert lines[-2:] == ["\tinitrd /boot/crossover/x/initrd", "}"]
    text = "\n".join(lines)
    assert NEW not in text
    assert "echo" not in text
    (read,) = grub.read_menu(text).entries()
    assert read.image == "/boot/crossover/x/vmlinuz"


def test_microcode_comes_before_the_initrd_as_in_the_template():
    text = TEXT.replace("initrd\t/boot/", "initrd\t/boot/amd-ucode.img /boot/")
    lines = grub.one_shot_entry(grub.default_entry(text, {}), "i", "t", "crossover/x", [])
    assert lines[-2] == "\tinitrd /boot/amd-ucode.img /boot/crossover/x/initrd"


def test_a_boot_partition_of_its_own_has_shorter_paths():
    text = TEXT.replace("/boot/vmlinuz", "/vmlinuz").replace("/boot/initrd", "/initrd")
    lines = grub.one_shot_entry(grub.default_entry(text, {}), "i", "t", "crossover/x", [])
    assert lines[-2] == "\tinitrd /crossover/x/initrd"
    assert any(line.startswith("\tlinux /crossover/x/vmlinuz root=") for line in lines)


@pytest.mark.parametrize("word", ["a'b", "$x", "a;b", "}"])
def test_a_word_that_grub_would_take_for_more_is_refused(word):
    template = grub.default_entry(TEXT, {})
    with pytest.raises(HostError, match="wanted no quote or sign of GRUB's"):
        grub.one_shot_entry(template, "i", "t", "crossover/x", [word])


line = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30)


@given(theirs=st.lists(line, max_size=6), first=st.lists(line, min_size=1, max_size=3))
def test_what_others_wrote_into_custom_cfg_stays(theirs, first):
    before = "".join(f"{item}\n" for item in theirs)
    once = grub.custom(before, first)
    twice = grub.custom(once, ["set default='x'"])
    assert grub.custom(twice, []) == before
    assert grub.custom(once, first) == once

"""Commands as a person types them: quoted, with variables for keys, and files as documents."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.shell_step import (
    ASK_SECRET,
    Step,
    expand,
    here_document,
    hexadecimal,
    key_line,
    placeholder,
    with_secret,
)
from tests.unit.typed import type_in


def test_every_word_but_a_placeholder_stands_for_itself(tmp_path: Path) -> None:
    words = ("ip", "two words", "", "rfc4106(gcm(aes))", "$HOME", "it's", "$KEY_T0_TX")
    step = Step(expand(words))
    assert step.shell().endswith(" $KEY_T0_TX")
    noted, _done = type_in([step.shell()], tmp_path, ["ip"], KEY_T0_TX="secret")
    assert noted == [[*words[:-1], "secret"]]


def test_a_key_comes_from_the_secret_unless_its_variable_is_set(tmp_path: Path) -> None:
    name = placeholder("my-link", "tx")
    assert name == "$KEY_MY_LINK_TX"
    lines = with_secret([key_line(name, "a b", hexadecimal(20), "0x"), f"ip {name}"])
    assert lines[0] == ASK_SECRET
    ((_, first),), _done = type_in(lines, tmp_path, ["ip"], SECRET="one")
    ((_, again),), _done = type_in(lines, tmp_path, ["ip"], SECRET="one")
    ((_, other),), _done = type_in(lines, tmp_path, ["ip"], SECRET="two")
    ((_, given),), _done = type_in(lines, tmp_path, ["ip"], SECRET="two", KEY_MY_LINK_TX="0x1")
    assert first == again != other
    assert (len(first), first[:2], given) == (42, "0x", "0x1")


def test_without_a_secret_nothing_is_done(tmp_path: Path) -> None:
    lines = with_secret([key_line("$KEY_A_B", "a", hexadecimal(4)), "ip $KEY_A_B"])
    noted, done = type_in(lines, tmp_path, ["ip"], check=False)
    assert (noted, done.returncode != 0) == ([], True)
    assert "wanted a text of your own, the same on both hosts" in done.stderr
    assert with_secret(["ip link"]) == ["ip link"]


@pytest.mark.parametrize("length", [0, 65])
def test_a_hash_has_no_more_than_its_digits(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} bytes, wanted 1 to 64"):
        hexadecimal(length)


def test_a_document_is_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    text = "conn a\n\tkey='$KEY_A'  # \"x\" \\ `y`\n"
    plain, filled = tmp_path / "plain", tmp_path / "filled"
    lines = [
        here_document(str(plain), text),
        here_document(str(filled), "psk $KEY_A\n", expanded=True),
    ]
    type_in(lines, tmp_path, [], KEY_A="k")
    assert plain.read_text() == text
    assert filled.read_text() == "psk k\n"
    assert stat.S_IMODE(filled.stat().st_mode) == 0o600


def test_a_document_cannot_hold_its_own_end() -> None:
    with pytest.raises(ValueError, match="/x: a line is 'END', wanted another text"):
        here_document("/x", "a\nEND\nb\n")

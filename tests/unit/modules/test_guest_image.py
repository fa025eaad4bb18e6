"""The module guest_image: same inputs, same image; check mode makes none."""

import pytest
from module_runner import call

from ansible_collections.crossover.lab.plugins.modules import guest_image


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "init").write_text("#!/bin/busybox sh\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return {
        "suite": "trixie",
        "components": ["main"],
        "packages": ["openssh-server"],
        "init": str(tmp_path / "init"),
        "mirror": "http://archive.example/debian",
    }


def test_check_mode_says_what_would_be_made_and_makes_nothing(wanted, capsys, tmp_path):
    answer = call(guest_image, capsys, check=True, **wanted)
    assert answer["changed"] is True
    assert answer["path"].endswith(f"/crossover/images/{answer['identity']}")
    assert not (tmp_path / "cache").exists()


def test_an_image_that_is_there_is_no_change(wanted, capsys, tmp_path):
    path = call(guest_image, capsys, check=True, **wanted)["path"]
    tmp_path.joinpath(path).mkdir(parents=True)
    tmp_path.joinpath(path, "image.json").write_text("{}")
    assert call(guest_image, capsys, **wanted)["changed"] is False
    other = {**wanted, "packages": ["openssh-server", "tcpdump"]}
    assert call(guest_image, capsys, check=True, **other)["changed"] is True


def test_a_bake_that_fails_is_a_failure_in_words(wanted, capsys, tmp_path):
    program = tmp_path / "bin" / "mmdebstrap"
    program.write_text("#!/bin/sh\necho 'E: cannot reach the archive'\nexit 7\n")
    program.chmod(0o755)
    answer = call(guest_image, capsys, **wanted)
    assert answer["failed"] is True
    assert answer["msg"].startswith("mmdebstrap failed (exit 7): E: cannot reach the archive;")


def test_a_missing_init_is_told(wanted, capsys, tmp_path):
    answer = call(guest_image, capsys, **{**wanted, "init": str(tmp_path / "absent")})
    assert answer["failed"] is True
    assert str(tmp_path / "absent") in answer["msg"]

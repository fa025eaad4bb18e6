"""What sudo says without a terminal, and how far clocks are apart."""

import pytest

from ansible_collections.crossover.lab.plugins.action import preflight


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ("sudo: sorry, you must have a tty to run sudo\n", "requiretty"),
        ("sudo: a terminal is required to read the password; either use the -S", "!visiblepw"),
        ("sudo: no tty present and no askpass program specified", "!visiblepw"),
    ],
)
def test_sudo_that_wants_a_terminal_is_explained_with_a_remedy(said, setting):
    text = preflight.explain_become("server", said)
    assert text.startswith(f"sudoers {setting} with pipelining on host server:")
    assert "ANSIBLE_PIPELINING=False" in text
    assert "sudoers" in text


def test_other_words_are_not_explained_away():
    assert preflight.explain_become("server", "Permission denied") is None


def test_the_offset_is_known_to_half_of_the_round_trip():
    assert preflight.clock_offset(100.0, 100.5, 101.25) == (1.0, 0.25)


@pytest.mark.parametrize(
    ("offset", "uncertainty", "warned"),
    [(0.6, 0.0, True), (-0.6, 0.05, True), (0.6, 0.2, False), (0.4, 0.0, False)],
)
def test_only_a_certain_offset_is_a_warning(offset, uncertainty, warned):
    text = preflight.clock_warning("server", offset, uncertainty, 0.5)
    assert (text is not None) is warned
    if text:
        assert f"clock of server: {offset:+.3f} s" in text

"""The lab of a matrix: one for each topology and image."""

import os

import pytest

from collector.errors import UsageError
from collector.run.lab_choice import choose_lab


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in ("CROSSOVER_LAB", "CROSSOVER_TOPOLOGY", "CROSSOVER_STT"):
        monkeypatch.delenv(name, raising=False)


def chosen():
    return os.environ.get("CROSSOVER_LAB"), os.environ.get("CROSSOVER_TOPOLOGY")


@pytest.mark.parametrize(
    ("lab", "topology", "wanted"),
    [
        (None, "pair", (None, None)),
        (None, "dut", ("default-dut", "dut")),
        ("mine", "dut", ("mine-dut", "dut")),
        ("mine", "pair", ("mine", None)),
    ],
)
def test_another_topology_is_another_lab(monkeypatch, lab, topology, wanted):
    if lab is not None:
        monkeypatch.setenv("CROSSOVER_LAB", lab)
    choose_lab(topology)
    assert chosen() == wanted


def test_a_chosen_topology_stays_with_the_lab_as_named(monkeypatch):
    monkeypatch.setenv("CROSSOVER_TOPOLOGY", "dut")
    monkeypatch.setenv("CROSSOVER_LAB", "mine")
    choose_lab("dut")
    choose_lab("dut")  # once more in the same process
    assert chosen() == ("mine", "dut")


def test_a_chosen_topology_that_the_matrix_cannot_have_is_told(monkeypatch):
    monkeypatch.setenv("CROSSOVER_TOPOLOGY", "pair")
    with pytest.raises(
        UsageError, match=r"^CROSSOVER_TOPOLOGY: found 'pair'; the matrix wants 'dut'"
    ):
        choose_lab("dut")


def test_stt_is_another_image_and_so_another_lab(monkeypatch):
    monkeypatch.setenv("CROSSOVER_LAB", "mine")
    choose_lab("pair", stt=True)
    choose_lab("pair", stt=True)  # once more in the same process
    assert chosen() == ("mine-stt", None)
    assert os.environ["CROSSOVER_STT"] == "true"


def test_a_lab_that_was_chosen_with_stt_keeps_its_name(monkeypatch):
    monkeypatch.setenv("CROSSOVER_STT", "1")
    monkeypatch.setenv("CROSSOVER_LAB", "mine")
    choose_lab("pair", stt=True)
    assert chosen() == ("mine", None)


def test_another_topology_that_would_do_may_be_chosen(monkeypatch):
    monkeypatch.setenv("CROSSOVER_TOPOLOGY", "chain")
    choose_lab("dut", others=("dut", "chain"))
    assert chosen() == (None, "chain")
    monkeypatch.setenv("CROSSOVER_TOPOLOGY", "pair")
    with pytest.raises(UsageError, match="found 'pair'; the matrix wants 'dut' or 'chain'"):
        choose_lab("dut", others=("dut", "chain"))

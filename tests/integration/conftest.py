"""Embedded labs, named after CROSSOVER_LAB or ``test``.

The pair of hosts is there for the whole session; the others end with the tests of their file, since
every guest that runs takes its share of two cores."""

from __future__ import annotations

import os

import pytest
from lab_plays import running


@pytest.fixture(scope="session")
def lab():
    """The lab of two hosts and one link."""
    with running(os.environ.get("CROSSOVER_LAB", "test"), "pair") as found:
        yield found


@pytest.fixture(scope="module")
def dut_lab():
    """The lab of a tester and a device under test, under the name that `crossover run` gives it."""
    with running(f"{os.environ.get('CROSSOVER_LAB', 'test')}-dut", "dut") as found:
        yield found


@pytest.fixture(scope="module")
def stt_lab():
    """Two hosts whose image has STT, under the name that `crossover run` gives it."""
    name = f"{os.environ.get('CROSSOVER_LAB', 'test')}-stt"
    with running(name, "pair", CROSSOVER_STT="true") as found:
        yield found

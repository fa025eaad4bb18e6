"""Which lab a matrix is measured in: each topology has one of its own."""

from __future__ import annotations

import os

from collector.errors import UsageError

PAIR = "pair"


def choose_lab(topology: str) -> None:
    """Set ``CROSSOVER_TOPOLOGY`` and ``CROSSOVER_LAB`` for a matrix of this topology.

    A lab keeps its saved state, so one of another topology has another name (``default-dut``), and
    the two do not put each other out. A topology that the user has chosen stays, with the lab as
    named; UsageError if the matrix needs another.
    """
    chosen = os.environ.get("CROSSOVER_TOPOLOGY")
    if chosen:
        if chosen != topology:
            raise UsageError(
                f"CROSSOVER_TOPOLOGY: found {chosen!r}; the matrix wants {topology!r} (leave it"
                " unset, and the lab is chosen by the matrix)"
            )
        return
    if topology != PAIR:
        os.environ["CROSSOVER_TOPOLOGY"] = topology
        os.environ["CROSSOVER_LAB"] = f"{os.environ.get('CROSSOVER_LAB') or 'default'}-{topology}"

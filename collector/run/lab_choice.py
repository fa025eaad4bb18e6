"""Which lab a matrix is measured in: each topology has one of its own."""

from __future__ import annotations

import os
from collections.abc import Collection

from collector.errors import UsageError

PAIR = "pair"


def choose_lab(topology: str, stt: bool = False, others: Collection[str] = ()) -> None:
    """Set ``CROSSOVER_TOPOLOGY``, ``CROSSOVER_STT`` and ``CROSSOVER_LAB`` for a matrix of this
    topology, with or without STT links. ``others`` are topologies that would do as well.

    A lab keeps its saved state, so one of another topology or image has another name
    (``default-dut``, ``default-stt``), and they do not put each other out. What the user has
    chosen stays, with the lab as named; UsageError if the matrix needs another topology.
    """
    chosen = os.environ.get("CROSSOVER_TOPOLOGY")
    if chosen and chosen != topology and chosen not in others:
        wanted = " or ".join(repr(name) for name in dict.fromkeys([topology, *others]))
        raise UsageError(
            f"CROSSOVER_TOPOLOGY: found {chosen!r}; the matrix wants {wanted} (leave it"
            " unset, and the lab is chosen by the matrix)"
        )
    suffix = ""
    if not chosen and topology != PAIR:
        os.environ["CROSSOVER_TOPOLOGY"] = topology
        suffix += f"-{topology}"
    if stt and not os.environ.get("CROSSOVER_STT"):
        os.environ["CROSSOVER_STT"] = "true"
        suffix += "-stt"
    if suffix:
        os.environ["CROSSOVER_LAB"] = f"{os.environ.get('CROSSOVER_LAB') or 'default'}{suffix}"

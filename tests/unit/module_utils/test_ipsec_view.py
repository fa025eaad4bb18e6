"""Of a table of thousands, what is shown has the measured flow's pair in it."""

from __future__ import annotations

from ansible_collections.crossover.lab.plugins.module_utils.ipsec_view import (
    MOST_SHOWN,
    shown_state_of,
)
from ansible_collections.crossover.lab.plugins.module_utils.kernel_state.xfrm import State
from ansible_collections.crossover.lab.plugins.module_utils.xfrm_plan import IpsecState

FIRST = 0x1000


def test_the_lowest_spis_are_shown_in_whatever_order_the_kernel_lists_them():
    states = tuple(
        State(src="198.18.0.1", dst="198.18.0.2", proto="esp", spi=spi, reqid=1, mode="transport")
        for spi in range(FIRST + 2 * MOST_SHOWN, FIRST - 1, -1)
    )
    shown = shown_state_of(IpsecState(states))
    assert shown["sas_total"] == len(states)
    assert len(shown["sas"]) == MOST_SHOWN
    assert next(iter(shown["sas"])).startswith(f"esp spi 0x{FIRST:x} ")

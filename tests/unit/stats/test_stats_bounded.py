"""Rates that the generator bounded get no verdict: they say nothing of the device."""

from dataclasses import replace

import pytest
from run_factory import campaign

from collector.stats import summarise
from collector.stats.bounded import REASON, mostly_bounded
from collector.verdict import Verdict


def judged(bounded, **effects):
    samples = [
        replace(sample, bounded_by="generator" if sample.configuration in bounded else "device")
        if sample.test == "tcp_rr"
        else sample
        for sample in campaign(10, effects=effects)
    ]
    summary = summarise(samples, "Unlabel", resamples=500)
    return {(c.configuration, c.test): c for c in summary.cells if c.arm == ""}


def test_a_slower_device_is_found_where_the_device_was_the_bottleneck():
    assert judged((), C_FlCat=0.8)["C_FlCat", "tcp_rr"].verdict is Verdict.SLOWER


@pytest.mark.parametrize("bounded", [("C_FlCat",), ("Unlabel",)])
def test_no_verdict_where_the_generator_bounded_either_side(bounded):
    cells = judged(bounded, C_FlCat=0.8)
    cell = cells["C_FlCat", "tcp_rr"]
    assert (cell.verdict, cell.reason) == (Verdict.INCONCLUSIVE, REASON)
    assert cells["C_FlCat", "tcp_stream"].verdict is Verdict.SLOWER  # another test


def test_equal_rates_of_a_generator_are_no_equal_devices():
    assert judged(("C_NoCat",))["C_NoCat", "tcp_rr"].verdict is Verdict.INCONCLUSIVE
    assert judged(())["C_NoCat", "tcp_rr"].verdict is Verdict.NO_DIFFERENCE


def test_half_of_the_repeats_decide():
    device = campaign(1)
    generator = [replace(sample, bounded_by="generator") for sample in device]
    assert mostly_bounded([device[0], generator[0]])
    assert not mostly_bounded([device[0], device[1], generator[0]])
    assert not mostly_bounded([])

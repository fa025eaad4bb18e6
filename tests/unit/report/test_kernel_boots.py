"""A difference between kernels says how many boots of each it was seen in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import build_run
import pytest

from collector.report.loading import build_report
from collector.report.text import run_text
from collector.runfolder.runfolder import load_run
from collector.runfolder.store import read_samples


def text_of(folder: Path, boots: int) -> str:
    """The report of a run with blocks in turn over so many boots of each kernel."""
    build_run.build_run(folder, build_run.forwarding())
    samples = [
        replace(sample, boot_ids=(f"{sample.configuration} {sample.block % boots}", "tester"))
        for sample in read_samples(folder)
    ]
    text = run_text(build_report(load_run(folder), samples, folder="runs/demo"))
    return " ".join(text.split())


@pytest.mark.parametrize(("boots", "said"), [(1, "1 boot of"), (2, "2 boots of"), (5, "5 boots")])
def test_a_difference_that_few_boots_show_may_be_their_luck(
    tmp_path: Path, boots: int, said: str
) -> None:
    text = text_of(tmp_path, boots)
    assert f"6.12.27 after 6.1.140 (irq unpinned): seen in {said}" in text
    assert "may pass for the kernel's" in text


def test_a_difference_that_many_boots_show_is_the_kernels(tmp_path: Path) -> None:
    text = text_of(tmp_path, 6)
    assert "6.12.27 after 6.1.140 (irq unpinned): regression" in text
    assert "may pass for the kernel's" not in text

"""The report names the kernels that a run booted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from matrix_factory import disable_matrix, planned_over

from collector.matrix.kernels import settle
from collector.report.booted import booted_section
from collector.runfolder.runfolder import Run


def test_each_kernel_is_named_with_what_was_measured_on_it():
    plan = planned_over(settle(disable_matrix(), {}), blocks=1)
    found = booted_section(Run(Path(), plan, (), False, {}))
    assert found is not None
    assert found.tables[0].rows == (
        ("with", "6.12.1-x", "0" * 8, "1"),
        ("without", "6.12.1-x", "0" * 8, "1"),
    )
    assert found.sentences[:2] == ("On with: Unlabel, C_FlCat.", "On without: Disable.")


def test_a_run_on_what_ran_has_no_such_part():
    plan = replace(planned_over(settle(disable_matrix(), {})), kernels={})
    assert booted_section(Run(Path(), plan, (), False, {})) is None

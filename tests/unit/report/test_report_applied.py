"""The time that hosts took to apply configurations stands in the report where it says something."""

import pytest
from build_run import build_run, netlabel

from collector.report.applied import applied_table
from collector.report.loading import load_report
from collector.report.writing import render_run
from collector.runfolder import journal
from collector.runfolder.runfolder import load_run


def applied(folder, configuration, *blocks):
    for block, (seconds, operations) in enumerate(blocks):
        slow = {"operations": operations, "seconds": seconds, "sas": operations // 2}
        hosts = {"client": {**slow, "seconds": seconds / 2}, "server": slow}
        journal.append(folder, "applied", block=block, configuration=configuration, hosts=hosts)


def test_large_changes_are_told_with_the_slower_host_and_the_median_block(tmp_path):
    folder = build_run(tmp_path / "run", netlabel())
    applied(folder, "Unlabel", (0.25, 4))
    applied(folder, "C_NoCat", (8.0, 4000), (4.0, 4000), (2.0, 4000))
    table = applied_table(load_run(folder))
    assert table.head == ("configuration", "SAs", "operations", "seconds", "ms each")
    assert table.rows == (
        ("Unlabel", "2", "4", "0.25", "62.50"),
        ("C_NoCat", "2000", "4000", "4.00", "1.00"),
    )
    for form in ("text", "markdown", "html"):
        assert "Applying the configurations" in render_run(load_report(folder), form, None)


@pytest.mark.parametrize("changes", [(), ((0.25, 4), (0.5, 99))])
def test_small_changes_are_not_told(tmp_path, changes):
    folder = build_run(tmp_path / "run", netlabel())
    applied(folder, "C_NoCat", *changes)
    assert applied_table(load_run(folder)) is None
    assert "Applying" not in render_run(load_report(folder), "text", None)

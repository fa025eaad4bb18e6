"""Every text form against a golden file: the four posts in their own shapes, runs in each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import build_run
import golden
import pytest
from jinja2 import UndefinedError

from collector import published
from collector.report.html import html_page
from collector.report.layout import MOST
from collector.report.markdown import published_markdown, run_markdown
from collector.report.model import Report
from collector.report.templating import environment
from collector.report.text import published_text, run_text

# The statistics' own notes are tested beside the statistics; here only their place matters.
NOTES = ("a note of the statistics", "another one")


def report_of(folder: Path, made: build_run.Made) -> Report:
    report = build_run.report_of(folder, made)
    return replace(report, summary=replace(report.summary, notes=NOTES))


RUNS = {
    "netlabel_cipso": build_run.netlabel,
    "labelled_ipsec": build_run.labelled_ipsec,
    "forwarding": build_run.forwarding,
    "tunnels": build_run.tunnels,
}


@pytest.mark.parametrize("name", published.names())
def test_a_published_experiment_prints_in_the_shape_of_its_post(name: str) -> None:
    text = published_text(published.load(name))
    golden.check(f"published_{name}.txt", text)
    assert max(map(len, text.splitlines())) <= MOST


@pytest.mark.parametrize("name", published.names())
def test_a_published_experiment_as_markdown(name: str) -> None:
    golden.check(f"published_{name}.md", published_markdown(published.load(name)))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_prints_in_the_shape_of_its_post(name: str, tmp_path: Path) -> None:
    text = run_text(report_of(tmp_path / "run", RUNS[name]()))
    golden.check(f"run_{name}.txt", text)
    assert max(map(len, text.splitlines())) <= MOST


def test_a_run_with_too_few_blocks_says_so_first(tmp_path: Path) -> None:
    text = run_text(report_of(tmp_path / "run", build_run.netlabel(blocks=3)))
    golden.check("run_too_few_blocks.txt", text)
    first = text.split("\n\n")[1]
    assert first.startswith("* No verdict yet: 3 blocks measured, too few for a verdict")


def test_a_run_as_markdown(tmp_path: Path) -> None:
    report = report_of(tmp_path / "run", build_run.netlabel())
    golden.check("run_netlabel_cipso.md", run_markdown(report))


def test_a_run_as_a_page(tmp_path: Path) -> None:
    golden.check("run_tiny.html", html_page(report_of(tmp_path / "run", build_run.tiny())))


@pytest.mark.parametrize("html", [False, True])
def test_a_name_that_a_template_lacks_is_an_error(html: bool) -> None:
    template = environment(html=html).from_string("{{ absent }}")
    with pytest.raises(UndefinedError, match="'absent' is undefined"):
        template.render()

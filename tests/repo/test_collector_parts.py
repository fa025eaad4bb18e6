"""The parts of the collector import in one direction, that of the list in its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import collector

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "collector"
# The names before the colon of every item of the list, the lowest first.
LISTED = [
    name
    for item in re.findall(r"^- (``.*?``):", collector.__doc__ or "", re.MULTILINE)
    for name in re.findall(r"``(\w+)``", item)
]


def part_of(path: Path) -> str:
    """The part that a file belongs to: its package, or itself where it stands alone."""
    return path.relative_to(FOLDER).parts[0].removesuffix(".py")


def files() -> Iterator[Path]:
    for path in sorted(FOLDER.iterdir()):
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        elif path.suffix == ".py" and path.name != "__init__.py":
            yield path


def imported_parts(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Line and part of everything of the collector that a file imports, wherever in it."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = list(package[: len(package) - node.level + 1]) if node.level else []
            base = above + (node.module.split(".") if node.module else [])
            found = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for names in found:
            if names[0] == "collector" and names[1:] != ["__version__"]:
                yield from ((node.lineno, name) for name in names[1:2])


def wrong_way(path: Path, source: str) -> list[str]:
    own = LISTED.index(part_of(path))
    return [
        f"line {line}: {part}"
        for line, part in imported_parts(path, source)
        if LISTED.index(part) > own
    ]


def test_the_docstring_lists_every_part_once():
    there = {part_of(path) for path in files()}
    assert sorted(LISTED) == sorted(there)


@pytest.mark.parametrize("path", list(files()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_part_imports_only_from_those_listed_above_it(path):
    assert not wrong_way(path, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "from collector.run.plan import Group",
        "from collector import run",
        "import collector.run.plan",
        "from ..run.plan import Group",
        "def late():\n    from collector.run import plan",
    ],
)
def test_an_import_against_the_direction_is_seen(source):
    assert wrong_way(FOLDER / "matrix" / "matrix.py", source)
    assert not wrong_way(FOLDER / "stress" / "plan.py", source)

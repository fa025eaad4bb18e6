"""The parts of the collector import in one direction, that of the list in its docstring."""

from __future__ import annotations

import ast
import importlib
import importlib.util
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

# Everything that imports the collector, late imports of plugins and tests that need a lab included.
USERS = [
    *(
        path
        for folder in ("collector", "plugins", "tests", "tools")
        for path in ROOT.glob(f"{folder}/**/*.py")
    ),
    *(
        path
        for path in ROOT.glob("benchmarks/*")
        if path.is_file() and "python3" in path.read_text(encoding="utf-8").partition("\n")[0]
    ),
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


def is_there(module: str, name: str) -> bool:
    """Whether a module has such a name, or such a module in it."""
    try:
        return (
            hasattr(importlib.import_module(module), name)
            or importlib.util.find_spec(f"{module}.{name}") is not None
        )
    except ModuleNotFoundError:
        return False


def missing(source: str) -> list[str]:
    """What a source imports of the collector by its full name that is not there."""
    return [
        f"line {node.lineno}: {node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
        if node.module.split(".")[0] == "collector" and not is_there(node.module, alias.name)
    ]


def test_what_is_imported_of_the_collector_is_there():
    wrong = {
        str(path.relative_to(ROOT)): names
        for path in USERS
        if (names := missing(path.read_text(encoding="utf-8")))
    }
    assert not wrong


@pytest.mark.parametrize(
    "source",
    ["from collector.plan import Group", "from collector import plan",
     "def late():\n    from collector.run.plan import nothing_of_that_name"],
)  # fmt: skip
def test_an_import_of_what_is_not_there_is_seen(source):
    assert missing(source)

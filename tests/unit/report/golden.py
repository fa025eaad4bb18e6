"""Compares a text with a file of tests/data/golden. ``UPDATE_GOLDEN=1`` rewrites the file, whose
difference is then read before it is committed."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "golden"


def check(name: str, text: str) -> None:
    """Assert that the text is what the golden file holds, byte for byte."""
    file = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{name}: see its docstring to update"

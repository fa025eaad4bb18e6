"""The benchmark of the searches runs, in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_device_has_both_searches_and_their_ratio() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "search_time"), "--searches", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    kinds = [row[1] for row in rows[2:]]
    assert kinds == ["binary, 60 s", "MLRsearch", "ratio"] * 4

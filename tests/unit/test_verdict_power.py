"""The benchmark of the verdicts runs, in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_both_tables_are_printed() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "verdict_power")]
    done = subprocess.run(
        [*command, "--campaigns", "2", "--repeats", "6"], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert sum(line.endswith("max-t") for line in lines) == 4
    assert "Two runs without a common block, as compared by `compare` (1 campaigns)" in lines

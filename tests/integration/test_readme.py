"""Every command that the README shows as one to type works, in the order shown."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The lines of the README's ``sh`` blocks (``console`` blocks have names to fill in)."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line for block in _BLOCK.findall(text) for line in block.splitlines() if line]


def test_the_readme_shows_commands():
    assert "./crossover demo" in commands()
    assert len(commands()) > 5


@pytest.mark.lab
@pytest.mark.timeout(1800)
def test_they_work_one_after_the_other(lab, tmp_path):
    environment = {**os.environ, "CROSSOVER_LAB": lab.name, "CROSSOVER_RUNS": str(tmp_path)}
    printed = {}
    for command in commands():
        done = subprocess.run(
            command,
            shell=True,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        printed[command] = done.stdout
    table = printed["./crossover demo"]
    for configuration in ("Unlabel", "C_NoCat", "C_FlCat", "C_F_LxV", "C_F_NoC"):
        row = next(line for line in table.splitlines() if line.startswith(configuration))
        assert "invalid" not in row
        assert len(row.split()) == 5, row
    assert "skipped" in next(line for line in table.splitlines() if line.startswith("NoPatch"))
    assert "Report: " in table

"""Every role's scenario passes against the running lab: check, converge, idempotence, verify."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))
# `default` brings the lab up, which the fixture has done; `lab_netns` needs none (test_netns_lab).
ON_THE_LAB = [name for name in SCENARIOS if name not in ("default", "lab_netns")]


def test_there_are_scenarios():
    assert {"bench_host", "cipso", "end_to_end", "kernel", "selinux"} <= set(ON_THE_LAB)


@pytest.mark.lab
@pytest.mark.parametrize("scenario", ON_THE_LAB)
def test_the_scenario_passes(lab, scenario):
    done = subprocess.run(
        [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario],
        cwd=ROOT,
        env={**os.environ, **lab.environment, **strategy()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def strategy() -> dict[str, str]:
    """The strategy that the command line uses."""
    from collector.runner import strategy_environment

    return strategy_environment()

"""Every role's scenario passes against the running lab: check, converge, idempotence, verify."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lab_plays import lab_environment

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))
# A guest of their own, which they start and reboot.
ALONE = ["kernel_boot"]
# `default` brings the lab up, which the fixture has done; `lab_netns` needs none (test_netns_lab).
ON_THE_LAB = [name for name in SCENARIOS if name not in ("default", "lab_netns", *ALONE)]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Ansible's word for a task that failed.
FAILED = re.compile(r"\bfatal: |\bfailed: \[")


def test_there_are_scenarios():
    assert {"bench_host", "cipso", "end_to_end", "kernel", "selinux"} <= set(ON_THE_LAB)


@pytest.mark.lab
@pytest.mark.parametrize("scenario", ON_THE_LAB)
def test_the_scenario_passes(lab, scenario):
    molecule(scenario, lab.environment, 900)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("scenario", ALONE)
def test_the_scenario_with_a_guest_of_its_own_passes(scenario):
    molecule(scenario, lab_environment(os.environ.get("CROSSOVER_LAB", "test")), 2300)


def molecule(scenario, environment, limit_s):
    """Run a scenario to its end. Fails the test if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario],
        cwd=ROOT,
        env={**os.environ, **environment, **strategy()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
    assert done.returncode == 0, told(COLOUR.sub("", done.stdout + done.stderr))


def told(text: str) -> str:
    """What a failed scenario said: around its last failed task, and at the end."""
    at = [found.start() for found in FAILED.finditer(text)]
    task = text[max(0, at[-1] - 1500) : at[-1] + 2500] if at else ""
    return f"{task}\n[…]\n{text[-2500:]}"


def strategy() -> dict[str, str]:
    """The strategy that the command line uses."""
    from collector.run.runner import strategy_environment

    return strategy_environment()

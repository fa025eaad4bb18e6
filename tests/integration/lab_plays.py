"""A running lab as tests see it: commands on its guests, and plays against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 900


@dataclass(frozen=True)
class Lab:
    """The running lab: run commands on its guests and plays against it."""

    name: str
    ssh_config: Path
    environment: dict[str, str]
    root: Path = ROOT

    def ssh_argv(self, node: str, command: str) -> list[str]:
        """The argv of a new connection."""
        return ["ssh", "-F", str(self.ssh_config), "-o", "ControlPath=none", node, command]

    def ssh(self, node: str, command: str, limit_s: float = 30) -> str:
        """What a command prints on a guest. Fails the test when it does."""
        done = subprocess.run(
            self.ssh_argv(node, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
        assert done.returncode == 0, f"{node}: {command}: {done.stderr or done.stdout}"
        return done.stdout

    def playbook_argv(self, playbook: Path, *arguments: str) -> list[str]:
        """The argv of ansible-playbook in this Python's environment."""
        return [sys.executable, "-m", "ansible", "playbook", str(playbook), *arguments]

    def playbook(
        self, playbook: Path, *arguments: str, limit_s: float = 300, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook to its end; the caller looks at the outcome."""
        return subprocess.run(
            self.playbook_argv(playbook, *arguments),
            cwd=self.root,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )


def lab_environment(name: str) -> dict[str, str]:
    """The environment of everything that is run against the lab."""
    return {
        **os.environ,
        "CROSSOVER_LAB": name,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@contextmanager
def running(
    name: str, topology: str, variables: Mapping[str, Any] | None = None, **more: str
) -> Iterator[Lab]:
    """A lab, brought up if it does not run, and then taken down again at the end. ``variables`` are
    of the role that starts it, ``more`` is environment of its plays."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = {**lab_environment(name), "CROSSOVER_TOPOLOGY": topology, **more}
    found = Lab(name, cache / "crossover" / "labs" / name / "ssh_config", environment)
    extra = ["-e", json.dumps(variables)] if variables else []
    up = found.playbook(ROOT / "playbooks" / "lab_up.yml", *extra, limit_s=START_LIMIT_S)
    assert up.returncode == 0, up.stdout + up.stderr
    yield found
    if "changed=0" not in up.stdout:
        down = found.playbook(ROOT / "playbooks" / "lab_down.yml")
        assert down.returncode == 0, down.stdout + down.stderr

"""Labs of their own for tests that break them, through ``lab_driver.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DRIVER = Path(__file__).with_name("lab_driver.py")
LIMIT_S = 1200


@dataclass(frozen=True)
class OwnLab:
    """A lab by its name, and the image that it boots."""

    name: str
    image: str
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Its folder in the cache."""
        base = self.environment.get("XDG_CACHE_HOME") or os.environ.get("XDG_CACHE_HOME")
        return Path(base or Path.home() / ".cache") / "crossover" / "labs" / self.name

    @property
    def state(self) -> dict[str, Any]:
        """Its state file."""
        found: dict[str, Any] = json.loads((self.folder / "lab.json").read_text(encoding="utf-8"))
        return found

    def argv(self, verb: str, *options: str) -> list[str]:
        """The driver's command line."""
        image = ["--image", self.image] if verb == "up" else []
        return [sys.executable, str(DRIVER), verb, self.name, *image, *options]

    def run(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the driver to its end."""
        return subprocess.run(
            self.argv(verb, *options),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env={**os.environ, **self.environment},
        )

    def ok(self, verb: str, *options: str) -> dict[str, Any]:
        """What the driver answers. Fails the test if it complains."""
        done = self.run(verb, *options)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def try_ssh(self, node: str, command: str) -> subprocess.CompletedProcess[str]:
        """A command on a guest over a new connection."""
        return subprocess.run(
            ["ssh", "-F", str(self.folder / "ssh_config"), "-o", "ControlPath=none", node, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def ssh(self, node: str, command: str) -> str:
        """What it prints. Fails the test if it fails."""
        done = self.try_ssh(node, command)
        assert done.returncode == 0, f"{node}: {command}: {done.stderr}"
        return done.stdout


def processes_naming(text: str) -> list[str]:
    """The command lines of all processes that name ``text``, but not of this one's own family."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and str(DRIVER) not in words and "pytest" not in words:
            found.append(words)
    return found

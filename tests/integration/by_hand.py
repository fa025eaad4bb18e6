"""Commands that a module says build its configuration, typed on the lab's guests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

SECRET = "a text that both hosts are given"


def type_on(
    lab: Any,
    host: str,
    lines: Sequence[str],
    variables: Mapping[str, str] | None = None,
    limit_s: float = 240,
) -> str:
    """Type commands on a guest, what holds a secret on the shell's standard input; what they
    print. Fails the test when one of them fails."""
    given = {"SECRET": SECRET, **(variables or {})}
    script = "set -e\n" + "".join(f"{name}='{value}'\n" for name, value in given.items())
    done = subprocess.run(
        lab.ssh_argv(host, "/bin/sh -s"), input=script + "\n".join(lines) + "\n",
        capture_output=True, text=True, check=False, timeout=limit_s,
    )  # fmt: skip
    assert done.returncode == 0, f"{host}: {done.stderr or done.stdout}"
    return done.stdout

"""Run a command of the host: an argument list, English messages, a time limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Tuple

from .errors import HostError, NotInstalledError

Run = Callable[[Sequence[str]], Tuple[int, str, str]]
_SBIN = ("/usr/sbin", "/sbin", "/usr/local/sbin")
# Where programs of the host are looked for, as a search path.
SEARCH = ":".join((*_SBIN, "/usr/local/bin", "/usr/bin", "/bin"))


def environment() -> dict[str, str]:
    """This process's environment with C messages and the folders of administration tools."""
    path = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    path += [folder for folder in _SBIN if folder not in path]
    return {**os.environ, "LC_ALL": "C", "PATH": ":".join(path)}


def run(argv: Sequence[str], timeout_s: float = 60) -> Tuple[int, str, str]:
    """Return code, standard output and error. HostError when it is not there or takes too long."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=environment(),
        )
    except FileNotFoundError:
        raise NotInstalledError(f"{argv[0]}: not installed on this host") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"{' '.join(argv)}: no end within {timeout_s:g} s") from None
    return (
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def output(argv: Sequence[str], runner: Run = run) -> str:
    """What a command prints. HostError with its own words when it fails."""
    code, out, err = runner(argv)
    if code != 0:
        raise HostError(f"{' '.join(argv)}: {err.strip() or out.strip() or f'ended with {code}'}")
    return out

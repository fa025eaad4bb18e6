"""Git checkouts as sources. The user's own checkout is read, never changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Optional

from .errors import KernelError


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        )
    except FileNotFoundError:
        raise KernelError("git is not installed on this machine") from None
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["silently"])[-1]
        raise KernelError(f"{folder}: git {words[0]}: {told}")
    return done.stdout.rstrip("\n")


def commit_of(checkout: Path, ref: Optional[str]) -> str:
    """The full commit id of ``ref``; without one, of what is checked out, which must then have no
    local change. KernelError."""
    if not checkout.is_dir():
        raise KernelError(f"{checkout}: no such folder; wanted a git checkout")
    if ref is None:
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no").splitlines()
        if changed:
            raise KernelError(
                f"{checkout}: {len(changed)} changed files, {changed[0][3:].strip()} among them;"
                " wanted a clean checkout (commit them, or name a ref)"
            )
    return _git(checkout, "rev-parse", "--verify", f"{ref or 'HEAD'}^{{commit}}")


def clone(checkout: Path, commit: str, folder: Path) -> None:
    """A source tree of a commit, sharing the checkout's objects."""
    _git(checkout, "clone", "--quiet", "--shared", "--no-checkout", ".", str(folder))
    move(folder, commit)


def move(folder: Path, commit: str) -> None:
    """Bring a cloned tree to another commit; only files that differ are written."""
    _git(folder, "checkout", "--quiet", "--force", "--detach", commit)

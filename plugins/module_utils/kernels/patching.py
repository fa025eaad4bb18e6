"""Applying patches to a source tree and taking them back, with patch(1)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from .errors import KernelError

_FILE = re.compile(r"(?:patching|checking) file '?(.+?)'?(?: \(.*\))?$")
_FILES = re.compile(r"^(?:patching|checking) ", re.MULTILINE)
_HUNK = re.compile(r"Hunk #(\d+) (?:FAILED|ignored) at (\d+)")
_SKIPPED = re.compile(r"can't find file to patch at input line (\d+)")


def _patch(tree: Path, patch: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # No fuzz: a hunk whose context differs may land in the wrong place and still compile.
    argv = ["patch", "-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch", *options]
    try:
        return subprocess.run(
            [*argv, "-i", str(patch.resolve())],
            cwd=tree,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise KernelError(
            "patch(1) is not installed; crossover setup --kernels installs it"
        ) from None


def failures(output: str) -> list[str]:
    """``FILE hunk #N at line L`` for everything that patch(1) could not do."""
    found, file = [], "?"
    for line in output.splitlines():
        match = _FILE.match(line)
        if match:
            file = match[1]
            continue
        hunk = _HUNK.search(line)
        if hunk:
            found.append(f"{file} hunk #{hunk[1]} at line {hunk[2]}")
        skipped = _SKIPPED.search(line)
        if skipped:
            found.append(f"no file to patch for line {skipped[1]} of the patch")
        if line.startswith("Reversed (or previously applied) patch detected"):
            found.append(f"{file} has the change already")
    return found


def apply(tree: Path, patch: Path) -> None:
    """Apply a patch, whole or not at all. KernelError names file and hunk."""
    if not patch.is_file():
        raise KernelError(f"{patch}: no such file; wanted a patch")
    trial = _patch(tree, patch, "--forward", "--dry-run")
    if not trial.returncode and not _FILES.search(trial.stdout):
        raise KernelError(f"patch {patch.name}: found nothing to change in it; wanted a patch")
    if trial.returncode:
        told = failures(trial.stdout) or [(trial.stdout + trial.stderr).strip() or "silently"]
        raise KernelError(
            f"patch {patch.name} does not apply: {'; '.join(told)}; wanted one made for this source"
        )
    done = _patch(tree, patch, "--forward")
    if done.returncode:
        raise KernelError(f"patch {patch.name}: {(done.stdout + done.stderr).strip()}")


def take_back(tree: Path, patch: Path) -> None:
    """Reverse a patch that was applied. KernelError if the tree is not as it left it."""
    done = _patch(tree, patch, "--reverse")
    if done.returncode:
        raise KernelError(f"patch {patch.name} cannot be taken back: {done.stdout.strip()}")

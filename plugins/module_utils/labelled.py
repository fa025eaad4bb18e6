"""Programs under a wanted SELinux level, and where this project keeps its run-time files."""

from __future__ import annotations

import os
from typing import Any, List, Optional

RUN_DIR = "/run/crossover"
SELINUX_FS = "/sys/fs/selinux/enforce"


def selinux_active() -> bool:
    """Whether the running kernel has SELinux on."""
    return os.path.exists(SELINUX_FS)


def under(level: Optional[str], argv: List[str]) -> List[str]:
    """The argv that runs ``argv`` under a level (``s0:c0.c239``); unchanged without one."""
    return ["runcon", "-l", level, *argv] if level else list(argv)


def run_dir() -> str:
    """The run-time folder, made if it is not there; gone after a reboot like what ran in it."""
    os.makedirs(RUN_DIR, mode=0o700, exist_ok=True)
    return RUN_DIR


def source_of(module: object) -> str:
    """The source text of an imported module, however it was imported (file, zip or network)."""
    loader = module.__loader__  # type: ignore[attr-defined]
    source = loader.get_source(module.__name__)  # type: ignore[attr-defined]
    if not source:
        raise OSError("the source of the probe was not sent along with the module")
    return str(source)


def placed(module: Any) -> str:
    """The path of an imported module's source, written into the run-time folder to be run as a
    program of its own."""
    path = os.path.join(run_dir(), module.__name__.rpartition(".")[2] + ".py")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(source_of(module))
    return path

"""Kernel modules: loaded, built in, or neither."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Tuple

from .errors import HostError
from .run import Run

LOADED, UNLOADED, BUILT_IN = "loaded", "not loaded", "built in"
SYS_MODULE = Path("/sys/module")
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def check_name(name: str) -> str:
    """The name as the kernel spells it (``_`` for ``-``). HostError on anything else."""
    if not _NAME.fullmatch(name):
        raise HostError(f"kernel module {name!r}: wanted letters, digits, '_' or '-'")
    return name.replace("-", "_")


def builtin_names(text: str) -> frozenset[str]:
    """Names in ``modules.builtin``: one path such as ``kernel/net/ipv4/ip_gre.ko`` a line."""
    stems = (line.strip().rsplit("/", 1)[-1] for line in text.splitlines() if line.strip())
    return frozenset(
        stem[: -len(".ko")].replace("-", "_") for stem in stems if stem.endswith(".ko")
    )


def state(name: str, sys_module: Path = SYS_MODULE, modules: Path = Path("/lib/modules")) -> str:
    """``loaded``, ``not loaded`` or ``built in``.

    Only a loadable module has ``initstate``; a built-in one may have a folder for its parameters.
    """
    kernel_name = check_name(name)
    if (sys_module / kernel_name / "initstate").exists():
        return LOADED
    if (sys_module / kernel_name).exists():
        return BUILT_IN
    try:
        text = (modules / os.uname().release / "modules.builtin").read_text()
    except FileNotFoundError:
        return UNLOADED
    return BUILT_IN if kernel_name in builtin_names(text) else UNLOADED


def users(name: str, sys_module: Path = SYS_MODULE) -> Tuple[str, ...]:
    """Modules that use this one."""
    folder = sys_module / check_name(name) / "holders"
    return tuple(sorted(item.name for item in folder.iterdir())) if folder.is_dir() else ()


def load(name: str, run: Run) -> None:
    """Load and look again. HostError with modprobe's own words when it does not."""
    code, _out, err = run(["modprobe", "--", name])
    if code != 0:
        raise HostError(f"kernel module {name}: cannot be loaded: {err.strip() or f'rc {code}'}")
    if state(name) == UNLOADED:
        raise HostError(
            f"kernel module {name}: modprobe succeeded and no module of this name is there; "
            "wanted the module's own name, not an alias"
        )


def unload(name: str, run: Run) -> None:
    """Unload. HostError that names the users when it is in use."""
    code, _out, err = run(["modprobe", "--remove", "--", name])
    if code != 0 or state(name) == LOADED:
        by = ", ".join(users(name))
        raise HostError(
            f"kernel module {name}: cannot be unloaded: {err.strip() or f'rc {code}'}"
            + (f"; used by {by}" if by else "")
        )

"""systemd units: what runs now, in one command for all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Dict

from .errors import HostError
from .run import Run, output

ACTIVE, INACTIVE, MISSING = "active", "inactive", "not installed"
RUNNING = Path("/run/systemd/system")
MASKS = (Path("/etc/systemd/system"), RUNNING)


def parse_show(text: str) -> Dict[str, str]:
    """``systemctl show -p Id,LoadState,ActiveState``: unit to active, inactive or not installed."""
    found = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if "Id" not in values:
            continue
        active = values.get("ActiveState") in ("active", "activating", "reloading")
        missing = values.get("LoadState") == "not-found" and not active
        found[values["Id"]] = MISSING if missing else ACTIVE if active else INACTIVE
    return found


def states(names: Sequence[str], run: Run) -> Dict[str, str]:
    """The state of each unit; empty without systemd."""
    if not names or not RUNNING.is_dir():
        return {}
    properties = "--property=Id,LoadState,ActiveState"
    return parse_show(output(["systemctl", "show", properties, "--", *names], run))


def switch(verb: str, names: Sequence[str], run: Run) -> None:
    """``start`` or ``stop`` units and look again. HostError that names the first that did not."""
    code, _out, err = run(["systemctl", verb, "--", *names])
    wanted = ACTIVE if verb == "start" else INACTIVE
    now = states(names, run)
    for name in names:
        if now.get(name) != wanted:
            words = err.strip() or f"systemctl {verb} ended with {code}"
            raise HostError(f"unit {name} wanted {wanted}, is {now.get(name)}: {words}")


def masked(name: str, folders: Sequence[Path] = MASKS) -> bool:
    """Whether the unit cannot be started: a link to nothing stands in for it."""
    return any(os.path.realpath(folder / name) == os.devnull for folder in folders)


def mask(name: str, wanted: bool, run: Run) -> None:
    """Mask until the next boot, or take that back. HostError when it does not hold."""
    verb = "mask" if wanted else "unmask"
    _code, _out, err = run(["systemctl", verb, "--runtime", "--", name])
    if masked(name) != wanted:
        state = "masked" if masked(name) else "not masked"
        raise HostError(f"unit {name} wanted to be {verb}ed, is {state}: {err.strip()}")

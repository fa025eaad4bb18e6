"""systemd units: what runs now, in one command for all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Dict

from .errors import HostError
from .run import Run, output

ACTIVE, INACTIVE, MISSING = "active", "inactive", "not installed"
RUNNING = Path("/run/systemd/system")


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

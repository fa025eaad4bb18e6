"""What runs of a netns lab: ``/run/crossover-lab/<name>/lab.json``, gone with the boot as it is."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LabError
from ..paths import check_name
from ..process import Process

ROOT = Path("/run/crossover-lab")
SCHEMA = 1


@dataclass
class NetnsState:
    """A lab that was started. ``nodes`` holds each host's first process; the host lives as long."""

    name: str
    topology: dict[str, Any]
    tools: str = ""  # the tree of programs laid over the machine's, "" for none
    nodes: dict[str, Process] = field(default_factory=dict)
    start_s: float = 0.0
    schema: int = SCHEMA

    def running(self) -> bool:
        """Whether every host is there."""
        return bool(self.nodes) and all(process.alive() for process in self.nodes.values())

    def write(self) -> None:
        """Replace the state file in one step."""
        path = folder(self.name) / "lab.json"
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n")
        os.replace(temporary, path)


def folder(name: str) -> Path:
    """The folder of one lab. LabError on a name that is none."""
    return ROOT / check_name(name)


def load(name: str) -> NetnsState | None:
    """The lab's state, None if there is no such lab (a file of another version counts as none).
    LabError for whoever may not look at it."""
    try:
        data = json.loads((folder(name) / "lab.json").read_text())
        if data.pop("schema") != SCHEMA:
            return None
        nodes = {key: Process(**value) for key, value in data.pop("nodes").items()}
        return NetnsState(nodes=nodes, **data)
    except PermissionError:
        raise LabError(f"lab {name}: it is the superuser's; wanted root to look at it") from None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None

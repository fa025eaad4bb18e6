"""The state file of a lab, ``labs/<name>/lab.json``: what runs, since when, under what."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .errors import LabError
from .paths import lab_dir, state_file
from .process import Process

SCHEMA = 1


@dataclass
class NodeState:
    """A started node."""

    pid: int
    started: int
    ssh_port: int
    qmp: str

    @property
    def process(self) -> Process:
        """The node's QEMU process."""
        return Process(self.pid, self.started)


@dataclass
class LabState:
    """Everything that is known of a lab. ``kernel`` is the name of the entry that was booted, None
    for the image's own, and ``boot`` counts its boots; ``saved`` is the signature of that boot's
    saved state, None if there is none; ``given_up`` says why the one before could not be restored;
    ``how`` is ``booted`` or ``restored``; ``wish`` is what was asked for (``Wish.document``)."""

    name: str
    topology: dict[str, Any]
    nodes: dict[str, NodeState] = field(default_factory=dict)
    accelerator: str = ""
    accelerator_reason: str = ""
    image: str = ""
    kernel: str | None = None
    kernel_identity: str | None = None
    kernel_release: str = ""
    boot: int = 0
    selinux: str = ""
    signature: str = ""
    saved: str | None = None
    given_up: str = ""
    how: str = ""
    start_s: float = 0.0
    wish: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def running(self) -> bool:
        """Whether every node's process is alive."""
        return bool(self.nodes) and all(node.process.alive() for node in self.nodes.values())

    def write(self) -> None:
        """Replace the state file in one step."""
        path = state_file(self.name)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n")
        os.replace(temporary, path)


def load(name: str) -> LabState | None:
    """The lab's state, None if there is no such lab. A damaged file counts as none: the lab is
    then built anew, which needs nothing from it."""
    try:
        data = json.loads(state_file(name).read_text())
        if data.pop("schema") != SCHEMA:
            return None
        nodes = {key: NodeState(**value) for key, value in data.pop("nodes").items()}
        return LabState(nodes=nodes, **data)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


@contextmanager
def locked(name: str, patience_s: float = 2.0, folder: Path | None = None) -> Iterator[None]:
    """Hold the lab's lock, in ``lab_dir`` or in another folder of the lab's own; LabError (busy)
    names the holder if it is not free in time."""
    folder = folder or lab_dir(name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "lock"
    with path.open("a+") as handle:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    handle.seek(0)
                    holder = handle.read().strip() or "unknown"
                    raise LabError(
                        f"lab {name}: another process (pid {holder}) is starting or stopping it;"
                        " wait for it to end",
                        busy=True,
                    ) from None
                time.sleep(0.1)
        handle.seek(0)
        handle.truncate()
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield

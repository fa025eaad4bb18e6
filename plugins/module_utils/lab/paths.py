"""Where the lab keeps things: everything that lasts under the XDG cache, sockets beside it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from .errors import LabError

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def tool_environment() -> dict[str, str]:
    """The environment for file system tools, which an ordinary user's PATH has not on Debian."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"}


def check_name(name: str) -> str:
    """The lab's name, or LabError: it becomes part of file and socket names."""
    if not _NAME.fullmatch(name):
        raise LabError(
            f"lab name {name!r}: wanted 1 to 32 of a-z, 0-9, '_', '-', not starting with a sign"
        )
    return name


def cache_root() -> Path:
    """``$XDG_CACHE_HOME/crossover``, by default ``~/.cache/crossover``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "crossover"


def images_dir() -> Path:
    """Where baked guest images are kept, one folder a hash."""
    return cache_root() / "images"


def lab_dir(name: str) -> Path:
    """The folder of one lab: overlays, keys, consoles and its state file."""
    return cache_root() / "labs" / check_name(name)


def runtime_dir(name: str) -> Path:
    """Where one lab's sockets live while it runs; short, as socket paths end at 107 bytes."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK):
        return Path(base) / "crossover" / check_name(name)
    return Path(f"/tmp/crossover-{os.getuid()}") / check_name(name)


def make_runtime_dir(name: str) -> Path:
    """Make ``runtime_dir`` for this user alone. LabError if somebody else holds its place: whoever
    reaches a guest's monitor through it owns the guest."""
    folder = runtime_dir(name)
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        facts = path.lstat()
        if facts.st_uid != os.getuid() or not stat.S_ISDIR(facts.st_mode):
            raise LabError(
                f"{path}: found something of uid {facts.st_uid}; wanted a folder of this user's"
                " own for the lab's sockets (set XDG_RUNTIME_DIR to one)"
            )
    return folder


def ssh_config(name: str) -> Path:
    """The SSH client configuration that knows the lab's nodes, ports, keys and host keys."""
    return lab_dir(name) / "ssh_config"


def state_file(name: str) -> Path:
    """The lab's state file (see ``state``)."""
    return lab_dir(name) / "lab.json"

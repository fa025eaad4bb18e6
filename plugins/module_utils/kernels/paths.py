"""Where kernels are kept: everything below the XDG cache, the user's own entries in its config."""

from __future__ import annotations

import os
from pathlib import Path


def _base(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / usual) / "crossover"


def kernels_dir() -> Path:
    """``$XDG_CACHE_HOME/crossover/kernels``, by default ``~/.cache/crossover/kernels``."""
    return _base("XDG_CACHE_HOME", ".cache") / "kernels"


def built_dir() -> Path:
    """The artifacts, one folder an identity."""
    return kernels_dir() / "built"


def names_dir() -> Path:
    """What each entry's name was built as last, one file a name."""
    return kernels_dir() / "names"


def trees_dir() -> Path:
    """Source trees with their build folders, one folder a source."""
    return kernels_dir() / "trees"


def archives_dir() -> Path:
    """apt's own state for suites other than this machine's, one folder a suite."""
    return kernels_dir() / "archives"


def user_entries() -> Path:
    """``$XDG_CONFIG_HOME/crossover/kernels.yml``: entries that ``crossover kernel add`` made."""
    return _base("XDG_CONFIG_HOME", ".config") / "kernels.yml"

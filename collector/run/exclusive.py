"""One measurement at a time on the same hosts, from this machine.

Two runs would change each other's configuration and share each other's link: both would have
wrong numbers at best. The lock is the kernel's (flock): it ends with the process that holds it,
however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.errors import LockedError
from collector.lab.paths import cache_root


def lock_file(inventory: str) -> Path:
    """The file that stands for the hosts of an inventory (and of the lab that it means)."""
    target = f"{Path(inventory).resolve()}\0{os.environ.get('CROSSOVER_LAB') or 'default'}"
    return cache_root() / "runs" / f"{hashlib.sha256(target.encode()).hexdigest()[:16]}.lock"


@contextmanager
def only_run_on(inventory: str) -> Iterator[None]:
    """Hold the hosts of an inventory. Raises LockedError that names the holder."""
    path = lock_file(inventory)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise LockedError(
                f"{inventory}: another crossover (pid {holder}) measures on these hosts;"
                " wait for it to end"
            ) from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield

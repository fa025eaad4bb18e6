"""Source trees: unpacked once, brought to the wanted commit and patches, built in place.

``trees/<key>/`` holds ``source``, ``build``, the patches that are applied and ``state.json``. One
tree serves every variant of a source, so that only what differs is compiled again. A change that
was cut off leaves no state behind, and the tree is then made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from . import patching
from .artifact import sha256_of
from .errors import KernelError
from .paths import trees_dir

# Source and objects of a large configuration.
TREE_BYTES = 4_000_000_000


class Tree:
    """One tree, held by this process (see ``held``)."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self.lock = lock  # descriptor of the locked file
        self.source = folder / "source"
        self.build = folder / "build"
        self._state = folder / "state.json"

    def state(self) -> Optional[dict[str, Any]]:
        """``{origin, patches}`` of the tree as it is; None if it is not there or half made."""
        try:
            found = json.loads(self._state.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) and self.source.is_dir() else None

    def bring(
        self,
        origin: str,
        patches: Sequence[Path],
        unpack: Callable[[Path], None],
        move: Optional[Callable[[Path], None]] = None,
    ) -> None:
        """Make the source that of ``origin`` with exactly these patches.

        ``unpack`` makes a source in a folder that is not there yet; ``move`` brings one that has
        no patches to this origin without unpacking it. KernelError, with the tree as it was before
        if a patch is at fault."""
        named = [(sha256_of(path) if path.is_file() else str(path), path) for path in patches]
        wanted = [digest for digest, _path in named]
        state = self.state()
        if state is not None and (state["origin"] != origin and move is None):
            state = None
        self._state.unlink(missing_ok=True)
        applied: list[str] = []
        if state is not None:
            kept = _common(state["patches"], wanted)
            try:
                self._take_back(state["patches"][kept if state["origin"] == origin else 0 :])
                applied = state["patches"][:kept] if state["origin"] == origin else []
                if state["origin"] != origin and move is not None:
                    move(self.source)
            except KernelError:
                state = None  # somebody changed the tree by hand
        if state is None:
            applied = []
            self._clear()
            unpack(self.source)
        for digest, patch in named[len(applied) :]:
            try:
                patching.apply(self.source, patch)
            except KernelError:
                self._note(origin, applied)
                raise
            self._keep(patch, digest)
            applied = [*applied, digest]
        self._note(origin, applied)
        self.build.mkdir(exist_ok=True)

    def _note(self, origin: str, patches: Sequence[str]) -> None:
        temporary = self._state.with_suffix(".new")
        temporary.write_text(json.dumps({"origin": origin, "patches": list(patches)}) + "\n")
        temporary.rename(self._state)

    def _keep(self, patch: Path, digest: str) -> None:
        folder = self.folder / "patches"
        folder.mkdir(exist_ok=True)
        shutil.copy(patch, folder / f"{digest}.patch")

    def _take_back(self, digests: Sequence[str]) -> None:
        for digest in reversed(digests):
            patching.take_back(self.source, self.folder / "patches" / f"{digest}.patch")

    def _clear(self) -> None:
        for path in (self.source, self.build):
            if path.exists():
                shutil.rmtree(path)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@contextlib.contextmanager
def held(key: str, waiting: Callable[[], None] = lambda: None) -> Iterator[Tree]:
    """The tree of that key, for this process alone; says that it is ``waiting``, and waits, while
    another one builds in it."""
    folder = trees_dir() / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield Tree(folder, handle.fileno())


def unpack_tarball(archive: Path, folder: Path) -> None:
    """Unpack an archive whose files are all below one folder. KernelError."""
    free = shutil.disk_usage(folder.parent).free
    if free < TREE_BYTES:
        raise KernelError(
            f"{folder.parent} has {free // 2**20} MiB free; a source tree and its build want"
            f" {TREE_BYTES // 2**20} MiB"
        )
    folder.mkdir()
    untar(archive, folder, "--strip-components=1")
    if not (folder / "Kconfig").is_file():
        raise KernelError(f"{archive}: no Kconfig in it; wanted the source of a kernel")


def untar(archive: Path, folder: Path, *options: str) -> None:
    """Unpack an archive of any compression that tar knows. KernelError."""
    argv = ["tar", "--force-local", "--no-same-owner", "-xf", str(archive), "-C", str(folder)]
    done = subprocess.run(
        # Without --force-local a colon in a file's name means another machine.
        [*argv, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        told = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise KernelError(f"{archive}: tar: {told[0]}")

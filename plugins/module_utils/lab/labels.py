"""SELinux labels for a file system image, without root and without a running SELinux.

libselinux looks each path up in the image's own ``file_contexts``; debugfs writes the result into
the ext4 image. Relabelling at first boot would cost a guest under emulation about a minute.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import LabError
from .paths import tool_environment

_SELABEL_CTX_FILE = 0
_SELABEL_OPT_PATH = 3


class _Option(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_char_p)]


class Labeller:
    """Looks up the context of a path as the policy's ``file_contexts`` has it."""

    def __init__(self, file_contexts: Path) -> None:
        self._lib = ctypes.CDLL("libselinux.so.1", use_errno=True)
        self._lib.selabel_open.restype = ctypes.c_void_p
        self._lib.selabel_open.argtypes = [
            ctypes.c_uint,
            ctypes.POINTER(_Option),
            ctypes.c_uint,
        ]
        self._lib.selabel_lookup_raw.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_char_p,
            ctypes.c_int,
        ]
        self._lib.freecon.argtypes = [ctypes.c_char_p]
        options = (_Option * 1)(_Option(_SELABEL_OPT_PATH, os.fsencode(file_contexts)))
        self._handle = self._lib.selabel_open(_SELABEL_CTX_FILE, options, 1)
        if not self._handle:
            raise LabError(
                f"{file_contexts}: libselinux could not read it; wanted a file_contexts file"
            )

    def lookup(self, path: str, mode: int) -> str | None:
        """The context for a path of the given mode, None where the policy says ``<<none>>``."""
        context = ctypes.c_char_p()
        if self._lib.selabel_lookup_raw(
            self._handle, ctypes.byref(context), os.fsencode(path), mode
        ):
            return None
        assert context.value is not None
        return context.value.decode()


def debugfs_commands(
    files: Iterable[tuple[str, int]], labeller: Labeller, mounted_on: str = ""
) -> Iterator[str]:
    """One ``ea_set`` command per path; the value ends in a NUL as the kernel stores it.

    ``mounted_on`` is where the file system will be found: the policy knows files by that.
    """
    for path, mode in files:
        context = labeller.lookup((mounted_on + path).rstrip("/") or "/", mode)
        if context is None:
            continue
        if '"' in path or "\n" in path:
            raise LabError(f"image path {path!r} has a quote or line end; debugfs cannot name it")
        yield f'ea_set "{path}" security.selinux "{context}\\000"'


def write_labels(image: Path, commands: Iterable[str]) -> int:
    """Run the commands on the image. Returns how many; raises LabError on any complaint."""
    script = image.with_suffix(".labels")
    lines = list(commands)
    script.write_text("\n".join(lines) + "\n")
    try:
        done = subprocess.run(
            ["debugfs", "-w", "-f", str(script), str(image)],
            capture_output=True,
            text=True,
            check=False,
            env=tool_environment(),
        )
    finally:
        script.unlink()
    complaints = [
        line
        for line in (done.stderr + done.stdout).splitlines()
        if line and not line.startswith("debugfs")
    ]
    if done.returncode or complaints:
        raise LabError(f"{image}: debugfs: {(complaints or [done.stderr])[0]}")
    return len(lines)

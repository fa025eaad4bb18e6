"""Running the kernel's makefile, step by step."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Optional

from .errors import KernelError

# ``  CC      net/ipv4/tcp.o``, ``  LD [M]  net/core/pktgen.ko`` (scripts/Kbuild.include).
_STEP = re.compile(r"\s+[A-Z][A-Z0-9_]*(?: \[\w\])?\s+(\S+)$")
_ERROR = re.compile(r"(\berror:|\bError \d|\bERROR:|No rule to make target)")
# Nothing of the machine or the time goes into the image: the same inputs give the same bytes.
FIXED = {
    "LC_ALL": "C",
    "KBUILD_BUILD_USER": "crossover",
    "KBUILD_BUILD_HOST": "crossover",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
}

# Variables that the kernel's makefiles would take from the environment, as the compiler (LLVM).
FROM_OUTSIDE = frozenset(
    {
        *("ARCH", "SUBARCH", "CROSS_COMPILE", "LLVM", "LLVM_IAS", "LOCALVERSION", "O", "V", "W"),
        *("KAFLAGS", "KCFLAGS", "KCPPFLAGS", "KRUSTFLAGS", "MAKEFLAGS", "MFLAGS"),
    }
)

# (steps so far, what the last one made)
OnStep = Callable[[int, str], None]


def compiler() -> str:
    """The first lines of ``gcc --version`` and ``ld --version``. KernelError without them."""
    words = []
    for program in ("gcc", "ld"):
        try:
            done = subprocess.run(
                [program, "--version"], capture_output=True, text=True, check=True, env=_clean()
            )
        except (FileNotFoundError, subprocess.CalledProcessError):
            raise KernelError(
                f"{program} is not installed; crossover setup --kernels installs it"
            ) from None
        words.append(done.stdout.splitlines()[0])
    return "; ".join(words)


def _clean() -> dict[str, str]:
    """This environment without what would change a build from outside."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("KBUILD_", "KCONFIG_")) and key not in FROM_OUTSIDE
    }
    return {**kept, **FIXED}


def run(
    source: Path,
    build: Path,
    words: Sequence[str],
    log: Path,
    on_step: Optional[OnStep] = None,
    lock: Optional[int] = None,
) -> int:
    """Run ``make O=build words`` in a source tree and return how many steps it took. All that it
    says goes to ``log``. KernelError has the compiler's first complaint.

    ``lock`` is the descriptor of a locked file: make keeps it, so that the tree stays locked as
    long as anything is compiled in it, also when this process was killed."""
    argv = ["make", f"-j{os.cpu_count() or 1}", f"O={build}", *words]
    try:
        child = subprocess.Popen(
            argv,
            cwd=source,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_clean(),
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )
    except FileNotFoundError:
        raise KernelError("make is not installed; crossover setup --kernels installs it") from None
    steps, complaint = 0, ""
    with log.open("w", encoding="utf-8") as sink, child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                sink.write(line)
                match = _STEP.match(line)
                if match:
                    steps += 1
                    if on_step is not None:
                        on_step(steps, match[1])
                elif not complaint and _ERROR.search(line):
                    complaint = line.strip()
        except BaseException:
            _end(child)
            raise
    code = child.returncode
    if code:
        raise KernelError(
            f"make {' '.join(words)} ended with {code}: {complaint or 'no word of why'};"
            f" the whole log is {log}"
        )
    return steps


def _end(child: subprocess.Popen[str]) -> None:
    """End make and the compilers below it: they are a session of their own."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait()

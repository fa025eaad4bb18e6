"""The STT kernel module and its iproute2 plugin on a host: built from sources, recorded, removed.

What this has installed is in a record; a module that came with the system is taken as it is and
never removed. With DKMS the module is built anew for every kernel the host gets.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

from .host.errors import HostError
from .host.run import SEARCH, Run, output

RECORD = Path("/var/lib/crossover/stt.json")
PACKAGE = "crossover-stt"
VERSION = "1.0"
# Where DKMS wants the sources of a package.
SOURCES = Path("/usr/src") / f"{PACKAGE}-{VERSION}"
# A build takes seconds, minutes on an emulated host.
BUILD_LIMIT_S = 900
MODULES = Path("/lib/modules")
# There while the module is loaded.
LOADED = Path("/sys/module/stt/initstate")
# The digest that a record has while its installation is going on: none that sources can have.
UNFINISHED = "unfinished"
# DKMS's words for a package that it does not have, such as one whose installation was cut off.
_NOT_IN_DKMS = "not located in the DKMS tree"
_SOURCE_PATTERNS = ("*.c", "*.h", "Kbuild", "Makefile", "dkms.conf", "plugin/*.c")


@dataclass(frozen=True)
class Found:
    """What a host has. ``available``: the running kernel finds a module and ``ip`` the plugin;
    ``recorded``: what this installed, None if nothing; ``digest``: the sources that lie there."""

    release: str
    available: bool
    recorded: Optional[Dict[str, Any]]
    digest: Optional[str]
    dkms: bool


def digest(folder: Path) -> Optional[str]:
    """A hash of the sources, None if there are none."""
    files = sorted(path for pattern in _SOURCE_PATTERNS for path in folder.glob(pattern))
    total = hashlib.sha256()
    for path in files:
        total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest() if files else None


def read_record(path: Path) -> Optional[Dict[str, Any]]:
    """The record, None without one. HostError if it cannot be understood."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise HostError(
            f"{path}: not JSON: {error}; wanted the record of an installation"
        ) from None
    if not isinstance(found, dict) or not {"release", "digest", "method"} <= set(found):
        raise HostError(f"{path}: wanted release, digest and method of an installation")
    return found


def observe(run: Run, record: Path = RECORD, sources: Path = SOURCES) -> Found:
    """Look at the host."""
    release = os.uname().release
    code, _out, _err = run(["modinfo", "-k", release, "-F", "filename", "stt"])
    # ip prints the options of a link type only if it has its plugin.
    _code, out, err = run(["ip", "link", "help", "stt"])
    return Found(
        release=release,
        available=code == 0 and "stt remote" in out + err,
        recorded=read_record(record),
        digest=digest(sources),
        dkms=shutil.which("dkms", path=SEARCH) is not None,
    )


def needs_build(found: Found) -> bool:
    """Whether to build: nothing is there, or what is there is of other sources or another kernel.

    A DKMS package follows the kernels by itself, and what the system brought is left alone.
    """
    if found.recorded is None:
        return not found.available
    if found.recorded["digest"] != found.digest or not found.available:
        return True
    return found.recorded["method"] != "dkms" and found.recorded["release"] != found.release


def build_steps(found: Found, sources: Path = SOURCES, modules: Path = MODULES) -> List[List[str]]:
    """The commands that build and install, in order."""
    make = ["make", "-C", str(sources), f"KERNEL={found.release}"]
    if not found.dkms:
        return [[*make, "all", "install"]]
    package = ["-m", PACKAGE, "-v", VERSION]
    steps = []
    if found.recorded is not None:
        if found.recorded["method"] == "dkms":
            steps.append(["dkms", "remove", *package, "--all"])
        else:  # DKMS came to the host afterwards; two modules of one name would be there
            steps.append(_uninstall(found, sources, modules))
    return [
        *steps,
        [*make, "plugin", "install-plugin"],
        ["dkms", "install", *package, "-k", found.release],
    ]


def _uninstall(found: Found, sources: Path, modules: Path) -> List[str]:
    """For the kernel that it was built for, unless that is gone: depmod wants one that is there."""
    release = str((found.recorded or {}).get("release"))
    if not (modules / release).is_dir():
        release = found.release
    return ["make", "-C", str(sources), f"KERNEL={release}", "uninstall"]


def removal_steps(
    found: Found, sources: Path = SOURCES, modules: Path = MODULES
) -> List[List[str]]:
    """The commands that take back what was recorded, in order."""
    recorded = found.recorded
    if recorded is None:
        return []
    steps = [_uninstall(found, sources, modules)]
    if recorded["method"] == "dkms":
        steps.append(["dkms", "remove", "-m", PACKAGE, "-v", VERSION, "--all"])
    return steps


def _do(steps: List[List[str]], run: Run) -> None:
    for step in steps:
        try:
            output(step, run)
        except HostError as error:
            if step[:2] != ["dkms", "remove"] or _NOT_IN_DKMS not in str(error):
                raise


def _unload(run: Run, loaded: Path) -> None:
    """Unload the module. HostError while a link of the type exists."""
    links = json.loads(output(["ip", "-j", "link", "show", "type", "stt"], run) or "[]")
    names = [link["ifname"] for link in links if link.get("ifname")]
    if names:
        raise HostError(
            f"STT: links {', '.join(names)} exist; wanted none before it is removed or replaced"
        )
    if loaded.exists():
        output(["rmmod", "stt"], run)


def install(
    found: Found,
    run: Run,
    record: Path = RECORD,
    sources: Path = SOURCES,
    modules: Path = MODULES,
    loaded: Path = LOADED,
) -> None:
    """Build, install and prove that the kernel finds it. An older one is unloaded first: otherwise
    it would go on, and be measured. Raises HostError."""
    if found.digest is None:
        raise HostError(f"{sources}: no sources of STT there")
    headers = modules / found.release / "build"
    if not headers.exists():
        raise HostError(f"{headers}: no headers of the running kernel; wanted their package")
    if found.recorded is not None:
        _unload(run, loaded)
    made = {
        "release": found.release,
        "digest": UNFINISHED,
        "method": "dkms" if found.dkms else "kbuild",
    }
    steps = build_steps(found, sources, modules)
    record.parent.mkdir(parents=True, exist_ok=True)
    # Before the steps, so that what is cut off is built again, and can be removed.
    record.write_text(json.dumps(made) + "\n")
    _do(steps, run)
    if not observe(run, record, sources).available:
        raise HostError(f"STT: built for {found.release}, and modinfo or ip does not find it")
    record.write_text(json.dumps({**made, "digest": found.digest}) + "\n")


def remove(
    found: Found,
    run: Run,
    record: Path = RECORD,
    sources: Path = SOURCES,
    modules: Path = MODULES,
    loaded: Path = LOADED,
) -> None:
    """Unload and take back. HostError while a link of the type exists."""
    if found.recorded is None:
        return
    _unload(run, loaded)
    _do(removal_steps(found, sources, modules), run)
    _sweep(modules, "dkms/stt.ko*" if found.recorded["method"] == "dkms" else "stt.ko", run)
    shutil.rmtree(sources, ignore_errors=True)
    record.unlink()


def _sweep(modules: Path, name: str, run: Run) -> None:
    """Remove what is left for any kernel: modules that were built for earlier ones, and what DKMS
    leaves in its folder where it finds that the module it has built and the one in place differ."""
    for path in sorted(modules.glob(f"*/updates/{name}")):
        path.unlink()
        output(["depmod", path.relative_to(modules).parts[0]], run)

"""Programs that hosts need and this machine lacks, as a tree that is laid over its /usr.

Debian has netperf in non-free, which few machines have among their sources. So the packages come
from the archive that the machine's own apt uses, with sources of their own: nothing is installed,
and neither apt's nor dpkg's state is touched. The tree stays in the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import LabError
from ..image import host_mirror
from ..paths import cache_root, tool_environment

# contrib is there because packages of non-free may depend on it.
COMPONENTS = ("main", "contrib", "non-free")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LIMIT_S = 600
# Where packages put files outside of /usr, on systems where these are links into it.
_MERGED = ("bin", "sbin", "lib", "lib64")


def missing_packages(programs: Mapping[str, str]) -> tuple[str, ...]:
    """Packages of those ``programs`` (program to package) that this machine lacks, sorted."""
    path = tool_environment()["PATH"]
    return tuple(
        sorted({package for name, package in programs.items() if not shutil.which(name, path=path)})
    )


def suite(os_release: str) -> str:
    """The Debian release of this machine from the text of os-release(5). LabError on another
    distribution."""
    pairs = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    values = {key: value.strip("\"'") for key, value in pairs.items()}
    if values.get("ID") != "debian" or not values.get("VERSION_CODENAME"):
        raise LabError(
            f"found {values.get('PRETTY_NAME', 'an unknown distribution')}; wanted Debian, whose"
            " archive they could be fetched from"
        )
    return values["VERSION_CODENAME"]


def tree_folder(packages: tuple[str, ...], release: str) -> Path:
    """Where the tree of these packages is kept."""
    text = "\n".join((release, *COMPONENTS, *packages))
    return cache_root() / "tools" / hashlib.sha256(text.encode()).hexdigest()[:16]


def apt_options(state: Path, status: str = "/var/lib/dpkg/status") -> list[str]:
    """Options that give apt-get a state of its own in ``state``, on what is installed here."""
    values = {
        "Dir::Etc::SourceList": f"{state}/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": f"{state}/state",
        "Dir::State::Status": status,
        "Dir::Cache": f"{state}/cache",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "0",
        "Acquire::Languages": "none",
    }
    return [word for key, value in values.items() for word in ("-o", f"{key}={value}")]


def ensure(programs: Mapping[str, str], mirror: str = "") -> tuple[bool, Path | None]:
    """The tree with what this machine lacks of ``programs``, None if it lacks nothing; and whether
    it was made now. Raises LabError that names the packages and how to get them by hand."""
    packages = missing_packages(programs)
    if not packages:
        return False, None
    by_hand = (
        f"install {' '.join(packages)} on this machine (Debian has netperf in the component"
        " non-free, Ubuntu in multiverse)"
    )
    try:
        release = suite(Path("/etc/os-release").read_text(encoding="utf-8"))
        target = tree_folder(packages, release)
        if target.is_dir():
            return False, target
        _fetch(packages, release, host_mirror(mirror), target)
    except (LabError, OSError, subprocess.TimeoutExpired) as error:
        raise LabError(
            f"programs of the lab's hosts: this machine lacks the packages {', '.join(packages)},"
            f" and they could not be fetched: {error}; wanted them here: {by_hand}"
        ) from None
    return True, target


def _fetch(packages: tuple[str, ...], release: str, mirror: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        state, tree = Path(scratch) / "apt", Path(scratch) / "tree"
        for part in ("state/lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
        (state / "sources.list").write_text(
            f"deb {signed}{mirror} {release} {' '.join(COMPONENTS)}\n"
        )
        apt = ["apt-get", "-q", "-y", *apt_options(state)]
        _run([*apt, "update"])
        _run([*apt, "--download-only", "install", *packages])
        tree.mkdir()
        for archive in sorted((state / "cache" / "archives").glob("*.deb")):
            _run(["dpkg-deb", "--extract", str(archive), str(tree)])
        _merge(tree)
        (tree / "usr").chmod(0o755)
        os.replace(tree, target)


def _merge(tree: Path) -> None:
    """Move what stands in /bin, /sbin and /lib to /usr, as the machine's own links do."""
    for name in _MERGED:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, tree / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / name)


def _run(argv: list[str]) -> None:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=tool_environment(),
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in lines if line.startswith("E: ")] or lines[-1:]
        raise LabError(f"{argv[0]}: {' '.join(errors) or f'ended with {done.returncode}'}")

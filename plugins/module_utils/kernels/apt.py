"""Packages from Debian's archive: through this machine's own apt, or through a state of apt's of
our own for another suite. Works as an ordinary user; nothing is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Optional

from ..lab.errors import LabError
from ..lab.image import host_archives, host_mirror
from .errors import KernelError
from .paths import archives_dir

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# What a kernel package is made of; metapackages depend on one, and newer releases split modules
# off the image.
_PARTS = re.compile(r"linux-(?:image|modules|binary)-[^\s,|()]+")
_FIELD = re.compile(r"^([A-Za-z0-9-]+): (.*)$", re.MULTILINE)
ARCHITECTURE = "amd64"


def _run(argv: list[str], what: str, folder: Optional[Path] = None) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise KernelError(f"{what}: {argv[0]} is not installed on this machine") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        told = (lines or done.stderr.strip().splitlines() or ["silently"])[0]
        raise KernelError(f"{what}: {argv[0]} ended with {done.returncode}: {told}")
    return done.stdout


def stanza(text: str) -> dict[str, str]:
    """The fields of the first stanza of ``apt-cache show``; of folded fields the first line."""
    return dict(_FIELD.findall(text.split("\n\n", maxsplit=1)[0]))


def parts(depends: str) -> list[str]:
    """The kernel packages among the dependencies of one, first alternatives only."""
    found = []
    for item in depends.split(","):
        match = _PARTS.match(item.strip())
        if match:
            found.append(match[0])
    return found


def sources(suite: str, mirror: str, security: Optional[str]) -> str:
    """The one-line-style source list of a suite, with its security updates where they are known."""
    option = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    lines = [f"deb {option}{mirror} {suite} main"]
    if security:
        lines.append(f"deb {option}{security} {suite}-security main")
    return "".join(line + "\n" for line in lines)


class Archive:
    """A place that packages come from: a suite, or (None) what this machine's apt knows."""

    def __init__(self, suite: Optional[str]) -> None:
        self.suite = suite
        self._options: list[str] = []
        if suite is not None:
            self._options = self._own_state(suite)

    @staticmethod
    def _own_state(suite: str) -> list[str]:
        folder = archives_dir() / suite
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        try:
            mirror = host_mirror()
        except LabError as error:
            raise KernelError(f"suite {suite}: {error}") from error
        security = host_archives().get("Debian/Debian-Security")
        (folder / "sources.list").write_text(sources(suite, mirror, security))
        values = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferences": "-",
            "Dir::Etc::preferencesparts": "-",
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "APT::Architecture": ARCHITECTURE,
            "APT::Architectures": ARCHITECTURE,
            "Acquire::Languages": "none",
        }
        options = [word for key, value in values.items() for word in ("-o", f"{key}={value}")]
        _run(["apt-get", *options, *_sandbox(), "-q", "update"], f"suite {suite}")
        return options

    def show(self, package: str, version: Optional[str] = None) -> dict[str, str]:
        """What the archive says of a package, by field. KernelError if it has none."""
        wanted = package if version is None else f"{package}={version}"
        text = _run(
            ["apt-cache", *self._options, "show", "--no-all-versions", wanted],
            f"package {wanted} of {self.words()}",
        )
        found = stanza(text)
        # A name that does not exist is taken for a pattern.
        if found.get("Package") != package or "Version" not in found:
            raise KernelError(f"package {wanted} of {self.words()}: no such package")
        return found

    def words(self) -> str:
        """The archive in words."""
        return "this machine's apt sources" if self.suite is None else f"suite {self.suite}"

    def kernel(self, package: str, version: Optional[str]) -> list[tuple[str, str]]:
        """``(package, version)`` of everything a kernel consists of, the image first; a
        metapackage is followed to what it stands for."""
        if not package.startswith("linux-image-"):
            raise KernelError(f"package {package}: wanted a linux-image package")
        found: dict[str, str] = {}
        left = [(package, version)]
        while left:
            name, wanted = left.pop(0)
            fields = self.show(name, wanted)
            further = [part for part in parts(fields.get("Depends", "")) if part not in found]
            # A metapackage has no release in its name: linux-image-amd64 against -6.1.0-9-amd64.
            if not (further and not re.search(r"-\d+\.\d+", name)):
                found[name] = fields["Version"]
            left += [(part, None) for part in further]
        return list(found.items())

    def download(self, package: str, version: str, folder: Path) -> Path:
        """Fetch one package into a folder; returns its file."""
        before = set(folder.glob("*.deb"))
        _run(
            ["apt-get", *self._options, *_sandbox(), "-q", "download", f"{package}={version}"],
            f"package {package} {version} of {self.words()}",
            folder,
        )
        new = sorted(set(folder.glob("*.deb")) - before)
        if len(new) != 1:
            raise KernelError(
                f"package {package} {version}: apt-get download left {len(new)} files; wanted one"
            )
        return new[0]


def _sandbox() -> list[str]:
    # As root apt would fetch as a user of its own, who may not write into our folders.
    return ["-o", "APT::Sandbox::User=root"] if os.getuid() == 0 else []


def unpack(deb: Path, folder: Path) -> None:
    """Unpack a package's files."""
    _run(["dpkg-deb", "--extract", str(deb), str(folder)], f"package {deb.name}")

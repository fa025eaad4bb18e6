"""What an entry is, by hash: of its declaration with the contents of all files that it names, and
of what it was resolved to (the version that the archive had, the commit of a checkout).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from . import git, make
from .artifact import sha256_of
from .entry import Entry, Git, Image, Package, Source, Tarball
from .errors import KernelError

# Raised when the way an artifact is made changes, so that older ones are not taken for new ones.
FORMAT = 1


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _file(path: Path) -> str:
    if not path.is_file():
        raise KernelError(f"{path}: no such file")
    try:
        return sha256_of(path)
    except OSError as error:
        raise KernelError(f"{path}: {error.strerror}; wanted a file that can be read") from error


def _folder(path: Path) -> str:
    """The hash of the files of a folder: names and contents."""
    if not path.is_dir():
        raise KernelError(f"{path}: no such folder")
    files = sorted(item for item in path.rglob("*") if item.is_file())
    return _hash([[str(file.relative_to(path)), _file(file)] for file in files])


def named(paths: Sequence[Path]) -> list[list[str]]:
    """``[name, SHA-256]`` of each file. KernelError for one that is not there."""
    return [[path.name, _file(path)] for path in paths]


def _package(package: Package) -> list[Optional[str]]:
    return [package.name, package.suite, package.version]


def definition(entry: Entry, commit: Optional[str] = None) -> str:
    """The hash of what the user declared, contents included; for a source also of the compiler.
    ``commit`` is what the checkout stands for, if that is known; None: it is asked.
    KernelError if a file is missing or a checkout is not clean."""
    made_of = entry.made_of
    if isinstance(made_of, Package):
        return _hash([FORMAT, entry.name, "package", _package(made_of)])
    if isinstance(made_of, Image):
        modules = made_of.modules
        return _hash(
            [
                *(FORMAT, entry.name, "image", _file(made_of.vmlinuz), _file(made_of.config)),
                None if made_of.initrd is None else _file(made_of.initrd),
                None
                if modules is None
                else _folder(modules)
                if modules.is_dir()
                else _file(modules),
            ]
        )
    return _hash(
        [
            *(FORMAT, entry.name, "source", _origin(made_of, commit), make.compiler()),
            _file(made_of.base) if isinstance(made_of.base, Path) else made_of.base,
            [digest for _name, digest in named(made_of.fragments)],
            [digest for _name, digest in named(made_of.patches)],
            [[path.name, _folder(path)] for path in made_of.external_modules],
        ]
    )


def _origin(source: Source, commit: Optional[str]) -> list[Any]:
    origin = source.origin
    if isinstance(origin, Package):
        return ["package", *_package(origin)]
    if isinstance(origin, Tarball):
        digest = _file(origin.path)
        if origin.sha256 not in (None, digest):
            raise KernelError(f"{origin.path}: SHA-256 is {digest}; wanted {origin.sha256}")
        return ["tarball", digest]
    return ["git", commit or git.commit_of(origin.path, origin.ref)]


def of(definition_: str, resolved: Any) -> str:
    """The identity of the artifact: 16 hex digits."""
    return _hash([definition_, resolved])


def tree_key(source: Source, version: Optional[str]) -> str:
    """What must be equal for two entries to be variants in one tree."""
    origin = source.origin
    if isinstance(origin, Package):
        return f"package {origin.name} {origin.suite} {version}"
    if isinstance(origin, Tarball):
        return f"tarball {sha256_of(origin.path)}"
    assert isinstance(origin, Git)
    return f"git {origin.path.resolve()}"

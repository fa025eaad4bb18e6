"""From an entry to its artifact: fetched, or compiled in the tree of its source."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

from . import artifact, filling, identity
from .apt import Archive, unpack
from .artifact import Artifact
from .compiling import Tell, compile_source
from .entry import Entry, Git, Image, Package, Source
from .errors import KernelError
from .git import commit_of
from .records import note, remembered
from .tree import untar

BUILT, NEVER = "built", "never built"
GONE, CHANGED = "its built files are gone", "changed since it was built"
# What stands in the way of nothing; every other reason does.
BUILDABLE = (BUILT, NEVER, GONE, CHANGED)


@dataclass(frozen=True)
class Status:
    """Whether an entry can be used now. ``artifact`` None: not built as it is declared now, and
    ``reason`` says why."""

    entry: Entry
    artifact: Optional[Artifact]
    reason: str


def status(entry: Entry) -> Status:
    """How things stand with an entry; makes nothing and asks no archive."""
    try:
        definition = identity.definition(entry)
    except KernelError as error:
        return Status(entry, None, str(error))
    known = remembered(entry.name)
    if known is None:
        return Status(entry, None, NEVER)
    try:
        found = artifact.find(known.identity)
    except KernelError as error:
        return Status(entry, None, str(error))
    if found is None:
        return Status(entry, None, GONE)
    if known.definition != definition:
        return Status(entry, None, CHANGED)
    return Status(entry, found, BUILT)


def ensure(entry: Entry, tell: Tell, refresh: bool = False) -> tuple[bool, Artifact]:
    """The artifact of an entry, made unless it is there; and whether it was made.

    ``refresh`` asks the archive again for the newest version of a package whose entry pins none.
    KernelError with everything as it was before.
    """
    definition = identity.definition(entry)
    known = remembered(entry.name)
    if known is not None and known.definition == definition and not refresh:
        found = artifact.find(known.identity)
        if found is not None:
            return False, found
    resolved = resolve(entry, tell)
    made = identity.of(definition, resolved)
    found = artifact.find(made)
    if found is None:
        _make(entry, definition, made, resolved, tell)
        found = artifact.find(made)
        assert found is not None
        note(entry.name, definition, made)
        return True, found
    note(entry.name, definition, made)
    return False, found


def resolve(entry: Entry, tell: Tell) -> list[Any]:
    """What an entry stands for now: versions of packages, the commit of a checkout; for the rest
    the declaration says it all."""
    made_of = entry.made_of
    if isinstance(made_of, Package):
        tell(f"asking for {made_of.name}", 0, None)
        return [list(pair) for pair in Archive(made_of.suite).kernel(made_of.name, made_of.version)]
    if isinstance(made_of, Source) and isinstance(made_of.origin, Package):
        package = made_of.origin
        if package.version is not None:
            return [package.version]
        tell(f"asking for {package.name}", 0, None)
        return [Archive(package.suite).show(package.name)["Version"]]
    if isinstance(made_of, Source) and isinstance(made_of.origin, Git):
        # A branch may move while another build has the tree: what is compiled is this commit.
        return [commit_of(made_of.origin.path, made_of.origin.ref)]
    return []


def _make(entry: Entry, definition: str, made: str, resolved: list[Any], tell: Tell) -> None:
    from_git = isinstance(entry.made_of, Source) and isinstance(entry.made_of.origin, Git)
    try:
        with artifact.being_made(made) as folder:
            made_of = entry.made_of
            if isinstance(made_of, Package):
                facts = _from_packages(made_of, resolved, folder, tell)
            elif isinstance(made_of, Image):
                facts = _from_image(made_of, folder)
            else:
                revision = resolved[0] if resolved else None
                facts = compile_source(entry.name, made_of, made, revision, folder, tell)
            if identity.definition(entry, resolved[0] if from_git else None) != definition:
                raise KernelError("what it is made of was changed meanwhile; build it again")
            artifact.write(
                folder,
                Artifact(
                    name=entry.name,
                    about=entry.about,
                    identity=made,
                    kind=entry.kind,
                    built_at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    **facts,
                ),
            )
    except KernelError as error:
        raise KernelError(f"kernel {entry.name}: {error}") from error
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise KernelError(f"kernel {entry.name}: {error.strerror or error}{where}") from error


def _scratch(folder: Path, name: str) -> Path:
    """A folder on the way, on the artifact's own file system."""
    path = folder / name
    path.mkdir()
    return path


def _from_packages(
    package: Package, resolved: list[Any], folder: Path, tell: Tell
) -> dict[str, Any]:
    archive = Archive(package.suite)
    scratch, root = _scratch(folder, "debs"), _scratch(folder, "root")
    for number, (name, version) in enumerate(resolved):
        tell(f"fetching {name} {version}", number, len(resolved))
        deb = archive.download(name, version, scratch)
        unpack(deb, root)
        deb.unlink()
    if (root / "usr" / "lib" / "modules").is_dir():
        (root / "lib").mkdir(exist_ok=True)
        (root / "usr" / "lib" / "modules").rename(root / "lib" / "modules")
    images = sorted((root / "boot").glob("vmlinuz-*")) if (root / "boot").is_dir() else []
    if len(images) != 1:
        raise KernelError(f"package {package.name}: found {len(images)} images; wanted one")
    release = images[0].name.removeprefix("vmlinuz-")
    modules = _scratch(folder, "modules")
    (root / "lib").rename(modules / "lib")
    facts = filling.fill(folder, images[0], root / "boot" / f"config-{release}", modules, None)
    for path in (scratch, root, modules):
        shutil.rmtree(path)
    return {
        **facts,
        "compiler": None,
        "build_s": None,
        "made_of": {
            "package": resolved[0][0],
            "version": resolved[0][1],
            "suite": package.suite,
        },
    }


def _from_image(image: Image, folder: Path) -> dict[str, Any]:
    root = None
    if image.modules is not None:
        root = _scratch(folder, "modules")
        if image.modules.is_dir():
            shutil.copytree(image.modules, root / "lib" / "modules" / image.modules.name)
        else:
            found = _scratch(folder, "unpacked")
            untar(image.modules, found)
            inner = sorted(found.rglob("modules.order")) + sorted(found.rglob("modules.dep"))
            if not inner:
                raise KernelError(f"{image.modules}: no modules.order; wanted a tar of modules")
            (root / "lib" / "modules").mkdir(parents=True)
            inner[0].parent.rename(root / "lib" / "modules" / inner[0].parent.name)
            shutil.rmtree(found)
    facts = filling.fill(folder, image.vmlinuz, image.config, root, image.initrd)
    if root is not None:
        shutil.rmtree(root)
    return {
        **facts,
        "compiler": None,
        "build_s": None,
        "made_of": {"vmlinuz": str(image.vmlinuz), "config": str(image.config)},
    }

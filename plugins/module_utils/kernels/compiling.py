"""Compiling a source: tree, configuration, image and modules. Variants of one source share a tree,
so that only what differs is compiled again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from . import configuration, git, identity, kconfig, make, tree
from .apt import Archive, unpack
from .configuration import Wanted
from .entry import Git, Package, Source, Tarball
from .errors import KernelError
from .filling import fill
from .records import Effort, effort_of, note_effort

# What is being done, and the steps done of how many (None: unknown).
Tell = Callable[[str, int, Optional[int]], None]
LOG = "build.log"
OFF = Wanted("n", "")
# They make the release; see ``configure``.
OWN_OPTIONS = frozenset({"CONFIG_LOCALVERSION", "CONFIG_LOCALVERSION_AUTO"})
# More than a variant of a built tree takes; only a full build tells how long one lasts.
FULL_STEPS = 300


def compile_source(
    name: str, source: Source, made: str, revision: Optional[str], folder: Path, tell: Tell
) -> dict[str, Any]:
    """Fill the artifact's folder; returns the fields of ``Artifact``. ``made`` is the identity,
    part of which becomes part of the release, so that no two kernels are taken for each other;
    ``revision`` is the version of the source package or the commit of the checkout, None for a
    tarball."""
    key = identity.tree_key(source, revision)
    with tree.held(key, lambda: tell("waiting for another build in its tree", 0, None)) as own:
        _bring(own, source, revision, tell)
        began = time.monotonic()
        # The kernel's own limit of a release is 64 characters.
        final = configure(own.source, own.build, source, f"-{name[:32]}-{made[:8]}")
        words = ["bzImage"]
        if final.get("CONFIG_MODULES", OFF).value == "y":
            words.append("modules")
        full = not (own.build / "vmlinux").exists()
        usual = effort_of(name) if full else None

        def step(count: int, what: str) -> None:
            tell(what, count, usual.steps if usual else None)

        steps = make.run(own.source, own.build, words, own.folder / LOG, step, own.lock)
        root = _modules(own, source, folder) if len(words) == 2 else None
        seconds = round(time.monotonic() - began, 1)
        if full and steps >= FULL_STEPS:
            note_effort(name, Effort(steps, seconds))
        image = own.build / "arch" / "x86" / "boot" / "bzImage"
        facts = fill(folder, image, own.build / ".config", root, None)
    if root is not None:
        shutil.rmtree(root)
    return {
        **facts,
        "compiler": make.compiler(),
        "build_s": seconds,
        "made_of": {
            "source": origin_words(source, revision),
            "base": str(source.base),
            "fragments": identity.named(source.fragments),
            "patches": identity.named(source.patches),
            "external_modules": [path.name for path in source.external_modules],
        },
    }


def origin_words(source: Source, revision: Optional[str]) -> dict[str, Any]:
    """The origin of a source, exactly: the version, or the commit."""
    origin = source.origin
    if isinstance(origin, Package):
        return {"package": origin.name, "version": revision, "suite": origin.suite}
    if isinstance(origin, Tarball):
        return {"tarball": str(origin.path)}
    return {"git": str(origin.path), "commit": revision}


def _bring(own: tree.Tree, source: Source, revision: Optional[str], tell: Tell) -> None:
    origin = source.origin
    if isinstance(origin, Git):
        assert revision is not None
        checkout, commit = origin.path, revision
        own.bring(
            commit,
            source.patches,
            lambda folder: git.clone(checkout, commit, folder),
            lambda folder: git.move(folder, commit),
        )
        return

    def made(folder: Path) -> None:
        tell("unpacking the source", 0, None)
        if isinstance(origin, Tarball):
            tree.unpack_tarball(origin.path, folder)
        else:
            assert revision is not None
            _unpack_package(origin, revision, folder)

    own.bring(identity.tree_key(source, revision), source.patches, made)


def _unpack_package(package: Package, version: str, folder: Path) -> None:
    """Unpack a package of Debian's that holds a tarball of the kernel's source."""
    scratch = folder.with_name("package")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    deb = Archive(package.suite).download(package.name, version, scratch)
    unpack(deb, scratch / "files")
    found = sorted((scratch / "files" / "usr" / "src").glob("linux-source-*.tar.*"))
    if len(found) != 1:
        raise KernelError(
            f"package {package.name}: found {len(found)} archives in its usr/src; wanted the one of"
            " a linux-source package"
        )
    tree.unpack_tarball(found[0], folder)
    shutil.rmtree(scratch)


def configure(source: Path, build: Path, wish: Source, suffix: str) -> dict[str, Wanted]:
    """Make ``.config`` in the build folder and return it. KernelError names every option of a
    fragment that is not as the fragment wants it, and what it depends on."""
    asked = configuration.merged([configuration.read(file) for file in wish.fragments])
    for name in asked.keys() & OWN_OPTIONS:
        raise KernelError(
            f"{asked[name].where}: {name}: found {asked[name].value}; wanted it left out: the"
            " release says which entry a kernel is of"
        )
    own = configuration.parse(
        f'CONFIG_LOCALVERSION="{suffix}"\n# CONFIG_LOCALVERSION_AUTO is not set\n', "Crossover"
    )
    wanted = configuration.merged([asked, own])
    file, log = build / ".config", build.with_name("configure.log")
    file.unlink(missing_ok=True)
    if wish.base == "allnoconfig":
        # What a fragment opens comes up with its defaults otherwise, hundreds of drivers.
        merged = build / "fragments.config"
        merged.write_text(configuration.as_text(wanted), encoding="utf-8")
        make.run(source, build, [f"KCONFIG_ALLCONFIG={merged}", "allnoconfig"], log)
    else:
        if isinstance(wish.base, Path):
            base = configuration.read(wish.base)
        else:
            make.run(source, build, [wish.base], log)
            base = configuration.read(file)
        merged_text = configuration.as_text(configuration.merged([base, wanted]))
        file.write_text(merged_text, encoding="utf-8")
        make.run(source, build, ["olddefconfig"], log)
    final = configuration.read(file)
    gone = configuration.lost(asked, final)
    if gone:
        definitions = kconfig.Definitions(source)
        told = [
            f"{asked[name].where}: {name}: wanted {asked[name].value}, is {found}:"
            f" {kconfig.explain(name, asked[name].value, definitions, final)}"
            for name, found in gone.items()
        ]
        raise KernelError("options did not survive: " + "; ".join(told))
    return final


def _modules(own: tree.Tree, source: Source, folder: Path) -> Path:
    """Install the modules below a folder of its own, those outside the tree with them."""
    root = folder / "installed"
    root.mkdir()
    install = [f"INSTALL_MOD_PATH={root}", "INSTALL_MOD_STRIP=1", "DEPMOD=true", "modules_install"]
    log = own.folder / "install.log"
    make.run(own.source, own.build, install, log, lock=own.lock)
    for module in source.external_modules:
        copy = own.folder / "external" / module.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(module, copy)
        for words in (["modules"], install):
            make.run(own.source, own.build, [f"M={copy}", *words], log, lock=own.lock)
    return root

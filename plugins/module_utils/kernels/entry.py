"""The entry: what a kernel is made of, as declared. Pure but for resolving paths.

docs/data-format.md has the format. An unknown key or a value of the wrong type is a KernelError
that names file, entry and key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from .errors import KernelError

SCHEMA = 1
KINDS = ("package", "source", "image")
IMAGE_PATHS = ("vmlinuz", "modules", "config", "initrd")
# They add up along ``like``; everything else is taken over or said anew.
ADDED = ("fragments", "patches", "external_modules")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_SUITE = re.compile(r"[a-z][a-z0-9-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_VERSION = re.compile(r"[A-Za-z0-9.+~:-]+")
_TARGET = re.compile(r"[a-z0-9_]+(config|\.config)")


@dataclass(frozen=True)
class Package:
    """A package of a suite (None: of this machine's own apt sources), of a version (None: the
    newest)."""

    name: str
    suite: Optional[str]
    version: Optional[str]


@dataclass(frozen=True)
class Tarball:
    """An archive of a source tree; ``sha256`` None: whatever the file is."""

    path: Path
    sha256: Optional[str]


@dataclass(frozen=True)
class Git:
    """A git checkout; ``ref`` None: the commit that is checked out, without local changes."""

    path: Path
    ref: Optional[str]


Origin = Union[Package, Tarball, Git]


@dataclass(frozen=True)
class Source:
    """What is compiled. ``base`` is a target of the kernel's own makefile or a path."""

    origin: Origin
    base: Union[str, Path]
    fragments: tuple[Path, ...]
    patches: tuple[Path, ...]
    external_modules: tuple[Path, ...]


@dataclass(frozen=True)
class Image:
    """A kernel that somebody else built. ``modules`` is a ``lib/modules/RELEASE`` folder or a tar
    of one, None for a kernel without modules."""

    vmlinuz: Path
    modules: Optional[Path]
    config: Path
    initrd: Optional[Path]


@dataclass(frozen=True)
class Entry:
    """A kernel by name; ``virtual``: it has drivers for virtual machines only."""

    name: str
    about: str
    made_of: Union[Package, Source, Image]
    virtual: bool = False

    @property
    def kind(self) -> str:
        """``package``, ``source`` or ``image``."""
        return type(self.made_of).__name__.lower()


class _Keys:
    """Takes keys out of a mapping and complains about what is left."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise KernelError(f"{where}: found {data!r}; wanted a mapping")
        self._data = dict(data)
        self.where = where

    def fail(self, key: str, found: Any, wanted: str) -> KernelError:
        """The error about one key."""
        return KernelError(f"{self.where}.{key}: found {found!r}; wanted {wanted}")

    def any(self, key: str) -> Any:
        """A value as it is, None if it is absent."""
        return self._data.pop(key, None)

    def text(self, key: str, form: Optional[re.Pattern[str]] = None) -> str:
        """A text that must be there."""
        value = self._data.pop(key, None)
        if not isinstance(value, str) or not value or (form and not form.fullmatch(value)):
            raise self.fail(key, value, f"a text like {form.pattern}" if form else "a text")
        return value

    def maybe(self, key: str, form: Optional[re.Pattern[str]] = None) -> Optional[str]:
        """A text, None if it is absent."""
        return None if self._data.get(key) is None else self.text(key, form)

    def path(self, key: str) -> Path:
        """A path that must be there."""
        return Path(self.text(key))

    def maybe_path(self, key: str) -> Optional[Path]:
        """A path, None if it is absent."""
        return None if self._data.get(key) is None else self.path(key)

    def paths(self, key: str) -> tuple[Path, ...]:
        """A list of paths, empty if it is absent."""
        value = self._data.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.fail(key, value, "a list of paths")
        return tuple(Path(item) for item in value)

    def flag(self, key: str) -> bool:
        """True or false; false if it is absent."""
        value = self._data.pop(key, False)
        if not isinstance(value, bool):
            raise self.fail(key, value, "true or false")
        return value

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._data

    def done(self) -> None:
        """KernelError for a key that nobody asked for."""
        if self._data:
            raise KernelError(f"{self.where}: unknown key {sorted(self._data)[0]!r}")


def raw_entries(document: Any, file: Path) -> dict[str, dict[str, Any]]:
    """The entries of a decoded file as documents of their own: with absolute paths, ``like`` not
    yet put in. KernelError names file and key."""
    where = str(file)
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, Mapping) else document
        raise KernelError(f"{where}: schema: found {found!r}; wanted {SCHEMA}")
    top = _Keys({key: value for key, value in document.items() if key != "schema"}, where)
    raw = top.any("kernels")
    top.done()
    if not isinstance(raw, Mapping):
        raise KernelError(f"{where}: kernels: found {raw!r}; wanted a mapping of names to entries")
    for name, item in raw.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise KernelError(
                f"{where}: kernel name {name!r}: wanted 1 to 40 letters, digits, '.', '_' and '-',"
                " not starting with a sign"
            )
        if not isinstance(item, Mapping):
            raise KernelError(f"{where}: {name}: found {item!r}; wanted an entry")
    return {name: _absolute(item, file.parent) for name, item in raw.items()}


def _absolute(item: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """An entry with its paths taken from a folder; what is no path stays for the checks."""

    def path(value: Any) -> Any:
        return str(folder / Path(value).expanduser()) if isinstance(value, str) else value

    made = dict(item)
    for key in ADDED:
        if isinstance(made.get(key), list):
            made[key] = [path(value) for value in made[key]]
    if isinstance(made.get("base"), str) and not _TARGET.fullmatch(made["base"]):
        made["base"] = path(made["base"])
    for key, names in (("source", ("tarball", "git")), ("image", IMAGE_PATHS)):
        inner = made.get(key)
        if isinstance(inner, Mapping):
            made[key] = {k: path(v) if k in names else v for k, v in inner.items()}
    return made


def expanded(name: str, raw: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Any]:
    """One entry's document with what it is ``like`` put in. KernelError for a name that does not
    exist, or that leads back to itself."""
    chain: list[str] = []
    current: Any = name
    while current is not None:
        if current in chain:
            raise KernelError(f"{where}: {name}.like: {current!r} leads back to itself")
        if current not in raw:
            raise KernelError(f"{where}: {chain[-1]}.like: no kernel {current!r}")
        chain.append(current)
        current = raw[current].get("like")
    document: dict[str, Any] = {}
    for step in reversed(chain):
        for key, value in raw[step].items():
            if key in ADDED and isinstance(value, list) and isinstance(document.get(key), list):
                document[key] = [*document[key], *value]
            elif key != "like":
                document[key] = value
    return document


def read_entry(name: str, document: Any, where: str) -> Entry:
    """An entry of its own document, ``like`` put in. KernelError names entry and key."""
    keys = _Keys(document, f"{where}: {name}")
    about = keys.text("about")
    kinds = [kind for kind in KINDS if keys.has(kind)]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise KernelError(f"{keys.where}: found {found}; wanted exactly one of {', '.join(KINDS)}")
    value = keys.any(kinds[0])
    made_of: Union[Package, Source, Image]
    if kinds[0] == "package":
        made_of = _package(value, f"{keys.where}.package")
    elif kinds[0] == "source":
        made_of = _source(keys, value)
    else:
        made_of = _image(value, f"{keys.where}.image")
    virtual = keys.flag("virtual")
    keys.done()
    return Entry(name, about, made_of, virtual)


def _package(value: Any, where: str, key: str = "name") -> Package:
    inner = _Keys(value, where)
    made = Package(
        inner.text(key, _PACKAGE), inner.maybe("suite", _SUITE), inner.maybe("version", _VERSION)
    )
    inner.done()
    return made


def _source(keys: _Keys, value: Any) -> Source:
    base: Union[str, Path] = keys.maybe("base") or "defconfig"
    if not _TARGET.fullmatch(str(base)):
        base = Path(str(base))
    return Source(
        _origin(value, f"{keys.where}.source"),
        base,
        keys.paths("fragments"),
        keys.paths("patches"),
        keys.paths("external_modules"),
    )


def _origin(value: Any, where: str) -> Origin:
    inner = _Keys(value, where)
    if inner.has("package"):
        return _package(value, where, "package")
    origin: Origin
    if inner.has("tarball"):
        digest = inner.maybe("sha256", re.compile("[0-9a-f]{64}"))
        origin = Tarball(inner.path("tarball"), digest)
    elif inner.has("git"):
        origin = Git(inner.path("git"), inner.maybe("ref", re.compile(r"[^\s-]\S*")))
    else:
        raise KernelError(f"{where}: found {value!r}; wanted one of package, tarball, git")
    inner.done()
    return origin


def _image(value: Any, where: str) -> Image:
    inner = _Keys(value, where)
    made = Image(
        inner.path("vmlinuz"),
        inner.maybe_path("modules"),
        inner.path("config"),
        inner.maybe_path("initrd"),
    )
    inner.done()
    return made

"""SELinux as settings by key: what is declared, what is there, and how to make it so.

Keys: ``mode`` (running), ``config SELINUX``, ``config SELINUXTYPE``, ``boolean NAME`` and
``module NAME at PRIORITY`` (the checksum of its source, or ``absent``).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import record, selinux
from .errors import HostError
from .run import Run, output
from .settings import Change

ABSENT = "absent"
ON, OFF = "on", "off"
ETC = Path("/etc/selinux")
AUTORELABEL = Path("/.autorelabel")
KEPT = record.LIB / "selinux_modules"
_MODULE_KEY = re.compile(r"module (\S+) at (\d+)")
_MODULE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_LANGUAGES = ("cil", "pp")


@dataclass(frozen=True)
class Declared:
    """Settings by key, and where the source of each declared module comes from (bytes)."""

    values: Dict[str, str]
    sources: Dict[str, Tuple[str, bytes]] = field(default_factory=dict)  # key -> language, content


def module_key(name: str, priority: int) -> str:
    """The key of a policy module."""
    return f"module {name} at {priority}"


def declare(params: Mapping[str, Any]) -> Declared:
    """From the module's parameters. HostError on a bad name, priority, source or pair of them."""
    values: Dict[str, str] = {}
    sources: Dict[str, Tuple[str, bytes]] = {}
    if params["type"]:
        if not (ETC / params["type"] / "policy").is_dir():
            raise HostError(
                f"SELinux policy type: found no {ETC / params['type'] / 'policy'}; wanted the "
                f"policy {params['type']} to be installed"
            )
        values["config SELINUXTYPE"] = params["type"]
    if params["mode"]:
        if params["persistent"]:
            values["config SELINUX"] = params["mode"]
        values["mode"] = params["mode"]
    for item in params["modules"]:
        key, source = _module(item)
        if key in values:
            raise HostError(f"SELinux {key}: declared twice; wanted once")
        values[key] = ABSENT if source is None else selinux.checksum(source[1])
        if source is not None:
            sources[key] = source
    for name, value in params["booleans"].items():
        if not isinstance(value, bool):
            raise HostError(f"SELinux boolean {name}: found {value!r}; wanted true or false")
        values[f"boolean {name}"] = ON if value else OFF
    return Declared(values, sources)


def _module(item: Mapping[str, Any]) -> Tuple[str, Optional[Tuple[str, bytes]]]:
    name, priority = item["name"], item["priority"]
    if not _MODULE_NAME.fullmatch(name):
        raise HostError(f"SELinux module {name!r}: wanted letters, digits, '.', '_' or '-'")
    if not 1 <= priority <= 999:
        raise HostError(f"SELinux module {name}: found priority {priority}; wanted 1 to 999")
    key = module_key(name, priority)
    if item["state"] == "absent":
        return key, None
    if (item["content"] is None) == (item["path"] is None):
        raise HostError(f"SELinux module {name}: wanted either content (CIL) or path")
    if item["content"] is not None:
        return key, ("cil", item["content"].encode())
    path = Path(item["path"])
    language = path.suffix[1:]
    if language not in _LANGUAGES:
        raise HostError(f"SELinux module {name}: found {path}; wanted a .cil or .pp file")
    try:
        return key, (language, path.read_bytes())
    except OSError as error:
        raise HostError(f"SELinux module {name}: {path}: {error.strerror}") from None


def current(keys: Iterable[str], run: Run) -> Dict[str, Optional[str]]:
    """What is there now; a boolean that the policy does not have, or cannot now, is None."""
    wanted = list(keys)
    config = selinux.config()
    store: Dict[Tuple[str, int], selinux.Module] = {}
    numbered = {key: _name_and_priority(key) for key in wanted if key.startswith("module ")}
    if numbered:
        store = selinux.modules(run, dict.fromkeys(numbered.values(), ""))
    found: Dict[str, Optional[str]] = {}
    for key in wanted:
        kind, _blank, name = key.partition(" ")
        if kind == "mode":
            found[key] = selinux.mode()
        elif kind == "config":
            found[key] = config.get(name)
        elif kind == "boolean":
            value = selinux.boolean_value(name)
            found[key] = None if value is None else (ON if value else OFF)
        else:
            item = store.get(numbered[key])
            found[key] = ABSENT if item is None else item.checksum
    return found


def _name_and_priority(key: str) -> Tuple[str, int]:
    match = _MODULE_KEY.fullmatch(key)
    if match is None:
        raise HostError(f"record of SELinux: found key {key!r}; wanted module NAME at PRIORITY")
    return match.group(1), int(match.group(2))


def needs_reboot(changes: Sequence[Change], running: str) -> Optional[str]:
    """Why only a reboot can make these changes; None when none is needed.

    The kernel starts or leaves out SELinux at boot only, and a policy of another type needs other
    labels on every file.
    """
    for change in changes:
        if change.key == "config SELINUXTYPE" and running != "disabled":
            return f"policy type {change.before} becomes {change.after}"
        if change.key == "mode" and "disabled" in (change.before, change.after):
            return f"SELinux is {change.before} and becomes {change.after}"
    return None


def needs_relabel(changes: Sequence[Change]) -> bool:
    """Whether files have to get labels at the next boot."""
    return any(
        (change.key == "mode" and change.before == "disabled")
        or (change.key == "config SELINUXTYPE" and change.after != change.before)
        for change in changes
    )


def cuts_access(changes: Sequence[Change]) -> bool:
    """Whether a change can end the management connection: enforcement begins."""
    return any(change.key == "mode" and change.after == "enforcing" for change in changes)


def make_config(changes: Sequence[Change], path: Path = selinux.CONFIG) -> None:
    """Write the configuration's changes in one step."""
    values = {c.key.split(" ", 1)[1]: c.after for c in changes if c.key.startswith("config ")}
    if not values:
        return
    text = path.read_text() if path.exists() else ""
    part = path.with_name(path.name + ".crossover")
    part.write_text(selinux.edit_config(text, values))
    if path.exists():
        shutil.copystat(path, part)  # keeps the label too
    part.replace(path)


def make_booleans(changes: Sequence[Change]) -> None:
    """Set the booleans among the changes."""
    values = {c.key.split(" ", 1)[1]: c.after == ON for c in changes if c.key[:8] == "boolean "}
    if values:
        selinux.set_booleans(values)


def make_modules(
    changes: Sequence[Change], sources: Mapping[str, Tuple[str, bytes]], run: Run, kept: Path = KEPT
) -> None:
    """Install and remove policy modules in one transaction, keeping what it replaces."""
    wanted = [change for change in changes if change.key.startswith("module ")]
    if not wanted:
        return
    install: List[Tuple[int, Path]] = []
    remove: List[Tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for index, change in enumerate(wanted):
            name, priority = _name_and_priority(change.key)
            if change.before not in (None, ABSENT):
                _keep(name, priority, str(change.before), run, kept)
            if change.after == ABSENT:
                remove.append((priority, name))
                continue
            language, content = sources.get(change.key) or _kept(change, name, kept)
            path = Path(folder) / str(index) / f"{name}.{language}"
            path.parent.mkdir()
            path.write_bytes(content)
            install.append((priority, path))
        output(
            selinux.transaction(install, remove, reload=selinux.mode() != "disabled"),
            run,
        )


def _folder(kept: Path, checksum: str) -> Path:
    return kept / checksum.partition(":")[2]


def _keep(name: str, priority: int, checksum: str, run: Run, kept: Path) -> None:
    folder = _folder(kept, checksum)
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True)
    item = selinux.modules(run, {})[(name, priority)]
    (folder / f"{name}.{item.language}").write_bytes(selinux.extract(run, item))


def _kept(change: Change, name: str, kept: Path) -> Tuple[str, bytes]:
    folder = _folder(kept, change.after)
    for path in folder.glob(f"{name}.*") if folder.is_dir() else ():
        return path.suffix[1:], path.read_bytes()
    raise HostError(f"SELinux {change.key}: the copy of {change.after} is gone from {folder}")


def boot_problem(cmdline: str, lsm: str, wanted: str) -> Optional[str]:
    """Why a boot would not come out as wanted, with the remedy; None when it would.

    Since Linux 6.4 a configuration cannot switch SELinux off any more. With ``enforcing=1`` on the
    command line such a boot ends before its first service: systemd freezes without a policy.
    """
    words = cmdline.split()
    if wanted == "disabled":
        if "enforcing=1" not in words or "selinux=0" in words:
            return None
        return (
            f"the kernel's command line ({cmdline.strip()}) says enforcing=1, and with it a boot "
            "that is configured disabled freezes; wanted selinux=0 on it instead, or permissive"
        )
    if selinux.boot_selects_selinux(cmdline, lsm):
        return None
    return (
        f"the kernel's command line ({cmdline.strip()}) and its security modules ({lsm.strip()}) "
        "do not start SELinux; wanted security=selinux selinux=1 on it (Debian: selinux-activate)"
    )

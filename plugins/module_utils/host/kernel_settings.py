"""Kernel parameters and modules as settings: ``net.ipv4.ip_forward``, ``module ip_gre``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional

from . import kmod, record, shared, sysctl
from .errors import HostError
from .run import Run
from .settings import Change, Plan, undo

MODULE = "module "


def declaration(
    sysctls: Mapping[str, Any], modules: Sequence[str], modules_absent: Sequence[str] = ()
) -> Dict[str, str]:
    """The declared settings by key, modules first: parameters may come with them.

    HostError on a value that is none, a bad name, or a module that is declared both ways.
    """
    declared: Dict[str, str] = {}
    for names, wanted in ((modules_absent, kmod.UNLOADED), (modules, kmod.LOADED)):
        for name in names:
            key = MODULE + kmod.check_name(name)
            if declared.get(key, wanted) != wanted:
                raise HostError(f"kernel {key}: declared loaded and absent; wanted one of them")
            declared[key] = wanted
    values = sysctl.wanted_values(sysctls)
    for key in values:
        sysctl.key_path(key)
    return {**declared, **values}


def current(keys: Iterable[str]) -> Dict[str, Optional[str]]:
    """The present value of each key; None for a parameter that the kernel does not have.

    A built-in module counts as loaded.
    """
    found: Dict[str, Optional[str]] = {}
    for key in keys:
        if key.startswith(MODULE):
            state = kmod.state(key[len(MODULE) :])
            found[key] = kmod.UNLOADED if state == kmod.UNLOADED else kmod.LOADED
        else:
            found[key] = sysctl.read(key)
    return found


def require(present: Mapping[str, Optional[str]], declared: Mapping[str, str]) -> None:
    """HostError for a declared parameter that is not there, unless a module is still to come."""
    coming = any(
        key.startswith(MODULE) and wanted == kmod.LOADED and present[key] != wanted
        for key, wanted in declared.items()
    )
    for key in declared:
        if present[key] is None and not coming:
            raise sysctl.missing(key)


def require_own(plan: Plan) -> None:
    """HostError for a change of the whole machine on a host that is only a part of one."""
    for change in plan.changes:
        key = change.key
        # Parameters of the network are a namespace's own; the kernel hides those that are not.
        own = not key.startswith(MODULE) and key.replace("/", ".").startswith("net.")
        reason = None if own else shared.refusal(key)
        if reason is not None:
            raise HostError(reason)


def set_one(key: str, value: str, run: Run) -> None:
    """Make one setting. HostError when it does not hold."""
    if not key.startswith(MODULE):
        sysctl.write(key, value)
    elif value == kmod.LOADED:
        kmod.load(key[len(MODULE) :], run)
    else:
        kmod.unload(key[len(MODULE) :], run)


def apply(plan: Plan, recorded: Mapping[str, str], path: Path, run: Run) -> Dict[str, str]:
    """Carry the plan out; returns what is recorded now.

    The record is written before the first change, so that an end in the middle can be undone. On
    an error the changes of this call are taken back and the old record holds again.
    """
    remembered = {**recorded, **plan.record}
    if remembered:
        record.save_values(path, remembered)
    done: List[Change] = []
    try:
        for change in plan.changes:
            before = change.before
            if before is None:
                # It came with a module that was loaded a moment ago.
                before = sysctl.read(change.key)
                if before is not None:
                    remembered[change.key] = before
                    plan.record[change.key] = before
                    record.save_values(path, remembered)
            set_one(change.key, change.after, run)
            done.append(Change(change.key, before, change.after))
        _read_back(plan.changes)
    except HostError:
        kept = _take_back(done, run)
        record.save_values(path, {**recorded, **{key: remembered[key] for key in kept}})
        raise
    record.save_values(path, plan.record)
    return plan.record


def _read_back(changes: Sequence[Change]) -> None:
    """Writing one parameter can change another (ip_forward resets those of the interfaces)."""
    now = current(change.key for change in changes)
    for change in changes:
        if change.back and now[change.key] is None:
            continue  # it went with the module that is unloaded now
        if now[change.key] != change.after:
            raise HostError(f"{change.key} wanted {change.after}, is {now[change.key]}")


def _take_back(done: Sequence[Change], run: Run) -> List[str]:
    """Undo as far as possible; returns the keys that could not be, which stay recorded.

    The error that led here is the one to report.
    """
    kept = []
    for change in undo(done):
        try:
            set_one(change.key, change.after, run)
        except HostError:
            kept.append(change.key)
    return kept

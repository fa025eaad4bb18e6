# SPDX-License-Identifier: GPL-2.0-or-later
"""The forwarding module's steps: plan against the host, carry out, remember, take back.

Nothing here can cut SSH: the device that carries it, networks that cover its peer, and IPv6
forwarding where it would take the default route away are all refused before the first change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import forwarding_host as host
from .forwarding_commands import by_hand
from .forwarding_declared import declare, missing
from .host import kmod, quiet, record, settings
from .host.errors import HostError
from .host.run import Run
from .host.settings import Change, Plan, undo


@dataclass(frozen=True)
class Prepared:
    """A plan, the declaration that it is for, and what is recorded before it."""

    declared: Dict[str, str]
    recorded: Dict[str, str]
    plan: Plan

    def by_hand(self) -> List[str]:
        """The commands that make of the host, as it was before, what is declared."""
        changed = {change.key for change in self.plan.changes}
        return by_hand(self.declared, changed | set(self.plan.record))


def prepare(params: Mapping[str, Any], path: Path, run: Run) -> Prepared:
    """Read the host and plan. Nothing is changed. HostError for what cannot be."""
    recorded = record.recorded_values(path)
    declared: Dict[str, str] = {}
    if params["state"] == "present":
        declared = declare(params, host.look(params, run), recorded)
    present = host.current({**recorded, **declared}, run)
    coming = any(key.startswith("module ") and present[key] == kmod.UNLOADED for key in declared)
    lacking = missing(present, declared)
    if lacking and not coming:
        raise HostError(lacking[0])
    host.require_routes(present, declared)
    plan = settings.plan(present, declared, recorded)
    if any(c.key == "net.ipv6.conf.all.forwarding" and c.after == "1" for c in plan.changes):
        host.require_ipv6(run)
    return Prepared(declared, recorded, plan)


def carry_out(prepared: Prepared, path: Path, run: Run) -> None:
    """Make the changes and read them back.

    HostError when one does not hold; those of this call are then taken back, and what could not
    be stays recorded.
    """
    plan, recorded = prepared.plan, prepared.recorded
    remembered = {**recorded, **plan.record}
    # Written before the first change, so that an end in the middle can be undone.
    record.save_values(path, remembered)
    done: List[Change] = []
    try:
        for _kind, group in groupby(plan.changes, key=_group):
            changes = list(group)
            # One that fails half-way is taken back with those that it did make.
            done += changes
            host.apply(changes, run)
        _read_back(plan.changes, run)
    except HostError:
        kept = _take_back(done, run)
        record.save_values(path, {**recorded, **{key: remembered[key] for key in kept}})
        raise
    record.save_values(path, plan.record)


def _group(change: Change) -> Tuple[str, bool]:
    words = change.key.split()
    return (words[0] if len(words) > 1 else "", change.back)


def _read_back(changes: Sequence[Change], run: Run) -> None:
    now = host.current([change.key for change in changes], run)
    for change in changes:
        if now[change.key] is None and change.back:
            continue  # it went with what had brought it
        if now[change.key] != change.after:
            raise HostError(f"{change.key} wanted {change.after}, is {now[change.key]}")


def _take_back(done: Sequence[Change], run: Run) -> List[str]:
    """Undo as far as possible; keys that are not as they were. The first error is the one told."""
    kept = []
    for change in undo(done):
        try:
            if host.current([change.key], run)[change.key] != change.after:
                host.apply([change], run)
        except HostError:
            kept.append(change.key)
    return kept


def channels_first(prepared: Prepared) -> Optional[Plan]:
    """The part of a plan that changes numbers of queues, if it also pins interrupts.

    Interrupts are numbered anew with the queues, so what is pinned can only be planned after.
    """
    channels = tuple(c for c in prepared.plan.changes if c.key.startswith("channels "))
    if not channels or not any(key.startswith("irq ") for key in prepared.declared):
        return None
    keys = {change.key for change in channels}
    kept = {
        key: value
        for key, value in {**prepared.plan.record, **prepared.recorded}.items()
        if key in prepared.recorded or key in keys
    }
    return Plan(channels, kept, ())


def with_plan(prepared: Prepared, plan: Plan) -> Prepared:
    """The same declaration with another plan."""
    return replace(prepared, plan=plan)


def doubts(prepared: Prepared, run: Run) -> List[str]:
    """Warnings about interrupts that are pinned, and taken elsewhere or soon to be moved."""
    return quiet.doubts(prepared.declared, run)

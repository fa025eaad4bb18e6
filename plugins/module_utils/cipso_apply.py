# SPDX-License-Identifier: GPL-2.0-or-later
"""The cipso module's two steps: prepare a change without effect, and carry it out as one.

Sysctl-only changes skip the guard: they change how fast and how strictly labels are handled, not
which traffic passes unlabelled.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from . import guard
from .cipso_commands import by_hand
from .cipso_declared import read_declaration
from .cipso_host import (
    CipsoError,
    Host,
    apply_commands,
    has_netlabel,
    read_items,
    read_record,
    write_record,
    write_sysctls,
)
from .cipso_items import (
    ACCEPT,
    DOI,
    STATIC,
    SYSCTL,
    Items,
    canonical,
    changed_keys,
    check,
    describe_item,
    dump_record,
    items_of,
    name_item,
    resolve,
    rollback_operations,
    shown,
    state_of,
)
from .host import shared
from .kernel_state.declared import DeclarationError
from .management import find_ancestry, plain_address, refused_contexts
from .netlabel_plan import Argv, plan


class UndoneError(Exception):
    """A change that failed half-way and was undone; ``left`` names what could not be.

    ``fired``: by the guard's timer, which came before the change was complete.
    """

    def __init__(self, text: str, left: Tuple[str, ...], fired: bool) -> None:
        self.left, self.fired = left, fired
        end = f"undoing it failed in part: {'; '.join(left)}" if left else "undone"
        super().__init__(f"{text}; {end}")


@dataclass(frozen=True)
class Change:
    """What is there, what shall be, and the commands between. ``unlabelled``: it is managed.
    ``netlabel``: the kernel has it. ``by_hand``: what builds the declared on a host as it boots."""

    present: Items
    target: Items
    record_before: str
    record_after: str
    commands: Tuple[Argv, ...]
    sysctls: Dict[str, int]
    foreign: Tuple[str, ...]
    warnings: Tuple[str, ...]
    unlabelled: bool
    calipso: bool
    by_hand: Tuple[str, ...] = ()
    netlabel: bool = True

    def result(self) -> Dict[str, Any]:
        """The module's result, as if the target were reached."""
        return {
            "changed": bool(self.commands or self.sysctls),
            "commands": [list(argv) for argv in self.commands],
            "by_hand": list(self.by_hand),
            "sysctls_written": self.sysctls,
            "state": shown(self.target),
            "netlabel": self.netlabel,
            "foreign": list(self.foreign),
            "diff": {"before": shown(self.present), "after": shown(self.target)},
            "guard": None,
        }


def prepare(parameters: Mapping[str, Any], host: Host) -> Change:
    """Read the host and plan. Nothing is changed.

    Raises :class:`DeclarationError` for what is declared wrongly, :class:`CipsoError` and
    :class:`~.guard.GuardError` for what the host refuses.
    """
    waited = guard.settle(host.guards)
    present_wanted = parameters["state"] == "present"
    reason = shared.refusal("NetLabel's maps")
    if reason is not None:
        if present_wanted:
            raise CipsoError(reason)
        return Change({}, {}, "", "", (), {}, (), waited, False, False)
    declared, sysctls = read_declaration(parameters if present_wanted else {})
    record_text, record = read_record(host.record)
    exclusive = bool(parameters["exclusive"])
    unlabelled = (
        declared.unlabelled is not None
        or any(key[0] in (ACCEPT, STATIC) for key in record)
        or (exclusive and not present_wanted)
    )
    calipso = any(doi.protocol == "calipso" for doi in declared.dois) or exclusive
    calipso = calipso or any(key[:2] == (DOI, "calipso") for key in record)
    netlabel = has_netlabel(host)
    if not netlabel and (declared.dois or declared.maps or declared.unlabelled or sysctls):
        raise CipsoError(
            f"kernel {os.uname().release} has no NetLabel; wanted one with CONFIG_NETLABEL, or"
            " nothing declared"
        )
    present = read_items(unlabelled, calipso, host)
    wanted = items_of(canonical(declared), sysctls)
    resolved = resolve(present, record, wanted, exclusive)
    warnings = list(waited)
    if present_wanted:
        management, contexts = _management(parameters.get("management"))
        checked = check(declared, resolved.target, management, os.uname().release)
        if checked.errors:
            raise DeclarationError("; ".join(_in_module_words(text) for text in checked.errors))
        warnings += (_in_module_words(text) for text in checked.warnings)
        if any(key[0] in (DOI, STATIC) for key in resolved.target):
            _check_selinux(contexts)
    return Change(
        present=present,
        target=resolved.target,
        record_before=record_text,
        record_after=dump_record(resolved.record),
        commands=plan(state_of(present), state_of(resolved.target)).commands,
        sysctls={
            key[1]: resolved.target[key]
            for key in changed_keys(present, resolved.target)
            if key[0] == SYSCTL
        },
        foreign=resolved.foreign,
        warnings=tuple(warnings),
        unlabelled=unlabelled,
        calipso=calipso,
        by_hand=tuple(by_hand(wanted)),
        netlabel=netlabel,
    )


def _in_module_words(text: str) -> str:
    """The review speaks of the kernel's terms, the module's options have the user's."""
    for theirs, ours in (
        (".kind:", ".type:"),
        ("use kind ", "use type "),
        (".selector:", ".address:"),
    ):
        text = text.replace(theirs, ours)
    return text


def _management(given: Optional[List[str]]) -> Tuple[List[str], Tuple[str, ...]]:
    """The protected addresses, and the contexts of the SSH daemon (none without protection)."""
    if given == []:
        return [], ()
    ancestry = find_ancestry()
    if given is not None:
        return [plain_address(address) or address for address in given], ancestry.contexts
    return ([ancestry.peer] if ancestry.peer else []), ancestry.contexts


def _check_selinux(contexts: Tuple[str, ...]) -> None:
    refused = refused_contexts(contexts)
    if refused:
        raise CipsoError(
            f"SELinux is enforcing and lets {refused[0]} receive nothing from unlabelled peers "
            "(class peer, recv), so the first DOI or static label would cut SSH; wanted the policy "
            "module crossover_netlabel (role selinux) or permissive mode"
        )


def carry_out(change: Change, request: Mapping[str, Any], host: Host) -> Dict[str, Any]:
    """Apply the change as one step and read it back; the module's result.

    Raises :class:`UndoneError` after a failure half-way, :class:`~.guard.GuardError` when no
    guard can be armed, and then nothing has been changed.
    """
    result = change.result()
    if not result["changed"]:
        if change.record_before != change.record_after:
            write_record(change.record_after, host.record)
        return result
    token = request.get("token") or secrets.token_hex(6)
    timeout = request.get("timeout") or guard.DEFAULT_TIMEOUT_S
    operations = rollback_operations(
        change.present,
        change.target,
        str(host.record),
        change.record_before,
        str(host.sysctls),
    )
    risky = bool(change.commands)
    if risky:
        armed = guard.arm(token, timeout, operations, host.guards, host.systemd)
    else:
        armed = guard.prepare(token, timeout, operations, host.guards)
    try:
        guard.begin(armed)
        write_record(change.record_after, host.record)
        write_sysctls(change.sysctls, host.sysctls)
        apply_commands(change.commands, host.runner, lambda: guard.check(armed))
        found = read_items(change.unlabelled, change.calipso, host)
        wrong = changed_keys(found, change.target)
        if wrong:
            raise CipsoError("; ".join(_mismatch(key, found, change.target) for key in wrong))
        guard.finish(armed)
    except (CipsoError, OSError, guard.FiredError) as error:
        fired = isinstance(error, guard.FiredError)
        raise UndoneError(str(error), guard.roll_back(armed), fired) from error
    if not risky:
        guard.forget(armed)
    return {
        **result,
        "state": shown(found),
        "diff": {"before": shown(change.present), "after": shown(found)},
        "guard": armed.as_result() if risky else None,
    }


def _mismatch(key: Tuple[Any, ...], found: Items, wanted: Items) -> str:
    return (
        f"{name_item(key)} wanted {describe_item(key, wanted.get(key))}, is "
        f"{describe_item(key, found.get(key))}"
    )

# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry out a prepared change of tunnel links as one step, read it back, undo it on failure."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple

from . import guard, tunnel_host, tunnel_offloads
from .host.errors import HostError
from .host.record import SCHEMA
from .host.run import run
from .host.settings import undo as undo_settings
from .kernel_state.tunnel_facts import Facts, differences
from .shell_step import Step, fill
from .tunnel_commands import by_hand
from .tunnel_host import Record, TunnelError
from .tunnel_plan import wanted_facts
from .tunnel_prepare import Change


class RefusedError(Exception):
    """A change that failed half-way. ``left`` names what could not be undone."""

    def __init__(self, text: str, left: Sequence[str]) -> None:
        self.left = tuple(left)
        end = f"undoing it failed in part: {'; '.join(left)}" if left else "undone"
        super().__init__(f"{text}; {end}")


def carry_out(change: Change, request: Mapping[str, Any]) -> Dict[str, Any]:
    """Apply the change and read it back; the module's result.

    Raises :class:`RefusedError` after a failure half-way, :class:`~.guard.GuardError` when no
    guard can be armed, and then nothing has been changed.
    """
    result = change.result()
    if not result["changed"]:
        if change.before != change.after:
            tunnel_host.write_record(change.after)
        return {**result, **_read_back(change), "by_hand": _by_hand(change, change.before.offloads)}
    armed = _arm(change, request) if change.managed else None
    steps = change.steps.steps()
    done = 0
    switched: Tuple[Any, ...] = ()
    try:
        if armed:
            guard.begin(armed)
        tunnel_host.write_record(_both(change))
        done, said = tunnel_host.execute(steps, change.keys)
        if done < len(steps):
            raise TunnelError(f"`{steps[done].shell()}`: {said}")
        offloads, _features = change.plan_offloads()
        switched = offloads.changes
        both = {**dict(change.before.offloads), **offloads.record}
        tunnel_host.write_record(Record(_both(change).rows, tuple(both.items())))
        refused = tunnel_offloads.apply(offloads.changes, run)
        back = _read_back(change)
        _check(change, back["state"])
        own = {place.link.name for place in change.places}
        kept = tuple(
            (key, value) for key, value in offloads.record.items() if key.split()[0] not in own
        )
        tunnel_host.write_record(Record(change.after.rows, kept))
        if armed:
            guard.finish(armed)
    except (TunnelError, HostError, guard.FiredError, OSError) as error:
        raise RefusedError(str(error), _undo(change, steps[:done], switched, armed)) from error
    return {
        **result,
        **back,
        "by_hand": _by_hand(change, tuple(both.items())),
        "refused": refused,
        "guard": armed.as_result() if armed else None,
    }


def _both(change: Change) -> Record:
    """What may be there while the change is made."""
    names = {row.place.link.name for row in change.after.rows}
    kept = [row for row in change.before.rows if row.place.link.name not in names]
    return Record((*kept, *change.after.rows), change.before.offloads)


def _read_back(change: Change) -> Dict[str, Any]:
    """The facts of the declared links, and the offloads of their devices, as the host has them."""
    devices = tunnel_host.read_devices()
    names = dict.fromkeys([*change.devices, *(one.underlay for one in change.places)])
    return {
        "state": tunnel_host.read_present(change.places, devices),
        "offloads": {name: tunnel_offloads.look(name, run) for name in names},
    }


def _by_hand(change: Change, original: Sequence[Tuple[str, str]]) -> List[str]:
    """The commands that build the links, and then those that switch offloads as they now are."""
    features = {name: tunnel_offloads.read(name, run) for name in change.devices}
    declared = change.declared_offloads({name: had for name, had in features.items() if had})
    switched = tunnel_offloads.by_hand(features, declared, dict(original))
    return [*by_hand(change.places), *switched]


def _check(change: Change, state: Mapping[str, Facts]) -> None:
    """Raises TunnelError where the kernel shows something else than what was declared."""
    for place in change.places:
        name = place.link.name
        found = state.get(name)
        if found is None:
            raise TunnelError(f"{name}: done without complaint, but not there")
        for key, (wanted, shown) in differences(wanted_facts(place), found).items():
            raise TunnelError(f"{name}: {key} wanted {wanted}, and the kernel shows {shown}")


def _rollback(steps: Sequence[Step]) -> List[Step]:
    """What takes back steps, last first."""
    return [one for step in reversed(steps) for one in step.undo]


def _undo(
    change: Change, done: Sequence[Step], switched: Sequence[Any], armed: Optional[guard.Armed]
) -> List[str]:
    """Put back what was there; what could not be put back."""
    left: List[str] = []
    # ip itself may have done a part of a step that it then refused: none of them are such.
    for step in _rollback(done):
        lost = _needs_lost_key(step, change.old_keys)
        if lost is not None:
            left.append(lost)
            continue
        count, said = tunnel_host.execute([step], change.old_keys)
        if count == 0:
            left.append(f"`{step.shell()}`: {said}")
    try:
        left += tunnel_offloads.apply(undo_settings(switched), run)
        if not left:
            tunnel_host.write_record(change.before)
    except (HostError, OSError) as error:
        left.append(str(error))
    if armed is None:
        return left
    if left or not _disarm(armed):
        return list(guard.roll_back(armed))
    return left


def _needs_lost_key(step: Step, keys: Mapping[str, str]) -> Optional[str]:
    try:
        fill(" ".join((*step.argv, step.stdin or "")), keys)
    except KeyError:
        return f"`{step.shell()}`: its key cannot be read back; apply again for a new one"
    return None


def _disarm(armed: guard.Armed) -> bool:
    from .ipsec_host import disarm

    return disarm(armed)


# ip ends at the first line that does not fit what is there; here each line is tried by itself.
_LINES = r"""said=$(while IFS= read -r line; do
    printf '%s\n' "$line" | ip -batch - 2>&1 | grep -v \
        -e 'Cannot find device' -e 'No such' -e 'File exists' -e 'Command failed' -e 'already'
done)
[ -z "$said" ] && exit 0
printf '%s\n' "$said"
exit 1"""
_GONE = "Unable to access interface"


def _arm(change: Change, request: Mapping[str, Any]) -> guard.Armed:
    """Arm the rollback. Keys of links that are taken back are in it, on standard input, in a file
    in memory that only root reads."""
    token = request.get("token") or secrets.token_hex(6)
    operations: List[guard.Operation] = []
    lines: List[str] = []
    for step in _rollback(change.steps.steps()):
        if _needs_lost_key(step, change.old_keys):
            continue
        if step.argv[0] == "ip":
            lines.append(fill(" ".join(step.argv[1:]), change.old_keys))
            continue
        operations += _flush(lines)
        argv = tuple(fill(word, change.old_keys) for word in step.argv)
        text = None if step.stdin is None else fill(step.stdin, change.old_keys) + "\n"
        operations.append(guard.Command(argv, stdin=text, tolerate=_GONE))
    operations += _flush(lines)
    offloads, _features = change.plan_offloads()
    for one in undo_settings(offloads.changes):
        device, name = one.key.split()
        operations.append(
            guard.Command(("ethtool", "-K", device, name, one.after), tolerate="No such device")
        )
    path = str(tunnel_host.RECORD)
    if change.before.rows or change.before.offloads:
        text = json.dumps({"schema": SCHEMA, **change.before.as_dict()}) + "\n"
        operations.append(guard.WriteFile(path, text, 0o600))
    else:
        operations.append(guard.RemoveFile(path))
    timeout = request.get("timeout") or guard.DEFAULT_TIMEOUT_S
    return guard.arm(token, timeout, operations)


def _flush(lines: List[str]) -> List[guard.Operation]:
    """The gathered lines of ip as one operation; none if there are none."""
    if not lines:
        return []
    text = "\n".join(lines) + "\n"
    lines.clear()
    return [guard.Command(("/bin/sh", "-c", _LINES), stdin=text)]

"""Settings as text by key: what to change, what to put back, and what to remember.

A scope (the role, one cell) declares settings. The value that a key had before the scope first
touched it is recorded; a key that the scope no longer declares goes back to that value. So the
same plan serves a first run, a repeat, a changed declaration and the final restore (which declares
nothing).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

ABSENT = "(absent)"


@dataclass(frozen=True)
class Change:
    """One key from ``before`` to ``after``; ``back`` says that it returns to its recorded value."""

    key: str
    before: Optional[str]
    after: str
    back: bool = False


@dataclass(frozen=True)
class Plan:
    """``changes`` in order (returns first), and the ``record`` that holds once they are done."""

    changes: Tuple[Change, ...]
    record: Dict[str, str]
    lost: Tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.changes)


def plan(
    current: Mapping[str, Optional[str]],
    declared: Mapping[str, str],
    recorded: Mapping[str, str],
) -> Plan:
    """What leads from ``current`` to ``declared``, undoing what is recorded and not declared.

    ``current`` has each declared and recorded key; None means that the key does not exist. A
    recorded key that is gone cannot be put back and is returned in ``lost``.
    """
    changes: List[Change] = []
    lost: List[str] = []
    record = {key: value for key, value in recorded.items() if key in declared}
    # Last first: a parameter goes back before the module goes that brought it.
    for key, value in reversed(list(recorded.items())):
        if key in declared:
            continue
        now = current.get(key)
        if now is None:
            lost.append(key)
        elif now != value:
            changes.append(Change(key, now, value, back=True))
    for key, value in declared.items():
        now = current.get(key)
        if now == value:
            continue
        changes.append(Change(key, now, value))
        if key not in record and now is not None:
            record[key] = now
    return Plan(tuple(changes), record, tuple(lost))


def undo(done: Iterable[Change]) -> Tuple[Change, ...]:
    """The changes that take back what has been done of a plan, last first."""
    return tuple(
        Change(change.key, change.after, change.before, back=True)
        for change in reversed(list(done))
        if change.before is not None
    )


def diff(changes: Iterable[Change]) -> Dict[str, str]:
    """Ansible's ``before`` and ``after`` texts, one ``key = value`` a line."""
    before, after = [], []
    for change in changes:
        before.append(f"{change.key} = {ABSENT if change.before is None else change.before}\n")
        after.append(f"{change.key} = {change.after}\n")
    return {"before": "".join(before), "after": "".join(after)}

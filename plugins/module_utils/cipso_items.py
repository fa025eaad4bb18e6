# SPDX-License-Identifier: GPL-2.0-or-later
"""What to put on a host, given what is there, what is declared and what was there first. Pure.

A configuration is a set of items, each with a key and a value: a DOI, the mappings of a domain
(the kernel deletes them only together), a static label, the acceptance of unlabelled packets, a
sysctl. The record keeps, for every item that this collection has changed, its original value
(None: it was not there). So removal is to put originals back, and what others added is never
touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Tuple

from .cipso_declared import SYSCTL_DEFAULTS, parse_pairs, show_pairs
from .guard import Command, Operation, RemoveFile, WriteFile
from .kernel_state.netlabel import Doi, MapEntry, StaticLabel, Unlabelled
from .kernel_state.netlabel_map import describe
from .netlabel_plan import NetlabelState, Review, plan, review

Key = Tuple[Any, ...]
Items = Dict[Key, Any]

DOI, DOMAIN, STATIC, ACCEPT, SYSCTL = "doi", "domain", "static", "accept", "sysctl"
DEFAULT_KEY: Key = (DOMAIN, None)
UNLABELLED_DEFAULT = (MapEntry(None, None, None, "unlbl"),)
RECORD_VERSION = 1
MISSING_TEXT = "entry does not exist"
# Deleting a DOI fails while a mapping that has just gone still refers to it.
DELETE_TRIES = 4


class RecordError(ValueError):
    """A record that this version cannot read."""


def items_of(state: NetlabelState, sysctls: Mapping[str, int]) -> Items:
    """A state as items. Networks must be in canonical form (see :func:`canonical`)."""
    items: Items = {(DOI, doi.protocol, doi.number): doi for doi in state.dois}
    for entry in state.maps:
        items.setdefault((DOMAIN, entry.domain), ())
        items[(DOMAIN, entry.domain)] += (entry,)
    for key in [key for key in items if key[0] == DOMAIN]:
        items[key] = tuple(sorted(items[key], key=describe))
    if state.unlabelled is not None:
        items[(ACCEPT,)] = state.unlabelled.accept
        for label in state.unlabelled.static:
            items[(STATIC, label.interface, label.address)] = label.label
    items.update({(SYSCTL, name): value for name, value in sysctls.items()})
    return items


def state_of(items: Mapping[Key, Any]) -> NetlabelState:
    """The NetLabel part of items."""
    static = tuple(StaticLabel(key[1], key[2], items[key]) for key in items if key[0] == STATIC)
    return NetlabelState(
        tuple(items[key] for key in items if key[0] == DOI),
        tuple(entry for key in items if key[0] == DOMAIN for entry in items[key]),
        Unlabelled(items[(ACCEPT,)], static) if (ACCEPT,) in items else None,
    )


def canonical(state: NetlabelState) -> NetlabelState:
    """The state with its networks in canonical form."""
    return review(state).state


def check(
    declared: NetlabelState, target: Mapping[Key, Any], management: List[str], kernel: str
) -> Review:
    """Errors and warnings of what is declared, in its own numbering.

    Mappings may use DOIs of others that stay on the host; the default mapping may be left to
    whoever made it.
    """
    own = {(doi.protocol, doi.number) for doi in declared.dois}
    used = {(entry.protocol, entry.doi) for entry in declared.maps}
    others = tuple(
        value
        for key, value in target.items()
        if key[0] == DOI and key[1:] in used and key[1:] not in own
    )
    maps = declared.maps
    if all(entry.domain is not None for entry in maps):
        maps += UNLABELLED_DEFAULT
    return review(
        NetlabelState(declared.dois + others, maps, declared.unlabelled), management, kernel
    )


@dataclass(frozen=True)
class Resolution:
    """``target``: what shall be on the host. ``record``: the originals of what then is ours.

    ``foreign`` names DOIs that are on the host, not declared and not ours.
    """

    target: Items
    record: Items
    foreign: Tuple[str, ...]


def resolve(
    present: Mapping[Key, Any],
    record: Mapping[Key, Any],
    declared: Mapping[Key, Any],
    exclusive: bool = False,
) -> Resolution:
    """Originals back first, then the declared over them; with ``exclusive``, all else goes.

    Nothing declared is removal. Exclusive removal leaves the kernel's defaults.
    """
    base: Items = dict(present)
    for key, original in record.items():
        _put(base, key, original)
    target: Items = {**base, **declared}
    if exclusive:
        for key in base:
            if key not in declared:
                _put(target, key, _kernel_default(key) if not declared else _bare(key, base[key]))
    ours = {key: base.get(key) for key in {**base, **target} if base.get(key) != target.get(key)}
    foreign = tuple(
        f"{key[1]} DOI {key[2]}"
        for key in sorted(target, key=str)
        if key[0] == DOI and key not in declared and key not in record
    )
    return Resolution(target, ours, foreign)


def _put(items: Items, key: Key, value: Any) -> None:
    if value is None:
        items.pop(key, None)
    else:
        items[key] = value


def _bare(key: Key, value: Any) -> Any:
    """What exclusive leaves of an item that is not declared: no DOI, label or domain of others."""
    if key == DEFAULT_KEY:
        return UNLABELLED_DEFAULT
    return value if key[0] in (ACCEPT, SYSCTL) else None


def _kernel_default(key: Key) -> Any:
    if key[0] == SYSCTL:
        return SYSCTL_DEFAULTS[key[1]]
    return True if key[0] == ACCEPT else _bare(key, None)


def changed_keys(present: Mapping[Key, Any], target: Mapping[Key, Any]) -> List[Key]:
    """The items that differ."""
    return [key for key in {**present, **target} if present.get(key) != target.get(key)]


# --- the way back -----------------------------------------------------------------------------


def rollback_operations(
    present: Mapping[Key, Any],
    target: Mapping[Key, Any],
    record_path: str,
    record_text: str,
    sysctl_folder: str,
) -> Tuple[Operation, ...]:
    """Operations that lead back to ``present`` from wherever the change was interrupted.

    Everything that the change touches is deleted, if it is there, and built anew.
    ``record_text`` is the record's content before the change; empty: there was none.
    """
    touched = set(changed_keys(present, target))
    rebuilt = {key for key in touched if key[0] == DOI}
    for items in (present, target):
        touched |= {
            key
            for key, value in items.items()
            if key[0] == DOMAIN
            and any((DOI, entry.protocol, entry.doi) in rebuilt for entry in value)
        }
    before = {key: present[key] for key in touched if key in present}
    after = {key: target[key] for key in touched if key in target}
    operations: List[Operation] = [
        WriteFile(f"{sysctl_folder}/{key[1]}", f"{value}\n")
        for key, value in before.items()
        if key[0] == SYSCTL
    ]
    if before.get((ACCEPT,)) is True:
        operations.append(Command(("netlabelctl", "unlbl", "accept", "on")))
    everything = _with_accept({**before, **after})
    nothing = NetlabelState((), (), Unlabelled(True))
    operations += [
        Command(argv, tries=tries_for(argv), tolerate=MISSING_TEXT)
        for argv in plan(everything, nothing).commands
    ]
    operations += [Command(argv) for argv in plan(nothing, _with_accept(before)).commands]
    if before.get((ACCEPT,)) is False:
        operations.append(Command(("netlabelctl", "unlbl", "accept", "off")))
    operations.append(
        WriteFile(record_path, record_text, 0o600) if record_text else RemoveFile(record_path)
    )
    return tuple(operations)


def _with_accept(items: Mapping[Key, Any]) -> NetlabelState:
    """Acceptance is handled on its own; as equal on both sides it gives no command."""
    return state_of({**items, (ACCEPT,): True})


def tries_for(argv: Iterable[str]) -> int:
    """How often a command is tried: deleting a DOI may have to wait for its mappings to go."""
    return DELETE_TRIES if is_doi_deletion(argv) else 1


def is_doi_deletion(argv: Iterable[str]) -> bool:
    """Whether the command deletes a DOI."""
    words = tuple(argv)
    return words[1:2] in (("cipso",), ("calipso",)) and words[2:3] == ("del",)


# --- the record -------------------------------------------------------------------------------


def dump_record(record: Mapping[Key, Any]) -> str:
    """The record as JSON text; empty when there is nothing to remember."""
    if not record:
        return ""
    items = [
        {"item": list(key), "original": _plain(key, value)}
        for key, value in sorted(record.items(), key=lambda pair: str(pair[0]))
    ]
    return json.dumps({"version": RECORD_VERSION, "items": items}, sort_keys=True) + "\n"


def _plain(key: Key, value: Any) -> Any:
    if value is None or key[0] not in (DOI, DOMAIN):
        return value
    if key[0] == DOMAIN:
        return [asdict(entry) for entry in value]
    return {
        **asdict(value),
        "levels": show_pairs(value.levels),
        "categories": show_pairs(value.categories),
    }


def load_record(text: str) -> Items:
    """The inverse of :func:`dump_record`. Raises :class:`RecordError`."""
    if not text.strip():
        return {}
    try:
        document = json.loads(text)
        if document["version"] != RECORD_VERSION:
            raise RecordError(f"version {document['version']}, wanted {RECORD_VERSION}")
        return {
            tuple(row["item"]): _typed(row["item"], row["original"]) for row in document["items"]
        }
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"not a record of this collection ({error})") from error


def _typed(key: List[Any], value: Any) -> Any:
    if value is None or key[0] not in (DOI, DOMAIN):
        return value
    if key[0] == DOMAIN:
        return tuple(MapEntry(**entry) for entry in value)
    return Doi(
        **{
            **value,
            "tags": tuple(value["tags"]),
            "levels": parse_pairs(value["levels"], "record"),
            "categories": parse_pairs(value["categories"], "record"),
        }
    )


# --- for people -------------------------------------------------------------------------------


def shown(items: Mapping[Key, Any]) -> Dict[str, Any]:
    """Items for Ansible's diff and the module's result, in a fixed order."""
    view: Dict[str, Any] = {"dois": [], "maps": []}
    for key in sorted(items, key=_order):
        value = items[key]
        if key[0] == DOI:
            view["dois"].append(_shown_doi(value))
        elif key[0] == DOMAIN:
            view["maps"] += [describe(entry) for entry in value]
        elif key[0] == SYSCTL:
            view.setdefault("sysctls", {})[key[1]] = value
        elif key[0] == ACCEPT:
            view.setdefault("unlabelled", {"static": []})["accept"] = value
        else:
            view.setdefault("unlabelled", {"static": []})["static"].append(
                f"{key[1] or 'default'} {key[2]} {value}"
            )
    return view


def _order(key: Key) -> Tuple[Any, ...]:
    if key[0] == DOI:
        return (DOI, key[1], key[2])
    return (key[0], *(str(part or "") for part in key[1:]))


def _shown_doi(doi: Doi) -> Dict[str, Any]:
    view: Dict[str, Any] = {
        "number": doi.number,
        "protocol": doi.protocol,
        "type": doi.kind,
        "tags": list(doi.tags),
    }
    if doi.kind == "trans":
        view["levels"] = show_pairs(doi.levels)
        view["categories"] = show_pairs(doi.categories)
    return view


def describe_item(key: Key, value: Any) -> str:
    """One item for an error message."""
    if key[0] == DOI:
        return "absent" if value is None else json.dumps(_shown_doi(value), sort_keys=True)
    if key[0] == DOMAIN:
        return "absent" if value is None else "; ".join(describe(entry) for entry in value)
    return "absent" if value is None else str(value)


def name_item(key: Key) -> str:
    """What an item is called in messages."""
    if key[0] == DOI:
        return f"{key[1]} DOI {key[2]}"
    if key[0] == DOMAIN:
        return "default mapping" if key[1] is None else f"mapping of domain {key[1]}"
    if key[0] == SYSCTL:
        return f"net.ipv4.{key[1]}"
    if key[0] == ACCEPT:
        return "acceptance of unlabelled packets"
    return f"static label of {key[1] or 'default'} {key[2]}"

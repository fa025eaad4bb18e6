"""From the present NetLabel configuration to the declared one: commands, inverse and diff.

Pure: nothing here runs a command. A plan is meant to run as one script on the host, under an
armed rollback: netlabelctl can delete a domain's mapping only as a whole, so between ``map del
default`` and the first ``map add default`` no new socket gets through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Set, Tuple

from .kernel_state.cipso_option import (
    CipsoOption,
    decode_option,
    label_fits,
    label_option,
    mss_for,
    option_bytes,
    tcp_mss,
    to_local,
    udp_payload_for,
)
from .kernel_state.context import LabelError, parse_level
from .kernel_state.netlabel import TAG_LOCAL, Doi, DoiDetail, MapEntry, StaticLabel, Unlabelled
from .kernel_state.netlabel_check import NetlabelState, Review, review
from .kernel_state.netlabel_map import describe

__all__ = [
    "Argv",
    "CipsoOption",
    "Doi",
    "DoiDetail",
    "LabelError",
    "MapEntry",
    "NetlabelPlan",
    "NetlabelState",
    "Review",
    "StaticLabel",
    "Unlabelled",
    "decode_option",
    "diff",
    "label_fits",
    "label_option",
    "mss_for",
    "option_bytes",
    "parse_level",
    "plan",
    "review",
    "tcp_mss",
    "to_local",
    "udp_payload_for",
    "validate",
]

Argv = Tuple[str, ...]
_CATCH_ALL = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True)
class NetlabelPlan:
    """``commands`` in order, ``inverse`` back to where the plan started.

    ``gap`` says that the default mapping is absent for a moment while the commands run.
    """

    commands: Tuple[Argv, ...]
    inverse: Tuple[Argv, ...]
    gap: bool


def validate(
    declared: NetlabelState, management: Sequence[str] = (), kernel: Optional[str] = None
) -> List[str]:
    """Errors that name item and key; empty when the configuration can be applied."""
    return list(review(declared, management, kernel).errors)


def plan(present: NetlabelState, declared: NetlabelState) -> NetlabelPlan:
    """The commands that turn ``present`` into ``declared``; none when they are equal.

    Both are normalised first (:func:`review`); whether ``declared`` makes sense is
    :func:`validate`'s to say. Raises nothing.
    """
    now, wanted = review(present).state, review(declared).state
    forward, gap = _commands(now, wanted)
    backward, _ = _commands(wanted, now if wanted.unlabelled else _without_unlabelled(now))
    return NetlabelPlan(tuple(forward), tuple(backward), gap)


def _without_unlabelled(state: NetlabelState) -> NetlabelState:
    return NetlabelState(state.dois, state.maps, None)


def _key(doi: Doi) -> Tuple[str, int]:
    return (doi.protocol, doi.number)


def _same(one: Doi, other: Doi) -> bool:
    return _definition(one) == _definition(other)


def _definition(doi: Doi) -> Tuple[object, ...]:
    tags = (TAG_LOCAL,) if doi.kind == "local" else doi.tags
    return (doi.kind, tags, dict(doi.levels), dict(doi.categories))


def _by_domain(maps: Iterable[MapEntry]) -> Dict[Optional[str], List[MapEntry]]:
    found: Dict[Optional[str], List[MapEntry]] = {}
    for entry in maps:
        found.setdefault(entry.domain, []).append(entry)
    return found


def _commands(now: NetlabelState, wanted: NetlabelState) -> Tuple[List[Argv], bool]:
    have = {_key(doi): doi for doi in now.dois}
    want = {_key(doi): doi for doi in wanted.dois}
    changed = {key for key in have if key in want and not _same(have[key], want[key])}
    before, after = _by_domain(now.maps), _by_domain(wanted.maps)
    rebuilt = [
        domain
        for domain in sorted(before, key=_default_last)
        if not _grows(before[domain], after.get(domain, []), changed)
    ]
    # A changed DOI must be out of use before it can be deleted, so its mappings go first.
    early = [domain for domain in rebuilt if _uses(before[domain], changed)]
    commands: List[Argv] = _accept(now, wanted, on=True)
    commands += [_add_doi(want[key]) for key in want if key not in have]
    commands += [_del_map(domain) for domain in early]
    commands += [_del_doi(have[key]) for key in have if key in changed]
    commands += [_add_doi(want[key]) for key in want if key in changed]
    for domain in sorted(set(before) | set(after), key=_default_last):
        entries = after.get(domain, [])
        if domain in rebuilt:
            if domain not in early:
                commands.append(_del_map(domain))
        else:
            known = set(before.get(domain, []))
            entries = [entry for entry in entries if entry not in known]
        commands += [_add_map(entry) for entry in sorted(entries, key=_catch_all_first)]
    commands += [_del_doi(have[key]) for key in have if key not in want]
    commands += _static(now, wanted)
    commands += _accept(now, wanted, on=False)
    return commands, None in rebuilt


def _default_last(domain: Optional[str]) -> Tuple[bool, str]:
    return (domain is None, domain or "")


def _catch_all_first(entry: MapEntry) -> Tuple[bool, bool, str]:
    everything = entry.selector is None or entry.selector in _CATCH_ALL
    return (not everything, entry.protocol != "unlbl", entry.selector or "")


def _uses(entries: Iterable[MapEntry], dois: Set[Tuple[str, int]]) -> bool:
    return any(entry.doi is not None and (entry.protocol, entry.doi) in dois for entry in entries)


def _grows(before: List[MapEntry], after: List[MapEntry], changed: Set[Tuple[str, int]]) -> bool:
    """Whether adding is enough: nothing of the domain goes, and no changed DOI is in use."""
    return set(before) <= set(after) and not _uses(before, changed)


def _pairs(table: Mapping[int, int]) -> str:
    return ",".join(f"{local}={table[local]}" for local in sorted(table))


def _add_doi(doi: Doi) -> Argv:
    command = ["netlabelctl", doi.protocol, "add", doi.kind, f"doi:{doi.number}"]
    if doi.protocol == "cipso" and doi.kind != "local":
        command.append("tags:" + ",".join(str(tag) for tag in doi.tags))
    if doi.kind == "trans":
        command.append(f"levels:{_pairs(doi.levels)}")
        if doi.categories:
            command.append(f"categories:{_pairs(doi.categories)}")
    return tuple(command)


def _del_doi(doi: Doi) -> Argv:
    return ("netlabelctl", doi.protocol, "del", f"doi:{doi.number}")


def _domain(domain: Optional[str]) -> str:
    return "default" if domain is None else f"domain:{domain}"


def _add_map(entry: MapEntry) -> Argv:
    command = ["netlabelctl", "map", "add", _domain(entry.domain)]
    if entry.selector is not None:
        command.append(f"address:{entry.selector}")
    protocol = entry.protocol
    if entry.doi is not None:
        protocol += f",{entry.doi}"
    elif entry.selector is None and entry.family is not None:
        protocol += f",{entry.family}"
    return (*command, f"protocol:{protocol}")


def _del_map(domain: Optional[str]) -> Argv:
    return ("netlabelctl", "map", "del", _domain(domain))


def _accept(now: NetlabelState, wanted: NetlabelState, on: bool) -> List[Argv]:
    """Accepting is switched on before all else and off after all else."""
    if wanted.unlabelled is None or wanted.unlabelled.accept is not on:
        return []
    if now.unlabelled is not None and now.unlabelled.accept is on:
        return []
    return [("netlabelctl", "unlbl", "accept", "on" if on else "off")]


def _static(now: NetlabelState, wanted: NetlabelState) -> List[Argv]:
    if wanted.unlabelled is None:
        return []
    have = now.unlabelled.static if now.unlabelled is not None else ()
    commands: List[Argv] = []
    for verb, items, other in (
        ("del", have, set(wanted.unlabelled.static)),
        ("add", wanted.unlabelled.static, set(have)),
    ):
        for item in items:
            if item in other:
                continue
            where = "default" if item.interface is None else f"interface:{item.interface}"
            command: Argv = ("netlabelctl", "unlbl", verb, where, f"address:{item.address}")
            commands.append((*command, f"label:{item.label}") if verb == "add" else command)
    return commands


def diff(present: NetlabelState, declared: NetlabelState) -> Dict[str, Dict[str, Any]]:
    """``{"before": …, "after": …}`` for Ansible's diff, in a fixed order.

    Unlabelled handling appears only when it is declared.
    """
    now, wanted = review(present).state, review(declared).state
    managed = wanted.unlabelled is not None
    return {"before": _shown(now, managed), "after": _shown(wanted, managed)}


def _shown(state: NetlabelState, unlabelled: bool) -> Dict[str, Any]:
    shown: Dict[str, Any] = {
        "dois": {
            f"{doi.protocol} {doi.number}": _shown_doi(doi) for doi in sorted(state.dois, key=_key)
        },
        "maps": sorted(describe(entry) for entry in state.maps),
    }
    if unlabelled:
        known = state.unlabelled
        shown["unlabelled"] = (
            None
            if known is None
            else {
                "accept": known.accept,
                "static": sorted(
                    f"{item.interface or 'default'} {item.address} {item.label}"
                    for item in known.static
                ),
            }
        )
    return shown


def _shown_doi(doi: Doi) -> Dict[str, Any]:
    shown: Dict[str, Any] = {"kind": doi.kind}
    if doi.tags:
        shown["tags"] = list(doi.tags)
    if doi.kind == "trans":
        shown["levels"] = _pairs(doi.levels)
        shown["categories"] = _pairs(doi.categories)
    return shown

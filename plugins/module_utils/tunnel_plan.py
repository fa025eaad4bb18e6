# SPDX-License-Identifier: GPL-2.0-or-later
"""From the links that a host has to those that are declared: the steps, in order. Pure.

Links are taken back from the top (the last declared) downwards and made from the bottom upwards,
so that a link can run over another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .kernel_state.tunnel_facts import Facts, differences, expected
from .shell_step import Step
from .tunnel_commands import Place, add_address, create, remove, remove_remains

# What can be changed while the device stays.
CHANGEABLE = ("mtu", "addresses", "up")


@dataclass(frozen=True)
class Action:
    """``verb``: add, delete or change. ``why``: the properties that differ."""

    verb: str
    name: str
    steps: Tuple[Step, ...]
    why: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TunnelPlan:
    """The actions in order; ``renewed`` names the links that get new keys."""

    actions: Tuple[Action, ...]
    renewed: Tuple[str, ...]

    def steps(self) -> List[Step]:
        """All commands in order."""
        return [step for action in self.actions for step in action.steps]


def wanted_facts(place: Place) -> Facts:
    """What the kernel must show of a link."""
    return {**expected(place.link, place.end, place.mtu), "mtu": place.mtu}


def plan(
    declared: Sequence[Place],
    recorded: Sequence[Place],
    present: Mapping[str, Facts],
    renew: Sequence[str] = (),
    remains: Collection[str] = (),
) -> TunnelPlan:
    """What leads from ``present`` to ``declared``.

    ``recorded`` are the links that this collection made before; ``present`` has the facts of those
    that are there, by name; ``renew`` names links that must get new keys, ``remains`` those whose
    device is gone while something else of them is there.
    """
    wanted = {place.link.name: place for place in declared}
    gone: List[Action] = []
    made: List[Action] = []
    # Links whose device stays, and those above a link that goes.
    stays: Dict[str, Tuple[str, ...]] = {}
    for place in declared:
        name = place.link.name
        stays[name] = _why_new(place, recorded, present.get(name), name in renew)
    below = {place.link.name: place.underlay for place in declared}
    for place in declared:
        name = place.link.name
        if not stays[name] and stays.get(below[name]):
            stays[name] = (f"device {below[name]} below is made anew",)
    for place in reversed(recorded):
        name = place.link.name
        if name not in present:
            if name in remains:
                steps = tuple(remove_remains(place))
                gone.append(Action("delete", name, steps, ("its device is gone",)))
            continue
        if name not in wanted or stays[name]:
            gone.append(_delete(place, stays.get(name, ())))
    for place in declared:
        name = place.link.name
        if stays[name]:
            made.append(Action("add", name, tuple(create(place)), stays[name]))
            continue
        changed = _change(place, present[name])
        if changed is not None:
            made.append(changed)
    renewed = tuple(
        place.link.name for place in declared
        if place.link.kind.keyed and stays[place.link.name]
    )  # fmt: skip
    return TunnelPlan((*gone, *made), renewed)


def _why_new(
    place: Place, recorded: Sequence[Place], found: Optional[Facts], renew: bool
) -> Tuple[str, ...]:
    """Why a link's device must be made; empty when the one that is there can stay."""
    if found is None:
        return ("absent",)
    before = next((one for one in recorded if one.link.name == place.link.name), None)
    if before is not None and _lasting(before) != _lasting(place):
        return ("declared otherwise",)
    other = differences(wanted_facts(place), found)
    lasting = tuple(sorted(key for key in other if key not in CHANGEABLE))
    return lasting or (("rekey",) if renew else ())


def _lasting(place: Place) -> Dict[str, Any]:
    """What of a declaration cannot be changed in place."""
    own = place.link.as_dict()
    for key in ("mtu", "underlay_mtu", "inner", "offloads"):
        del own[key]
    # The routes of GPE depend on the inner addresses.
    kept = place.link.inner if place.link.type == "vxlan-gpe" else ()
    return {**own, "end": place.end, "kept": kept}


def _delete(place: Place, why: Tuple[str, ...]) -> Action:
    """Taking a link back is undone by making it again."""
    steps = remove(place)
    first = Step(steps[0].argv, steps[0].stdin, undo=tuple(create(place)))
    return Action("delete", place.link.name, (first, *steps[1:]), why)


def _change(place: Place, found: Facts) -> Optional[Action]:
    name = place.link.name
    other = differences(wanted_facts(place), found)
    steps: List[Step] = []
    if "addresses" in other:
        wanted, there = other["addresses"]
        for text in there:
            if text not in wanted:
                argv = ("ip", "address", "del", text, "dev", name)
                steps.append(Step(argv, undo=(Step(add_address(name, text).argv),)))
        steps += [add_address(name, text) for text in wanted if text not in there]
    if "mtu" in other:
        words = ("ip", "link", "set", "dev", name, "mtu")
        undo = (Step((*words, str(other["mtu"][1]))),)
        steps.append(Step((*words, str(other["mtu"][0])), undo=undo))
    if "up" in other:
        words = ("ip", "link", "set", "dev", name)
        steps.append(Step((*words, "up"), undo=(Step((*words, "down")),)))
    return Action("change", name, tuple(steps), tuple(sorted(other))) if steps else None


def show(places: Sequence[Place], facts: Mapping[str, Facts]) -> str:
    """Links as text for a diff, one property a line; never a key."""
    lines = []
    for place in places:
        name = place.link.name
        for key, value in sorted((facts.get(name) or {}).items()):
            if value is not None:
                lines.append(f"{name} {key} = {_text(value)}\n")
    return "".join(lines)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)

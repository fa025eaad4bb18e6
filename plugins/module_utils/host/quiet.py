"""What keeps a measured host quiet, as settings by key.

Keys: ``offload DEV NAME``, ``ring DEV NAME``, ``channels DEV NAME``, ``coalescing DEV NAME``,
``irq NUMBER DEV``, ``governor POLICY``, ``boost``, ``unit NAME``, ``mask NAME`` and
``module NAME``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple

from . import cpufreq, ethtool, irq, kmod, shared, units
from .errors import HostError
from .run import Run
from .settings import Change

# Interrupts are numbered anew when the number of queues changes, so queues come first.
ORDER = (
    "mask",
    "unit",
    "module",
    "channels",
    "ring",
    "offload",
    "coalescing",
    "irq",
    "governor",
    "boost",
)
MASKED, NOT_MASKED = "masked", "not masked"
IRQBALANCE = "irqbalance.service"


def declare(params: Mapping[str, Any]) -> Dict[str, str]:
    """Settings by key from the module's parameters. HostError on what this host cannot have."""
    _refuse_shared(params)
    declared: Dict[str, str] = {}
    for name in params["units_stopped"]:
        declared[f"unit {name}"] = units.INACTIVE
    for name in params["units_masked"]:
        declared[f"mask {name}"] = MASKED
        declared[f"unit {name}"] = units.INACTIVE
    for name in params["modules_absent"]:
        declared[f"module {kmod.check_name(name)}"] = kmod.UNLOADED
    for device in params["devices"]:
        declared.update(_device(device))
    if params["governor"]:
        policies = cpufreq.policies()
        if not policies:
            raise HostError(
                f"governor {params['governor']}: this host's clock cannot be governed (no "
                "cpufreq policy); wanted it undeclared"
            )
        declared.update({f"governor {policy}": params["governor"] for policy in policies})
    if params["boost"] is not None:
        if cpufreq.boost() is None:
            raise HostError(
                "boost: this host's clock boost cannot be switched; wanted it undeclared"
            )
        declared["boost"] = "on" if params["boost"] else "off"
    return declared


def _refuse_shared(params: Mapping[str, Any]) -> None:
    """HostError for a setting of the whole machine on a host that is only a part of one."""
    wished = [key for key in ("governor", "units_stopped", "modules_absent") if params[key]]
    wished += ["boost"] if params["boost"] is not None else []
    wished += [f"irq_cpus of {item['name']}" for item in params["devices"] if item["irq_cpus"]]
    reason = shared.refusal(wished[0]) if wished else None
    if reason is not None:
        raise HostError(reason)


def _device(device: Mapping[str, Any]) -> Dict[str, str]:
    name = device["name"]
    if not (irq.NET / name).exists():
        raise HostError(f"device {name}: not on this host")
    declared = {}
    for feature, value in (device["offloads"] or {}).items():
        if not isinstance(value, bool):
            raise HostError(f"offload {feature} of {name}: found {value!r}; wanted true or false")
        declared[f"offload {name} {ethtool.long_name(feature)}"] = "on" if value else "off"
    for kind, values in (
        ("ring", device["rings"]),
        ("channels", device["channels"]),
        ("coalescing", device["coalescing"]),
    ):
        for key, value in (values or {}).items():
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)
            declared[f"{kind} {name} {key}"] = text
    if device["irq_cpus"]:
        numbers = irq.of_device(name)
        if not numbers:
            raise HostError(f"device {name}: has no interrupts of its own to pin")
        for number, cpu in irq.spread(numbers, tuple(device["irq_cpus"])).items():
            declared[f"irq {number} {name}"] = cpu
    return declared


def current(keys: Iterable[str], run: Run) -> Dict[str, Optional[str]]:
    """The present value of each key; None for what is not there (any more)."""
    wanted = list(keys)
    states = units.states([key.split()[1] for key in wanted if key.startswith("unit ")], run)
    listings: Dict[Tuple[str, str], Dict[str, str]] = {}
    found: Dict[str, Optional[str]] = {}
    for key in wanted:
        kind, *words = key.split()
        if kind == "unit":
            # A unit that is not installed is as quiet as a stopped one.
            state = states.get(words[0], units.MISSING)
            found[key] = units.INACTIVE if state == units.MISSING else state
        elif kind == "mask":
            # Where systemd does not run, nothing starts a unit either.
            quiet = not units.RUNNING.is_dir() or units.masked(words[0])
            found[key] = MASKED if quiet else NOT_MASKED
        elif kind == "module":
            state = kmod.state(words[0])
            found[key] = kmod.UNLOADED if state == kmod.UNLOADED else kmod.LOADED
        elif kind in ethtool.OPTIONS:
            device, name = words
            if not (irq.NET / device).exists():
                found[key] = None
                continue
            if (kind, device) not in listings:
                listings[(kind, device)] = ethtool.read(kind, device, run)
            found[key] = listings[(kind, device)].get(name)
        elif kind == "irq":
            here = int(words[0]) in irq.of_device(words[1])
            found[key] = irq.affinity(int(words[0])) if here else None
        elif kind == "governor":
            found[key] = cpufreq.governor(words[0])
        else:
            found[key] = cpufreq.boost()
    return found


def require(present: Mapping[str, Optional[str]], declared: Mapping[str, str]) -> None:
    """HostError for a declared setting that the host does not have."""
    for key, wanted in declared.items():
        if present[key] is None:
            raise HostError(f"{key}: wanted {wanted}, but this device has no such setting")


def doubts(declared: Mapping[str, str], run: Run) -> List[str]:
    """Warnings about interrupts that are pinned, and taken elsewhere or soon to be moved."""
    pinned = {key: value for key, value in declared.items() if key.startswith("irq ")}
    if not pinned:
        return []
    found = [irq.elsewhere(int(key.split()[1]), value) for key, value in pinned.items()]
    warnings = [text for text in found if text]
    if units.states([IRQBALANCE], run).get(IRQBALANCE) == units.ACTIVE:
        warnings.append(f"{IRQBALANCE} runs and will move the pinned interrupts; stop it as well")
    return warnings


def apply(changes: Sequence[Change], run: Run) -> None:
    """Make the changes, those of one kind and device in one command.

    HostError when a setting does not hold; what was done before stays, and stays recorded.
    """
    for kind in ORDER:
        mine = [change for change in changes if change.key.split()[0] == kind]
        if kind == "unit":
            _units(mine, run)
        elif kind in ethtool.OPTIONS:
            _ethtool(kind, mine, run)
        else:
            for change in mine:
                _one(kind, change, run)


def _units(changes: Sequence[Change], run: Run) -> None:
    for verb, wanted in (("stop", units.INACTIVE), ("start", units.ACTIVE)):
        names = [change.key.split()[1] for change in changes if change.after == wanted]
        if names:
            units.switch(verb, names, run)


def _ethtool(kind: str, changes: Sequence[Change], run: Run) -> None:
    by_device: Dict[str, Dict[str, str]] = {}
    for change in changes:
        _kind, device, name = change.key.split()
        by_device.setdefault(device, {})[name] = change.after
    for device, values in by_device.items():
        for name, now in ethtool.change(kind, device, values, run):
            raise HostError(
                f"{kind} {name} of {device} wanted {values[name]}, is {now} (the driver cannot "
                "change it, or another feature needs it)"
            )


def _one(kind: str, change: Change, run: Run) -> None:
    words = change.key.split()
    if kind == "irq":
        irq.pin(int(words[1]), change.after)
    elif kind == "governor":
        cpufreq.set_governor(words[1], change.after)
    elif kind == "mask":
        units.mask(words[1], change.after == MASKED, run)
    elif kind == "boost":
        cpufreq.set_boost(change.after)
    elif change.after == kmod.LOADED:
        kmod.load(words[1], run)
    else:
        kmod.unload(words[1], run)

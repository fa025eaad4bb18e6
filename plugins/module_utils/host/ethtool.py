"""ethtool's listings as settings by name.

The text forms are read, which are the same from ethtool 4 on; JSON came for one listing after the
other up to version 6, and for channels not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from .errors import HostError
from .run import Run

# Kind of setting -> option that lists it, option that sets it.
OPTIONS = {
    "offload": ("-k", "-K"),
    "ring": ("-g", "-G"),
    "channels": ("-l", "-L"),
    "coalescing": ("-c", "-C"),
}
# What `ethtool -K` calls the features that `ethtool -k` lists under a long name.
LONG_NAMES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}
_NOT_THERE = ("n/a", "")


@dataclass(frozen=True)
class Feature:
    """An offload: ``on`` now, and ``fixed`` when the driver cannot change it."""

    name: str
    on: bool
    fixed: bool
    requested: Optional[bool] = None


def parse_features(text: str) -> Dict[str, Feature]:
    """``ethtool -k DEV`` by name: ``on``, ``off [fixed]``, ``off [requested on]``."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.strip().partition(":")
        words = rest.split(None, 1)
        if not colon or not words or words[0] not in ("on", "off"):
            continue
        note = words[1] if len(words) > 1 else ""
        requested = note == "[requested on]" if note.startswith("[requested") else None
        found[name] = Feature(name, words[0] == "on", note == "[fixed]", requested)
    return found


def parse_values(text: str, section: Optional[str] = None) -> Dict[str, str]:
    """``name: value`` lines by lower-case name; what the driver does not have is left out.

    ``section`` limits it to the lines after that heading (``Current hardware settings``). The
    line ``Adaptive RX: off  TX: n/a`` is two settings.
    """
    found: Dict[str, str] = {}
    inside = section is None
    for line in text.splitlines():
        stripped = line.strip()
        if section is not None and stripped.endswith(":"):
            inside = stripped[:-1] == section
            continue
        if not inside or ":" not in stripped:
            continue
        name, _colon, value = stripped.partition(":")
        pairs = [(name, value)]
        if name in ("Adaptive RX", "CQE mode RX"):
            kind = name[: -len(" RX")]
            rx, _tx, tx = value.partition("TX:")
            pairs = [(f"{kind}-rx", rx), (f"{kind}-tx", tx)]
        for key, text_value in pairs:
            if text_value.strip() not in _NOT_THERE:
                found[key.strip().lower().replace(" ", "-")] = text_value.strip()
    return found


def parse_driver(text: str) -> Dict[str, str]:
    """``ethtool -i DEV``: driver, version, firmware-version, bus-info; empty ones left out."""
    wanted = ("driver", "version", "firmware-version", "bus-info")
    return {key: value for key, value in parse_values(text).items() if key in wanted}


def read(kind: str, device: str, run: Run) -> Dict[str, str]:
    """Settings of one kind by name; empty when the driver has none of this kind."""
    code, out, err = run(["ethtool", OPTIONS[kind][0], device])
    if code != 0:
        if "No such device" in err:
            raise HostError(f"device {device}: not on this host")
        return {}
    if kind == "offload":
        return {name: _on(feature.on) for name, feature in parse_features(out).items()}
    if kind in ("ring", "channels"):
        return parse_values(out, "Current hardware settings")
    return parse_values(out)


def driver(device: str, run: Run) -> Dict[str, str]:
    """Driver, firmware and bus of a device; empty when it has no driver information."""
    code, out, _err = run(["ethtool", "-i", device])
    return parse_driver(out) if code == 0 else {}


def _on(value: bool) -> str:
    return "on" if value else "off"


def long_name(name: str) -> str:
    """The name in the listing for a name that ethtool takes."""
    return LONG_NAMES.get(name, name)


def change(kind: str, device: str, values: Mapping[str, str], run: Run) -> List[Tuple[str, str]]:
    """Set values of one kind, all in one command, and read them back.

    Returns (name, value now) for those that the device did not take. HostError with ethtool's own
    words when it refuses.
    """
    argv = ["ethtool", OPTIONS[kind][1], device]
    for name, value in values.items():
        argv += [name, value]
    code, _out, err = run(argv)
    now = read(kind, device, run)
    wrong = [(name, now.get(name, "absent")) for name in values if now.get(name) != values[name]]
    if code != 0 and wrong:
        name, value = wrong[0]
        raise HostError(
            f"{kind} {name} of {device} wanted {values[name]}, is {value}: {err.strip()}"
        )
    return wrong

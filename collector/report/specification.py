"""The hosts as a reader of a benchmark asks for them: CPU, memory, NIC, kernel, and what changed.

Written from the provenance of each host (module ``provenance``), in a fixed order; what a host does
not say is left out, and a line that no host has is no line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Facts = Mapping[str, Any]
_OFFLOADS = (
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
    ("scatter-gather", "sg"),
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
    ("large-receive-offload", "lro"),
    ("tx-udp_tnl-segmentation", "tx-udp_tnl-segmentation"),
    ("tx-udp_tnl-csum-segmentation", "tx-udp_tnl-csum-segmentation"),
    ("tx-gre-segmentation", "tx-gre-segmentation"),
    ("tx-gre-csum-segmentation", "tx-gre-csum-segmentation"),
)
_SHORT_HASH = 12
_MOST_CHANGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecificationLine:
    """One fact: (host, text) for each host that has it. ``shared`` where all hosts say the same."""

    name: str
    values: tuple[tuple[str, str], ...]

    @property
    def shared(self) -> bool:
        """Whether one text stands for all hosts."""
        return len({text for _, text in self.values}) == 1 and len(self.values) > 1

    def texts(self) -> tuple[str, ...]:
        """The text once if it is shared, else with the host in front of each."""
        if self.shared:
            return (self.values[0][1],)
        return tuple(f"{host}: {text}" for host, text in self.values)


def specification(provenance: Mapping[str, Facts]) -> tuple[SpecificationLine, ...]:
    """The lines for these hosts, in order."""
    tables = {host: dict(_facts(facts)) for host, facts in sorted(provenance.items())}
    names = dict.fromkeys(name for table in tables.values() for name in table)
    return tuple(
        SpecificationLine(
            name=name,
            values=tuple((host, table[name]) for host, table in tables.items() if name in table),
        )
        for name in names
    )


def _facts(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, of in (*_CPU, *_KERNEL):
        yield from _line(name, of, facts)
    devices = facts.get("devices")
    for device, own in devices.items() if isinstance(devices, Mapping) else ():
        for name, of in _NIC:
            yield from _line(f"{device}, {name}", of, own)
    changes = facts.get("changed_during_run")
    if isinstance(changes, list):
        yield "changed during the run", _changes(changes)


def _line(name: str, of: Callable[[Facts], str | None], facts: Facts) -> Iterator[tuple[str, str]]:
    text = of(facts)
    if text:
        yield name, text


def _at(facts: Facts, *path: str) -> Any:
    value: Any = facts
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _plain(*path: str) -> Callable[[Facts], str | None]:
    """The value at a path as it is."""

    def of(facts: Facts) -> str | None:
        value = _at(facts, *path)
        return None if value is None or isinstance(value, (Mapping, list)) else str(value)

    return of


def _cores(facts: Facts) -> str | None:
    sockets, cores = _at(facts, "cpu", "sockets"), _at(facts, "cpu", "cores")
    count, threads = _at(facts, "cpu", "count"), _at(facts, "cpu", "threads_per_core")
    parts = []
    if sockets and cores:
        parts.append(f"{_many(sockets, 'socket')}, {_many(cores, 'core')}")
    if threads:
        parts.append(f"{_many(threads, 'thread')} a core")
    if count:
        parts.append(f"{_many(count, 'CPU')} online")
    return ", ".join(parts) or None


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _memory(facts: Facts) -> str | None:
    kib = _at(facts, "cpu", "memory_kib")
    return f"{kib / 1024:.0f} MiB" if isinstance(kib, int) else None


def _pairs(*path: str) -> Callable[[Facts], str | None]:
    """The mapping at a path as ``key value``, keys of the same value together."""

    def of(facts: Facts) -> str | None:
        found = _at(facts, *path)
        if not isinstance(found, Mapping):
            return None
        by_value: dict[str, list[str]] = {}
        for key, value in found.items():
            if value is not None:
                by_value.setdefault(str(value), []).append(str(key))
        return "; ".join(f"{', '.join(keys)}: {value}" for value, keys in by_value.items()) or None

    return of


def _hash(*path: str) -> Callable[[Facts], str | None]:
    def of(facts: Facts) -> str | None:
        value = _at(facts, *path)
        if not isinstance(value, str):
            return None
        return f"SHA-256 {value[:_SHORT_HASH]}{'…' if len(value) > _SHORT_HASH else ''}"

    return of


def _bus(device: Facts) -> str | None:
    speed, width = device.get("current_link_speed"), device.get("current_link_width")
    where = device.get("bus")
    parts = [str(where)] if where else []
    if speed and width:
        parts.append(f"x{width} at {speed}")
    most = device.get("max_link_width")
    if most and most != width:
        parts.append(f"of at most x{most} at {device.get('max_link_speed')}")
    return ", ".join(parts) or None


def _driver(device: Facts) -> str | None:
    parts = [device.get("driver"), device.get("driver_version")]
    text = " ".join(str(part) for part in parts if part)
    ids = device.get("pci_id")
    return f"{text} ({ids})" if text and ids else text or None


def _speed(device: Facts) -> str | None:
    speed, duplex = device.get("speed_mbps"), device.get("duplex")
    return f"{speed} Mbit/s {duplex or ''}".strip() if speed else None


def _offloads(device: Facts) -> str | None:
    found = device.get("offload")
    if not isinstance(found, Mapping):
        return None
    return ", ".join(f"{short} {found[name]}" for name, short in _OFFLOADS if name in found) or None


def _queues(device: Facts) -> str | None:
    rx, tx = device.get("rx_queues"), device.get("tx_queues")
    if rx is None or tx is None:
        return None
    rings = _at(device, "rss", "rings")
    function = _at(device, "rss", "function")
    scaling = f", RSS over {rings}" if rings else ""
    if not rings and isinstance(device.get("rss"), Mapping):
        scaling = ", no RSS"  # ethtool was there, and the driver told of none
    return f"{rx} receive, {tx} send{scaling}{f' ({function})' if function else ''}"


def _table(device: Facts) -> str | None:
    shares = _at(device, "rss", "shares")
    if not shares:
        return None
    counts = ", ".join(f"{ring}: {count}" for ring, count in shares.items())
    return f"{_at(device, 'rss', 'entries')} entries, by ring {counts}"


def _interrupts(device: Facts) -> str | None:
    found = device.get("interrupts")
    if not isinstance(found, Mapping) or not found:
        return None
    return "; ".join(
        f"{number} ({own.get('handlers')}): {own.get('affinity')}, taken by {own.get('effective')}"
        for number, own in found.items()
    )


def _changes(changes: list[Any]) -> str:
    texts = [
        f"{item.get('path')}: {item.get('before')} before, {item.get('after')} after"
        for item in changes
        if isinstance(item, Mapping)
    ]
    more = len(texts) - _MOST_CHANGES
    shown = texts[:_MOST_CHANGES] + ([f"and {more} more"] if more > 0 else [])
    return "; ".join(shown) or "nothing that was read"


_CPU: tuple[tuple[str, Callable[[Facts], str | None]], ...] = (
    ("CPU", _plain("cpu", "model")),
    ("CPUs", _cores),
    ("NUMA nodes", _pairs("cpu", "nodes")),
    ("memory", _memory),
    ("machine", _plain("cpu", "hypervisor")),
    ("governor", _pairs("cpu", "governors")),
)
_KERNEL: tuple[tuple[str, Callable[[Facts], str | None]], ...] = (
    ("kernel", _plain("kernel", "release")),
    ("kernel configuration", _hash("kernel", "config_sha256")),
    ("kernel command line", _plain("kernel", "cmdline")),
)
_NIC: tuple[tuple[str, Callable[[Facts], str | None]], ...] = (
    ("driver", _driver),
    ("firmware", _plain("firmware")),
    ("bus", _bus),
    ("speed", _speed),
    ("MTU", _plain("mtu")),
    ("queues", _queues),
    ("hash fields", _pairs("rss", "hash_fields")),
    ("indirection table", _table),
    ("interrupts (CPUs)", _interrupts),
    ("offloads", _offloads),
    ("rings", _pairs("ring")),
    ("coalescing", _pairs("coalescing")),
)

"""Interrupts of a network device and the CPUs that take them."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Tuple

from .errors import HostError

NET = Path("/sys/class/net")
IRQ = Path("/proc/irq")


def parse_cpu_list(text: str) -> Tuple[int, ...]:
    """A list such as ``0-3,8`` as numbers. HostError on other text."""
    found: List[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise HostError(f"CPU list {text!r}; wanted numbers such as 0-3,8")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def of_device(device: str, net: Path = NET, irq: Path = IRQ) -> Tuple[int, ...]:
    """The device's message-signalled interrupts, in order.

    They belong to the bus device: a virtio device has them one folder up, on its PCI device.
    """
    folder = net / device / "device"
    if not folder.exists():
        return ()
    real = folder.resolve()
    for place in (real, real.parent):
        if (place / "msi_irqs").is_dir():
            numbers = sorted(int(item.name) for item in (place / "msi_irqs").iterdir())
            return tuple(number for number in numbers if (irq / str(number)).is_dir())
    return ()


def _read(path: Path) -> Optional[str]:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def affinity(number: int, irq: Path = IRQ) -> Optional[str]:
    """The CPUs that may take the interrupt, as a list."""
    return _read(irq / str(number) / "smp_affinity_list")


def effective(number: int, irq: Path = IRQ) -> Optional[str]:
    """The CPUs that do take it."""
    return _read(irq / str(number) / "effective_affinity_list")


def actions(number: int, irq: Path = IRQ) -> str:
    """Names of its handlers, which say the queue (``virtio4-input.0``)."""
    folder = irq / str(number)
    names = [item.name for item in folder.iterdir() if item.is_dir()] if folder.is_dir() else []
    return ", ".join(sorted(names))


def pin(number: int, cpus: str, irq: Path = IRQ) -> None:
    """Set the affinity and read it back. HostError when it does not hold.

    Some interrupts cannot be moved; the kernel refuses those.
    """
    try:
        (irq / str(number) / "smp_affinity_list").write_text(cpus + "\n")
    except OSError as error:
        raise HostError(f"IRQ {number}: affinity {cpus} refused: {error.strerror}") from None
    now = affinity(number, irq)
    if now != cpus:
        raise HostError(f"IRQ {number}: affinity wanted {cpus}, is {now}")


def elsewhere(number: int, cpus: str, irq: Path = IRQ) -> Optional[str]:
    """A warning when CPUs outside of the affinity take the interrupt; None when none does."""
    taken = effective(number, irq)
    if taken is None or set(parse_cpu_list(taken)) <= set(parse_cpu_list(cpus)):
        return None
    return f"IRQ {number}: affinity {cpus} is set, but CPU {taken} takes it"


def spread(numbers: Tuple[int, ...], cpus: Tuple[int, ...]) -> Dict[int, str]:
    """One CPU an interrupt, in turn."""
    return {number: str(cpus[at % len(cpus)]) for at, number in enumerate(numbers)}

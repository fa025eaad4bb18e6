"""Clock policies of the CPUs (Documentation/admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional, Tuple

from .errors import HostError

CPU = Path("/sys/devices/system/cpu")


def policies(cpu: Path = CPU) -> Tuple[str, ...]:
    """Names of the clock policies; empty where the clock cannot be governed (most guests)."""
    folder = cpu / "cpufreq"
    if not folder.is_dir():
        return ()
    names = (item.name for item in folder.iterdir() if item.name.startswith("policy"))
    return tuple(sorted(names, key=lambda name: int(name[len("policy") :])))


def read(path: Path) -> Optional[str]:
    """A one-line file; None when it is not there."""
    try:
        return path.read_text().strip()
    except OSError:
        return None


def governor(policy: str, cpu: Path = CPU) -> Optional[str]:
    """The governor of a policy."""
    return read(cpu / "cpufreq" / policy / "scaling_governor")


def set_governor(policy: str, wanted: str, cpu: Path = CPU) -> None:
    """Choose a governor. HostError that names those there are when the kernel refuses."""
    folder = cpu / "cpufreq" / policy
    try:
        (folder / "scaling_governor").write_text(wanted + "\n")
    except OSError:
        known = read(folder / "scaling_available_governors")
        raise HostError(f"governor of {policy}: found {wanted!r}; wanted one of {known}") from None
    if governor(policy, cpu) != wanted:
        raise HostError(f"governor of {policy} wanted {wanted}, is {governor(policy, cpu)}")


def boost_file(cpu: Path = CPU) -> Optional[Tuple[Path, Dict[str, str]]]:
    """The file that switches clock boost, and what ``on`` and ``off`` are in it."""
    no_turbo, boost = cpu / "intel_pstate" / "no_turbo", cpu / "cpufreq" / "boost"
    if no_turbo.exists():
        return no_turbo, {"on": "0", "off": "1"}
    if boost.exists():
        return boost, {"on": "1", "off": "0"}
    return None


def boost(cpu: Path = CPU) -> Optional[str]:
    """``on`` or ``off``; None where it cannot be switched."""
    found = boost_file(cpu)
    if found is None:
        return None
    path, words = found
    return next((word for word, value in words.items() if value == read(path)), None)


def set_boost(wanted: str, cpu: Path = CPU) -> None:
    """Switch clock boost and read it back."""
    found = boost_file(cpu)
    if found is None:
        raise HostError(f"boost wanted {wanted}: this host's clock boost cannot be switched")
    path, words = found
    try:
        path.write_text(words[wanted])
    except OSError as error:
        raise HostError(f"boost wanted {wanted}: refused: {error.strerror}") from None
    if boost(cpu) != wanted:
        raise HostError(f"boost wanted {wanted}, is {boost(cpu)}")

"""Kernel parameters under ``/proc/sys``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from .errors import HostError

ROOT = Path("/proc/sys")


def key_path(key: str, root: Path = ROOT) -> Path:
    """The file of a key in sysctl(8)'s notation.

    The first separator decides: ``net.ipv4.conf.eth0/7.rp_filter`` and
    ``net/ipv4/conf/eth0.7/rp_filter`` are the same key of the device ``eth0.7``.
    """
    dot, slash = key.find("."), key.find("/")
    dotted = slash < 0 or 0 <= dot < slash
    name = key.translate(str.maketrans("./", "/.")) if dotted else key
    parts = name.split("/")
    if len(parts) < 2 or any(part in ("", ".", "..") for part in parts) or not key.isprintable():
        raise HostError(f"sysctl {key!r}: wanted a name such as net.ipv4.ip_forward")
    return root.joinpath(*parts)


def normalise(value: str) -> str:
    """Words joined by one blank: the kernel separates numbers by tabs."""
    return " ".join(value.split())


def wanted_values(declared: Mapping[str, Any]) -> Dict[str, str]:
    """Declared values as text. HostError on what is neither a number nor text, or is empty."""
    found: Dict[str, str] = {}
    for key, value in declared.items():
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise HostError(f"sysctl {key}: found {value!r}; wanted a number or a string")
        text = normalise(str(value))
        if not text:
            raise HostError(f"sysctl {key}: found an empty value; wanted a number or a string")
        found[str(key)] = text
    return found


def read(key: str, root: Path = ROOT) -> Optional[str]:
    """The value, normalised; None when the kernel has no such key."""
    path = key_path(key, root)
    try:
        return normalise(path.read_text())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"sysctl {key}: cannot be read: {os.strerror(error.errno or 0)}") from None


def missing(key: str) -> HostError:
    """The error for a key that the kernel does not have."""
    return HostError(
        f"sysctl {key}: this kernel has no such key; wanted one that exists (it may need a kernel "
        "module, or an interface that is made later)"
    )


def write(key: str, value: str, root: Path = ROOT) -> None:
    """Set a value and read it back. HostError when the kernel refuses it or keeps another."""
    path = key_path(key, root)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "w") as stream:
            stream.write(value + "\n")
    except FileNotFoundError:
        raise missing(key) from None
    except OSError as error:
        raise HostError(
            f"sysctl {key}: the kernel refuses {value!r}: {os.strerror(error.errno or 0)}"
        ) from None
    now = read(key, root)
    if now != value:
        raise HostError(f"{key} wanted {value}, is {now}")

"""What differs between two readings of a host."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Dict, List


def flat(reading: Any, path: str = "") -> Dict[str, Any]:
    """Nested dicts as one, keys joined by dots; lists and other values stay whole."""
    if not isinstance(reading, dict):
        return {path: reading}
    found: Dict[str, Any] = {}
    for key, value in reading.items():
        found.update(flat(value, f"{path}.{key}" if path else str(key)))
    return found


def differences(before: Any, after: Any, volatile: Collection[str] = ()) -> List[Dict[str, Any]]:
    """Paths whose values differ, as ``{"path", "before", "after"}``, in order of the path.

    Only parts that both readings have are compared: one may have been taken with fewer. Paths
    equal to, or below, one of ``volatile`` are left out.
    """
    first, second = flat(before), flat(after)
    parts = set(before) & set(after) if isinstance(before, dict) else set()
    found = []
    for path in sorted(set(first) | set(second)):
        if path.split(".", 1)[0] not in parts:
            continue
        if any(path == name or path.startswith(name + ".") for name in volatile):
            continue
        if first.get(path) != second.get(path):
            found.append({"path": path, "before": first.get(path), "after": second.get(path)})
    return found

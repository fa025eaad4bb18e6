"""Receive side scaling of a device as ethtool tells it: table, function and hashed fields.

Which queue, and so which CPU, takes a packet follows from the hash of these fields through this
table; whether the ports of UDP are among the fields decides how tunnels over UDP spread.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any, Dict, List, Optional

from .run import Run

FLOWS = ("tcp4", "udp4", "tcp6", "udp6")
_RINGS = re.compile(r"with (\d+) RX ring")
_ROW = re.compile(r"\s*\d+:((?:\s+\d+)+)\s*")
_KEY = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2})+")
_FUNCTION = re.compile(r"\s+(\S+): on")


def parse_table(text: str) -> Dict[str, Any]:
    """``ethtool -x DEV``: ``rings``, ``entries``, how many entries lead to each ring (``shares``),
    the table and the key by their hash, and the hash ``function`` in force. What the driver does
    not tell is None."""
    rings = _RINGS.search(text)
    table: List[str] = []
    key = function = None
    section = ""
    for line in text.splitlines():
        if line and not line[0].isspace() and line.endswith(":"):
            section = line.lower()
        row = _ROW.fullmatch(line)
        if row is not None and "indirection" in section:
            table += row.group(1).split()
        elif "hash key" in section and _KEY.fullmatch(line.strip()):
            key = line.strip()
        elif "hash function" in section:
            match = _FUNCTION.match(line)
            function = match.group(1) if match else function
    shares = Counter(table)
    return {
        "rings": int(rings.group(1)) if rings else None,
        "entries": len(table) or None,
        "shares": {ring: shares[ring] for ring in sorted(shares, key=int)},
        "table_sha256": _digest(" ".join(table)) if table else None,
        "key_sha256": _digest(key) if key else None,
        "function": function,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def parse_fields(text: str) -> Optional[str]:
    """``ethtool -n DEV rx-flow-hash FLOW``: the fields of the hash, joined; None where the driver
    does not say."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or "fields" not in lines[0]:
        return None
    return ", ".join(lines[1:]) or None


def read(device: str, run: Run) -> Dict[str, Any]:
    """All of it; parts that the driver has not are None."""
    code, out, _err = run(["ethtool", "-x", device])
    found = parse_table(out if code == 0 else "")
    fields = {}
    for flow in FLOWS:
        code, out, _err = run(["ethtool", "-n", device, "rx-flow-hash", flow])
        fields[flow] = parse_fields(out) if code == 0 else None
    return {**found, "hash_fields": fields}

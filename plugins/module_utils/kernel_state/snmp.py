"""``/proc/net/snmp``: counters of the IPv4 stack by protocol and name.

Format: snmp_seq_show in Linux net/ipv4/proc.c: two lines a protocol, names and then numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Dict, List, Optional, Tuple

from .errors import StateError, Text, number_lines

_NUMBER = re.compile(r"-?[0-9]+")


def parse_snmp(text: Text) -> Dict[str, Dict[str, int]]:
    """Counters as ``{"Ip": {"ForwDatagrams": …}}``. Raises :class:`StateError` on other text."""
    found: Dict[str, Dict[str, int]] = {}
    heading: Optional[Tuple[str, List[str]]] = None
    for number, line in number_lines(text):
        if not line.strip():
            continue
        protocol, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or not words:
            raise StateError(number, repr(line[:60]), "PROTOCOL: NAMES or NUMBERS")
        if heading is None:
            heading = protocol, words
            continue
        if heading[0] != protocol or len(heading[1]) != len(words):
            raise StateError(
                number, f"{len(words)} columns of {protocol}", f"those of {heading[0]}"
            )
        if not all(_NUMBER.fullmatch(word) for word in words):
            raise StateError(number, repr(line[:60]), "numbers")
        found[protocol] = {name: int(words[at]) for at, name in enumerate(heading[1])}
        heading = None
    if heading is not None or not found:
        raise StateError(1, "names without numbers" if heading else "nothing", "two lines each")
    return found


def snmp_between(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]], protocol: str
) -> Dict[str, int]:
    """By how much the counters of a protocol grew that did.

    Raises :class:`StateError` when a counter went back: the readings are not of one boot.
    """
    found: Dict[str, int] = {}
    for name, count in after.get(protocol, {}).items():
        earlier = before.get(protocol, {}).get(name)
        if earlier is None or count == earlier:
            continue
        if count < earlier:
            raise StateError(1, f"{protocol} {name} {earlier} and then {count}", "one boot")
        found[name] = count - earlier
    return found

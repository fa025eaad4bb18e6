"""``netlabelctl map list``, plain and with ``-p``.

Plain: ``domain:"test",address:192.0.2.4/32,protocol:UNLABELED,… domain:DEFAULT,CIPSOv4,16``.
The protocol is spelled ``CIPSOv4`` in the plain form and ``CIPSO`` in the pretty one
(netlabelctl/map.c keeps it so for scripts); ``UNLABELED`` may carry ``,4`` or ``,6``.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from .errors import NumberedLine, StateError, Text
from .netlabel import MapEntry, _content, _doi, _network

_PROTOCOLS = {"UNLABELED": "unlbl", "CIPSO": "cipso", "CIPSOv4": "cipso", "CALIPSO": "calipso"}
_FAMILIES = {"cipso": 4, "calipso": 6}
_HEAD = re.compile(r"Configured NetLabel domain mappings \(([0-9]+)(, not including DEFAULT)?\)")
_DOMAIN = re.compile(r'domain:(?:"([^"]*)"|(DEFAULT)),')
_PLAIN_PROTOCOL = re.compile(r"(UNLABELED|CIPSOv4|CIPSO|CALIPSO)(?:,([0-9]+))?")
_SELECTED = re.compile(
    r"address:([^,\s]+),protocol:(UNLABELED|CIPSOv4|CIPSO|CALIPSO)(?:,([0-9]+))?(?:,|$)"
)
_PRETTY_DOMAIN = re.compile(r'domain: (?:"([^"]*)"|(DEFAULT))(?: \((IPv4/IPv6|IPv4|IPv6)\))?')
_PRETTY_PROTOCOL = re.compile(r"protocol: (UNLABELED|CIPSOv4|CIPSO|CALIPSO)(?:, DOI = ([0-9]+))?")
_PRETTY_FAMILIES = {"IPv4": 4, "IPv6": 6, "IPv4/IPv6": None, None: None}


def parse_map(text: Text) -> Tuple[MapEntry, ...]:
    """The domain map, in the order listed. An empty listing has no entries.

    A family that no DEFAULT entry covers has no mapping at all: new sockets of that family fail.
    Raises :class:`StateError` on other text, a repeated entry, or another number than announced.
    """
    lines = _content(text)
    if not lines:
        return ()
    head = _HEAD.fullmatch(lines[0][1])
    if head is not None:
        found = _pretty(lines, int(head.group(1)), head.group(2) is not None)
    else:
        found = []
        for number, line in lines:
            found.extend(_plain(line, number))
    seen = set()
    for entry in found:
        if entry in seen:
            raise StateError(lines[0][0], f"{describe(entry)} a second time", "each entry once")
        seen.add(entry)
    return tuple(found)


def describe(entry: MapEntry) -> str:
    """An entry as people read it, e.g. ``default 192.0.2.0/24 cipso,16``."""
    parts = ["default" if entry.domain is None else f"domain {entry.domain}"]
    if entry.selector is not None:
        parts.append(entry.selector)
    parts.append(entry.protocol if entry.doi is None else f"{entry.protocol},{entry.doi}")
    if entry.selector is None and entry.protocol == "unlbl" and entry.family is not None:
        parts[-1] += f",{entry.family}"
    return " ".join(parts)


def _entry(
    domain: Optional[str], selector: Optional[str], word: str, extra: Optional[str], line: int
) -> MapEntry:
    protocol = _PROTOCOLS[word]
    family = _FAMILIES.get(protocol)
    doi = None
    if protocol == "unlbl":
        if extra not in (None, "4", "6"):
            raise StateError(line, f"UNLABELED,{extra}", "UNLABELED, UNLABELED,4 or UNLABELED,6")
        family = None if extra is None else int(extra)
    elif extra is None:
        raise StateError(line, f"{word} without a DOI", f"{word} and a DOI")
    else:
        doi = _doi(extra, line)
    if selector is not None:
        selector, version = _network(selector, line)
        if family not in (None, version):
            raise StateError(line, f"{word} for {selector}", f"an IPv{family} address")
        family = version
    return MapEntry(domain, selector, family, protocol, doi)


def _plain(line: str, number: int) -> List[MapEntry]:
    starts = list(_DOMAIN.finditer(line))
    if not starts or starts[0].start() != 0:
        raise StateError(number, repr(line), 'domain:"NAME",… or domain:DEFAULT,…')
    found: List[MapEntry] = []
    ends = [match.start() for match in starts[1:]] + [len(line)]
    for at, match in enumerate(starts):
        end = ends[at]
        body = line[match.end() : end].strip()
        domain = match.group(1)
        whole = _PLAIN_PROTOCOL.fullmatch(body)
        if whole is not None:
            found.append(_entry(domain, None, whole.group(1), whole.group(2), number))
            continue
        if not body:
            raise StateError(number, f"domain {domain or 'DEFAULT'} without a protocol", "one")
        while body:
            item = _SELECTED.match(body)
            if item is None:
                raise StateError(number, repr(body), "address:A/LEN,protocol:P[,DOI]")
            found.append(_entry(domain, item.group(1), item.group(2), item.group(3), number))
            body = body[item.end() :]
            if not body and item.group(0).endswith(","):
                raise StateError(number, "a comma at the end", "address:A/LEN,protocol:P[,DOI]")
    return found


def _pretty(lines: List[NumberedLine], count: int, default_extra: bool) -> List[MapEntry]:
    found: List[MapEntry] = []
    domains = 0
    number, line = lines[0]
    domain: Optional[str] = None
    selector: Optional[str] = None
    family: Optional[int] = None
    open_domain = False  # a domain line without a protocol so far
    for number, line in lines[1:]:
        head = _PRETTY_DOMAIN.fullmatch(line)
        protocol = _PRETTY_PROTOCOL.fullmatch(line)
        if head is not None and not open_domain and selector is None:
            domain, open_domain = head.group(1), True
            family = _PRETTY_FAMILIES[head.group(3)]
            domains += 0 if default_extra and head.group(2) else 1
        elif line.startswith("address: ") and domains + default_extra and selector is None:
            selector = line[len("address: ") :]
        elif protocol is not None and (open_domain or selector is not None):
            entry = _entry(domain, selector, protocol.group(1), protocol.group(2), number)
            if selector is None:
                if protocol.group(1) == "UNLABELED":
                    entry = MapEntry(domain, None, family, "unlbl", None)
                elif family not in (None, entry.family):
                    raise StateError(number, repr(line), f"a protocol for IPv{family}")
            elif family not in (None, entry.family):
                raise StateError(number, f"address {selector}", f"an IPv{family} address")
            found.append(entry)
            selector, open_domain = None, False
        else:
            raise StateError(number, repr(line), "domain:, address: and protocol: in this order")
    if open_domain or selector is not None:
        raise StateError(number, "the end of the listing", "a protocol for the last domain")
    if domains != count:
        raise StateError(lines[0][0], f"{domains} domains", f"the {count} of the heading")
    return found

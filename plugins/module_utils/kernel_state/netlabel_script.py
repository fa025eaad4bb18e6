"""netlabelctl commands in scripts and transcripts: what they would leave configured.

For reviewing a script before anybody runs it. The start is a kernel's own: the default domain is
unlabelled and unlabelled packets are accepted.
"""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

from .errors import NumberedLine, StateError, decimal
from .netlabel import MAX_DOI, Doi, MapEntry, StaticLabel, Unlabelled
from .netlabel_check import NetlabelState

_COMMAND = re.compile(
    r"netlabelctl(?:\s+-[pv]|\s+-t\s*[0-9]+)*\s+(cipsov4|cipso|calipso|map|unlbl)\s+"
    r"(add|del|accept|list)\b([^;|>#`(]*)"
)
_PROTOCOLS = {"cipsov4": "cipso", "cipso": "cipso", "calipso": "calipso", "unlbl": "unlbl"}
Command = Tuple[int, str, str, Tuple[str, ...]]


def commands(lines: List[NumberedLine]) -> List[Command]:
    """The netlabelctl commands of some lines: (line, module, verb, arguments)."""
    found: List[Command] = []
    for number, line in lines:
        for match in _COMMAND.finditer(line):
            words = tuple(word for word in match.group(3).split() if word != "-")
            found.append((number, match.group(1), match.group(2), words))
    return found


def changes(found: List[Command]) -> List[Command]:
    """The commands that change something (``list`` does not)."""
    return [command for command in found if command[2] != "list"]


def replay(found: List[Command]) -> NetlabelState:
    """The configuration after the commands. Raises :class:`StateError` for one without sense."""
    dois: Dict[Tuple[str, int], Doi] = {}
    maps: List[MapEntry] = [MapEntry(None, None, None, "unlbl")]
    accept = True
    static: List[StaticLabel] = []
    for number, module, verb, words in changes(found):
        if module == "map":
            domain = _domain(words, number)
            if verb == "del":
                maps = [entry for entry in maps if entry.domain != domain]
            else:
                maps.append(_entry(domain, words, number))
        elif module == "unlbl":
            if verb == "accept":
                accept = words[:1] in (("on",), ("1",))
            elif verb == "add":
                static.append(_static(words, number))
            else:
                gone = _static(words, number)
                static = [
                    item
                    for item in static
                    if (item.interface, item.address) != (gone.interface, gone.address)
                ]
        else:
            doi = _doi(_PROTOCOLS[module], words, number)
            dois.pop((doi.protocol, doi.number), None)
            if verb == "add":
                dois[(doi.protocol, doi.number)] = doi
    return NetlabelState(tuple(dois.values()), tuple(maps), Unlabelled(accept, tuple(static)))


def _value(words: Tuple[str, ...], key: str) -> Optional[str]:
    for word in words:
        if word.startswith(f"{key}:"):
            return word[len(key) + 1 :]
    return None


def _domain(words: Tuple[str, ...], number: int) -> Optional[str]:
    if "default" in words:
        return None
    domain = _value(words, "domain")
    if not domain:
        raise StateError(number, f"map {' '.join(words)}", "default or domain:NAME")
    return domain


def _entry(domain: Optional[str], words: Tuple[str, ...], number: int) -> MapEntry:
    name, comma, extra = (_value(words, "protocol") or "").partition(",")
    protocol = _PROTOCOLS.get(name)
    if protocol is None:
        raise StateError(number, f"protocol {name!r}", "unlbl, cipso,DOI or calipso,DOI")
    doi = family = None
    if protocol == "unlbl":
        family = decimal(extra, number, "a family") if comma else None
    else:
        doi = decimal(extra, number, "a DOI", MAX_DOI)
    selector = _value(words, "address")
    return MapEntry(domain, selector, None if selector else family, protocol, doi)


def _doi(protocol: str, words: Tuple[str, ...], number: int) -> Doi:
    kind = next((word for word in words if word in ("trans", "std", "pass", "local")), "pass")
    tags = _value(words, "tags")
    return Doi(
        decimal(_value(words, "doi") or "", number, "a DOI", MAX_DOI),
        "trans" if kind == "std" else kind,
        tuple(decimal(tag, number, "a tag", 255) for tag in tags.split(",")) if tags else (),
        _table(words, "levels", number),
        _table(words, "categories", number),
        protocol,
    )


def _table(words: Tuple[str, ...], key: str, number: int) -> Dict[int, int]:
    table: Dict[int, int] = {}
    for item in (_value(words, key) or "").split(","):
        local, equals, wire = item.partition("=")
        if equals:
            table[decimal(local, number, key)] = decimal(wire, number, key)
        elif item not in ("", "..", "…", "..."):
            raise StateError(number, repr(item), f"LOCAL=WIRE in {key}")
    return table


def _static(words: Tuple[str, ...], number: int) -> StaticLabel:
    address = _value(words, "address")
    if address is None:
        raise StateError(number, f"unlbl {' '.join(words)}", "address:A")
    return StaticLabel(_value(words, "interface"), address, _value(words, "label") or "")

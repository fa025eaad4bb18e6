"""``netlabelctl`` listings, plain and with ``-p``.

Formats: netlabel_tools 0.17 to 0.30 (netlabelctl/cipso.c, calipso.c, map.c, unlabeled.c, mgmt.c).
Entries of a plain listing are separated by blanks; inside, IPv6 addresses have colons and labels
have commas, so entries are taken apart at their keywords.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from .errors import NumberedLine, StateError, Text, decimal, number_lines

TAG_BITMAP = 1
TAG_ENUM = 2
TAG_RANGE = 5
TAG_LOCAL = 128
TAG_NAMES = {
    "RESTRICTED BITMAP": 1,
    "ENUMERATED": 2,
    "RANGED": 5,
    "PERMISSIVE_BITMAP": 6,
    "FREEFORM": 7,
    "LOCAL": 128,
}
KINDS = {"TRANSLATED": "trans", "STANDARD": "trans", "PASS_THROUGH": "pass", "LOCAL": "local"}
MAX_DOI = 0xFFFFFFFF


@dataclass(frozen=True)
class Doi:
    """A domain of interpretation.

    ``kind``: ``trans`` (levels and categories are translated), ``pass`` (sent as they are) or
    ``local`` (full contexts, loopback only, tag 128). ``levels`` and ``categories`` map local
    numbers to the wire's; both are empty unless ``kind`` is ``trans``. ``protocol`` is ``cipso``
    (IPv4) or ``calipso`` (IPv6, ``pass`` only, no tags).
    """

    number: int
    kind: str
    tags: Tuple[int, ...] = ()
    levels: Mapping[int, int] = field(default_factory=dict)
    categories: Mapping[int, int] = field(default_factory=dict)
    protocol: str = "cipso"


@dataclass(frozen=True)
class MapEntry:
    """Which protocol a domain (an LSM domain, None for the default) uses towards an address.

    ``selector`` is a network in CIDR form, None for every address. ``family`` is 4, 6 or None
    for both. ``protocol`` is ``unlbl``, ``cipso`` or ``calipso``; ``doi`` is None for ``unlbl``.
    """

    domain: Optional[str]
    selector: Optional[str]
    family: Optional[int]
    protocol: str
    doi: Optional[int] = None


@dataclass(frozen=True)
class StaticLabel:
    """A label for unlabelled packets from ``address`` (CIDR) on ``interface`` (None: any)."""

    interface: Optional[str]
    address: str
    label: str


@dataclass(frozen=True)
class Unlabelled:
    """Whether unlabelled packets are accepted, and the static (fallback) labels."""

    accept: bool
    static: Tuple[StaticLabel, ...] = ()


@dataclass(frozen=True)
class DoiDetail:
    """What ``cipso list doi:N`` says: everything but the number (None where it is not said)."""

    number: Optional[int]
    kind: str
    tags: Tuple[int, ...]
    levels: Mapping[int, int]
    categories: Mapping[int, int]


def _network(text: str, line: int) -> Tuple[str, int]:
    if "/" not in text:
        raise StateError(line, repr(text), "an address with its mask length (a.b.c.d/len)")
    try:
        network = ipaddress.ip_network(text, strict=True)
    except ValueError:
        raise StateError(line, repr(text), "a network without host bits (a.b.c.d/len)") from None
    return str(network), network.version


def _doi(token: str, line: int) -> int:
    return decimal(token, line, "a DOI", MAX_DOI)


# --- DOIs -------------------------------------------------------------------------------------

_PLAIN_DOI = re.compile(r"([0-9]+),([A-Z_]+(?:\([0-9]+\))?)")
_DOI_HEAD = re.compile(r"Configured (CIPSO|CIPSOv4|CALIPSO) mappings \(([0-9]+)\)")
_DETAIL_HEAD = re.compile(r"Configured (CIPSO|CIPSOv4|CALIPSO) mapping \(DOI = ([0-9]+)\)")
_COUNTED = re.compile(r"(tags|levels|categories) \(([0-9]+)\):")
_PAIR = re.compile(r"([0-9]+) = ([0-9]+)")


def _kind(word: str, line: int) -> str:
    if word not in KINDS:
        raise StateError(line, repr(word), f"one of {', '.join(sorted(KINDS))}")
    return KINDS[word]


def _content(text: Text) -> List[NumberedLine]:
    return [(number, line.strip()) for number, line in number_lines(text) if line.strip()]


def parse_doi_list(text: Text) -> Dict[int, str]:
    """``cipso list`` or ``calipso list`` as DOI number -> kind. An empty listing is ``{}``.

    Raises :class:`StateError` on other text, a DOI listed twice, or fewer than the count says.
    """
    lines = _content(text)
    found: Dict[int, str] = {}
    if not lines:
        return found
    head = _DOI_HEAD.fullmatch(lines[0][1])
    if head is None:
        for number, line in lines:
            for token in line.split():
                match = _PLAIN_DOI.fullmatch(token)
                if match is None:
                    raise StateError(number, repr(token), "DOI,TYPE (for example 16,PASS_THROUGH)")
                _put(found, _doi(match.group(1), number), _kind(match.group(2), number), number)
        return found
    body = lines[1:]
    for at in range(0, len(body), 2):
        number, line = body[at]
        match = re.fullmatch(r"DOI value : ([0-9]+)", line)
        kind = re.fullmatch(r"mapping type : (.+)", body[at + 1][1]) if at + 1 < len(body) else None
        if match is None or kind is None:
            raise StateError(number, repr(line), "'DOI value : N' and then 'mapping type : TYPE'")
        _put(found, _doi(match.group(1), number), _kind(kind.group(1), number + 1), number)
    if len(found) != int(head.group(2)):
        raise StateError(lines[0][0], f"{len(found)} DOIs", f"the {head.group(2)} of the heading")
    return found


def _put(found: Dict[int, str], doi: int, kind: str, line: int) -> None:
    if doi in found:
        raise StateError(line, f"DOI {doi} a second time", "each DOI once")
    found[doi] = kind


def parse_doi(text: Text) -> DoiDetail:
    """``cipso list doi:N`` (plain or ``-p``) or ``calipso list doi:N``.

    The plain form says neither the number nor, without a translation, whether tags other than
    128 belong to ``pass``; only ``pass`` remains then. Raises :class:`StateError`.
    """
    lines = _content(text)
    if not lines:
        raise StateError(1, "nothing", "a DOI listing (tags:… or 'Configured CIPSO mapping')")
    head = _DETAIL_HEAD.fullmatch(lines[0][1])
    if head is not None:
        return _pretty_detail(lines, _doi(head.group(2), lines[0][0]), head.group(1))
    number, line = lines[0]
    if len(lines) > 1:
        raise StateError(lines[1][0], repr(lines[1][1]), "one line for a DOI")
    if line == "type:PASS_THROUGH":
        return DoiDetail(None, "pass", (), {}, {})
    match = re.fullmatch(r"tags:([0-9,]+)(?: levels:([0-9=,]*) categories:([0-9=,]*))?", line)
    if match is None:
        raise StateError(number, repr(line), "tags:N,… [levels:L=W,… categories:C=W,…]")
    tags = tuple(decimal(tag, number, "a tag", 255) for tag in match.group(1).split(","))
    translated = match.group(2) is not None
    return DoiDetail(
        None,
        _kind_of(tags, translated, number),
        tags,
        _pairs(match.group(2) or "", number, "level"),
        _pairs(match.group(3) or "", number, "category"),
    )


def _kind_of(tags: Tuple[int, ...], translated: bool, line: int) -> str:
    if not tags:
        raise StateError(line, "no tag", "at least one tag")
    if len(set(tags)) != len(tags):
        raise StateError(line, f"tags {list(tags)}", "each tag once")
    if translated:
        return "trans"
    return "local" if tags == (TAG_LOCAL,) else "pass"


def _pairs(text: str, line: int, what: str) -> Dict[int, int]:
    found: Dict[int, int] = {}
    for item in text.split(",") if text else []:
        local, equals, wire = item.partition("=")
        if not equals:
            raise StateError(line, repr(item), f"LOCAL=WIRE for a {what}")
        key = decimal(local, line, f"a {what}")
        if key in found:
            raise StateError(line, f"{what} {key} a second time", f"each {what} once")
        found[key] = decimal(wire, line, f"a {what}")
    return found


def _pretty_detail(lines: List[NumberedLine], doi: int, protocol: str) -> DoiDetail:
    if protocol == "CALIPSO":
        if len(lines) != 2 or lines[1][1] != "type: PASS_THROUGH":
            raise StateError(lines[0][0], "a CALIPSO DOI without its type", "type: PASS_THROUGH")
        return DoiDetail(doi, "pass", (), {}, {})
    sections: Dict[str, List[NumberedLine]] = {}
    counts: Dict[str, int] = {}
    current = ""
    for number, line in lines[1:]:
        match = _COUNTED.fullmatch(line)
        if match is not None:
            current = match.group(1)
            if current in sections:
                raise StateError(number, f"a second list of {current}", "each list once")
            sections[current], counts[current] = [], int(match.group(2))
        elif current:
            sections[current].append((number, line))
        else:
            raise StateError(number, repr(line), "'tags (N):'")
    for name, items in sections.items():
        if len(items) != counts[name]:
            raise StateError(lines[0][0], f"{len(items)} {name}", f"the {counts[name]} announced")
    tags = tuple(_pretty_tag(line, number) for number, line in sections.get("tags", []))
    tables: Dict[str, Dict[int, int]] = {"levels": {}, "categories": {}}
    for name, table in tables.items():
        for number, line in sections.get(name, []):
            match = _PAIR.fullmatch(line)
            if match is None or int(match.group(1)) in table:
                raise StateError(number, repr(line), f"'LOCAL = WIRE' in {name}, each local once")
            table[int(match.group(1))] = int(match.group(2))
    kind = _kind_of(tags, "levels" in sections, lines[0][0])
    return DoiDetail(doi, kind, tags, tables["levels"], tables["categories"])


def _pretty_tag(text: str, line: int) -> int:
    match = re.fullmatch(r"UNKNOWN\(([0-9]+)\)", text)
    if match is not None:
        return decimal(match.group(1), line, "a tag", 255)
    if text not in TAG_NAMES:
        raise StateError(line, repr(text), f"one of {', '.join(TAG_NAMES)}")
    return TAG_NAMES[text]


# --- unlabelled traffic -----------------------------------------------------------------------

_STATIC = re.compile(r'interface:([^,\s]+),address:([^,\s]+),label:"([^"]*)"')


def parse_unlabelled(text: Text) -> Unlabelled:
    """``unlbl list`` in either form (also ``on``/``off`` alone, as before 0.18)."""
    lines = _content(text)
    if not lines:
        raise StateError(1, "nothing", "accept:on or accept:off")
    number, line = lines[0]
    pretty = re.fullmatch(r"(?:Accept|Allow) unlabeled packets : (on|off)", line)
    if pretty is not None:
        return Unlabelled(pretty.group(1) == "on", _pretty_static(lines[1:]))
    match = re.fullmatch(r"(?:accept:)?(on|off)(?: (.*))?", line)
    if match is None or len(lines) > 1:
        raise StateError(number, repr(line), "accept:on or accept:off and static labels")
    rest, found = (match.group(2) or "").strip(), []
    while rest:
        item = _STATIC.match(rest)
        if item is None:
            raise StateError(number, repr(rest), 'interface:I,address:A,label:"L"')
        found.append(_static(item.group(1), item.group(2), item.group(3), number))
        rest = rest[item.end() :].strip()
    return Unlabelled(match.group(1) == "on", tuple(found))


def _static(interface: str, address: str, label: str, line: int) -> StaticLabel:
    return StaticLabel(
        None if interface == "DEFAULT" else interface, _network(address, line)[0], label
    )


def _pretty_static(lines: List[NumberedLine]) -> Tuple[StaticLabel, ...]:
    if not lines:
        return ()
    head = re.fullmatch(r"Configured NetLabel address mappings \(([0-9]+)\)", lines[0][1])
    if head is None:
        raise StateError(lines[0][0], repr(lines[0][1]), "'Configured NetLabel address mappings'")
    found: List[StaticLabel] = []
    interface = address = None
    for number, line in lines[1:]:
        key, colon, value = line.partition(": ")
        if key == "interface" and colon and address is None:
            interface = value
        elif key == "address" and colon and interface is not None and address is None:
            address = value
        elif key == "label" and interface is not None and address is not None:
            found.append(_static(interface, address, value.strip('"'), number))
            address = None
        else:
            raise StateError(number, repr(line), "interface:, address: and label: in this order")
    if address is not None or len(found) != int(head.group(1)):
        raise StateError(lines[0][0], f"{len(found)} labels", f"the {head.group(1)} announced")
    return tuple(found)

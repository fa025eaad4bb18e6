"""What is wrong with a declared NetLabel configuration, before it is applied.

The kernel finds some of these faults only when a socket connects (labels that do not fit, an
unmapped family), and netlabelctl accepts others silently (a translation given to ``pass``).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Dict, List, Optional, Set, Tuple, Union

from .context import LabelError, parse_context
from .netlabel import MAX_DOI, TAG_LOCAL, Doi, MapEntry, StaticLabel, Unlabelled
from .netlabel_map import describe

MAX_TAGS = 5
MAX_WIRE_LEVEL = 255
MAX_WIRE_CATEGORY = 65534
KINDS = ("trans", "pass", "local")
PROTOCOLS = {"unlbl": None, "cipso": 4, "calipso": 6}
_WORD = re.compile(r"[A-Za-z0-9_.-]+")
_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


@dataclass(frozen=True)
class NetlabelState:
    """A whole configuration. ``unlabelled`` None: not declared, so not touched."""

    dois: Tuple[Doi, ...] = ()
    maps: Tuple[MapEntry, ...] = ()
    unlabelled: Optional[Unlabelled] = None


@dataclass(frozen=True)
class Review:
    """The normalised configuration with what is wrong (errors) and doubtful (warnings)."""

    state: NetlabelState
    errors: Tuple[str, ...]
    warnings: Tuple[str, ...]


def review(
    declared: NetlabelState,
    management: Sequence[str] = (),
    kernel: Optional[str] = None,
) -> Review:
    """Check a configuration and bring its networks into canonical form.

    ``management`` holds the addresses over which the host is managed: a labelled mapping that
    covers one is an error. ``kernel`` is the host's release (``uname -r``), if known.
    """
    errors: List[str] = []
    warnings: List[str] = []
    _check_dois(declared.dois, errors, warnings)
    maps = tuple(
        _normalise(entry, index, errors, warnings) for index, entry in enumerate(declared.maps)
    )
    known = {(doi.protocol, doi.number) for doi in declared.dois}
    for index, entry in enumerate(maps):
        if entry.doi is not None and (entry.protocol, entry.doi) not in known:
            errors.append(
                f"maps[{index}].doi: {describe(entry)} refers to {entry.protocol} DOI {entry.doi}, "
                "which is not declared"
            )
    _check_domains(maps, errors, warnings)
    _check_management(maps, management, errors)
    unlabelled = declared.unlabelled
    if unlabelled is not None:
        unlabelled = _check_static(unlabelled, bool(management), errors, warnings)
    if any(entry.protocol == "calipso" for entry in maps) and not _calipso_fixed(kernel):
        warnings.append(
            "maps: with a CALIPSO mapping, kernels from 4.8 to 6.14 without the stable fix of "
            "2025 crash when an IPv4 socket connects to an IPv6 address"
        )
    return Review(
        NetlabelState(declared.dois, _merge(maps), unlabelled), tuple(errors), tuple(warnings)
    )


def _calipso_fixed(kernel: Optional[str]) -> bool:
    match = re.match(r"([0-9]+)\.([0-9]+)", kernel or "")
    return match is not None and (int(match.group(1)), int(match.group(2))) >= (6, 15)


# --- DOIs -------------------------------------------------------------------------------------


def _check_dois(dois: Iterable[Doi], errors: List[str], warnings: List[str]) -> None:
    seen: Set[Tuple[str, int]] = set()
    for index, doi in enumerate(dois):
        at = f"dois[{index}] (DOI {doi.number})"
        if (doi.protocol, doi.number) in seen:
            errors.append(f"{at}.number: declared a second time")
        seen.add((doi.protocol, doi.number))
        if not 1 <= doi.number <= MAX_DOI:
            errors.append(f"{at}.number: {doi.number}, wanted 1 to {MAX_DOI}")
        if doi.kind not in KINDS:
            errors.append(f"{at}.kind: {doi.kind!r}, wanted one of {', '.join(KINDS)}")
        elif doi.protocol not in ("cipso", "calipso"):
            errors.append(f"{at}.protocol: {doi.protocol!r}, wanted cipso or calipso")
        else:
            _check_doi(doi, at, errors, warnings)


def _check_doi(doi: Doi, at: str, errors: List[str], warnings: List[str]) -> None:
    if doi.kind != "trans":
        for key, table in (("levels", doi.levels), ("categories", doi.categories)):
            if table:
                errors.append(
                    f"{at}.{key}: {doi.kind} takes no translation (netlabelctl would ignore it "
                    "without a word); use kind trans"
                )
    if doi.protocol == "calipso":
        if doi.kind != "pass":
            errors.append(f"{at}.kind: {doi.kind}, CALIPSO knows pass only")
        if doi.tags:
            errors.append(f"{at}.tags: {list(doi.tags)}, CALIPSO has no tags")
        return
    _check_tags(doi, at, errors)
    if doi.kind != "trans":
        return
    if not doi.levels:
        errors.append(f"{at}.levels: empty, trans needs at least one level")
    for key, table, most in (
        ("levels", doi.levels, MAX_WIRE_LEVEL),
        ("categories", doi.categories, MAX_WIRE_CATEGORY),
    ):
        _check_table(table, most, f"{at}.{key}", errors, warnings)


def _check_tags(doi: Doi, at: str, errors: List[str]) -> None:
    if doi.kind == "local":
        if doi.tags not in ((), (TAG_LOCAL,)):
            errors.append(f"{at}.tags: {list(doi.tags)}, local is tag 128 only")
        return
    if not doi.tags:
        errors.append(f"{at}.tags: empty, wanted 1 to {MAX_TAGS} of 1, 2, 5")
    if len(doi.tags) > MAX_TAGS:
        errors.append(f"{at}.tags: {len(doi.tags)} tags, wanted at most {MAX_TAGS}")
    if len(set(doi.tags)) != len(doi.tags):
        errors.append(f"{at}.tags: {list(doi.tags)}, wanted each once")
    for tag in doi.tags:
        if doi.kind == "trans" and tag != 1:
            errors.append(f"{at}.tags: tag {tag}, trans takes tag 1 only (2 and 5 need kind pass)")
        elif tag not in (1, 2, 5):
            errors.append(f"{at}.tags: tag {tag}, wanted 1 (bitmap), 2 (list) or 5 (ranges)")


def _check_table(
    table: Mapping[int, int], most: int, at: str, errors: List[str], warnings: List[str]
) -> None:
    targets: Dict[int, int] = {}
    for local, wire in table.items():
        if local < 0 or not 0 <= wire <= most:
            errors.append(f"{at}: {local}={wire}, wanted 0 to {most} on the wire")
        elif wire in targets:
            warnings.append(
                f"{at}: {targets[wire]} and {local} both become {wire}; a receiver cannot tell "
                "them apart"
            )
        targets.setdefault(wire, local)


# --- the domain map ---------------------------------------------------------------------------


def _canonical(text: str, at: str, errors: List[str], warnings: List[str]) -> Optional[_Network]:
    try:
        network: _Network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        errors.append(f"{at}: {text!r}, wanted an address or network")
        return None
    if "/" in text and ipaddress.ip_address(text.partition("/")[0]) != network.network_address:
        warnings.append(f"{at}: {text} has host bits set; taken as {network}")
    return network


def _normalise(entry: MapEntry, index: int, errors: List[str], warnings: List[str]) -> MapEntry:
    at = f"maps[{index}]"
    if entry.protocol not in PROTOCOLS:
        errors.append(f"{at}.protocol: {entry.protocol!r}, wanted one of {', '.join(PROTOCOLS)}")
        return entry
    wanted = PROTOCOLS[entry.protocol]
    family = entry.family
    if family not in (None, 4, 6):
        errors.append(f"{at}.family: {family!r}, wanted 4, 6 or nothing")
    if entry.domain is not None and not _WORD.fullmatch(entry.domain):
        errors.append(f"{at}.domain: {entry.domain!r}, wanted an LSM domain such as netperf_t")
    if (entry.doi is None) != (entry.protocol == "unlbl"):
        errors.append(
            f"{at}.doi: {entry.doi}, wanted one for {entry.protocol}"
            if entry.doi is None
            else f"{at}.doi: {entry.doi}, unlbl takes none"
        )
    if entry.selector is not None:
        network = _canonical(entry.selector, f"{at}.selector", errors, warnings)
        if network is None:
            return entry
        if family not in (None, network.version) or wanted not in (None, network.version):
            errors.append(
                f"{at}.selector: {network} for {entry.protocol}, wanted an "
                f"IPv{wanted or family} network"
            )
        return replace(entry, selector=str(network), family=network.version)
    if wanted is not None and family not in (None, wanted):
        errors.append(f"{at}.family: {family}, {entry.protocol} is IPv{wanted}")
    return replace(entry, family=wanted if wanted is not None else family)


def _merge(maps: Tuple[MapEntry, ...]) -> Tuple[MapEntry, ...]:
    """Two unlabelled mappings of a domain, one a family, are the one that the kernel lists."""
    found = list(maps)
    for entry in maps:
        other = replace(entry, family=6)
        if (
            entry.selector is None
            and entry.protocol == "unlbl"
            and entry.family == 4
            and other in found
        ):
            found[found.index(entry)] = replace(entry, family=None)
            found.remove(other)
    return tuple(found)


def _families(entry: MapEntry) -> Tuple[int, ...]:
    return (4, 6) if entry.family is None else (entry.family,)


def _check_domains(maps: Tuple[MapEntry, ...], errors: List[str], warnings: List[str]) -> None:
    whole: Dict[Tuple[Optional[str], int], int] = {}
    selected: Dict[Tuple[Optional[str], int], Dict[str, int]] = {}
    for index, entry in enumerate(maps):
        for family in _families(entry):
            key = (entry.domain, family)
            if entry.selector is None:
                if key in whole:
                    errors.append(
                        f"maps[{index}]: {describe(entry)}, but maps[{whole[key]}] maps "
                        f"IPv{family} of the same domain already"
                    )
                whole[key] = index
            elif entry.selector in selected.setdefault(key, {}):
                errors.append(
                    f"maps[{index}].selector: {entry.selector} is mapped a second time (first in "
                    f"maps[{selected[key][entry.selector]}])"
                )
            else:
                selected[key][entry.selector] = index
    for key in sorted(set(whole) & set(selected), key=str):
        errors.append(
            f"maps[{whole[key]}]: {_name(key[0])} has both a mapping for all of IPv{key[1]} and "
            "address selectors; map 0.0.0.0/0 or ::/0 instead"
        )
    for domain in sorted({entry.domain for entry in maps} | {None}, key=str):
        missing = [
            everything
            for family, everything in ((4, "0.0.0.0/0"), (6, "::/0"))
            if (domain, family) not in whole
            and everything not in selected.get((domain, family), {})
            and (domain is None or (domain, family) in selected)
        ]
        if missing and domain is None:
            errors.append(
                f"maps: default has no {' and '.join(missing)} mapping: every other destination "
                "has no mapping at all, and new sockets to it fail"
            )
        elif missing:
            warnings.append(
                f"maps: domain {domain} has no {' and '.join(missing)} mapping: its sockets to "
                "other destinations fail"
            )


def _name(domain: Optional[str]) -> str:
    return "default" if domain is None else f"domain {domain}"


def applying_entry(
    maps: Iterable[MapEntry], address: str, domain: Optional[str] = None
) -> Optional[MapEntry]:
    """The entry the kernel would use for a peer address: the longest matching selector.

    A domain without an entry of the address's family uses the default. None: no mapping.
    """
    host = ipaddress.ip_address(address)
    entries = [entry for entry in maps if host.version in _families(entry)]
    own = [entry for entry in entries if entry.domain == domain]
    if not own:
        own = [entry for entry in entries if entry.domain is None]
    best: Tuple[int, Optional[MapEntry]] = (-1, None)
    for entry in own:
        if entry.selector is None:
            best = max(best, (0, entry), key=lambda pair: pair[0])
            continue
        network = ipaddress.ip_network(entry.selector, strict=False)
        if host in network and network.prefixlen > best[0]:
            best = (network.prefixlen, entry)
    return best[1]


def _check_management(
    maps: Tuple[MapEntry, ...], management: Sequence[str], errors: List[str]
) -> None:
    usable = [entry for entry in maps if entry.protocol in PROTOCOLS and _readable(entry)]
    for address in management:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            errors.append(f"management: {address!r}, wanted an address")
            continue
        for domain in sorted({entry.domain for entry in usable}, key=str):
            entry = applying_entry(usable, address, domain)
            if entry is not None and entry.protocol != "unlbl" and entry.domain == domain:
                errors.append(
                    f"maps[{maps.index(entry)}]: {describe(entry)} covers the management address "
                    f"{address}; map it to unlbl"
                )


def _readable(entry: MapEntry) -> bool:
    if entry.selector is None:
        return True
    try:
        ipaddress.ip_network(entry.selector, strict=False)
    except ValueError:
        return False
    return True


# --- unlabelled traffic -----------------------------------------------------------------------


def _check_static(
    unlabelled: Unlabelled, managed: bool, errors: List[str], warnings: List[str]
) -> Unlabelled:
    if not unlabelled.accept and managed:
        errors.append(
            "unlabelled.accept: off drops every unlabelled packet, the management connection "
            "included"
        )
    found: List[StaticLabel] = []
    seen: Set[Tuple[Optional[str], str]] = set()
    for index, given in enumerate(unlabelled.static):
        at = f"unlabelled.static[{index}]"
        network = _canonical(given.address, f"{at}.address", errors, warnings)
        item = given if network is None else replace(given, address=str(network))
        if item.interface is not None and not _WORD.fullmatch(item.interface):
            errors.append(f"{at}.interface: {item.interface!r}, wanted an interface name")
        try:
            parse_context(item.label)
        except LabelError as error:
            errors.append(f"{at}.label: {error}")
        if (item.interface, item.address) in seen:
            errors.append(f"{at}: {item.interface or 'default'} {item.address} a second time")
        seen.add((item.interface, item.address))
        found.append(item)
    return Unlabelled(unlabelled.accept, tuple(found))

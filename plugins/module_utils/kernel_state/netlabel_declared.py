"""The declared form of a NetLabel configuration (role variables, matrix files) as a state.

One reading for the module that applies it and for the collector that predicts what it must look
like on the wire::

    dois:
      - {number: 16, type: trans, tags: [1], levels: "0-16", categories: "0-256"}
    maps:
      - {address: 0.0.0.0/0, protocol: unlbl}
      - {address: 198.18.0.0/24, protocol: cipso, doi: 16}

``levels`` and ``categories`` take ``a-b`` (one to one), ``a`` (one to one) and ``a=b`` (local to
wire), joined by commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Dict, Optional

from .declared import DeclarationError
from .netlabel import Doi, MapEntry, StaticLabel, Unlabelled
from .netlabel_check import NetlabelState

DOI_KEYS = frozenset({"number", "type", "tags", "levels", "categories", "protocol"})
MAP_KEYS = frozenset({"domain", "address", "family", "protocol", "doi"})
STATIC_KEYS = frozenset({"interface", "address", "label"})
DEFAULT_MAP = (MapEntry(None, None, None, "unlbl"),)


# More pairs than NetLabel's largest category table has.
_MOST_PAIRS = 65536
_ITEM = re.compile(r"([0-9]+)(?:-([0-9]+)|=([0-9]+))?")


def parse_pairs(text: str, where: str) -> Dict[int, int]:
    """``"0-16,20=5"`` as local number -> number on the wire; one to one where no ``=`` stands.

    Empty text gives no pair. Raises :class:`DeclarationError`.
    """
    found: Dict[int, int] = {}
    for item in text.replace(" ", "").split(",") if text.strip() else []:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise DeclarationError(f"{where}: {item!r}, wanted N, N-M or N=W (as in 0-16,20=5)")
        first = int(match.group(1))
        if match.group(3) is not None:
            pairs = [(first, int(match.group(3)))]
        else:
            last = first if match.group(2) is None else int(match.group(2))
            if not first <= last < first + _MOST_PAIRS:
                raise DeclarationError(f"{where}: {item!r}, wanted the lower number first")
            pairs = [(number, number) for number in range(first, last + 1)]
        for local, wire in pairs:
            if local in found:
                raise DeclarationError(f"{where}: {item!r} gives {local} a second time")
            found[local] = wire
    return found


def _known(item: Any, keys: frozenset[str], at: str) -> None:
    if not isinstance(item, Mapping):
        raise DeclarationError(
            f"{at}: found {item!r}; wanted a mapping of {', '.join(sorted(keys))}"
        )
    for key in item:
        if key not in keys:
            raise DeclarationError(f"{at}.{key}: unknown; wanted one of {', '.join(sorted(keys))}")


def _integer(value: Any, at: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DeclarationError(f"{at}: found {value!r}; wanted a number") from None


def _doi(item: Mapping[str, Any], at: str) -> Doi:
    _known(item, DOI_KEYS, at)
    for key in ("number", "type"):
        if item.get(key) is None:
            raise DeclarationError(f"{at}.{key}: found nothing; wanted a value")
    kind = str(item["type"])
    if kind not in ("trans", "pass", "local"):
        raise DeclarationError(f"{at}.type: found {kind!r}; wanted trans, pass or local")
    wished = item.get("tags") or ((128,) if kind == "local" else (1,))
    tags = tuple(_integer(tag, f"{at}.tags") for tag in wished)
    return Doi(
        number=_integer(item["number"], f"{at}.number"),
        kind=kind,
        tags=tags if item.get("protocol", "cipso") != "calipso" else (),
        levels=parse_pairs(str(item.get("levels") or ""), f"{at}.levels"),
        categories=parse_pairs(str(item.get("categories") or ""), f"{at}.categories"),
        protocol=str(item.get("protocol") or "cipso"),
    )


def _map(item: Mapping[str, Any], at: str) -> MapEntry:
    _known(item, MAP_KEYS, at)
    protocol = str(item.get("protocol"))
    if protocol not in ("unlbl", "cipso", "calipso"):
        raise DeclarationError(f"{at}.protocol: found {protocol!r}; wanted unlbl, cipso or calipso")
    return MapEntry(
        domain=item.get("domain"),
        selector=item.get("address"),
        family=item.get("family"),
        protocol=protocol,
        doi=None if item.get("doi") is None else _integer(item["doi"], f"{at}.doi"),
    )


def declared_state(
    dois: Optional[Sequence[Mapping[str, Any]]],
    maps: Optional[Sequence[Mapping[str, Any]]],
    unlabelled: Optional[Mapping[str, Any]] = None,
) -> NetlabelState:
    """The state that a declaration means. No maps: the kernel's own default, unlabelled.

    Raises :class:`DeclarationError`; whether the state makes sense is ``netlabel_check.review``'s.
    """
    accept = None
    if unlabelled is not None:
        statics = []
        for index, item in enumerate(unlabelled.get("static") or []):
            at = f"unlabelled.static[{index}]"
            _known(item, STATIC_KEYS, at)
            for key in ("address", "label"):
                if not item.get(key):
                    raise DeclarationError(f"{at}.{key}: found nothing; wanted a value")
            statics.append(StaticLabel(item.get("interface"), item["address"], item["label"]))
        accept = Unlabelled(bool(unlabelled.get("accept", True)), tuple(statics))
    return NetlabelState(
        dois=tuple(_doi(item, f"dois[{index}]") for index, item in enumerate(dois or [])),
        maps=tuple(_map(item, f"maps[{index}]") for index, item in enumerate(maps or []))
        or DEFAULT_MAP,
        unlabelled=accept,
    )

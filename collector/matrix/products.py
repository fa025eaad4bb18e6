"""Products of a matrix: configurations generated from factors.

A product is one configuration with holes; it stands for every combination of its factors'
values::

    products:
      - name: "{family}_{mode}_{label}"
        about: "{mode} mode over {family}"
        factors: {family: [ipv4, ipv6], mode: [transport, tunnel], label: ["off", "on"]}
        baseline: {label: "off"}
        family: "{family}"
        ipsec:
          connections:
            - ends: ["@client_{family}", "@server_{family}"]
              label: {by: label, "on": process, "off": null}

``{factor}`` in a text is its value; a mapping with the key ``by`` is replaced by the entry of the
factor's value. ``baseline`` names the factors in which a combination's own baseline differs from
it (its unlabelled twin, say).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from collector.errors import InputError
from collector.shape import Shape

_HOLE = re.compile(r"\{([a-z_]+)\}")


def expand(item: Shape) -> Iterator[tuple[dict[str, Any], str | None]]:
    """``(configuration document, name of its own baseline)`` for every combination, the last
    factor changing fastest. Raises InputError."""
    body = item.rest()
    factors = body.pop("factors", None)
    where = item.at("factors")
    if not isinstance(factors, dict) or not factors:
        raise InputError(where, repr(factors), "a mapping of factors to lists of values")
    for name, values in factors.items():
        good = isinstance(values, list) and values and all(isinstance(v, str) for v in values)
        if not good:
            raise InputError(f"{where}.{name}", repr(values), 'a list of texts (quote "on", "off")')
    twin = body.pop("baseline", None)
    _check_twin(twin, factors, item.at("baseline"))
    name = body.get("name")
    for values in itertools.product(*factors.values()):
        chosen = dict(zip(factors, values, strict=True))
        document = fill(body, chosen, item.at(""))
        document["factors"] = chosen
        own = None
        if twin and any(chosen[key] != value for key, value in twin.items()):
            own = str(fill(name, {**chosen, **twin}, item.at("name")))
        yield document, own


def _check_twin(twin: Any, factors: Mapping[str, list[str]], where: str) -> None:
    if twin is None:
        return
    if not isinstance(twin, dict):
        raise InputError(where, repr(twin), "a mapping of factors to values")
    for key, value in twin.items():
        if key not in factors:
            raise InputError(f"{where}.{key}", "no factor of that name", f"one of {list(factors)}")
        if value not in factors[key]:
            raise InputError(f"{where}.{key}", repr(value), f"one of {factors[key]}")


def fill(value: Any, chosen: Mapping[str, str], where: str) -> Any:
    """A copy of ``value`` with its holes filled and its ``by`` mappings resolved."""
    if isinstance(value, str):

        def put(match: re.Match[str]) -> str:
            if match[1] not in chosen:
                raise InputError(where, f"{{{match[1]}}} in {value!r}", f"one of {list(chosen)}")
            return chosen[match[1]]

        return _HOLE.sub(put, value)
    if isinstance(value, dict):
        if "by" in value:
            return _select(value, chosen, where)
        return {key: fill(item, chosen, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, chosen, f"{where}[{number}]") for number, item in enumerate(value)]
    return value


def _select(value: Mapping[str, Any], chosen: Mapping[str, str], where: str) -> Any:
    factor = value["by"]
    if factor not in chosen:
        raise InputError(f"{where}.by", repr(factor), f"one of {list(chosen)}")
    if chosen[factor] not in value:
        raise InputError(
            where, f"no entry for {chosen[factor]!r}", f"one for each value of {factor}"
        )
    return fill(value[chosen[factor]], chosen, where)

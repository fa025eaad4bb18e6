"""From a YAML document to :class:`collector.published.Published`, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from collector.errors import InputError
from collector.published import (
    PUBLISHED_SCHEMA,
    Citation,
    Figure,
    Published,
    PublishedConfiguration,
    PublishedTest,
    Quantity,
    StressRun,
    WantedConfidence,
    si_value,
)


class _Item:
    """A mapping of the document with the path to it, so that an error can say where."""

    def __init__(self, where: str, value: object, known: Sequence[str]) -> None:
        if not isinstance(value, Mapping):
            raise InputError(where, repr(value), "a mapping")
        unknown = sorted(set(value) - set(known))
        if unknown:
            raise InputError(f"{where}.{unknown[0]}", "an unknown key", f"one of {sorted(known)}")
        self.where = where
        self._value: Mapping[str, Any] = value

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def raw(self, key: str) -> Any:
        if key not in self._value:
            raise InputError(f"{self.where}.{key}", "nothing", "a value")
        return self._value[key]

    def text(self, key: str) -> str:
        value = self.raw(key)
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{self.where}.{key}", repr(value), "a text")
        return value

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.raw(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{self.where}.{key}", repr(value), "a list of texts")
        return tuple(value)

    def text_map(self, key: str) -> dict[str, str]:
        value = self._value.get(key, {})
        if not isinstance(value, Mapping) or not all(
            isinstance(k, str) and isinstance(v, str) for k, v in value.items()
        ):
            raise InputError(f"{self.where}.{key}", repr(value), "a mapping of texts")
        return dict(value)

    def number(self, key: str) -> float:
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{self.where}.{key}", repr(value), "a number")
        return float(value)

    def whole(self, key: str) -> int:
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{self.where}.{key}", repr(value), "a whole number")
        return value

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        if not isinstance(value, bool):
            raise InputError(f"{self.where}.{key}", repr(value), "true or false")
        return value

    def items(self, key: str, known: Sequence[str]) -> list[_Item]:
        value = self._value.get(key, [])
        if not isinstance(value, list):
            raise InputError(f"{self.where}.{key}", repr(value), "a list")
        return [_Item(f"{self.where}.{key}[{i}]", item, known) for i, item in enumerate(value)]


_TOP = [
    "schema",
    "name",
    "title",
    "shape",
    "baseline",
    "source",
    "hardware",
    "conditions",
    "comments",
    "configurations",
    "tests",
    "figures",
    "stress_runs",
]
_CITATION = ["author", "list", "date", "date_note", "subject", "subject_note"]
_CONFIGURATION = ["name", "description", "factors"]
_TEST = ["name", "title", "command", "confidence", "factors", "details", "quantities"]
_QUANTITY = ["name", "unit", "printed_unit", "scale", "higher_is_better"]
_FIGURE = ["configuration", "test", "quantity", "printed", "unmet_width_pct", "range", "note"]
_STRESS = ["hours", "factors", "outcome"]


def published_from_yaml(text: str, where: str) -> Published:
    """Build an experiment from YAML text; ``where`` names it in errors (InputError)."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(where, "text that is no YAML", "a YAML mapping") from error
    top = _Item(where, document, _TOP)
    if top.raw("schema") != PUBLISHED_SCHEMA:
        raise InputError(f"{where}.schema", repr(top.raw("schema")), str(PUBLISHED_SCHEMA))
    configurations = tuple(
        PublishedConfiguration(
            name=item.text("name"),
            description=item.text("description"),
            factors=item.text_map("factors"),
        )
        for item in top.items("configurations", _CONFIGURATION)
    )
    tests = tuple(_test(item) for item in top.items("tests", _TEST))
    baseline = top.text("baseline")
    if baseline not in {c.name for c in configurations}:
        raise InputError(f"{where}.baseline", repr(baseline), "the name of a configuration")
    return Published(
        name=top.text("name"),
        title=top.text("title"),
        shape=top.text("shape"),
        baseline=baseline,
        source=_citation(_Item(f"{where}.source", top.raw("source"), _CITATION)),
        hardware=top.texts("hardware"),
        conditions=top.texts("conditions"),
        comments=top.texts("comments"),
        configurations=configurations,
        tests=tests,
        figures=_figures(top, {c.name for c in configurations}, {t.name: t for t in tests}),
        stress_runs=tuple(
            StressRun(
                hours=item.whole("hours"),
                factors=item.text_map("factors"),
                outcome=item.text("outcome"),
            )
            for item in top.items("stress_runs", _STRESS)
        ),
    )


def _citation(item: _Item) -> Citation:
    return Citation(
        author=item.text("author"),
        list=item.text("list"),
        date=item.text_or_none("date"),
        date_note=item.text_or_none("date_note"),
        subject=item.text_or_none("subject"),
        subject_note=item.text_or_none("subject_note"),
    )


def _test(item: _Item) -> PublishedTest:
    quantities = tuple(
        Quantity(
            name=q.text("name"),
            unit=q.text("unit"),
            printed_unit=q.text("printed_unit"),
            scale=q.whole("scale"),
            higher_is_better=q.flag("higher_is_better"),
        )
        for q in item.items("quantities", _QUANTITY)
    )
    if not quantities:
        raise InputError(f"{item.where}.quantities", "nothing", "at least one quantity")
    wanted = None
    if item.has("confidence"):
        block = _Item(
            f"{item.where}.confidence", item.raw("confidence"), ["level_pct", "wanted_width_pct"]
        )
        wanted = WantedConfidence(
            level_pct=block.number("level_pct"), wanted_width_pct=block.number("wanted_width_pct")
        )
    return PublishedTest(
        name=item.text("name"),
        title=item.text_or_none("title"),
        command=item.texts("command") if item.has("command") else None,
        confidence=wanted,
        factors=item.text_map("factors"),
        details=item.text_map("details"),
        quantities=quantities,
    )


def _figures(
    top: _Item, configurations: set[str], tests: dict[str, PublishedTest]
) -> tuple[Figure, ...]:
    figures: list[Figure] = []
    seen: set[tuple[str, str, str]] = set()
    for item in top.items("figures", _FIGURE):
        configuration, test_name = item.text("configuration"), item.text("test")
        if configuration not in configurations:
            raise InputError(f"{item.where}.configuration", repr(configuration), "one that exists")
        if test_name not in tests:
            raise InputError(f"{item.where}.test", repr(test_name), "one that exists")
        test = tests[test_name]
        wanted = item.text_or_none("quantity") or test.headline.name
        quantity = next((q for q in test.quantities if q.name == wanted), None)
        if quantity is None:
            raise InputError(f"{item.where}.quantity", repr(wanted), f"one of {test_name}'s")
        key = (configuration, test_name, wanted)
        if key in seen:
            raise InputError(item.where, "a second figure of the same cell", "one figure a cell")
        seen.add(key)
        figures.append(_figure(item, test_name, quantity))
    return tuple(figures)


def _figure(item: _Item, test: str, quantity: Quantity) -> Figure:
    printed = item.text("printed")
    unmet = item.text_or_none("unmet_width_pct")
    limits = item.texts("range") if item.has("range") else None
    if limits is not None and len(limits) != 2:
        raise InputError(f"{item.where}.range", repr(limits), "two values")
    try:
        value = si_value(printed, quantity.scale)
        unmet_value = None if unmet is None else si_value(unmet, 1)
    except ValueError as error:
        raise InputError(item.where, repr(str(error)), "a plain number as text") from error
    return Figure(
        configuration=item.text("configuration"),
        test=test,
        quantity=quantity.name,
        printed=printed,
        value=value,
        unit=quantity.unit,
        unmet_width_pct=unmet_value,
        unmet_width_printed=unmet,
        range_printed=None if limits is None else (limits[0], limits[1]),
        note=item.text_or_none("note"),
    )

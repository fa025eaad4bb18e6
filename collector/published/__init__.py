"""The figures of published experiments as data, in SI units beside the text as printed.

One YAML file per experiment; ``load(name)`` gives a typed :class:`Published`, ``names()`` the
files there are. Printed values are kept as text, digit for digit, and converted with the scale
their quantity declares, so that a figure can be shown as it was published and computed with.

Published figures are other people's measurements on other people's machines. Only ratios to the
experiment's own baseline are ever put beside a run (``collector.report.against_published``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import resources

PUBLISHED_SCHEMA = 1
_PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Where the figures come from. What the copy of the post does not say is None."""

    author: str
    list: str
    date: str | None  # ISO 8601
    date_note: str | None
    subject: str | None
    subject_note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a test yields. A printed value times ``scale`` is in ``unit`` (bit/s, 1/s, %)."""

    name: str
    unit: str
    printed_unit: str
    scale: int
    higher_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedConfiguration:
    """A row of the experiment: what was put on the machines, with its factors."""

    name: str
    description: str
    factors: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedConfidence:
    """What netperf was asked for: level and full width, both in per cent."""

    level_pct: float
    wanted_width_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTest:
    """A column of the experiment: the command where the post gives it, and its quantities."""

    name: str
    title: str | None = None
    command: tuple[str, ...] | None = None
    confidence: WantedConfidence | None = None
    factors: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)  # other columns, as printed
    quantities: tuple[Quantity, ...] = ()

    @property
    def headline(self) -> Quantity:
        """The quantity that ratios are taken of: the throughput, else the first one."""
        return next((q for q in self.quantities if q.name == "throughput"), self.quantities[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One published value. ``value`` is in ``unit``; ``printed`` is the post's own text."""

    configuration: str
    test: str
    quantity: str
    printed: str
    value: float
    unit: str
    unmet_width_pct: float | None = None  # full width reached where the wanted one was missed
    unmet_width_printed: str | None = None
    range_printed: tuple[str, str] | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StressRun:
    """A published run of hours: factors, duration and outcome."""

    hours: int
    factors: dict[str, str]
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One experiment. ``shape`` names the table form of its post."""

    name: str
    title: str
    shape: str
    baseline: str
    source: Citation
    hardware: tuple[str, ...]
    conditions: tuple[str, ...]
    comments: tuple[str, ...]
    configurations: tuple[PublishedConfiguration, ...]
    tests: tuple[PublishedTest, ...]
    figures: tuple[Figure, ...]
    stress_runs: tuple[StressRun, ...] = ()

    def figure(self, configuration: str, test: str, quantity: str | None = None) -> Figure | None:
        """The figure of a cell (headline quantity by default), or None if none was published."""
        wanted = quantity or self.test(test).headline.name
        for figure in self.figures:
            if (figure.configuration, figure.test, figure.quantity) == (
                configuration,
                test,
                wanted,
            ):
                return figure
        return None

    def test(self, name: str) -> PublishedTest:
        """The test of that name; raises KeyError if the experiment has none."""
        for test in self.tests:
            if test.name == name:
                return test
        raise KeyError(name)

    def ratio(self, configuration: str, test: str) -> float | None:
        """Headline value over the baseline's in the same test; None if either is missing."""
        ours = self.figure(configuration, test)
        base = self.figure(self.baseline, test)
        if ours is None or base is None or base.value == 0:
            return None
        return ours.value / base.value

    def order(self, test: str) -> tuple[str, ...]:
        """Configurations from the largest headline value to the smallest (ties as published)."""
        found = [
            (figure.value, configuration.name)
            for configuration in self.configurations
            if (figure := self.figure(configuration.name, test)) is not None
        ]
        return tuple(name for _, name in sorted(found, key=lambda item: -item[0]))


def names() -> tuple[str, ...]:
    """Names of the experiments there are, sorted."""
    return tuple(sorted(_stems()))


def load(name: str) -> Published:
    """Read one experiment.

    Raises UsageError for a name that does not exist and InputError for a file that is not what
    it should be (unknown key, wrong type, figure without its test, value that is no number).
    """
    from collector.errors import UsageError
    from collector.published.reading import published_from_yaml

    if name not in _stems():
        raise UsageError(
            f"published experiment: found {name!r}; wanted one of {', '.join(names())}"
        )
    text = resources.files(__name__).joinpath(f"{name}.yml").read_text(encoding="utf-8")
    return published_from_yaml(text, where=f"published/{name}.yml")


def load_all() -> tuple[Published, ...]:
    """Every experiment, by name."""
    return tuple(load(name) for name in names())


def si_value(printed: str, scale: int) -> float:
    """The printed number times its scale, exactly (decimal arithmetic).

    Raises ValueError, with the text, if it is no plain number such as ``878.09``.
    """
    if not _PLAIN_NUMBER.fullmatch(printed):
        raise ValueError(printed)
    return float(Decimal(printed) * scale)


def _stems() -> Iterator[str]:
    for entry in resources.files(__name__).iterdir():
        if entry.name.endswith(".yml"):
            yield entry.name.removesuffix(".yml")

"""The matrix: which configurations are measured by which tests. docs/data-format.md has the format.

A matrix is data. It is read once, strictly: an unknown field, an unknown name or a value out of
range is an error that names file, key, value and what was wanted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from collector import yaml_text
from collector.errors import InputError
from collector.matrix.products import expand
from collector.matrix.tests import AnyTest, read_test
from collector.matrix.tunnels import read_offloads
from collector.shape import Shape

MATRIX_SCHEMA = 1
SUBJECTS = ("cipso", "ipsec", "tunnels", "forwarding")
FAMILIES = ("ipv4", "ipv6")
TOPOLOGIES = ("pair", "dut", "chain")
# A matrix's name begins the name of its run folders.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
FORMS = ("short", "full")
BOOTS_OF_A_LOOK = 2


@dataclass(frozen=True, slots=True)
class ConfigurationSpec:
    """One configuration. ``label`` is the SELinux level that the measuring processes run in
    (None: the level they have by themselves); ``family`` is the address family of the measured
    connections; ``subjects`` holds each role's declaration (a subject that it does not name stays
    as found), and ``offloads`` where they are declared; ``baseline`` is its own baseline, None for
    the matrix's; ``kernel`` is the one that it needs, None for what runs; ``skip`` says why it
    cannot be run."""

    name: str
    about: str
    label: str | None
    family: str
    subjects: dict[str, Any]
    factors: dict[str, str]
    baseline: str | None
    skip: str | None
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class Confidence:
    """netperf's ``-I level,width`` and ``-i max,min``. ``width_pct`` is the full width."""

    level_pct: int
    width_pct: float
    max_iterations: int
    min_iterations: int


@dataclass(frozen=True, slots=True)
class Form:
    """How long and how often. With ``budget_s`` as many blocks are planned as fit into it, at
    least one and at most ``blocks``. ``boots`` is how many boots of each kernel the blocks are
    spread over; None: each block has a boot of its own. ``only`` limits the form to cells whose
    factors have these values; the others are reported as left out of it."""

    name: str
    duration_s: int
    blocks: int
    budget_s: int | None
    warm_up_s: float
    confidence: Confidence | None
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)
    boots: int | None = None

    def leaves_out(self, factors: dict[str, str]) -> str | None:
        """Why a cell with these factors is no part of the form; None if it is."""
        for name, values in self.only.items():
            if name in factors and factors[name] not in values:
                return f"{name} {factors[name]} is left out of the {self.name} form"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A matrix file, checked. ``kernels`` are those that every configuration is measured on where
    ``--kernels`` says nothing, the base first. ``kernel`` is that of the configurations that name
    none, as soon as one that names one runs (collector/matrix/kernels.py)."""

    file: str
    name: str
    title: str
    topology: str
    baseline: str
    subjects: tuple[str, ...]
    min_blocks: int
    delta: float | None
    configurations: tuple[ConfigurationSpec, ...]
    tests: tuple[AnyTest, ...]
    forms: dict[str, Form] = field(default_factory=dict)
    kernel: str | None = None
    kernels: tuple[str, ...] = ()


def load_matrix(path: Path) -> Matrix:
    """Read and check a matrix file. Raises InputError."""
    try:
        document = yaml_text.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a matrix file") from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), "bytes that are not UTF-8", "a matrix in YAML") from error
    except yaml.YAMLError as error:
        raise yaml_text.fault(str(path), error, "a matrix in YAML") from error
    return read_matrix(document, str(path))


def read_matrix(document: Any, where: str) -> Matrix:
    """Make a Matrix of a decoded document; ``where`` names it in errors (InputError)."""
    top = Shape(document, where)
    top.schema(MATRIX_SCHEMA)
    subjects = top.strings("subjects")
    for number, subject in enumerate(subjects):
        if subject not in SUBJECTS:
            raise InputError(
                f"{where}: subjects[{number}]", repr(subject), f"one of {', '.join(SUBJECTS)}"
            )
    matrix = Matrix(
        file=where,
        name=_name(top),
        title=top.text("title"),
        topology=top.choice("topology", TOPOLOGIES),
        baseline=top.text("baseline"),
        subjects=subjects,
        min_blocks=top.within("min_blocks", 1, 10_000, default=6),
        delta=_fraction(top, "delta"),
        configurations=_configurations(top, subjects),
        tests=tuple(read_test(item) for item in top.shapes("tests")),
        forms={name: _form(name, top.shape(name)) for name in FORMS},
        kernel=top.optional_text("kernel"),
        kernels=_kernels(top),
    )
    top.take_any("definitions", (dict,), "a mapping", None)  # holds YAML anchors, nothing else
    top.done()
    _check(matrix)
    return matrix


def _configurations(top: Shape, subjects: tuple[str, ...]) -> tuple[ConfigurationSpec, ...]:
    """Those that are listed, then those of the products."""
    found = [_configuration(item, subjects, None) for item in top.shapes("configurations")]
    for number, item in enumerate(top.shapes("products", default=[])):
        for document, baseline in expand(item):
            shape = Shape(document, top.where, f"products[{number}]")
            found.append(_configuration(shape, subjects, baseline))
    return tuple(found)


def _configuration(
    item: Shape, subjects: tuple[str, ...], baseline: str | None
) -> ConfigurationSpec:
    family = item.text("family", default=FAMILIES[0])
    if family not in FAMILIES:
        raise InputError(item.at("family"), repr(family), f"one of {', '.join(FAMILIES)}")
    offloads = read_offloads(item) if "tunnels" in subjects else None
    made = ConfigurationSpec(
        name=item.text("name"),
        about=item.text("about"),
        label=item.optional_text("label"),
        subjects={name: item.anything(name, default={}) for name in subjects}
        | ({} if offloads is None else {"offloads": offloads}),
        family=family,
        factors=item.texts("factors", default={}),
        baseline=baseline,
        skip=item.optional_text("skip"),
        kernel=item.optional_text("kernel"),
    )
    item.done()
    return made


def _form(name: str, item: Shape) -> Form:
    wish = item.take_any("confidence", (dict,), "a mapping", None)
    confidence = None
    if wish is not None:
        inner = Shape(wish, item.where, f"{name}.confidence")
        level = inner.integer("level_pct")
        if level not in (95, 99):
            raise InputError(inner.at("level_pct"), str(level), "95 or 99 (netperf knows no other)")
        confidence = Confidence(
            level_pct=level,
            width_pct=_positive(inner, "width_pct"),
            max_iterations=inner.within("max_iterations", 3, 30),
            min_iterations=inner.within("min_iterations", 3, 30),
        )
        inner.done()
        if confidence.min_iterations > confidence.max_iterations:
            raise InputError(
                inner.at("min_iterations"),
                str(confidence.min_iterations),
                f"at most max_iterations, {confidence.max_iterations}",
            )
    budget = item.integer("budget_s", default=None)
    if budget is not None and budget < 1:
        raise InputError(item.at("budget_s"), str(budget), "at least 1 second")
    form = Form(
        name=name,
        duration_s=item.within("duration_s", 1, 86_400),
        blocks=item.within("blocks", 1, 10_000),
        budget_s=budget,
        warm_up_s=_positive(item, "warm_up_s", zero=True),
        confidence=confidence,
        only=_only(item),
        boots=_boots(item, name),
    )
    item.done()
    return form


def _boots(item: Shape, form: str) -> int | None:
    """As many as the form says; a first look does with few, for each costs a minute."""
    if form == FORMS[0] or item.has("boots"):
        return item.within("boots", 1, 100, default=BOOTS_OF_A_LOOK)
    return None


def _only(item: Shape) -> dict[str, tuple[str, ...]]:
    document = item.anything("only", default={})
    inner = Shape(document, item.where, f"{item.path}.only")
    return {name: inner.strings(name) for name in document}


def _name(top: Shape) -> str:
    name = top.text("name")
    if not _NAME.fullmatch(name):
        raise InputError(
            top.at("name"), repr(name), "letters, digits, '_' and '-', not starting with a sign"
        )
    return name


def _kernels(top: Shape) -> tuple[str, ...]:
    found = top.strings("kernels", default=[])
    if len(found) == 1 or len(set(found)) < len(found):
        raise InputError(top.at("kernels"), ", ".join(found), "at least two, each once")
    return found


def _fraction(item: Shape, key: str) -> float | None:
    value = item.number(key, default=None)
    if value is not None and not 0 < value < 1:
        raise InputError(item.at(key), str(value), "a fraction between 0 and 1")
    return value


def _positive(item: Shape, key: str, zero: bool = False) -> float:
    value = item.number(key)
    if value < 0 or (value == 0 and not zero):
        raise InputError(item.at(key), str(value), "a positive number")
    return value


def _check(matrix: Matrix) -> None:
    """What no single field shows: names once, references that exist, labels that fit."""
    from collector.matrix.forwarding import check_forwarding
    from collector.matrix.labels import check_labels
    from collector.matrix.tunnels import check_tunnels

    for what, names in (
        ("configurations", [item.name for item in matrix.configurations]),
        ("tests", [item.name for item in matrix.tests]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{matrix.file}: {what}", f"{name!r} twice", "each name once")
        if not names:
            raise InputError(f"{matrix.file}: {what}", "none", "at least one")
    known = {item.name: item for item in matrix.configurations}
    for item in matrix.configurations:
        if item.baseline is not None and item.baseline not in known:
            raise InputError(
                f"{matrix.file}: {item.name}", f"baseline {item.baseline!r}", "a configuration"
            )
    if matrix.baseline not in known:
        raise InputError(
            f"{matrix.file}: baseline", repr(matrix.baseline), f"one of {', '.join(known)}"
        )
    if known[matrix.baseline].skip is not None:
        raise InputError(f"{matrix.file}: baseline", "a skipped configuration", "one that runs")
    check_labels(matrix.file, matrix.configurations)
    check_tunnels(matrix.file, matrix.configurations)
    check_forwarding(matrix)

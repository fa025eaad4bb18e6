"""Tunnels of a matrix: declared rightly, and left out where a host cannot have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from collector.errors import InputError
from collector.kernel_state.declared import DeclarationError
from collector.matrix.placeholders import EXAMPLE, resolve
from collector.matrix.tunnel_links import OFFLOADS, inner_addresses, links_of
from collector.shape import Shape

if TYPE_CHECKING:
    from collector.matrix.matrix import ConfigurationSpec, Matrix

WANTED = "a declaration as in docs/data-format.md"


def read_offloads(item: Shape) -> str | None:
    """The key ``offloads`` of a configuration: ``on`` or ``off``, as text or as YAML's booleans."""
    value = item.take_any("offloads", (str, bool), "on or off", None)
    if isinstance(value, bool):
        return OFFLOADS[0] if value else OFFLOADS[1]
    if value is not None and value not in OFFLOADS:
        raise InputError(item.at("offloads"), repr(value), "on or off")
    return None if value is None else str(value)


def check_tunnels(file: str, configurations: Iterable[ConfigurationSpec]) -> None:
    """Raises InputError that names configuration, link and key."""
    for item in configurations:
        where = f"{file}: configurations.{item.name}.tunnels"
        if not item.subjects.get("tunnels"):
            continue
        subjects = resolve(item.subjects, EXAMPLE, where)
        try:
            links_of(subjects)
            inner_addresses(subjects, item.family)
        except DeclarationError as error:
            raise InputError(where, str(error), WANTED) from error
        if item.subjects.get("cipso"):
            raise InputError(
                where, "tunnels together with labels of cipso", "one of them in a configuration"
            )


def types_of(matrix: Matrix) -> list[str]:
    """The types of tunnel that the matrix's configurations use, in alphabetical order."""
    found = {
        link.type
        for item in matrix.configurations
        if item.skip is None
        for link in links_of(resolve(item.subjects, EXAMPLE, matrix.file))
    }
    return sorted(found)


def without(matrix: Matrix, missing: Mapping[str, str]) -> Matrix:
    """The matrix with those configurations skipped whose type of tunnel a host cannot have.

    ``missing``: type -> reason. Raises InputError if the baseline is one of them.
    """
    kept = tuple(_skipped(matrix, item, missing) for item in matrix.configurations)
    return dataclasses.replace(matrix, configurations=kept)


def _skipped(
    matrix: Matrix, item: ConfigurationSpec, missing: Mapping[str, str]
) -> ConfigurationSpec:
    if item.skip is not None:
        return item
    links = links_of(resolve(item.subjects, EXAMPLE, matrix.file))
    reasons = [missing[link.type] for link in links if link.type in missing]
    if not reasons:
        return item
    if item.name == matrix.baseline or any(
        other.baseline == item.name for other in matrix.configurations
    ):
        raise InputError(f"{matrix.file}: {item.name}", reasons[0], "a baseline that can be run")
    return dataclasses.replace(item, skip=reasons[0])

"""Labels of a matrix against its DOIs: what cannot go on the wire is found before a run starts.

A label that does not fit fails at connect() time on the host, with an errno that looks like a
network fault; the limits are known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from collector.errors import InputError
from collector.kernel_state.cipso_option import label_fits
from collector.kernel_state.context import LabelError, format_level, parse_level
from collector.kernel_state.declared import DeclarationError
from collector.kernel_state.netlabel import Doi
from collector.kernel_state.netlabel_check import NetlabelState, review
from collector.kernel_state.netlabel_declared import declared_state
from collector.matrix.placeholders import EXAMPLE, resolve

if TYPE_CHECKING:
    from collector.matrix.matrix import ConfigurationSpec


def netlabel_state(cipso: dict[str, Any]) -> NetlabelState:
    """The NetLabel state that a configuration's ``cipso`` declares. Raises DeclarationError."""
    return declared_state(cipso.get("dois"), cipso.get("maps"), cipso.get("unlabelled"))


def labelled_doi(cipso: dict[str, Any]) -> Doi | None:
    """The DOI that the configuration's map uses, None if it labels nothing."""
    state = netlabel_state(cipso)
    used = {entry.doi for entry in state.maps if entry.protocol == "cipso"}
    found = [doi for doi in state.dois if doi.number in used and doi.protocol == "cipso"]
    return found[0] if found else None


def check_labels(file: str, configurations: Iterable[ConfigurationSpec]) -> None:
    """Raises InputError that names configuration, level and tag."""
    for item in configurations:
        if item.label is not None:
            _check_spelling(item.label, f"{file}: configurations.{item.name}.label")
        cipso = item.subjects.get("cipso")
        if cipso is None:
            continue
        where = f"{file}: configurations.{item.name}"
        if "netlabel" in cipso and cipso != {"netlabel": "absent"}:
            raise InputError(
                f"{where}.cipso", repr(cipso), "netlabel: absent, and nothing beside it"
            )
        cipso = resolve(cipso, EXAMPLE, f"{where}.cipso")
        try:
            state = netlabel_state(cipso)
        except DeclarationError as error:
            raise InputError(
                f"{where}.cipso", str(error), "a declaration as in docs/data-format.md"
            ) from error
        found = review(state)
        if found.errors:
            raise InputError(
                f"{where}.cipso", found.errors[0], "a configuration the kernel accepts"
            )
        doi = labelled_doi(cipso)
        if doi is None:
            continue
        if item.label is None:
            raise InputError(f"{where}.label", "nothing", f"a level to send under DOI {doi.number}")
        reason = label_fits(item.label, doi)
        if reason is not None:
            raise InputError(
                f"{where}.label",
                f"{item.label!r} ({reason})",
                f"a level that DOI {doi.number} can carry",
            )


def _check_spelling(label: str, where: str) -> None:
    """The kernel spells a level in one way, and the proof compares with what the kernel says."""
    try:
        usual = format_level(*parse_level(label))
    except LabelError as error:
        raise InputError(where, repr(label), "a level such as s0:c0.c239") from error
    if usual != label:
        raise InputError(where, repr(label), f"the kernel's own spelling, {usual}")

"""Leaving out of a matrix what cannot be had: by the kind of lab, or by what its hosts have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from collector.errors import UsageError
from collector.matrix.matrix import ConfigurationSpec, Matrix


def skipping(
    matrix: Matrix, reason_of: Callable[[ConfigurationSpec], str | None], where: str
) -> Matrix:
    """The matrix with those configurations skipped for which ``reason_of`` has a reason, and those
    that are compared with one of them. Raises UsageError when that is the matrix's own baseline;
    ``where`` says in it where it cannot be had (``in a netns lab``)."""
    reasons = {
        item.name: item.skip if item.skip is not None else reason_of(item)
        for item in matrix.configurations
    }
    if reasons[matrix.baseline] is not None:
        raise UsageError(
            f"matrix {matrix.name}: its baseline {matrix.baseline} cannot be had {where}:"
            f" {reasons[matrix.baseline]}"
        )
    for item in matrix.configurations:
        cause = None if item.baseline is None else reasons[item.baseline]
        if reasons[item.name] is None and cause is not None:
            reasons[item.name] = f"it is compared with {item.baseline}, which is skipped: {cause}"
    return replace(
        matrix,
        configurations=tuple(
            replace(item, skip=reasons[item.name]) for item in matrix.configurations
        ),
    )


def keying_of(item: ConfigurationSpec) -> str | None:
    """The IKE daemon that keys a configuration, None with manual keys or without IPsec."""
    ipsec = item.subjects.get("ipsec")
    keying = ipsec.get("keying") if isinstance(ipsec, dict) else None
    return None if keying in (None, "manual") else str(keying)


def daemons_of(matrix: Matrix) -> list[str]:
    """The IKE daemons that the matrix's configurations use, in alphabetical order."""
    used = (keying_of(item) for item in matrix.configurations if item.skip is None)
    return sorted({keying for keying in used if keying is not None})


def without_daemons(matrix: Matrix, missing: Mapping[str, str]) -> Matrix:
    """The matrix without what IKE daemons key that a host has not (``missing``: daemon -> reason).
    Raises UsageError if the baseline is one of them."""
    return skipping(matrix, lambda item: missing.get(keying_of(item) or ""), "on these hosts")

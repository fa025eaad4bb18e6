"""Kernels of a matrix: which configuration runs on which, and the same matrix over several kernels.

A configuration may name the kernel that it needs. What only that kernel's build differs in must
not be mixed up with everything else that tells a small build from a distribution's, so the
matrix's own ``kernel`` names the one that the other configurations then run on. Where a kernel is
not to be had, the configurations that name one are skipped with the reason, and the rest runs on
what the hosts run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from collector.duration import duration
from collector.errors import UsageError
from collector.matrix.matrix import ConfigurationSpec, Matrix

FACTOR = "kernel"
# The factor that says which configurations over several kernels are the same.
CONFIGURATION = "configuration"
BETWEEN = "/"
# It is a part of names of configurations, which the command line takes apart at other signs.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
# In place of kernels: none is booted, and what needs one is skipped.
NONE = "none"


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a kernel cannot be booted; ``build_s`` is how long making it takes, None if that would
    not help."""

    reason: str
    build_s: float | None


def parse_kernels(text: str) -> dict[str, str]:
    """``base=NAME,new=NAME`` or ``NAME,NAME`` as labels and entry names, the base first. Raises
    UsageError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        label, equals, name = (word.strip() for word in part.partition("="))
        name = name if equals else label
        if not label or not name:
            raise UsageError(f"--kernels {text!r}: wanted LABEL=NAME,LABEL=NAME or NAME,NAME")
        if not _LABEL.fullmatch(label):
            raise UsageError(
                f"--kernels {text!r}: found the label {label!r}; wanted letters, digits, '.', '_',"
                " '+' and '-'"
            )
        if label in found:
            raise UsageError(f"--kernels {text!r}: {label!r} twice; wanted each label once")
        found[label] = name
    if len(found) < 2:
        raise UsageError(f"--kernels {text!r}: wanted at least two kernels, the base first")
    return found


def kernels_of(matrix: Matrix) -> list[str]:
    """The names of all kernels that configurations would boot, each once."""
    named = [item.kernel for item in matrix.configurations if item.kernel and item.skip is None]
    if named and matrix.kernel is not None:
        named.append(matrix.kernel)
    return list(dict.fromkeys(name for name in named if name))


def across(matrix: Matrix, kernels: Mapping[str, str]) -> Matrix:
    """The matrix with every configuration on every kernel, under the factor ``kernel``; the factor
    ``configuration`` says which are the same.

    On the first kernel a configuration keeps its baseline; on the others its baseline is itself on
    the first. ``kernels`` maps labels to entry names.
    """
    labels = list(kernels)
    base = labels[0]
    made: list[ConfigurationSpec] = []
    for label in labels:
        for item in matrix.configurations:
            twin = item.name if label != base else item.baseline
            skip = item.skip
            if skip is None and item.kernel is not None:
                skip = f"needs the kernel {item.kernel}; here the kernels are given"
            made.append(
                replace(
                    item,
                    name=on(item.name, label),
                    kernel=kernels[label],
                    factors={**item.factors, CONFIGURATION: item.name, FACTOR: label},
                    baseline=None if twin is None else on(twin, base),
                    skip=skip,
                )
            )
    return replace(
        matrix, baseline=on(matrix.baseline, base), kernel=None, configurations=tuple(made)
    )


def on(configuration: str, label: str) -> str:
    """The name of a configuration on a kernel."""
    return f"{configuration}{BETWEEN}{label}"


def settle(matrix: Matrix, missing: Mapping[str, Missing]) -> Matrix:
    """The matrix with each configuration's kernel decided. ``missing`` holds the kernels that
    cannot be booted.

    Configurations that name a kernel are skipped if it, or the one to hold it against, is missing.
    If any of them runs, those that name none run on the matrix's ``kernel``.
    """
    made = []
    for item in matrix.configurations:
        wanted = [name for name in (matrix.kernel, item.kernel) if name and name in missing]
        if item.kernel is None or item.skip is not None or not wanted:
            made.append(item)
        else:
            made.append(replace(item, skip=why_skipped(list(dict.fromkeys(wanted)), missing)))
    runs = any(item.kernel is not None and item.skip is None for item in made)
    if runs and matrix.kernel is not None:
        made = [replace(item, kernel=item.kernel or matrix.kernel) for item in made]
    return replace(matrix, configurations=tuple(made))


def why_skipped(names: Sequence[str], missing: Mapping[str, Missing]) -> str:
    """Why a configuration that needs these kernels is skipped, and the command that would help."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        reasons.setdefault(missing[name].reason, []).append(name)
    text = "; ".join(f"kernel {' and '.join(named)}: {why}" for why, named in reasons.items())
    seconds = [missing[name].build_s for name in names]
    if any(value is None for value in seconds):
        return text
    longest = max(value for value in seconds if value is not None)
    return f"{text}; about {duration(longest)}: crossover kernel build {' '.join(names)}"

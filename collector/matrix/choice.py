"""Choosing part of a matrix for one run: which configurations, which tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from collector.errors import UsageError
from collector.matrix.matrix import Matrix


@dataclass(frozen=True, slots=True)
class Choice:
    """Names or patterns (``tcp_rr_*``) of what is wanted; empty means all.

    What is not chosen stays in the plan as skipped, with the reason, so that no table gets smaller
    without a word. Baselines of chosen configurations are always run: every ratio needs one. A
    choice of configurations goes before what a form leaves out of them (``only``), a choice of
    tests before what it leaves out of these.
    """

    configurations: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.configurations or self.tests)

    def check(self, matrix: Matrix) -> None:
        """Raises UsageError for a pattern that fits no name of the matrix."""
        for option, patterns, names in (
            ("--configurations", self.configurations, [c.name for c in matrix.configurations]),
            ("--tests", self.tests, [test.name for test in matrix.tests]),
        ):
            for pattern in patterns:
                if not any(_fits(name, (pattern,)) for name in names):
                    raise UsageError(
                        f"{option}: found {pattern!r}; wanted one of {', '.join(names)}, or a"
                        " pattern of them"
                    )

    def leaves_out(self, matrix: Matrix, configuration: str, test: str) -> str | None:
        """Why a cell is not run; None if it is."""
        if self.configurations and configuration not in self._wanted(matrix):
            return f"not chosen (--configurations {','.join(self.configurations)})"
        if self.tests and not _fits(test, self.tests):
            return f"not chosen (--tests {','.join(self.tests)})"
        return None

    def _wanted(self, matrix: Matrix) -> set[str]:
        chosen = [item for item in matrix.configurations if _fits(item.name, self.configurations)]
        baselines = {item.baseline or matrix.baseline for item in chosen}
        return {item.name for item in chosen} | baselines | {matrix.baseline}


def _fits(name: str, patterns: Iterable[str]) -> bool:
    # Over kernels a configuration's name has the kernel behind it (collector/matrix/kernels.py).
    plain = name.partition("/")[0]
    return any(fnmatchcase(name, item) or fnmatchcase(plain, item) for item in patterns)


def read_choice(configurations: str | None, tests: str | None) -> Choice:
    """From two lists as the command line has them, names separated by commas."""
    return Choice(_listed(configurations), _listed(tests))


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())

"""The errors Crossover shows to people, and the exit code each one leads to."""

from __future__ import annotations


class CrossoverError(Exception):
    """A problem that a person can act on.

    The text says what is wrong, where (file, line, item or key), what came and what was wanted.
    The command line prints it on stderr without a traceback and exits with ``exit_code``.
    """

    exit_code = 1


class UsageError(CrossoverError):
    """The command was called in a way that has no meaning (exit code 2)."""

    exit_code = 2


class InputError(CrossoverError):
    """A file or stream could not be read as what it should be (exit code 1).

    ``where`` is ``file``, ``file:line`` or ``file: path.to.key``.
    """

    def __init__(self, where: str, found: str, wanted: str) -> None:
        self.where = where
        self.found = found
        self.wanted = wanted
        super().__init__(f"{where}: found {found}; wanted {wanted}")


class LockedError(CrossoverError):
    """Another process holds the lab or the run folder (exit code 75, EX_TEMPFAIL)."""

    exit_code = 75

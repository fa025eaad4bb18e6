"""The one error type of the lab code."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot do what was asked; the text says what, where, what came, what was wanted.

    ``busy`` marks that another process holds the lab: the caller may try again later.
    """

    def __init__(self, message: str, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy

"""The one error of the readers, and numbers read without guessing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import List, Optional, Tuple, Union

NumberedLine = Tuple[int, str]
Text = Union[str, Iterable[NumberedLine]]

_KEY_LIKE = re.compile(r"0[xX][0-9A-Za-z]{9,}|\b[0-9a-fA-F]{16,}\b")
_DECIMAL = re.compile(r"[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
KEYS_HIDDEN = "<<Keys hidden>>"


class StateError(ValueError):
    """Text that is not what the kernel or its tool prints.

    ``line`` counts from 1 in the text that was given; ``found`` and ``wanted`` are for people.
    Anything that may be key material has been taken out of ``found``.
    """

    def __init__(self, line: int, found: str, wanted: str) -> None:
        self.line = line
        self.found = redact(found)
        self.wanted = wanted
        super().__init__(f"line {line}: found {self.found}; wanted {wanted}")


def redact(text: str) -> str:
    """The text without anything that can be a key.

    More than eight digits after ``0x`` are more than the 32-bit numbers of the listings; so are
    sixteen hexadecimal digits without it.
    """
    return _KEY_LIKE.sub(KEYS_HIDDEN, text)


def number_lines(text: Text) -> List[NumberedLine]:
    """Text as (line number from 1, line) pairs; pairs are passed on as they are."""
    if isinstance(text, str):
        return list(enumerate(text.splitlines(), start=1))
    return list(text)


def decimal(token: str, line: int, what: str, maximum: Optional[int] = None) -> int:
    """A non-negative decimal number, or :class:`StateError` that names ``what``."""
    if not _DECIMAL.fullmatch(token):
        raise StateError(line, repr(token), f"a decimal number for {what}")
    value = int(token)
    if maximum is not None and value > maximum:
        raise StateError(line, repr(token), f"at most {maximum} for {what}")
    return value


def unsigned32(token: str, line: int, what: str) -> int:
    """A number below 2**32, decimal or with ``0x``, or :class:`StateError`."""
    if _HEX.fullmatch(token):
        value = int(token, 16)
    elif _DECIMAL.fullmatch(token):
        value = int(token)
    else:
        raise StateError(line, repr(token), f"a number for {what}")
    if value > 0xFFFFFFFF:
        raise StateError(line, repr(token), f"a 32-bit number for {what}")
    return value

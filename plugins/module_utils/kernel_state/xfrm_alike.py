"""Listings of thousands of SAs or policies that differ in a few numbers each.

Reading a block word by word takes a fraction of a millisecond, and on an emulated guest some
milliseconds. A block that is, but for the numbers named by an expression, word for word one that
was read before is not read again: it is a copy with these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Dict, List, Optional, Tuple, TypeVar

from .xfrm_text import Block, blocks

T = TypeVar("T")
# The largest number that a copy may be given where the kernel has 32 bits for it.
MOST_32 = (1 << 32) - 1
# What varies in a block: the name of the expression's group, and its text. In order.
Values = List[Tuple[str, str]]


def read_alike(
    text: str,
    varies: re.Pattern[str],
    read: Callable[[Block], T],
    fill: Callable[[T, Values, int], Optional[T]],
) -> List[T]:
    """Every block of a listing, in order.

    ``varies`` has one named group for each number that may differ. ``read`` reads a block;
    ``fill(like, values, line)`` makes another out of one that was read, or says None where it
    cannot: then the block is read. Raises what ``read`` and ``fill`` raise.
    """
    known: Dict[str, T] = {}
    found: List[T] = []
    at, line = 0, 1
    while at < len(text):
        end = text.find("\nsrc ", at)
        end = len(text) if end < 0 else end + 1
        block = text[at:end]
        shape, values = _shape(block, varies)
        like = known.get(shape)
        item = None if like is None else fill(like, values, line)
        if item is not None:
            found.append(item)
        else:
            rows = [(line + row, one) for row, one in enumerate(block.splitlines())]
            items = [read(one) for one in blocks(rows)]
            found += items
            if len(items) == 1:
                known[shape] = items[0]
        line += block.count("\n")
        at = end
    return found


def _shape(block: str, varies: re.Pattern[str]) -> Tuple[str, Values]:
    """A block without what varies, and that. Texts of different lengths make different shapes
    where the length says something: that of a key."""
    values: Values = []

    def mask(match: re.Match[str]) -> str:
        name = str(match.lastgroup)
        value = match.group(name)
        values.append((name, value))
        return f"\0{name}{len(value)}\0" if name == "key" else f"\0{name}\0"

    return varies.sub(mask, block), values

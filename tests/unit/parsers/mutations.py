"""Damage that logs, terminals, mail and locales do to tool output.

Left out, because nobody can notice it from the text that is left: a whole block dropped or
doubled; two whole rows of the same table shape exchanged; the text cut inside a whole number at
its very end (``212992`` cut to ``2129``).
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator

_SEED = 20060605
_MOST = 60  # of each kind in a long file
_FIGURES = "0123456789."
_NUMBER = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?![\d.])")


def mutations(text: str, *, fixed_decimals: bool) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every damaged form of ``text``.

    Cuts go through figures with decimals only if ``fixed_decimals``: else nobody can see them.
    """
    chance = random.Random(_SEED)
    for name, damaged in _all(text, chance, fixed_decimals):
        yield name, damaged.encode()
    yield "carriage returns", text.replace("\n", "\r\n").encode()
    yield "byte order mark", b"\xef\xbb\xbf" + text.encode()
    yield "utf-16", text.encode("utf-16")
    data = bytearray(text.encode())
    for at in sorted(chance.sample(range(len(data)), min(_MOST, len(data)))):
        for byte in (0x00, 0xFF):
            yield (
                f"byte {at} is {byte:#x}",
                bytes(data[:at]) + bytes([byte]) + bytes(data[at + 1 :]),
            )


def _all(text: str, chance: random.Random, fixed_decimals: bool) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    numbers = range(len(lines))
    picked = sorted(chance.sample(numbers, min(_MOST, len(lines))))
    for at in picked:
        yield f"line {at + 1} dropped", _join([*lines[:at], *lines[at + 1 :]])
        yield f"line {at + 1} doubled", _join([*lines[: at + 1], *lines[at:]])
        if at + 1 < len(lines):
            swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
            yield f"lines {at + 1} and {at + 2} exchanged", _join(swapped)
        rest = [*lines[:at], *lines[at + 1 :]]
        to = chance.randrange(len(rest) + 1)
        yield f"line {at + 1} moved to {to + 1}", _join([*rest[:to], lines[at], *rest[to:]])
        yield f"cut after line {at + 1}", _join(lines[: at + 1])
    for at in sorted(chance.sample(range(1, len(text)), min(2 * _MOST, len(text) - 1))):
        number = text[at - 1] in _FIGURES and text[at] in _FIGURES
        decimal = re.search(r"\d\.\d*\Z", text[:at]) is not None
        if not number or (decimal and fixed_decimals):
            yield f"cut at {at}", text[:at]
    for width in (40, 60, 72):
        yield f"wrapped at {width}", _join(_wrapped(lines, width))
    for quote in ("> ", ">", ">> ", "> > ", "| "):
        yield f"quoted {quote!r}", _join([f"{quote}{line}" for line in lines])
        yield (
            f"quoted {quote!r} then wrapped",
            _join(_wrapped([f"{quote}{line}" for line in lines], 72)),
        )
        yield (
            f"wrapped then quoted {quote!r}",
            _join([f"{quote}{line}" for line in _wrapped(lines, 60)]),
        )
    yield "comma as decimal sign", _NUMBER.sub(r"\1,\2", text)
    yield "comma for thousands", _NUMBER.sub(lambda m: f"{int(m[1]):,}.{m[2]}", text)
    yield (
        "points and comma",
        _NUMBER.sub(lambda m: f"{int(m[1]):,}".replace(",", ".") + f",{m[2]}", text),
    )
    yield (
        "blank for thousands",
        _NUMBER.sub(lambda m: f"{int(m[1]):,}".replace(",", " ") + f".{m[2]}", text),
    )
    yield (
        "no-break blank for thousands",
        _NUMBER.sub(lambda m: f"{int(m[1]):,}".replace(",", "\u00a0") + f".{m[2]}", text),
    )
    yield (
        "apostrophe for thousands",
        _NUMBER.sub(lambda m: f"{int(m[1]):,}".replace(",", "'") + f".{m[2]}", text),
    )
    yield "blanks squeezed", _join([" ".join(line.split()) for line in lines])
    yield "tabs", _join([line.expandtabs().replace("  ", "\t") for line in lines])


def _wrapped(lines: list[str], width: int) -> list[str]:
    found = []
    for line in lines:
        # Mail breaks at blanks only and leaves words that are longer as they are.
        parts = textwrap.wrap(
            line, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
        )
        found.extend(parts or [line])
    return found


def _join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)

"""What the readers of ``ip xfrm state`` and ``ip xfrm policy`` share.

Format: iproute2 ip/ipxfrm.c, 2.6.20 to 6.15. A block starts with a line ``src A dst B``; its
other lines are indented. Values that somebody blanked out before keeping a text
(``reqid REQID``, ``spi 0xSPISPI``) are upper-case words; they become None and are named.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Dict, List, Optional, Tuple

from .errors import NumberedLine, StateError, Text, number_lines, redact, unsigned32
from .xfrm import Limits, Mark, Offload, Selector, Usage

Block = List[NumberedLine]
_BLANKED = re.compile(r"(?:0x)?[A-Z]{2,}")
_HEX_DIGITS = re.compile(r"(?:0x)?[0-9A-F]+")
_PROTOCOLS = {
    "1": "icmp", "6": "tcp", "17": "udp", "33": "dccp", "47": "gre", "50": "esp", "51": "ah",
    "58": "ipv6-icmp", "132": "sctp", "135": "mobility-header",
}  # fmt: skip
_NUMBERS = {name: number for number, name in _PROTOCOLS.items()}
_START = re.compile(r"(?:(?:Deleted|Updated|Expired) )?src \S+ dst ")
_LIMIT = re.compile(r"limit: soft (\S+)\((bytes|packets)\), hard (\S+)\((bytes|packets)\)")
_EXPIRE = re.compile(r"expire (add|use): soft (\d+)\(sec\), hard (\d+)\(sec\)")
_CURRENT = re.compile(r"(\d+)\(bytes\), (\d+)\(packets\)")
_TIMES = re.compile(r"add (-|[\d-]+ [\d:]+) use (-|[\d-]+ [\d:]+)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")


class Words:
    """A line's words, taken one by one; knows its line number for errors."""

    def __init__(self, line: int, text: str, blanked: List[str]) -> None:
        self.line = line
        self.text = text
        self._words = text.split()
        self._at = 0
        self._blanked = blanked

    def peek(self) -> Optional[str]:
        """The next word, or None at the end."""
        return self._words[self._at] if self._at < len(self._words) else None

    def take(self, wanted: str) -> str:
        """The next word, or :class:`StateError` that says what was wanted."""
        word = self.peek()
        if word is None:
            raise StateError(self.line, f"the end of {self.text.strip()!r}", wanted)
        self._at += 1
        return word

    def literal(self, word: str) -> None:
        """Take exactly this word."""
        found = self.take(repr(word))
        if found != word:
            raise StateError(self.line, repr(found), repr(word))

    def optional(self, word: str) -> bool:
        """Take this word if it is the next."""
        if self.peek() != word:
            return False
        self._at += 1
        return True

    def number(self, what: str) -> Optional[int]:
        """A 32-bit number, decimal or hexadecimal, with its other spelling in parentheses if
        ``-s`` printed one; None when it is blanked out."""
        word = self.take(f"a number for {what}")
        if _BLANKED.fullmatch(word) and not _HEX_DIGITS.fullmatch(word):
            self._blanked.append(what)
            return None
        head, parenthesis, rest = word.partition("(")
        value = unsigned32(head, self.line, what)
        if parenthesis and (
            not rest.endswith(")") or unsigned32(rest[:-1], self.line, what) != value
        ):
            raise StateError(self.line, repr(word), f"the same number twice for {what}")
        return value

    def required(self, what: str) -> int:
        """A number that cannot be missing."""
        value = self.number(what)
        if value is None:
            raise StateError(self.line, f"{what} blanked out", "a number")
        return value

    def end(self) -> None:
        """Nothing may follow."""
        word = self.peek()
        if word is not None:
            raise StateError(self.line, repr(word), "the end of the line")


def blocks(text: Text) -> List[Block]:
    """Split into blocks at ``src …`` lines. ``ip -o`` output (backslashes) is taken apart."""
    found: List[Block] = []
    for number, raw in number_lines(text):
        for part in raw.split("\\") if "\\" in raw else (raw,):
            line = part.strip()
            if not line:
                continue
            # Thousands of SAs are read: the expression only where the line can be a start.
            if line.startswith(("src ", "Deleted ", "Updated ", "Expired ")) and _START.match(line):
                found.append([])
            elif not found:
                raise StateError(number, repr(line), "'src A dst B' (ip xfrm state or policy)")
            found[-1].append((number, line))
    return found


@functools.lru_cache(maxsize=4096)
def _canonical_address(text: str) -> str:
    return str(ipaddress.ip_address(text))


@functools.lru_cache(maxsize=4096)
def _canonical_network(text: str) -> str:
    return str(ipaddress.ip_network(text, strict=False))


def address(text: str, line: int) -> str:
    """A canonical address."""
    try:
        return _canonical_address(text)
    except ValueError:
        raise StateError(line, repr(text), "an IP address") from None


def network(text: str, line: int) -> str:
    """A canonical network; the kernel keeps host bits in selectors, so they stay out silently."""
    if "/" not in text:
        raise StateError(line, repr(text), "a network with its prefix length")
    try:
        return _canonical_network(text)
    except ValueError:
        raise StateError(line, repr(text), "a network with its prefix length") from None


def protocol_number(name: str) -> str:
    """The inverse of :func:`protocol_name`: ``ip`` knows names only where /etc/protocols is."""
    return _NUMBERS.get(name, name)


def protocol_name(text: str) -> str:
    """A transport protocol by name where its number has one here."""
    return _PROTOCOLS.get(text, text)


def _port(words: Words, what: str) -> int:
    value = words.required(what)
    if value > 0xFFFF:
        raise StateError(words.line, str(value), f"at most 65535 for {what}")
    return value


def selector(words: Words) -> Selector:
    """``src A/l dst B/l [proto P] [sport N] [dport N] [type N] [code N] [key N] [dev D]``."""
    words.literal("src")
    src = network(words.take("a network"), words.line)
    words.literal("dst")
    dst = network(words.take("a network"), words.line)
    if ("." in src) != ("." in dst):
        raise StateError(words.line, f"src {src} dst {dst}", "two networks of one family")
    proto = dev = None
    ports: Dict[str, int] = {}
    while words.peek() is not None:
        word = words.take("a part of a selector")
        if word == "proto" and proto is None:
            proto = protocol_name(words.take("a protocol"))
        elif word in ("sport", "dport", "type", "code") and word not in ports:
            ports[word] = _port(words, word)
        elif word == "key" and word not in ports:
            ports[word] = words.required("key")
        elif word == "dev" and dev is None:
            dev = words.take("a device")
        elif word == "uid":
            words.required("uid")
        else:
            raise StateError(words.line, repr(word), "a part of a selector")
    return Selector(
        src, dst, proto, ports.get("sport", ports.get("type")),
        ports.get("dport", ports.get("code")), ports.get("key"), dev,
    )  # fmt: skip


def slashed_mark(words: Words, what: str) -> Mark:
    """``0x5/0xff`` (older: ``5/0xff``); without a slash the mask is all ones."""
    value, slash, mask = words.take(what).partition("/")
    if value.startswith("-"):  # iproute2 before 4.10 printed it signed
        value = str(unsigned32(value[1:], words.line, what) * -1 & 0xFFFFFFFF)
    number = unsigned32(value, words.line, what)
    return Mark(number, unsigned32(mask, words.line, what) if slash else 0xFFFFFFFF)


def offload(words: Words) -> Offload:
    """``crypto offload parameters: dev D [dir in|out] [mode crypto|packet]``."""
    for word in ("crypto", "offload", "parameters:", "dev"):
        words.literal(word)
    dev = words.take("a device")
    direction = words.take("in or out") if words.optional("dir") else None
    if direction not in (None, "in", "out"):
        raise StateError(words.line, repr(direction), "in or out")
    mode = words.take("crypto or packet") if words.optional("mode") else None
    words.end()
    return Offload(dev, direction, mode)


def date(text: str, line: int, blanked: List[str], what: str) -> Optional[str]:
    """A time as printed; None for ``-`` or a blanked one."""
    if text == "-":
        return None
    if re.fullmatch(r"Y+-M+-D+ H+:M+:S+", text):
        blanked.append(what)
        return None
    if not _DATE.fullmatch(text):
        raise StateError(line, repr(text), f"YYYY-MM-DD HH:MM:SS for {what}")
    return text


def flags(words: Words) -> Tuple[str, ...]:
    """The words of ``flag``; the bit mask in parentheses that ``-s`` adds is left out."""
    found: List[str] = []
    while True:
        word = words.peek()
        if word is None or word == "extra_flag":
            return tuple(found)
        words.take("a flag")
        if not re.fullmatch(r"\(0x[01]{8}\)", word):
            if not re.fullmatch(r"[a-z0-9-]+", word) or word in found:
                raise StateError(words.line, repr(word), "a flag, each once")
            found.append(word)


def context(line: int, text: str) -> str:
    """Everything after ``security context``, without the trailing blank."""
    value = text[len("security context") :].strip()
    if len(value.split()) != 1 or value.count(":") < 2:
        raise StateError(line, repr(text), "security context USER:ROLE:TYPE[:RANGE]")
    return value


class LifetimeReader:
    """Collects the ``lifetime config:`` and ``lifetime current:`` lines of a block."""

    def __init__(self) -> None:
        self._limits: Dict[str, Optional[int]] = {}
        self._counters: Optional[Tuple[int, int]] = None
        self._times: Optional[Tuple[Optional[str], Optional[str]]] = None
        self._section = ""

    def read(self, number: int, line: str) -> bool:
        """Whether the line belongs to the lifetime."""
        if line in ("lifetime config:", "lifetime current:"):
            if self._section == line:
                raise StateError(number, f"{line!r} a second time", "each once")
            self._section = line
            return True
        limit = _LIMIT.fullmatch(line) if line.startswith("limit:") else None
        expire = _EXPIRE.fullmatch(line) if line.startswith("expire ") else None
        if limit is not None and limit.group(2) == limit.group(4):
            self._put(number, f"soft_{limit.group(2)}", limit.group(1))
            self._put(number, f"hard_{limit.group(2)}", limit.group(3))
            return True
        if expire is not None:
            for name, text in (("soft", expire.group(2)), ("hard", expire.group(3))):
                self._put(number, f"{name}_{expire.group(1)}_s", "(INF)" if text == "0" else text)
            return True
        return self._current(number, line)

    def _current(self, number: int, line: str) -> bool:
        current, times = _CURRENT.fullmatch(line), _TIMES.fullmatch(line)
        if current is None and times is None:
            return False
        if (current and self._counters) or (times and self._times):
            raise StateError(number, f"{line!r} a second time", "each once")
        if current is not None:
            self._counters = (int(current.group(1)), int(current.group(2)))
        if times is not None:
            added, used = (None if text == "-" else text for text in times.groups())
            self._times = (added, used)
        return True

    def _put(self, number: int, name: str, text: str) -> None:
        if name in self._limits or not (text == "(INF)" or text.isdecimal()):
            raise StateError(number, repr(text), f"one number or (INF) for {name}")
        self._limits[name] = None if text == "(INF)" else int(text)

    def limits(self, number: int) -> Optional[Limits]:
        """All eight limits, None when the text has none of them."""
        if not self._limits:
            return None
        if len(self._limits) != 8:
            raise StateError(number, "a part of the lifetime limits", "all four lines of them")
        return Limits(**self._limits)

    def usage(self, number: int) -> Optional[Usage]:
        """Counters and times, None when the text has neither."""
        if self._counters is None and self._times is None:
            return None
        if self._counters is None or self._times is None:
            raise StateError(number, "a part of the current lifetime", "both lines of it")
        return Usage(*self._counters, *self._times)


def once(seen: Dict[str, int], name: str, number: int) -> None:
    """Refuse a second line of a kind: two blocks have run into each other."""
    if name in seen:
        raise StateError(number, f"{name!r} a second time (first on line {seen[name]})", "it once")
    seen[name] = number


def unknown_line(number: int, line: str) -> str:
    """A line of an attribute that is newer than this reader; other text is an error."""
    if not re.match(r"(?![0-9a-f]{4,}\b)[a-z][a-z0-9_-]+[: ]\s*\S", line):
        # Not quoted: it may be the rest of a key whose line was broken.
        raise StateError(number, "a line that is no attribute", "an attribute of an SA or policy")
    return redact(line)

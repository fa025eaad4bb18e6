"""The short way through raw netperf output: strict, for the forms that come by the thousand.

A file is taken only if every byte of it is either ``NAME=VALUE`` lines of known selectors, each
once and in the form netperf prints (what Crossover itself asks for), or one plain classic table of
a stream or request/response test, and if nothing about it could make the parser doubt the result.
Everything else, and every doubt, is ``None``: the caller then reads the file with the parser
(collector.parsers.netperf), whose answer is the same by definition. A test holds the two together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from collector.parsers.netperf.numbers import TRANSACTIONS, unit_factor
from collector.parsers.netperf.selectors import SELECTORS


@dataclass(frozen=True, slots=True)
class Measured:
    """One sound result: test name, value in ``unit`` (bit/s or 1/s), and whether netperf's own
    confidence interval for it was reached (None: not asked for, or not said)."""

    test: str
    unit: str
    value: float
    confidence_met: bool | None


_KEYS = re.compile(rb"^([A-Z][A-Z0-9_]*)=", re.MULTILINE)
_INTEGER = r"-?[0-9]{1,19}"
_TEXT = r"[!#-~]+(?: [!#-~]+)*"
_NEEDED = ("PROTOCOL", "DIRECTION", "THROUGHPUT", "THROUGHPUT_UNITS")
_USED = (
    *_NEEDED, "CONFIDENCE_INTERVAL", "THROUGHPUT_CONFID", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL",
    "LOCAL_SD", "REMOTE_SD", "SD_UNITS", "LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT",
)  # fmt: skip
_PROTOCOLS = frozenset((b"TCP", b"UDP", b"SCTP"))
_KINDS = {b"Send": "STREAM", b"Recv": "MAERTS", b"Receive": "MAERTS", b"Send|Recv": "RR"}
# The parser doubts a result whose figures make less than 0.9 CPUs; asking for more than that here
# leaves every borderline to it.
_CPUS = 0.95

_HOST = r"[0-9A-Za-z_.:-]+"
_END = rf"{_HOST} \((?:{_HOST})?\) port [0-9]+ AF_INET6?"
_BANNER = (
    r"MIGRATED (TCP STREAM|TCP MAERTS|TCP REQUEST/RESPONSE|UDP REQUEST/RESPONSE) TEST"
    rf" from {_END} to {_END}(?: : (?:nodelay|histogram|demo|cpu bind|first burst [0-9]+))* *\n"
)
_RATE = r"([0-9]+\.[0-9]{2})"


def _table(*lines: str) -> str:
    """A pattern for lines of words, each line with any blanks around it."""
    return "".join(" *" + re.sub(" +", " +", line) + r" *\n" for line in lines)


_STREAM_TABLE = _table(
    "Recv Send Send", "Socket Socket Message Elapsed", "Size Size Size Time Throughput",
    r"bytes bytes bytes secs\. (10\^6bits)/sec", "",
    rf"[0-9]+ [0-9]+ [0-9]+ [0-9]+\.[0-9]{{2}} {_RATE}",
)  # fmt: skip
_REQUEST_TABLE = _table(
    "Local /Remote", r"Socket Size Request Resp\. Elapsed Trans\.",
    "Send Recv Size Size Time Rate", r"bytes Bytes bytes bytes secs\. per sec", "",
    rf"[0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+\.[0-9]{{2}} {_RATE}", "[0-9]+ [0-9]+",
)  # fmt: skip
_CLASSIC = re.compile(f"{_BANNER}(?:{_STREAM_TABLE}|{_REQUEST_TABLE})".encode())
_CLASSIC_NAMES = {
    b"TCP STREAM": "TCP_STREAM", b"TCP MAERTS": "TCP_MAERTS",
    b"TCP REQUEST/RESPONSE": "TCP_RR", b"UDP REQUEST/RESPONSE": "UDP_RR",
}  # fmt: skip


@lru_cache(maxsize=64)
def _layout(keys: tuple[bytes, ...]) -> re.Pattern[bytes] | None:
    """A pattern for a whole file with these keys in this order; None if it is not our form."""
    names = [key.decode() for key in keys]
    if len(set(names)) < len(names) or not set(_NEEDED) <= set(names):
        return None
    parts = []
    for name in names:
        known = SELECTORS.get(name)
        if known is None:
            return None
        if known.is_text:
            form = _TEXT
        elif known.decimals is None:
            form = _INTEGER
        else:
            form = rf"-?[0-9]{{1,15}}\.[0-9]{{{known.decimals}}}"
        parts.append(f"{name}=({form})" if name in _USED else f"{name}={form}")
    return re.compile(("\n".join(parts) + "\n").encode())


@lru_cache(maxsize=64)
def _places(keys: tuple[bytes, ...]) -> tuple[int | None, ...]:
    """For each of _USED its place among the groups of the layout, None where it is absent."""
    order = [key.decode() for key in keys if key.decode() in _USED]
    return tuple(order.index(name) if name in order else None for name in _USED)


@lru_cache(maxsize=64)
def _factor(units: bytes) -> tuple[str, float] | None:
    unit = units.decode().removesuffix("/s").removesuffix("/sec").strip()
    if unit == TRANSACTIONS:
        return "1/s", 1.0
    factor = unit_factor(unit)
    return None if factor is None else ("bit/s", factor)


class FastReader:
    """Reads files one after the other; the layout of the last one is tried first."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[bytes] | None = None
        self._at: tuple[int | None, ...] = ()

    def read(self, data: bytes) -> Measured | None:
        """The result of a whole file, or None for the parser to decide."""
        if data.startswith(b"MIGRATED "):
            return _classic(data)
        match = self._pattern.fullmatch(data) if self._pattern is not None else None
        if match is None:
            keys = tuple(_KEYS.findall(data))
            pattern = _layout(keys)
            match = None if pattern is None else pattern.fullmatch(data)
            if match is None:
                return None
            self._pattern, self._at = pattern, _places(keys)
        groups = match.groups()
        return _judge([None if place is None else groups[place] for place in self._at])


def _classic(data: bytes) -> Measured | None:
    """The result of a plain classic table without a confidence interval, or None."""
    match = _CLASSIC.fullmatch(data)
    if match is None:
        return None
    name, unit, throughput, transactions = match.groups()
    test = _CLASSIC_NAMES[name]
    rate = float(throughput or transactions)
    if rate <= 0 or test.endswith("_RR") is (unit is not None):
        return None
    if unit is None:
        return Measured(test, "1/s", rate, None)
    return Measured(test, "bit/s", rate * 1e6, None)


def _judge(values: list[bytes | None]) -> Measured | None:
    """What the values say, if it is beyond doubt."""
    protocol, direction, throughput, units, wanted, got, *sides = values
    kind = _KINDS.get(direction or b"")
    scale = _factor(units or b"")
    if protocol not in _PROTOCOLS or kind is None or scale is None or throughput is None:
        return None
    rate = float(throughput)
    if rate <= 0 or not _sound(
        sides, rate, scale, udp_stream=(protocol, kind) == (b"UDP", "STREAM")
    ):
        return None
    width = float(wanted) if wanted is not None else -1.0
    achieved = float(got) if got is not None else -1.0
    met = achieved <= width if width > 0 and achieved >= 0 else None
    return Measured(f"{protocol.decode()}_{kind}", scale[0], rate * scale[1], met)


def _sound(
    sides: list[bytes | None], rate: float, scale: tuple[str, float], *, udp_stream: bool
) -> bool:
    """Whether CPU use, service demand and rates belong together (see parsers.netperf.checks)."""
    util_local, util_remote, sd_local, sd_remote, sd_units, send, receive = sides
    if udp_stream and receive is not None and float(receive) == 0:
        return False
    if sd_units not in {b"usec/KB", b"usec/Tran"}:
        return True
    for util, demand, own in ((util_local, sd_local, send), (util_remote, sd_remote, None)):
        if util is None or demand is None:
            continue
        share, each = float(util), float(demand)
        if share <= 0 or each <= 0:
            continue
        if sd_units == b"usec/Tran":
            if scale[0] != "1/s":
                return False
            busy = each * rate
        else:
            if scale[0] != "bit/s":
                return False
            whole = float(own) if own is not None and float(own) >= 0 else rate
            busy = each * whole * scale[1] / 8 / 1024
        if busy < _CPUS * share / 100 * 1e6:
            return False
    return True

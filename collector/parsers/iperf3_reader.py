"""Typed access to a decoded JSON document of iperf3, and the checks on one block of totals."""

from __future__ import annotations

import math
from typing import Any

from .iperf3_json import Ambiguous
from .iperf3_record import Transfer
from .rates import loss

_RATE_SLACK = 0.005
_UINT32_MAX = 2**32 - 1


class Reader:
    """Typed access to a document; everything of the wrong type is None and noted."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def number(self, block: dict[str, Any], key: str) -> float | None:
        """A finite number, else None."""
        value = block.get(key)
        if isinstance(value, Ambiguous):
            self.warnings.append(f"{key} has several values; none is taken")
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            if value is not None:
                self.warnings.append(f"{key} is {value!r}, not a number")
            return None
        if not math.isfinite(value):
            self.warnings.append(f"{key} is not finite")
            return None
        return float(value) if isinstance(value, float) else value

    def integer(self, block: dict[str, Any], key: str) -> int | None:
        """A whole number, else None."""
        value = self.number(block, key)
        return int(value) if value is not None else None

    def block(self, parent: dict[str, Any], key: str) -> dict[str, Any]:
        """An object, else an empty one."""
        value = parent.get(key)
        if isinstance(value, Ambiguous):
            self.warnings.append(f"{key} is there {len(value.values)} times; none is taken")
        return value if isinstance(value, dict) else {}

    def blocks(self, parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """A list of objects, else an empty one."""
        value = parent.get(key)
        return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []

    def text(self, parent: dict[str, Any], key: str) -> str | None:
        """A string, else None."""
        value = parent.get(key)
        return value.strip() if isinstance(value, str) else None

    def transfer(self, block: dict[str, Any], side: str, where: str) -> Transfer | None:
        """The totals of one block (``sum_sent``, a stream's ``sender`` …)."""
        if not block:
            return None
        size, seconds = self.number(block, "bytes"), self.number(block, "seconds")
        rate = self.number(block, "bits_per_second")
        if size is not None and size < 0:
            self.warnings.append(f"{where}: negative number of bytes {size:.0f}")
            size = None
        if rate is not None and rate < 0:
            self.warnings.append(f"{where}: negative rate {rate}")
            rate = None
        if size is not None and seconds and rate is not None:
            computed = 8 * size / seconds
            if abs(computed - rate) > _RATE_SLACK * max(computed, rate):
                self.warnings.append(
                    f"{where}: bytes x 8 / seconds is {computed:.0f} bit/s, printed is {rate:.0f}; "
                    "the printed rate is kept"
                )
        lost, packets, ratio = self.loss(block, where)
        if where.startswith("sum_sent"):
            lost = ratio = None  # a sender prints 0 here: it cannot know
        retransmits = self.integer(block, "retransmits")
        if retransmits is not None and retransmits >= _UINT32_MAX:
            self.warnings.append(f"{where}: {retransmits} retransmits are a counter below zero")
            retransmits = None
        return Transfer(
            side=side,
            elapsed_s=seconds,
            bytes=size,
            throughput_bps=rate,
            retransmits=retransmits if retransmits is not None and retransmits >= 0 else None,
            packets=packets,
            lost_packets=lost,
            loss_pct=ratio,
            jitter_s=self.jitter(block, seconds, where) if side != "sent" else None,
            out_of_order=self.integer(block, "out_of_order"),
        )

    def loss(
        self, block: dict[str, Any], where: str
    ) -> tuple[int | None, int | None, float | None]:
        """Checked loss counters; the ratio is computed and compared with the printed one."""
        lost, packets = self.integer(block, "lost_packets"), self.integer(block, "packets")
        lost, packets, ratio, doubts = loss(lost, packets, where)
        self.warnings += doubts
        said = self.number(block, "lost_percent")
        if ratio is not None and said is not None and abs(said - ratio) > 0.05:
            self.warnings.append(
                f"{where}: lost_percent is {said}, but {lost} of {packets} is {ratio:.3f} %"
            )
            ratio = None
        return lost, packets, ratio

    def jitter(self, block: dict[str, Any], seconds: float | None, where: str) -> float | None:
        """Jitter in seconds; one that is negative or longer than the test is no measurement."""
        value = self.number(block, "jitter_ms")
        if value is None:
            return None
        jitter = value / 1e3
        if jitter < 0 or (seconds is not None and jitter > seconds):
            self.warnings.append(f"{where}: jitter {value:g} ms is implausible")
            return None
        return jitter

"""Known regressions: a YAML file that keeps them from failing a gate again.

    schema: 1
    acks:
      - configuration: C_FlCat
        test: tcp_rr
        loss_pct: 12           # what is known to be lost, in % of the base
        reason: strict tag validation, accepted for 6.1
        until: 2027-03-31      # optional, last day on which it counts
        factors: {family: ipv6}  # optional, the cell must have these

An acknowledgement covers its cell as long as the loss is not larger than ``loss_pct`` by more
than the minimum effect of the comparison. Those that cover nothing are reported.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from collector.errors import InputError
from collector.shape import Shape

ACK_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """One known regression; ``until`` is an ISO 8601 date, None for no end."""

    configuration: str
    test: str
    factors: tuple[tuple[str, str], ...]
    loss_pct: float
    until: str | None
    reason: str

    def matches(self, configuration: str, test: str, factors: Mapping[str, str]) -> bool:
        """Whether it speaks of that cell."""
        same = (self.configuration, self.test) == (configuration, test)
        return same and all(factors.get(key) == value for key, value in self.factors)

    @property
    def name(self) -> str:
        """The cell as notes name it."""
        factors = "".join(f" {key}={value}" for key, value in self.factors)
        return f"{self.configuration} {self.test}{factors}"


class Compared(Protocol):
    """What check_acks needs to know of a compared cell."""

    @property
    def new_configuration(self) -> str: ...
    @property
    def test(self) -> str: ...
    @property
    def factors(self) -> dict[str, str]: ...
    @property
    def ack(self) -> Ack | None: ...


def load_acks(file: Path) -> list[Ack]:
    """Read an acknowledgement file; raises InputError naming file and key."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(str(file), error.strerror or str(error), "a readable file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found = " ".join(str(error).split())
        raise InputError(str(file), f"no YAML ({found})", "a list of known regressions") from error
    top = Shape(document, str(file))
    top.schema(ACK_SCHEMA)
    acks = [_ack(item) for item in top.shapes("acks")]
    top.done()
    return acks


def _ack(item: Shape) -> Ack:
    ack = Ack(
        configuration=item.text("configuration"),
        test=item.text("test"),
        factors=tuple(sorted(item.texts("factors", default={}).items())),
        loss_pct=item.number("loss_pct"),
        until=item.date("until"),
        reason=item.text("reason"),
    )
    if ack.loss_pct <= 0:
        raise InputError(item.at("loss_pct"), f"{ack.loss_pct:g}", "a loss above 0 (in %)")
    item.done()
    return ack


def applies(ack: Ack, today: str) -> bool:
    """Whether it still counts on ``today`` (ISO 8601 date)."""
    return ack.until is None or datetime.date.fromisoformat(today) <= datetime.date.fromisoformat(
        ack.until
    )


def check_acks(acks: Sequence[Ack], cells: Iterable[Compared], today: str) -> list[str]:
    """A sentence for each acknowledgement that covers nothing, and why."""
    compared = list(cells)
    used = {cell.ack for cell in compared}
    notes = []
    for ack in acks:
        present = any(
            ack.matches(cell.new_configuration, cell.test, cell.factors) for cell in compared
        )
        if not applies(ack, today):
            notes.append(f"acknowledgement ran out on {ack.until}: {ack.name}")
        elif not present:
            notes.append(f"stale acknowledgement, no such cell: {ack.name}")
        elif ack not in used:
            notes.append(f"acknowledgement that covers nothing here: {ack.name}")
    return notes

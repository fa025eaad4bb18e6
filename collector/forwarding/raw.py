"""The raw output of a forwarding cell, read back: what its search found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collector.errors import InputError
from collector.forwarding.judge import Bottleneck
from collector.forwarding.setting import Point
from collector.shape import Shape, read_json

SEARCH_FILE = "search.json"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. ``bounded_by`` as in Sample, None where there is no outcome."""

    where: str
    value: float | None
    unit: str
    bounded_by: str | None

    def value_in(self, unit: str) -> float:
        """The value, if it is one in this unit. Raises InputError."""
        if self.value is None or self.unit != unit:
            raise InputError(self.where, f"{self.value} {self.unit}", f"a value in {unit}")
        return self.value


def points_of(raw: Path) -> tuple[Point, ...]:
    """The curve of a cell's repeat; empty if none was measured. Raises InputError."""
    file = raw / SEARCH_FILE
    if not file.is_file():
        return ()
    top = Shape(read_json(file), str(file))
    top.schema(1)
    return tuple(
        Point(
            offered_pct=item.number("offered_pct"),
            offered_fps=item.number("offered_fps"),
            forwarded_fps=item.number("forwarded_fps"),
            loss_ratio=item.number("loss_ratio"),
        )
        for item in top.shapes("points", default=[])
    )


def search_of(raw: Path) -> Found:
    """The search of a cell's repeat; nothing found if it was not begun. Raises InputError."""
    file = raw / SEARCH_FILE
    if not file.is_file():
        return Found(str(file), None, "", None)
    top = Shape(read_json(file), str(file))
    top.schema(1)
    bottleneck = top.optional_text("bottleneck")
    known = [item.value for item in Bottleneck]
    if bottleneck is not None and bottleneck not in known:
        raise InputError(top.at("bottleneck"), repr(bottleneck), f"one of {', '.join(known)}")
    value = top.number("value", default=None)
    return Found(str(file), value, top.text("unit"), bottleneck)

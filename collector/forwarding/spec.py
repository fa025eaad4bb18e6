"""A forwarding test as a matrix has it (``forwarding:`` in its ``tests``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from collector.errors import InputError
from collector.forwarding.linerate import LARGEST, SMALLEST
from collector.forwarding.measures import BURST_S
from collector.shape import Shape

MEASURES = ("max_load", "throughput", "ndr_pdr", "loss_curve", "back_to_back")
DIRECTIONS = ("unidirectional", "bidirectional")
GOALS = ("ndr", "pdr")
SEARCHES = ("rfc9971", "rfc2544")
GOALS_OF_RFC9971 = SEARCHES[0]
SHARE_UNIT, BURST_UNIT = "%", "frames"
KIND = "forwarding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardingSpec:
    """One forwarding test.

    ``trial_s`` is the length of a trial where it is not the form's; ``goal`` and ``search`` are
    of ``ndr_pdr`` (which of its two rates the cell has, and after which text it is searched);
    ``queues`` are the generator's, each a thread, of each direction;
    ``repeats`` of ``back_to_back``. ``width_pct`` is how close a search comes, in % of the rate,
    ``rate_pct`` how far the offered load may lie from the intended one.
    """

    name: str
    forwarding: str
    frame_bytes: int
    direction: str
    flows: int
    queues: int
    trial_s: float | None
    goal: str | None
    search: str | None
    repeats: int | None
    width_pct: float
    rate_pct: float

    @property
    def kind(self) -> str:
        """What the plan calls it."""
        return KIND

    @property
    def unit(self) -> str:
        """``%`` of line rate; a burst is counted in ``frames``."""
        return BURST_UNIT if self.forwarding == "back_to_back" else SHARE_UNIT

    @property
    def factors(self) -> dict[str, str]:
        """What a cell of the test is, beside its configuration."""
        return {
            "measure": self.goal or self.forwarding,
            "frame_bytes": str(self.frame_bytes),
            "direction": self.direction,
        }

    def estimate_s(self, duration_s: float) -> float:
        """Seconds of traffic that a cell takes, roughly; a form's trials take ``duration_s``."""
        trial_s = duration_s if self.trial_s is None else self.trial_s
        if self.forwarding == "back_to_back":
            trial_s = BURST_S
        # A binary search halves to its width; the others as benchmarks/search_time found them.
        halvings = math.ceil(math.log2(100 / self.width_pct)) + 4
        trials = {
            "max_load": 1,
            "throughput": halvings,
            "ndr_pdr": 45 if self.search == GOALS_OF_RFC9971 else halvings,
            "loss_curve": 6,
            "back_to_back": 8 * (self.repeats or 1),
        }
        return trials[self.forwarding] * (trial_s + drain_s(trial_s))

    def settings(self, duration_s: float, warm_up_s: float) -> dict[str, Any]:
        """The test's settings in a plan. A form's ``duration_s`` is that of a trial."""
        return {
            "forwarding": self.forwarding,
            "frame_bytes": self.frame_bytes,
            "direction": self.direction,
            "flows": self.flows,
            "queues": self.queues,
            "trial_s": duration_s if self.trial_s is None else self.trial_s,
            "warm_up_s": warm_up_s,
            "goal": self.goal,
            "search": self.search,
            "repeats": self.repeats,
            "width_pct": self.width_pct,
            "rate_pct": self.rate_pct,
            "drain_s": drain_s(duration_s if self.trial_s is None else self.trial_s),
        }


def drain_s(trial_s: float) -> float:
    """Seconds to wait for late frames after a trial: 2 (RFC 2544, section 23), less for trials
    shorter than the standard's."""
    return min(2.0, max(0.2, trial_s / 4))


def read_forwarding(item: Shape) -> ForwardingSpec:
    """One entry of ``tests`` that has ``forwarding``. Raises InputError that names the key."""
    measure = item.choice("forwarding", MEASURES)
    search = _only_for(item, "search", measure, "ndr_pdr", SEARCHES)
    spec = ForwardingSpec(
        name=item.text("name"),
        forwarding=measure,
        frame_bytes=item.within("frame_bytes", SMALLEST, LARGEST),
        direction=item.choice("direction", DIRECTIONS),
        flows=item.within("flows", 1, 60_000, default=1),
        queues=item.within("queues", 1, 1024, default=1),
        # RFC 9971 searches decide by many short trials, so the form's length is not for them.
        trial_s=_seconds(item, "trial_s", 1.0 if search == GOALS_OF_RFC9971 else None),
        goal=_only_for(item, "goal", measure, "ndr_pdr", GOALS),
        search=search,
        repeats=_repeats(item, measure),
        width_pct=_percent(item, "width_pct", 0.5),
        rate_pct=_percent(item, "rate_pct", 1.0),
    )
    item.done()
    if spec.flows < spec.queues:
        raise InputError(item.at("flows"), str(spec.flows), f"{spec.queues}, one a queue, or more")
    if spec.search == "rfc2544" and spec.goal == "pdr":
        raise InputError(item.at("goal"), "'pdr'", "ndr: RFC 2544 allows no loss")
    return spec


def _only_for(item: Shape, key: str, measure: str, of: str, choices: tuple[str, ...]) -> str | None:
    value = item.optional_text(key)
    if measure != of:
        if value is not None:
            raise InputError(item.at(key), repr(value), f"nothing: it belongs to {of}")
        return None
    if value is None:
        return choices[0]
    if value not in choices:
        raise InputError(item.at(key), repr(value), f"one of {', '.join(choices)}")
    return value


def _repeats(item: Shape, measure: str) -> int | None:
    value = item.integer("repeats", default=None)
    if measure != "back_to_back":
        if value is not None:
            raise InputError(item.at("repeats"), str(value), "nothing: it belongs to back_to_back")
        return None
    if value is not None and value < 1:
        raise InputError(item.at("repeats"), str(value), "at least 1")
    return 50 if value is None else value


def _seconds(item: Shape, key: str, default: float | None) -> float | None:
    value = item.number(key, default=default)
    if value is not None and not 0 < value <= 86_400:
        raise InputError(item.at(key), str(value), "seconds, above 0 and at most a day")
    return value


def _percent(item: Shape, key: str, default: float) -> float:
    value = item.number(key, default=default)
    if not 0 < value < 100:
        raise InputError(item.at(key), str(value), "per cent, between 0 and 100")
    return value

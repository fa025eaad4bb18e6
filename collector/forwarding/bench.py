"""Measures the searches of a group: warms the path up, calibrates the generator, searches.

The measuring itself is a function that is handed in; every trial is handed out as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from collector.forwarding.judge import Checks, Judged
from collector.forwarding.measures import back_to_back, loss_curve, max_load, throughput
from collector.forwarding.ndr_pdr import ndr_pdr, rfc2544_goals, rfc9971_goals
from collector.forwarding.path import Path
from collector.forwarding.session import (
    InvalidTrialError,
    LagError,
    SearchLimitError,
    Session,
)
from collector.forwarding.setting import Outcome, Setting
from collector.forwarding.spec import BURST_UNIT
from collector.forwarding.trial import Result, Trial, read_result

# What a search may send, at most: seconds of traffic for each second of a trial. A search that
# needs more goes round in circles.
MOST_TRIALS = 500
# How often a search is made anew because the generator cannot reach a load, at most.
REACHES = 4
# How long the generator is calibrated, at most.
CALIBRATION_S = 1.0

# The module: its arguments to the document ``trial`` that it returned.
Module = Callable[[Mapping[str, Any]], Mapping[str, Any]]
# Takes a line for the raw record of some cells.
Keep = Callable[[Sequence[str], Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Search:
    """One search and the cells that have one of its values."""

    settings: Mapping[str, Any]
    cells: tuple[str, ...]


def searches_of(settings: Mapping[str, Mapping[str, Any]]) -> list[Search]:
    """The searches behind some cells (by id, with their tests' settings), in order: cells that
    differ in nothing but the goal share one."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for cell, own in settings.items():
        key = tuple(sorted((name, repr(value)) for name, value in own.items() if name != "goal"))
        found.setdefault(key, []).append(cell)
    return [Search(settings[cells[0]], tuple(cells)) for cells in found.values()]


class Bench:
    """The bench of one group: a path, the module, and where raw trials go."""

    def __init__(
        self,
        path: Path,
        module: Module,
        keep: Keep,
        capacity: dict[str, float] | None = None,
        keeps_pace: Callable[[str], bool] = lambda _direction: True,
    ) -> None:
        """``keeps_pace`` is asked of a direction (collector.run.forwarding_pace)."""
        self.path, self._module, self._keep = path, module, keep
        self._keeps_pace = keeps_pace
        # What the generator can do, by frame size, direction, flows and queues; may be known
        # already.
        self.capacity: dict[str, float] = {} if capacity is None else capacity
        # Frames that a tester sent and saw arrive, by its own port, over all trials.
        self.arrived: dict[str, int] = {}
        self.sent: dict[str, int] = {}

    def measure(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """Measure a group as ``collector.run.forwarding_group`` describes it.

        Returns ``path`` (how the path was), ``searches`` (one document a cell) and the totals that
        the proof compares with the device's own counters. Raises what the module raises.
        """
        settings = group["settings"]
        warm = self.warm_up(settings)
        found = {}
        if all(warm["arrived"].values()):
            for search in searches_of(settings):
                found.update(self.search(search, settings))
        return {
            "path": self.path.document(),
            "speed_mbps": self.path.speed_mbps,
            "warm_up": warm,
            "results": found,
            "sent": self.sent,
            "arrived": self.arrived,
        }

    def warm_up(self, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Send both ways for the longest warm-up of the tests; what arrived, by port."""
        cells = list(settings)
        longest = max(settings.values(), key=lambda own: float(own["warm_up_s"]))
        trial = Trial(
            min(int(own["frame_bytes"]) for own in settings.values()),
            None,
            max(float(longest["warm_up_s"]), 0.1),
        )
        both = {**longest, "direction": "bidirectional"}
        result = self._run(cells, "warm_up", trial, both)
        return {
            "seconds": trial.duration_s,
            "arrived": {one.receiver: one.received or 0 for one in result.directions},
        }

    def capacity_fps(self, search: Search) -> float | None:
        """What the generator can do without a device in the way, frames a second and direction;
        None where it sent nothing."""
        settings = search.settings
        names = ("frame_bytes", "direction", "flows", "queues")
        key = " ".join(str(settings[name]) for name in names if name in settings)
        if key not in self.capacity:
            length = min(CALIBRATION_S, float(settings["trial_s"]))
            trial = Trial(int(settings["frame_bytes"]), None, length)
            result = self._run(search.cells, "calibration", trial, settings, to_nobody=True)
            # Of two testers the slower one is what a search has to keep to.
            slowest = min(one.offered_fps for one in result.directions)
            self.capacity[key] = slowest if self.path.apart else result.offered_fps
        return self.capacity[key] or None

    def search(
        self, search: Search, settings: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Run one search; a document for each of its cells."""
        own = search.settings
        made = Setting(
            frame_bytes=int(own["frame_bytes"]),
            line_fps=self.path.line_fps(int(own["frame_bytes"])),
            capacity_fps=self.capacity_fps(search),
            duration_s=float(own["trial_s"]),
            keeps_pace=self._keeps_pace(str(own["direction"])),
        )
        session = Session(
            measure=lambda trial: self._run(search.cells, "search", trial, own),
            checks=Checks(rate=float(own["rate_pct"]) / 100),
            most_s=MOST_TRIALS * max(made.duration_s, 2.0),
        )
        outcome, error = None, None
        try:
            outcome, made = search_within_reach(session, made, own)
        except (InvalidTrialError, SearchLimitError) as caught:
            error = (isinstance(caught, InvalidTrialError), str(caught))
        return {
            cell: document(settings[cell], made, self.path.speed_mbps, session, outcome, error)
            for cell in search.cells
        }

    def _run(
        self,
        cells: Sequence[str],
        purpose: str,
        trial: Trial,
        settings: Mapping[str, Any],
        to_nobody: bool = False,
    ) -> Result:
        asked = self.path.request(trial, settings, to_nobody)
        returned = self._module(asked)
        self._keep(cells, {"purpose": purpose, "asked": asked, "trial": dict(returned)})
        result = read_result(returned, f"pktgen, {purpose}")
        if not to_nobody:
            for one in result.directions:
                self.sent[one.sender] = self.sent.get(one.sender, 0) + one.sent
                arrived = self.arrived.get(one.receiver, 0)
                self.arrived[one.receiver] = arrived + (one.received or 0)
        return result


def search_within_reach(
    session: Session, setting: Setting, own: Mapping[str, Any]
) -> tuple[Outcome, Setting]:
    """The search, and the setting that it was made in: where the generator cannot reach a load with
    the device in the way, the search is made anew below what it reached.

    Raises InvalidTrialError (LagError when that does not help) and SearchLimitError.
    """
    for _ in range(REACHES):
        try:
            return run_search(session, setting, own), setting
        except LagError as error:
            setting = replace(setting, capacity_fps=error.offered_fps)
    return run_search(session, setting, own), setting


def run_search(session: Session, setting: Setting, own: Mapping[str, Any]) -> Outcome:
    """The search that a test's settings ask for."""
    width = float(own["width_pct"]) / 100
    measure = own["forwarding"]
    if measure == "max_load":
        return max_load(session, setting)
    if measure == "throughput":
        return throughput(session, setting, width)
    if measure == "loss_curve":
        return loss_curve(session, setting)
    if measure == "back_to_back":
        return back_to_back(session, setting, repeats=int(own["repeats"]))
    goals = rfc2544_goals if own["search"] == "rfc2544" else rfc9971_goals
    return ndr_pdr(session, setting, goals(setting.duration_s, width))


# Which value of an outcome a cell has, by measure; of ndr_pdr it is the goal's.
_VALUE = {
    "max_load": "max_load",
    "throughput": "throughput",
    "loss_curve": "lossless",
    "back_to_back": "back_to_back",
}


def document(
    own: Mapping[str, Any],
    setting: Setting,
    speed_mbps: float,
    session: Session,
    outcome: Outcome | None,
    error: tuple[bool, str] | None,
) -> dict[str, Any]:
    """``search.json`` of a cell (schema 1, docs/data-format.md). ``error`` is (whether a trial did
    not count, why there is no outcome)."""
    burst = own["forwarding"] == "back_to_back"
    value = bound = None
    if outcome is not None:
        name = own["goal"] or _VALUE[own["forwarding"]]
        raw = outcome.values[name]
        value = raw if burst or raw is None else 100 * raw / setting.line_fps
        bound = outcome.apart.get(name, outcome.bottleneck).value
    return {
        "schema": 1,
        "settings": dict(own),
        "speed_mbps": speed_mbps,
        "line_fps": setting.line_fps,
        "capacity_fps": setting.capacity_fps,
        "trials": len(session.trials),
        "invalid_trials": sum(not judged.valid for judged in session.trials),
        "traffic_s": session.spent_s,
        "started_at": _started(session.trials),
        "value": value,
        "unit": BURST_UNIT if burst else "%",
        "values": {} if outcome is None else dict(outcome.values),
        "bottleneck": bound,
        "points": [] if outcome is None else [asdict(point) for point in outcome.points],
        "details": {} if outcome is None else dict(outcome.details),
        "invalid": error is not None and error[0],
        "error": None if error is None else error[1],
    }


def _started(trials: Sequence[Judged]) -> str | None:
    return trials[0].result.started_at if trials else None

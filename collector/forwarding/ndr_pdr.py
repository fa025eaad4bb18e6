"""NDR and PDR by MLRsearch, the search of RFC 9971, through the library of that name.

The library's Measurer is an adapter to a session of ours; everything that it knows of a trial is
duration, load and counts. docs/decisions has what was wrapped and why.
"""

from __future__ import annotations

from dataclasses import dataclass

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

from collector.forwarding.judge import Bottleneck
from collector.forwarding.session import Session
from collector.forwarding.setting import Outcome, Setting

# The lowest load of a search, as a share of the highest.
LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A search goal of RFC 9971. ``loss_ratio``, ``exceed_ratio`` and ``width`` are fractions;
    ``duration_sum_s`` are the seconds of trials that decide about a load; trials are as long as
    the setting says. ``shorter_first``: whether shorter trials narrow the range down first."""

    name: str
    loss_ratio: float
    exceed_ratio: float
    width: float
    duration_sum_s: float
    shorter_first: bool = True


def rfc9971_goals(duration_s: float, width: float = 0.005, trials: int = 21) -> tuple[Goal, ...]:
    """NDR (no loss) and PDR (0.5 % lost): half of ``trials`` trials of a load may exceed the
    goal's loss, so that one disturbance of the device's host does not decide."""
    return tuple(
        Goal(
            name=name,
            loss_ratio=loss,
            exceed_ratio=0.5,
            width=max(width, loss),  # RFC 9971 wants a goal no narrower than its loss ratio
            duration_sum_s=trials * duration_s,
        )
        for name, loss in (("ndr", 0.0), ("pdr", 0.005))
    )


def rfc2544_goals(duration_s: float, width: float = 0.005) -> tuple[Goal, ...]:
    """Throughput as RFC 2544 wants it, as a goal: one trial of full length decides, no loss."""
    return (
        Goal(
            name="ndr",
            loss_ratio=0.0,
            exceed_ratio=0.0,
            width=width,
            duration_sum_s=duration_s,
            shorter_first=False,
        ),
    )


def ndr_pdr(session: Session, setting: Setting, goals: tuple[Goal, ...]) -> Outcome:
    """The conditional throughput of each goal, by the goal's name: the forwarding rate, in frames
    a second and direction, that the highest load below every load that is too high surely has.
    None where even the lowest load loses more than the goal allows.

    Raises InvalidTrialError and SearchLimitError (session).
    """
    wishes = {goal.name: _search_goal(goal, setting.duration_s) for goal in goals}
    config = Config()
    config.goals = list(wishes.values())
    config.min_load = LEAST_SHARE * setting.top_fps
    config.max_load = setting.top_fps
    config.warmup_duration = 0.0  # whoever measures has warmed the path up already
    # The session bounds the traffic; the library's own bound is of wall-clock time.
    config.search_duration_max = 1e9
    found = MultipleLossRatioSearch(config=config).search(
        measurer=_Measurer(session, setting), debug=_say_nothing
    )
    values: dict[str, float | None] = {}
    details: dict[str, float | None] = {}
    bounds: dict[str, Bottleneck] = {}
    for name, wish in wishes.items():
        result = found[wish]
        values[name] = _load(result.conditional_throughput)
        details[f"{name}_lower_fps"] = _load(result.relevant_lower_bound)
        details[f"{name}_upper_fps"] = _load(result.relevant_upper_bound)
        # A device may reach the top with some loss and not without.
        free = result.relevant_upper_bound is None
        bounds[name] = setting.top_bottleneck if free else Bottleneck.DEVICE
    return Outcome(
        values=values, bottleneck=next(iter(bounds.values())), apart=bounds, details=details
    )


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    """The library's view of a session."""

    def __init__(self, session: Session, setting: Setting) -> None:
        self._session, self._setting = session, setting

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """One trial. The offered count stands for the intended one: a trial whose offered load is
        off does not come this far."""
        result = self._session.run(self._setting.trial(intended_load, intended_duration)).result
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=result.sent,
            loss_count=result.lost,
        )


def _search_goal(goal: Goal, duration_s: float) -> SearchGoal:
    first = min(1.0, duration_s) if goal.shorter_first else duration_s
    alone = first >= goal.duration_sum_s
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=first,
        final_trial_duration=duration_s,
        duration_sum=goal.duration_sum_s,
        preceding_targets=0 if alone else 2,
        fail_fast=False,  # no load without loss is a result, not an error
    )


def _load(found: object) -> float | None:
    """A load of the library in frames a second and direction; None stays None."""
    return None if found is None else float(found)  # type: ignore[arg-type]


def _say_nothing(_text: str) -> None:
    """The library tells its every step; the trials are kept anyway."""

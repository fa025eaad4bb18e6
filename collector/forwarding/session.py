"""Measures trials for a search: judges each, repeats a bad one once, keeps them all."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.errors import CrossoverError
from collector.forwarding.judge import Checks, Judged, judge
from collector.forwarding.trial import Measure, Trial

# A trial that does not count is measured once more; both are kept.
ATTEMPTS = 2


class InvalidTrialError(CrossoverError):
    """A trial does not count, nor does its repetition: the search has no result."""


class LagError(InvalidTrialError):
    """The same only because the generator could not reach the load, but ``offered_fps``."""

    def __init__(self, reason: str, offered_fps: float) -> None:
        super().__init__(reason)
        self.offered_fps = offered_fps


class SearchLimitError(CrossoverError):
    """The search needs more traffic than it was given."""


@dataclass
class Session:
    """The trials of one search. ``most_s`` bounds the seconds of traffic."""

    measure: Measure
    checks: Checks = field(default_factory=Checks)
    most_s: float = 3600.0
    trials: list[Judged] = field(default_factory=list)

    def run(self, trial: Trial) -> Judged:
        """Measure a trial. Raises InvalidTrialError (LagError if each attempt was too slow, with
        the least of what the slowest directions sent) and SearchLimitError."""
        reached: list[float] = []
        for _ in range(ATTEMPTS):
            if self.spent_s + trial.duration_s > self.most_s:
                raise SearchLimitError(
                    f"search of {trial.frame_bytes}-byte frames: found no result in"
                    f" {self.spent_s:.0f} s of traffic ({len(self.trials)} trials); wanted one"
                    f" within {self.most_s:.0f} s"
                )
            judged = judge(trial, self.measure(trial), self.checks)
            self.trials.append(judged)
            if judged.valid:
                return judged
            if judged.lags:
                reached.append(min(one.offered_fps for one in judged.result.directions))
        if len(reached) == ATTEMPTS:
            raise LagError(judged.reasons[0], min(reached))
        raise InvalidTrialError(judged.reasons[0])

    @property
    def spent_s(self) -> float:
        """Seconds of traffic so far."""
        return sum(judged.trial.duration_s for judged in self.trials)

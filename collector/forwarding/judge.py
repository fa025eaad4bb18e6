"""Whether a trial counts, and why not. A trial that does not count has no number at all: a
generator that lags behind, or a counter that lies, would look like a slow device.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from collector.forwarding.trial import IN_TIME, LATE, Direction, Result, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What is tolerated, as fractions and frames.

    ``rate``: how far the offered load may lie from the intended one. ``count``: how far counters
    of the same frames may lie apart, beside ``stray`` frames (neighbour discovery and the like,
    which ports count and the generator does not). ``early``: how much shorter than intended a
    trial may be. ``tester_drops``: which share of the loss the tester's own drops may be.
    ``alone``: for which share of a trial one of two directions may be sent without the other,
    where two hosts send them; pktgen looks ten times a second whether it is to begin.
    """

    rate: float = 0.01
    count: float = 0.0005
    stray: int = 20
    early: float = 0.05
    tester_drops: float = 0.01
    alone: float = 0.2


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial with its result. ``reasons`` says why it does not count; empty: it does.
    ``lags``: whether that is so only because the generator could not reach the offered load."""

    trial: Trial
    result: Result
    reasons: tuple[str, ...]
    lags: bool = False

    @property
    def valid(self) -> bool:
        """Whether its numbers may be used."""
        return not self.reasons


class Bottleneck(StrEnum):
    """What a forwarding rate at maximum load was bounded by."""

    LINE = "line rate"
    DEVICE = "device"
    GENERATOR = "generator"


# Above this loss the device, not the generator, is what bounds the rate (a fraction).
SATURATED_LOSS = 0.01
# A generator this far below what it can do on its own was held back by the path: a link with flow
# control slows the sender down where another loses frames.
HELD_BACK = 0.9


def judge(trial: Trial, result: Result, checks: Checks) -> Judged:
    """Hold what was counted against what was asked and against itself."""
    reasons: list[str] = []
    lags: list[bool] = []
    for one in result.directions:
        where = f"{one.sender} to {one.receiver}"
        found = _direction(trial, one, checks)
        reasons += [f"{where}: {text}" for text in found]
        if found:
            lags.append(len(found) == 1 and _lags(trial, one, checks))
    return Judged(trial, result, tuple(reasons), bool(lags) and all(lags))


def _lags(trial: Trial, one: Direction, checks: Checks) -> bool:
    """Whether the generator sent, but less than it was to."""
    if trial.rate_fps is None or not one.elapsed_s:
        return False
    return 0 < one.offered_fps < trial.rate_fps * (1 - checks.rate)


def _direction(trial: Trial, one: Direction, checks: Checks) -> list[str]:
    if one.sent == 0:
        return ["the generator sent nothing"]
    if not one.elapsed_s:
        return ["the generator did not come to an end"]
    if one.received is None:
        return ["nothing counted the frames that arrived"]
    found = []
    if one.elapsed_s < trial.duration_s * (1 - checks.early):
        found.append(
            f"the generator stopped early: sent for {one.elapsed_s:.3f} s of {trial.duration_s:g} s"
        )
    if trial.rate_fps is not None:
        found += _offered(trial.rate_fps, one, one.elapsed_s, checks)
    found += _together(trial, one, checks)
    return found + _sent(one, checks) + _received(one, one.received, checks)


def _together(trial: Trial, one: Direction, checks: Checks) -> list[str]:
    """Directions that two hosts send must be on the wire at the same time."""
    if one.followed is None:
        return []
    if one.followed.how != IN_TIME or one.followed.lag_s is None:
        late = one.followed.how == LATE
        why = "the other had begun before it was ready" if late else "it saw nothing of the other"
        return [f"the directions did not begin together: {why}"]
    if one.followed.lag_s > checks.alone * trial.duration_s:
        return [
            f"the directions did not begin together: this one {one.followed.lag_s:.3f} s after the"
            f" other (tolerated {checks.alone * trial.duration_s:.3f} s)"
        ]
    return []


def _offered(wanted: float, one: Direction, elapsed_s: float, checks: Checks) -> list[str]:
    off = one.offered_fps / wanted - 1
    if abs(off) <= checks.rate or abs(one.sent - wanted * elapsed_s) <= 1:
        return []  # a rate of a few frames cannot be met closer than by one frame
    what = "could not reach the offered load" if off < 0 else "exceeded the offered load"
    return [
        f"the generator {what}: {one.offered_fps:.0f} of {wanted:.0f} frames/s"
        f" ({off:+.1%}, tolerated {checks.rate:.1%})"
    ]


def _sent(one: Direction, checks: Checks) -> list[str]:
    """Counters of the same frames must agree; those that a host has not are not looked at."""
    found = []
    generator, port = one.counters.get("pktgen_sofar"), one.counters.get("port_tx")
    if generator is not None and generator != one.sent:
        found.append(f"counters disagree: {one.sent} frames sent, the generator says {generator}")
    if port is not None and _apart(port, one.sent, checks):
        found.append(f"counters disagree: {one.sent} frames sent, the port says {port}")
    return found


def _received(one: Direction, received: int, checks: Checks) -> list[str]:
    found = []
    if received > one.sent + _slack(one.sent, checks):
        found.append(f"more frames received than sent: {received} of {one.sent}")
    far, matched = one.counters.get("far_rx"), one.counters.get("far_rx_filter")
    if matched is not None and matched != received:
        found.append(f"counters disagree: {received} frames received, the filter says {matched}")
    other = one.counters.get("far_rx_other") or 0
    if far is not None and _apart(far - other, received, checks):
        found.append(f"counters disagree: {received} frames received, the port says {far}")
    if one.settled is False:
        found.append("frames still arrived when they were counted")
    dropped = one.counters.get("far_rx_dropped") or 0
    if dropped and one.lost and dropped > checks.tester_drops * one.lost:
        found.append(
            f"the tester itself dropped {dropped} frames; {one.lost} are missing, and whose loss"
            " that is cannot be told"
        )
    return found


def _slack(count: int, checks: Checks) -> float:
    return checks.stray + checks.count * count


def _apart(first: int, second: int, checks: Checks) -> bool:
    return abs(first - second) > _slack(max(first, second), checks)


def bottleneck(result: Result, line_fps: float, capacity_fps: float | None) -> Bottleneck:
    """What bounded the rate of a trial at maximum load.

    ``line_fps`` and ``capacity_fps`` (what the generator can do without a device in the way, None
    if it was not calibrated) are frames a second and direction.
    """
    if (result.loss_ratio or 0.0) > SATURATED_LOSS:
        return Bottleneck.DEVICE
    if result.offered_fps >= line_fps * (1 - Checks().rate):
        return Bottleneck.LINE
    if capacity_fps is not None and result.offered_fps < HELD_BACK * capacity_fps:
        return Bottleneck.DEVICE
    return Bottleneck.GENERATOR

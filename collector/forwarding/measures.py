"""The measures of RFC 2544 and of the published table, as searches over trials."""

from __future__ import annotations

import statistics

from collector.forwarding.judge import Bottleneck, Judged, bottleneck
from collector.forwarding.session import Session
from collector.forwarding.setting import Outcome, Point, Setting

# A search gives up where even this share of the top load is not forwarded without loss.
LEAST_SHARE = 0.001
# RFC 2544, section 26.3: steps of at most 10 % of the maximum rate.
CURVE_STEPS = 10
# RFC 2544, section 26.4: bursts of at least 2 s; at least 50 of them, averaged.
BURST_S = 2.0
BURST_REPEATS = 50
# Bursts are told apart to a millisecond at best: a generator does not start and stop closer.
SHORTEST_S = 0.001


def max_load(session: Session, setting: Setting) -> Outcome:
    """``max_load``: the rate forwarded while the generator sends as fast as it can, and no faster
    than line rate, which a link without a clock of its own would carry too.

    The published figure: the share of line rate that gets through at maximum offered load.
    """
    most_fps = setting.line_fps * (1 + session.checks.rate)
    faster = setting.capacity_fps is not None and setting.capacity_fps > most_fps
    found = session.run(setting.trial(setting.line_fps if faster else None))
    if found.result.offered_fps > most_fps:
        found = session.run(setting.trial(setting.line_fps))
    alone = setting.capacity_fps if setting.keeps_pace else None
    what = bottleneck(found.result, setting.line_fps, alone)
    return Outcome(
        values={"max_load": found.result.forwarded_fps},
        bottleneck=what,
        points=(_point(found, setting),),
    )


def throughput(
    session: Session, setting: Setting, width: float = 0.005, loss_ratio: float = 0.0
) -> Outcome:
    """``throughput``: the highest rate at which nothing is lost (RFC 2544, section 26.1), to a
    relative ``width``, by plain halving. None if there is no such rate. ``loss_ratio`` above 0
    is no RFC 2544 throughput any more (benchmarks/search_time compares searches with it)."""

    def passed(judged: Judged) -> bool:
        return (judged.result.loss_ratio or 0.0) <= loss_ratio

    top = session.run(setting.trial(setting.top_fps))
    if passed(top):
        return Outcome(
            values={"throughput": top.result.forwarded_fps}, bottleneck=setting.top_bottleneck
        )
    low, high = 0.0, setting.top_fps
    best: Judged | None = None
    while high - low > width * high and high > LEAST_SHARE * setting.top_fps:
        middle = (low + high) / 2
        tried = session.run(setting.trial(middle))
        if passed(tried):
            low, best = middle, tried
        else:
            high = middle
    return Outcome(
        values={"throughput": None if best is None else best.result.forwarded_fps},
        bottleneck=Bottleneck.DEVICE,
    )


def loss_curve(session: Session, setting: Setting) -> Outcome:
    """``lossless``: the higher of the first two successive loads, going down from the top in steps
    of 10 %, at which nothing is lost (RFC 2544, section 26.3); ``points`` is the curve.

    None if no two successive loads are without loss.
    """
    points: list[Point] = []
    for step in range(CURVE_STEPS, 0, -1):
        tried = session.run(setting.trial(setting.top_fps * step / CURVE_STEPS))
        points.append(_point(tried, setting))
        if len(points) > 1 and not points[-1].loss_ratio and not points[-2].loss_ratio:
            break
    clean = len(points) > 1 and not points[-1].loss_ratio and not points[-2].loss_ratio
    lossy = any(point.loss_ratio for point in points)
    return Outcome(
        values={"lossless": points[-2].forwarded_fps if clean else None},
        bottleneck=Bottleneck.DEVICE if lossy else setting.top_bottleneck,
        points=tuple(points),
    )


def back_to_back(
    session: Session,
    setting: Setting,
    repeats: int = BURST_REPEATS,
    burst_s: float = BURST_S,
    width: float = 0.01,
) -> Outcome:
    """``back_to_back``: the longest burst at the top load of which nothing is lost, in frames of
    all directions, averaged over ``repeats`` (RFC 2544, section 26.4; RFC 9004 for what is told
    beside the average).

    A device that loses nothing in ``burst_s`` has no limit to be found: the burst is then the
    longest that was tried, and the bottleneck is not the device.
    """
    bursts: list[int] = []
    limited = False
    for _ in range(repeats):
        whole = session.run(setting.trial(setting.top_fps, burst_s))
        if not whole.result.lost:
            bursts.append(whole.result.sent)
            continue
        limited = True
        low, high, best = 0.0, burst_s, 0
        while high - low > max(width * high, SHORTEST_S):
            middle = (low + high) / 2
            tried = session.run(setting.trial(setting.top_fps, middle))
            if tried.result.lost:
                high = middle
            else:
                low, best = middle, tried.result.sent
        bursts.append(best)
    mean = statistics.fmean(bursts)
    return Outcome(
        values={"back_to_back": mean or None},
        bottleneck=Bottleneck.DEVICE if limited else setting.top_bottleneck,
        details={
            "min": min(bursts),
            "max": max(bursts),
            "stdev": statistics.stdev(bursts) if len(bursts) > 1 else None,
        },
    )


def _point(judged: Judged, setting: Setting) -> Point:
    result = judged.result
    return Point(
        offered_pct=100 * result.offered_fps / setting.line_fps,
        offered_fps=result.offered_fps,
        forwarded_fps=result.forwarded_fps,
        loss_ratio=result.loss_ratio or 0.0,
    )

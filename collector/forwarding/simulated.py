"""Devices that exist only as arithmetic, for tests of the searches and for their benchmark."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from collector.forwarding.trial import Direction, Result, Trial

# Frames that a device forwards of what is offered: (offered frames a second, seconds) to frames
# a second.
Behaviour = Callable[[float, float], float]


@dataclass
class Device:
    """A device between two ports of a generator that reaches ``generator_fps`` a direction.

    ``forwards`` is the device's behaviour a direction; ``spoil`` may change what was counted, as
    a faulty host would. ``trials`` and ``traffic_s`` count what was asked of it.
    """

    forwards: Behaviour
    generator_fps: float = 20e6
    directions: int = 1
    spoil: Callable[[dict[str, int]], None] | None = None
    trials: int = 0
    traffic_s: float = field(default=0.0)

    def measure(self, trial: Trial) -> Result:
        """What the module would return of a trial."""
        self.trials += 1
        self.traffic_s += trial.duration_s
        wanted = self.generator_fps if trial.rate_fps is None else trial.rate_fps
        offered = min(wanted, self.generator_fps)
        return Result(
            directions=tuple(
                self._direction(number, offered, trial.duration_s)
                for number in range(self.directions)
            ),
            started_at="2026-01-01T00:00:00Z",
        )

    def _direction(self, number: int, offered_fps: float, duration_s: float) -> Direction:
        sent = round(offered_fps * duration_s)
        rate = sent / duration_s
        # Rounded up: a device that forwards all that is offered must not lose a fraction.
        received = min(sent, math.ceil(self.forwards(rate, duration_s) * duration_s))
        counts = {
            "sent": sent,
            "received": received,
            "pktgen_sofar": sent,
            "port_tx": sent,
            "far_rx": received,
            "far_rx_filter": received,
            "far_rx_dropped": 0,
        }
        if self.spoil is not None:
            self.spoil(counts)
        return Direction(
            device=f"eth{number + 1}",
            receive_device=f"eth{2 - number}",
            sent=counts.pop("sent"),
            received=counts.pop("received"),
            errors=0,
            elapsed_s=duration_s,
            counters=dict(counts),
        )


def steady(capacity_fps: float) -> Behaviour:
    """Forwards up to its capacity, and that much above it."""
    return lambda offered, _: min(offered, capacity_fps)


def lossy_below(threshold_fps: float, capacity_fps: float, loss: float = 0.01) -> Behaviour:
    """Loses a share at low loads (a power-saving driver, say), nothing above, until it is full."""

    def forwards(offered: float, _: float) -> float:
        if offered < threshold_fps:
            return offered * (1 - loss)
        return min(offered, capacity_fps)

    return forwards


def two_bands(low_fps: float, high_fps: float, share_low: float, seed: int) -> Behaviour:
    """Has either of two capacities in each trial, drawn anew."""
    draw = random.Random(seed)
    return lambda offered, _: min(offered, low_fps if draw.random() < share_low else high_fps)


def noisy(capacity_fps: float, spread: float, dips: float, seed: int) -> Behaviour:
    """Capacity varies by a relative ``spread`` a trial second; a share ``dips`` of trial seconds
    has half the capacity for a twentieth of it (the host does something else)."""
    draw = random.Random(seed)

    def forwards(offered: float, duration_s: float) -> float:
        seconds = max(1, round(duration_s))
        total = 0.0
        for _ in range(seconds):
            capacity = capacity_fps * (1 + draw.gauss(0, spread))
            if draw.random() < dips:
                total += 0.95 * min(offered, capacity) + 0.05 * min(offered, capacity / 2)
            else:
                total += min(offered, capacity)
        return total / seconds

    return forwards

"""A trial and its result, as the module ``pktgen`` takes and returns them.

Rates are frames a second *per direction*; sizes are bytes with FCS (RFC 2544); durations are
seconds. What was not counted is None, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from collector.errors import InputError
from collector.shape import Shape

IN_TIME, LATE, NEVER = "in time", "late", "never"
FOLLOWED = (IN_TIME, LATE, NEVER)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked of the generator. ``rate_fps`` None: as fast as it can."""

    frame_bytes: int
    rate_fps: float | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """How a direction began that is sent by another host than the first: ``in time``, ``lag_s``
    after the first direction's frames were seen at the latest; ``late``, when they were there
    already; ``never``, without having seen any."""

    how: str
    lag_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """What was counted of one direction of a trial.

    ``host`` and ``receive_host`` are None where one tester has both ports, ``followed`` where its
    own host sent first or alone.

    ``sent`` are the frames that the generator says it sent, ``received`` those of them that
    arrived at the far port (None: nothing counted them), ``errors`` the generator's failed
    attempts. ``elapsed_s`` is None where the generator did not come to an end; ``settled`` says
    whether frames had ceased to arrive when they were counted. ``counters`` are the counters
    behind both, by name: ``pktgen_sofar`` (the generator), ``port_tx`` (the sending port),
    ``far_rx`` (the receiving port), ``far_rx_filter`` (frames that matched the stream exactly),
    ``far_rx_other`` (those that did not), ``far_rx_dropped`` (frames for which the far port had
    no room).
    """

    device: str
    receive_device: str | None
    sent: int
    received: int | None
    errors: int
    elapsed_s: float | None
    settled: bool | None = None
    counters: Mapping[str, int | None] = field(default_factory=dict)
    host: str | None = None
    receive_host: str | None = None
    followed: Followed | None = None

    @property
    def sender(self) -> str:
        """What the sending port is called (``Path.end``)."""
        return self.device if self.host is None else f"{self.host} {self.device}"

    @property
    def receiver(self) -> str:
        """What the far port is called."""
        device = self.receive_device or "the far host"
        return device if self.receive_host is None else f"{self.receive_host} {device}"

    @property
    def offered_fps(self) -> float:
        """Frames a second that were really sent."""
        return self.sent / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def forwarded_fps(self) -> float:
        """Frames a second that arrived, over the time of sending."""
        return (self.received or 0) / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def lost(self) -> int:
        """Frames that did not arrive. A surplus counts as no loss; the judgement looks at it."""
        return max(0, self.sent - (self.received or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A trial as it went. ``started_at`` is UTC, ISO 8601."""

    directions: tuple[Direction, ...]
    started_at: str

    @property
    def sent(self) -> int:
        """Frames sent in all directions."""
        return sum(one.sent for one in self.directions)

    @property
    def received(self) -> int:
        """Frames that arrived, in all directions."""
        return sum(one.received or 0 for one in self.directions)

    @property
    def lost(self) -> int:
        """Frames lost; a surplus of one direction does not make up for a loss of another."""
        return sum(one.lost for one in self.directions)

    @property
    def loss_ratio(self) -> float | None:
        """Lost of sent, None if nothing was sent."""
        return self.lost / self.sent if self.sent else None

    @property
    def offered_fps(self) -> float:
        """Offered load per direction: the mean over the directions."""
        return sum(one.offered_fps for one in self.directions) / len(self.directions)

    @property
    def forwarded_fps(self) -> float:
        """Forwarding rate per direction: the mean over the directions."""
        return sum(one.forwarded_fps for one in self.directions) / len(self.directions)


Measure = Callable[[Trial], Result]


def read_result(document: Any, where: str) -> Result:
    """The result in what ``pktgen`` returned as ``trial``. Raises InputError that names the key.

    Nothing is judged here; what the module says besides (its senders, its drivers' counters)
    stays in the raw document.
    """
    top = Shape(document, where)
    directions = tuple(_direction(item) for item in top.shapes("directions"))
    if not directions:
        raise InputError(top.at("directions"), "none", "at least one direction")
    return Result(directions=directions, started_at=top.text("started_at"))


def _direction(item: Shape) -> Direction:
    counters = item.anything("counters", default={})
    for name, value in counters.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise InputError(item.at(f"counters.{name}"), repr(value), "a count or null")
    elapsed = item.number("elapsed_s", default=None)
    if elapsed is not None and elapsed < 0:
        raise InputError(item.at("elapsed_s"), str(elapsed), "seconds, not negative")
    return Direction(
        device=item.text("device"),
        receive_device=item.optional_text("receive_device"),
        sent=_known(item, "sent"),
        received=_count(item, "received"),
        errors=_known(item, "errors"),
        elapsed_s=elapsed,
        settled=item.take_any("settled", (bool,), "true, false or null", None),
        counters=counters,
        host=item.optional_text("host"),
        receive_host=item.optional_text("receive_host"),
        followed=_followed(item),
    )


def _followed(item: Shape) -> Followed | None:
    found = item.take_any("followed", (dict,), "a mapping or null", None)
    if found is None:
        return None
    inner = Shape(found, item.where, f"{item.path}.followed")
    made = Followed(inner.choice("how", FOLLOWED), inner.number("lag_s", default=None))
    inner.done()
    return made


def _count(item: Shape, key: str) -> int | None:
    value = item.integer(key, default=None)
    if value is not None and value < 0:
        raise InputError(item.at(key), str(value), "a count, not negative")
    return value


def _known(item: Shape, key: str) -> int:
    value = _count(item, key)
    if value is None:
        raise InputError(item.at(key), "nothing", "a count")
    return value

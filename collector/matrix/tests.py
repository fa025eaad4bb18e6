"""The tests of a matrix: what is run in each configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from collector.errors import InputError
from collector.forwarding.spec import ForwardingSpec, read_forwarding
from collector.shape import Shape

STREAMS = ("TCP_STREAM", "UDP_STREAM", "TCP_MAERTS")
REQUESTS = ("TCP_RR", "UDP_RR", "TCP_CRR")
FIT = "fit"
MOST_SESSIONS = 10_000


@dataclass(frozen=True, slots=True)
class TestSpec:
    """One netperf test. ``message_bytes`` is a size, ``"fit"`` (the largest that the label and
    the MTU leave room for) or None (netperf's default).

    ``sessions`` run at once and are measured over the window that they share, ``start_s`` being
    the seconds that they are given to start; None is one netperf by itself, which measures its own
    run. ``request_bytes`` may be ``"fit"`` too.
    """

    name: str
    netperf: str
    message_bytes: int | str | None
    request_bytes: int | str | None
    response_bytes: int | None
    local_socket_bytes: int | None
    remote_socket_bytes: int | None
    sessions: int | None = None
    start_s: int | None = None

    @property
    def unit(self) -> str:
        """``bit/s`` for streams, ``1/s`` for requests."""
        return "bit/s" if self.netperf in STREAMS else "1/s"

    @property
    def factors(self) -> dict[str, str]:
        """What tells this test's cells from those of another number of sessions or another size;
        empty for a netperf by itself, whose cells the name alone tells apart."""
        if self.sessions is None:
            return {}
        found = {"netperf": self.netperf, "sessions": str(self.sessions)}
        if self.netperf in STREAMS:
            size = self.message_bytes
            return found if size is None else {**found, "bytes": str(size)}
        return {**found, "bytes": f"{self.request_bytes or 1},{self.response_bytes or 1}"}


def default_start_s(sessions: int) -> int:
    """Seconds that sessions are given to set up: an emulated host of one CPU sets up some ten a
    second; one by itself waits for nobody."""
    return 0 if sessions == 1 else 1 + math.ceil(sessions / 10)


AnyTest = TestSpec | ForwardingSpec


def read_test(item: Shape) -> AnyTest:
    """One entry of ``tests``: ``netperf`` or ``forwarding``. Raises InputError."""
    if item.has("forwarding"):
        return read_forwarding(item)
    return read_netperf(item)


def read_netperf(item: Shape) -> TestSpec:
    """An entry that has ``netperf``. Raises InputError."""
    netperf = item.choice("netperf", (*STREAMS, *REQUESTS))
    sessions = item.integer("sessions", default=None)
    spec = TestSpec(
        name=item.text("name"),
        netperf=netperf,
        message_bytes=_size(item, "message_bytes"),
        request_bytes=_size(item, "request_bytes"),
        response_bytes=item.integer("response_bytes", default=None),
        local_socket_bytes=item.integer("local_socket_bytes", default=None),
        remote_socket_bytes=item.integer("remote_socket_bytes", default=None),
        sessions=sessions,
        start_s=item.integer("start_s", default=default_start_s(sessions) if sessions else None),
    )
    item.done()
    _check_numbers(spec, item)
    stream = netperf in STREAMS
    if stream and (spec.request_bytes or spec.response_bytes):
        raise InputError(item.at("request_bytes"), "a size", f"none: {netperf} sends a stream")
    if not stream and spec.message_bytes is not None:
        raise InputError(
            item.at("message_bytes"), repr(spec.message_bytes), f"none: {netperf} sends requests"
        )
    if spec.request_bytes == FIT and netperf != "UDP_RR":
        raise InputError(
            item.at("request_bytes"), repr(FIT), f"a size in bytes: {netperf} sends no datagrams"
        )
    return spec


def _size(item: Shape, key: str) -> int | str | None:
    size: int | str | None = item.take_any(key, (int, str), f'a size in bytes or "{FIT}"', None)
    if isinstance(size, str) and size != FIT:
        raise InputError(item.at(key), repr(size), f'a size in bytes or "{FIT}"')
    return size


def _check_numbers(spec: TestSpec, item: Shape) -> None:
    for key in (
        "message_bytes",
        "request_bytes",
        "response_bytes",
        "local_socket_bytes",
        "remote_socket_bytes",
    ):
        value = getattr(spec, key)
        if isinstance(value, int) and value < 1:
            raise InputError(item.at(key), str(value), "at least 1 byte")
    if spec.sessions is not None and not 1 <= spec.sessions <= MOST_SESSIONS:
        raise InputError(item.at("sessions"), str(spec.sessions), f"1 to {MOST_SESSIONS}")
    if spec.start_s is not None and spec.sessions is None:
        raise InputError(item.at("start_s"), str(spec.start_s), "none without sessions")
    if spec.sessions == 1 and spec.start_s:
        raise InputError(item.at("start_s"), str(spec.start_s), "none for one session")
    if spec.sessions not in (None, 1) and (spec.start_s or 0) < 1:
        raise InputError(item.at("start_s"), str(spec.start_s), "at least 1 second")

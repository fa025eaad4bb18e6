"""The tests of a matrix: what is run in each configuration."""

from __future__ import annotations

from dataclasses import dataclass

from collector.errors import InputError
from collector.forwarding.spec import ForwardingSpec, read_forwarding
from collector.shape import Shape

STREAMS = ("TCP_STREAM", "UDP_STREAM", "TCP_MAERTS")
REQUESTS = ("TCP_RR", "UDP_RR", "TCP_CRR")
FIT = "fit"


@dataclass(frozen=True, slots=True)
class TestSpec:
    """One netperf test. ``message_bytes`` is a size, ``"fit"`` (the largest that the label and
    the MTU leave room for) or None (netperf's default)."""

    name: str
    netperf: str
    message_bytes: int | str | None
    request_bytes: int | None
    response_bytes: int | None
    local_socket_bytes: int | None
    remote_socket_bytes: int | None

    @property
    def unit(self) -> str:
        """``bit/s`` for streams, ``1/s`` for requests."""
        return "bit/s" if self.netperf in STREAMS else "1/s"

    @property
    def factors(self) -> dict[str, str]:
        """What a cell of the test is, beside its configuration: nothing."""
        return {}


AnyTest = TestSpec | ForwardingSpec


def read_test(item: Shape) -> AnyTest:
    """One entry of ``tests``: ``netperf`` or ``forwarding``. Raises InputError."""
    if item.has("forwarding"):
        return read_forwarding(item)
    return read_netperf(item)


def read_netperf(item: Shape) -> TestSpec:
    """An entry that has ``netperf``. Raises InputError."""
    netperf = item.choice("netperf", (*STREAMS, *REQUESTS))
    message = item.take_any("message_bytes", (int, str), f'a size in bytes or "{FIT}"', None)
    if isinstance(message, str) and message != FIT:
        raise InputError(item.at("message_bytes"), repr(message), f'a size in bytes or "{FIT}"')
    spec = TestSpec(
        name=item.text("name"),
        netperf=netperf,
        message_bytes=message,
        request_bytes=item.integer("request_bytes", default=None),
        response_bytes=item.integer("response_bytes", default=None),
        local_socket_bytes=item.integer("local_socket_bytes", default=None),
        remote_socket_bytes=item.integer("remote_socket_bytes", default=None),
    )
    item.done()
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
    stream = netperf in STREAMS
    if stream and (spec.request_bytes or spec.response_bytes):
        raise InputError(item.at("request_bytes"), "a size", f"none: {netperf} sends a stream")
    if not stream and spec.message_bytes is not None:
        raise InputError(
            item.at("message_bytes"), repr(spec.message_bytes), f"none: {netperf} sends requests"
        )
    return spec

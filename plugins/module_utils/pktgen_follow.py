# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for the first frame of another host's generator.

A packet socket for all protocols sees frames before the ingress hook, where they are counted and
dropped, and the kernel says when they arrived however late this process is told.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Optional

from .host.errors import HostError
from .pktgen_begin import IN_TIME, LATE, NEVER, Begin, Follow, Seen
from .pktgen_filter import attach
from .pktgen_trial import Stream

NET = Path("/sys/class/net")
_ETH_P_ALL = 0x0003
_SO_TIMESTAMPNS = 35
_TIMESPEC = "@ll"

# Waits for the first frame of a stream on a device: when it arrived (monotonic), None if none did.
FirstFrame = Callable[[str, Stream, float], Optional[float]]


def received(device: str, net: Path = NET) -> int:
    """Packets that a device has received. HostError when it is not there."""
    try:
        return int((net / device / "statistics" / "rx_packets").read_text())
    except (OSError, ValueError) as error:
        raise HostError(f"follow.device {device}: {error}") from None


def first_frame(device: str, stream: Stream, limit_s: float) -> Optional[float]:
    """See FirstFrame. HostError with the kernel's reason when it cannot be waited for."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as opened:
        try:
            opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            attach(opened, stream)
            opened.bind((device, _ETH_P_ALL))
        except OSError as error:
            raise HostError(f"packet socket on {device}: {error.strerror}") from None
        ready, _, _ = select.select([opened], [], [], limit_s)
        if not ready:
            return None
        _data, told, _flags, _from = opened.recvmsg(
            1, socket.CMSG_SPACE(struct.calcsize(_TIMESPEC))
        )
        now, wall = time.monotonic(), time.time()
        for _level, kind, value in told:
            if kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack(_TIMESPEC, value)
                # The kernel's word is by the clock of the day, which may have been set meanwhile.
                return now - max(0.0, wall - (seconds + nanoseconds / 1e9))
        raise HostError(f"packet socket on {device}: the kernel does not say when a frame arrived")


def await_begin(
    begin: Begin,
    stream: Stream,
    count: Callable[[str], int] = received,
    first: FirstFrame = first_frame,
    sleep: Callable[[float], None] = time.sleep,
) -> Optional[Seen]:
    """Wait until it is time to send ``stream``; what was seen of the other host, which sends the
    same the other way, or None where there is none."""
    if begin.lead_s:
        sleep(begin.lead_s)
    return None if begin.follow is None else _seen(begin.follow, stream, count, first)


def _seen(follow: Follow, stream: Stream, count: Callable[[str], int], first: FirstFrame) -> Seen:
    if count(follow.device) != follow.packets:
        return Seen(LATE, None)
    back = replace(stream, source=stream.destination, destination=stream.source)
    at_s = first(follow.device, back, follow.limit_s)
    return Seen(NEVER if at_s is None else IN_TIME, at_s)

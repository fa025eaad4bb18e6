"""Packets of one flow as they cross a device, kept as a capture file.

AF_PACKET sees both directions after the stack has written its headers: what is captured here is
what goes to the wire. File format: pcap (draft-ietf-opsawg-pcap), microseconds, Ethernet.

Also a program, for the far end: ``capture.py DEVICE PORT FILE LIFETIME_S`` (port 0: every frame)
writes the file when it is asked to end (SIGTERM), has enough packets, or was forgotten.
"""

from __future__ import annotations

import select
import signal
import socket
import struct
import sys
import threading
import time
from typing import List, Tuple

ETH_P_ALL = 3
SNAP_BYTES = 256  # headers with all options, never much payload


def has_port(frame: bytes, port: int) -> bool:
    """Whether an Ethernet frame is TCP or UDP with this port on either side."""
    if len(frame) < 34:
        return False
    kind = frame[12:14]
    if kind == b"\x08\x00":
        header = (frame[14] & 15) * 4
        protocol, at = frame[23], 14 + header
    elif kind == b"\x86\xdd":
        protocol, at = frame[20], 54
    else:
        return False
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP) or len(frame) < at + 4:
        return False
    return port in struct.unpack("!HH", frame[at : at + 4])


def is_esp(frame: bytes) -> bool:
    """Whether an Ethernet frame carries ESP directly in IPv4 or IPv6."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        return len(frame) > 23 and frame[23] == socket.IPPROTO_ESP
    return kind == b"\x86\xdd" and len(frame) > 20 and frame[20] == socket.IPPROTO_ESP


def pcap(packets: List[Tuple[float, int, bytes]]) -> bytes:
    """A capture file of ``(time, length on the wire, first bytes)`` packets."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP_BYTES, 1)]
    for when, length, data in packets:
        seconds = int(when)
        parts.append(
            struct.pack("<IIII", seconds, int((when - seconds) * 1e6), len(data), length) + data
        )
    return b"".join(parts)


class Capture:
    """Records frames of a port, and every ESP frame, on a device until stopped; port 0 stands for
    every frame.

    Use as a context manager; ``packets`` holds at most ``limit`` of them.
    """

    def __init__(self, device: str, port: int, limit: int = 64) -> None:
        self.packets: List[Tuple[float, int, bytes]] = []
        self._port = port
        self._limit = limit
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.bind((device, ETH_P_ALL))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Capture":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while len(self.packets) < self._limit:
            ready, _, _ = select.select([self._socket], [], [], 0.05)
            if not ready:
                # Only an empty queue ends it: on a busy host packets wait here to be read.
                if self._stop.is_set():
                    return
                continue
            frame = self._socket.recv(65535)
            if not self._port or has_port(frame, self._port) or is_esp(frame):
                self.packets.append((time.time(), len(frame), frame[:SNAP_BYTES]))

    def wait(self, timeout_s: float) -> None:
        """Return once there are enough packets, or after ``timeout_s`` seconds."""
        self._thread.join(timeout_s)

    def stop(self) -> None:
        """End recording; safe to call twice."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            self._socket.close()


def main(argv: List[str]) -> int:
    """Entry point of the program."""
    device, port, path, lifetime_s = argv[0], int(argv[1]), argv[2], float(argv[3])

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    capture = Capture(device, port)
    try:
        with capture:
            with open(path, "wb"):
                pass  # the file's appearance says that every packet from now on is seen
            capture.wait(lifetime_s)
    except KeyboardInterrupt:
        capture.stop()
    with open(path, "wb") as handle:
        handle.write(pcap(capture.packets))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a link can carry: frames a second at line rate.

Frame sizes count the FCS and nothing before the destination address (RFC 2544, section 9). On
the wire each frame takes 20 bytes more: 7 of preamble, 1 start delimiter, 12 of gap (IEEE 802.3).
"""

from __future__ import annotations

from collector.errors import InputError

OVERHEAD_BYTES = 20
ETHERNET_BYTES, FCS_BYTES = 14, 4
SMALLEST, LARGEST = 64, 9018  # the latter is a jumbo frame of 9000 bytes of payload


def line_rate_fps(frame_bytes: int, speed_mbps: float) -> float:
    """Frames a second and direction that a link of ``speed_mbps`` (10^6 bit/s) carries.

    64 bytes at 1000 Mbit/s are 1,488,095. Raises InputError for a size that is no Ethernet frame
    and for a speed that is not positive.
    """
    if not SMALLEST <= frame_bytes <= LARGEST:
        raise InputError("frame_bytes", str(frame_bytes), f"{SMALLEST} to {LARGEST}, with FCS")
    if not speed_mbps > 0:
        raise InputError("speed_mbps", str(speed_mbps), "the link's speed in Mbit/s, above 0")
    return speed_mbps * 1e6 / ((frame_bytes + OVERHEAD_BYTES) * 8)

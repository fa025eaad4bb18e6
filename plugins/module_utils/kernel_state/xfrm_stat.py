"""``/proc/net/xfrm_stat``: packets that IPsec dropped, and why.

Names and meaning: Linux net/xfrm/xfrm_proc.c and Documentation/networking/xfrm_proc.rst. The
counters are of one network namespace and start at zero with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Dict, Tuple

from .errors import StateError, Text, decimal, number_lines

_LINE = re.compile(r"(Xfrm[A-Za-z]+)\s+([0-9]+)")

# Counter -> (what happened, where to look).
MEANING: Dict[str, Tuple[str, str]] = {
    "XfrmInError": ("inbound error of no other kind", "see the kernel log"),
    "XfrmInBufferError": ("no memory for an inbound packet", "memory pressure on the receiver"),
    "XfrmInHdrError": ("inbound header cannot be read", "damaged or foreign ESP/AH packets"),
    "XfrmInNoStates": (
        "no SA for an inbound packet",
        "wrong SPI, destination or protocol on one of the ends, or the SA is gone",
    ),
    "XfrmInStateProtoError": (
        "inbound packet fails decryption or integrity",
        "the ends differ in key or algorithm",
    ),
    "XfrmInStateModeError": ("inbound packet is not of the SA's mode", "transport against tunnel"),
    "XfrmInStateSeqError": (
        "inbound packet outside the replay window",
        "reordering wider than the window, replay, or one end was set up anew",
    ),
    "XfrmInStateExpired": ("inbound SA has expired", "lifetime limits; rekey was late"),
    "XfrmInStateMismatch": (
        "inbound packet does not match the SA's selector or encapsulation",
        "selector of the SA, UDP encapsulation on one end only",
    ),
    "XfrmInStateInvalid": (
        "inbound SA is not valid (yet or any more)",
        "SA being set up or deleted",
    ),
    "XfrmInTmplMismatch": (
        "inbound packet was not protected as its policy wants",
        "mode, protocol or reqid of the policy's template against the SA; clear packets where "
        "protected ones are required",
    ),
    "XfrmInNoPols": ("no inbound policy for a protected packet", "policy for in (or fwd) missing"),
    "XfrmInPolBlock": ("inbound policy blocks", "a policy with action block"),
    "XfrmInPolError": ("inbound policy lookup failed", "label: no polmatch permission"),
    "XfrmOutError": ("outbound error of no other kind", "see the kernel log"),
    "XfrmOutBundleGenError": ("no bundle of SAs could be made", "route or SA of the outer header"),
    "XfrmOutBundleCheckError": ("a bundle was no longer valid", "SAs replaced while in use"),
    "XfrmOutNoStates": (
        "a policy wants an SA and there is none",
        "no SA whose label equals the sending process's, none for these addresses and reqid, or "
        "IKE has not finished",
    ),
    "XfrmOutStateProtoError": ("outbound protocol failed", "crypto driver or offload"),
    "XfrmOutStateModeError": ("outbound mode failed", "packet too big for tunnel or transport"),
    "XfrmOutStateSeqError": ("outbound sequence numbers used up", "no ESN and no rekey"),
    "XfrmOutStateExpired": ("outbound SA has expired", "lifetime limits; rekey was late"),
    "XfrmOutPolBlock": ("outbound policy blocks", "a policy with action block"),
    "XfrmOutPolDead": ("outbound policy is being deleted", "policy changed under traffic"),
    "XfrmOutPolError": ("outbound policy lookup failed", "label: no polmatch permission"),
    "XfrmFwdHdrError": ("header of a forwarded packet cannot be read", "damaged packets"),
    "XfrmOutStateInvalid": ("outbound SA is not valid", "SA being set up or deleted"),
    "XfrmAcquireError": (
        "no IKE daemon took the request for an SA",
        "daemon not running, or no connection for this policy",
    ),
    "XfrmOutStateDirError": ("outbound use of an SA marked dir in", "dir of the SA"),
    "XfrmInStateDirError": ("inbound use of an SA marked dir out", "dir of the SA"),
    "XfrmInIptfsError": ("inbound IP-TFS packet cannot be read", "IP-TFS on one end only"),
    "XfrmOutNoQueueSpace": ("no room in the IP-TFS queue", "sender faster than the fixed rate"),
}


@dataclass(frozen=True)
class Growth:
    """A counter that grew: by how much, what it means and where to look."""

    name: str
    count: int
    meaning: str
    hint: str


def parse_xfrm_stat(text: Text, whole: bool = True) -> Dict[str, int]:
    """Counter -> packets, in the kernel's order. Names this reader does not know are kept.

    Raises :class:`StateError` on other text, a counter listed twice, or, unless ``whole`` is
    False, when counters that every kernel has are missing.
    """
    found: Dict[str, int] = {}
    for number, line in number_lines(text):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise StateError(number, repr(line), "XfrmName COUNT")
        if match.group(1) in found:
            raise StateError(number, f"{match.group(1)} a second time", "each counter once")
        found[match.group(1)] = decimal(match.group(2), number, match.group(1))
    if whole and ("XfrmInError" not in found or "XfrmOutPolError" not in found):
        raise StateError(1, f"{len(found)} counters", "all of /proc/net/xfrm_stat")
    return found


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> Tuple[Growth, ...]:
    """The counters that grew between two readings of the same namespace.

    Raises :class:`StateError` when one became smaller or is missing: not the same boot.
    """
    found = []
    for name, count in before.items():
        if after.get(name, -1) < count:
            raise StateError(
                1,
                f"{name} {count} before, {after.get(name)} after",
                "two readings of one namespace and boot",
            )
    for name, count in after.items():
        grown = count - before.get(name, 0)
        if grown:
            meaning, hint = MEANING.get(name, ("a counter newer than this reader", ""))
            found.append(Growth(name, grown, meaning, hint))
    return tuple(found)

# SPDX-License-Identifier: GPL-2.0-or-later
"""Why traffic does not pass, or a configuration is refused, in words for its user. Pure.

The kernel says only that it dropped a packet and in which step. What that means for a declared
connection follows from the SAs and policies that are there, the label of the process, the audit
log, the clock and the words of the tools.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Dict, List, Optional, Tuple

from .kernel_state.avc import Avc, allow_rules, is_avc, parse_avc
from .kernel_state.errors import StateError, redact
from .kernel_state.failures import KernelFailure, classify_ike, classify_ip
from .kernel_state.xfrm import Policy, State
from .kernel_state.xfrm_stat import MEANING

# A clock that was set moves by more than the drift that time daemons correct.
CLOCK_STEP_S = 2.0


@dataclass(frozen=True)
class Evidence:
    """What one host knows. ``grown``: counters of /proc/net/xfrm_stat that grew meanwhile.

    ``context`` is the label of the measured processes; ``denials`` raw AVC lines; ``clock_step_s``
    how far the wall clock was set since the SAs were added; ``missing`` names of declared SAs that
    are gone; ``error`` what a tool or socket said; ``payload_bytes`` and ``fits_bytes`` the size
    of a datagram and of the largest that goes in one packet; ``clear_packets`` of the flow seen
    on the wire without ESP.
    """

    error: str = ""
    grown: Mapping[str, int] = field(default_factory=dict)
    states: Sequence[State] = ()
    policies: Sequence[Policy] = ()
    context: Optional[str] = None
    denials: Sequence[str] = ()
    clock_step_s: float = 0.0
    missing: Sequence[str] = ()
    payload_bytes: Optional[int] = None
    fits_bytes: Optional[int] = None
    clear_packets: int = 0


@dataclass(frozen=True)
class Reason:
    """One cause. ``cause`` is a stable word, ``text`` what was found, ``hint`` what to do."""

    cause: str
    text: str
    hint: str

    def as_dict(self) -> Dict[str, str]:
        """For a module's result."""
        return asdict(self)


def explain(evidence: Evidence) -> List[Reason]:
    """The causes that the evidence shows, the most telling first; empty when it shows none."""
    found: List[Reason] = []
    rest = evidence
    for rule in _RULES:
        reason, counters = rule(rest)
        if reason is not None:
            found.append(reason)
            # A counter that has its reason is not explained a second time by its effect.
            left = {name: count for name, count in rest.grown.items() if name not in counters}
            rest = replace(rest, grown=left)
    for name, count in rest.grown.items():
        if count > 0:
            meaning, hint = MEANING.get(name, ("a counter newer than this reader", ""))
            found.append(Reason("dropped", f"{meaning} ({name} grew by {count})", hint))
    return found


Found = Tuple[Optional[Reason], Tuple[str, ...]]
_NOTHING: Found = (None, ())


def _classified(
    evidence: Evidence, reader: Callable[[str], Optional[KernelFailure]]
) -> Optional[KernelFailure]:
    for line in evidence.error.splitlines():
        failure = reader(line)
        if failure is not None:
            return failure
    return None


def _algorithm(evidence: Evidence) -> Found:
    failure = _classified(evidence, classify_ip)
    if failure is None or failure.error_class != "algorithm_not_allowed":
        return _NOTHING
    return Reason(
        "missing_algorithm",
        f"this kernel has no such algorithm: {redact(failure.text)}",
        "choose another algorithm, or a kernel with its module (FIPS mode hides some)",
    ), ()


def _refused(evidence: Evidence) -> Found:
    failure = _classified(evidence, classify_ip)
    if failure is None or failure.error_class == "algorithm_not_allowed":
        return _NOTHING
    return Reason(failure.error_class, redact(failure.text), failure.hint or "see the error"), ()


def _ike(evidence: Evidence) -> Found:
    failure = _classified(evidence, classify_ike)
    if failure is None:
        return _NOTHING
    return Reason(
        "ike_refused",
        f"the IKE peer refused: {failure.text}",
        failure.hint or "compare the connection at both ends",
    ), ("XfrmOutNoStates",)


def _too_long(evidence: Evidence) -> Found:
    size, fits = evidence.payload_bytes, evidence.fits_bytes
    over = size is not None and fits is not None and size > fits
    if os.strerror(errno.EMSGSIZE) not in evidence.error and not over:
        return _NOTHING
    text = "a packet is too long for the path once ESP is around it"
    if over:
        text = f"a datagram of {size} bytes is too long: with ESP, {fits} bytes fit one packet"
    return Reason("mtu", text, "send smaller messages, or raise the MTU of the link"), (
        "XfrmOutStateModeError",
    )


def _clock(evidence: Evidence) -> Found:
    names = ("XfrmOutNoStates", "XfrmInStateExpired", "XfrmOutStateExpired", "XfrmInNoStates")
    gone = bool(evidence.missing) or any(evidence.grown.get(name) for name in names)
    if abs(evidence.clock_step_s) < CLOCK_STEP_S or not gone:
        return _NOTHING
    what = f": {', '.join(evidence.missing[:3])}" if evidence.missing else ""
    return Reason(
        "clock",
        f"the clock was set by {evidence.clock_step_s:+.0f} s after the SAs were added, and SAs "
        f"have expired{what}",
        "set the clock before SAs with time limits are added, and apply the connection again",
    ), names


def _no_state(evidence: Evidence) -> Found:
    counter = "XfrmOutNoStates"
    count = evidence.grown.get(counter, 0)
    if not count:
        return _NOTHING
    labels = sorted({state.context for state in evidence.states if state.context})
    if evidence.context and labels and evidence.context not in labels:
        shown = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
        return Reason(
            "no_state_for_label",
            f"no SA has the label of the sending process: it runs as {evidence.context}, the SAs "
            f"are for {shown} ({count} packets dropped, {counter})",
            "the label of an SA must equal the process's, range included: use label: process, and "
            "start the process with the declared level",
        ), (counter,)
    text = "a policy wants an SA and there is none that fits"
    if evidence.missing:
        text += f": {', '.join(evidence.missing[:3])} gone"
    return Reason(
        "no_state",
        f"{text} ({count} packets dropped, {counter})",
        "compare addresses, mode, reqid and label of the SAs with the policy's template",
    ), (counter, "XfrmAcquireError")


def _avcs(evidence: Evidence) -> List[Avc]:
    found = []
    for line in evidence.denials:
        if is_avc(line):
            try:
                found.append(parse_avc(line))
            except StateError:
                continue  # a line cut off by the log's rotation explains nothing
    return found


def _polmatch(evidence: Evidence) -> Found:
    denied = [
        avc
        for avc in _avcs(evidence)
        if avc.tclass == "association" and "polmatch" in avc.permissions
    ]
    if not denied:
        return _NOTHING
    avc = denied[0]
    rules = "; ".join(allow_rules(denied[:3]))
    return Reason(
        "no_polmatch",
        f"{avc.source} may not use policies labelled {avc.target}, so that its packets pass as if "
        "there were none, in clear",
        f"the policy lacks, for review: {rules}",
    ), ("XfrmInPolError", "XfrmOutPolError", "XfrmInNoPols")


def _denied(evidence: Evidence) -> Found:
    other = [
        avc
        for avc in _avcs(evidence)
        if avc.tclass in ("association", "peer", "netif", "node")
        and not (avc.tclass == "association" and "polmatch" in avc.permissions)
    ]
    if not other:
        return _NOTHING
    avc = other[0]
    return Reason(
        "denied",
        f"SELinux denied {' '.join(avc.permissions)} ({avc.tclass}) to {avc.source} on "
        f"{avc.target}",
        f"the policy lacks, for review: {'; '.join(allow_rules(other[:3]))}",
    ), ()


def _counted(cause: str, names: Sequence[str], text: str, hint: str) -> Callable[[Evidence], Found]:
    def rule(evidence: Evidence) -> Found:
        grown = [name for name in names if evidence.grown.get(name)]
        if not grown:
            return _NOTHING
        counts = ", ".join(f"{name} grew by {evidence.grown[name]}" for name in grown)
        return Reason(cause, f"{text} ({counts})", hint), tuple(names)

    return rule


def _clear(evidence: Evidence) -> Found:
    if not evidence.clear_packets:
        return _NOTHING
    return Reason(
        "in_clear",
        f"{evidence.clear_packets} packets of the flow were on the wire without ESP",
        "no policy took them: its selector, mark or interface does not match, or its label may "
        "not be used by the process (polmatch)",
    ), ()


# The order is that of the answer: what names the cause before what shows its effect.
_RULES: Tuple[Callable[[Evidence], Found], ...] = (
    _algorithm,
    _ike,
    _refused,
    _too_long,
    _polmatch,
    _denied,
    _clock,
    _no_state,
    _counted(
        "template_mismatch",
        ("XfrmInTmplMismatch", "XfrmInStateModeError"),
        "packets arrived that were not protected as this host's policy wants",
        "compare mode, reqid and addresses of the policies' templates at both ends; packets in "
        "clear where ESP is required count here too",
    ),
    _counted(
        "wrong_spi",
        ("XfrmInNoStates",),
        "packets arrived with an SPI for which this host has no SA",
        "compare the SPIs of both ends: the sender's must exist here, for the same destination",
    ),
    _counted(
        "wrong_key",
        ("XfrmInStateProtoError",),
        "packets arrived that fail decryption or the integrity check",
        "the ends differ in key or algorithm: give both keys of one seed (rekey)",
    ),
    _counted(
        "expired",
        ("XfrmInStateExpired", "XfrmOutStateExpired"),
        "an SA reached a limit of its lifetime",
        "raise the declared lifetimes, or apply the connection again",
    ),
    _counted(
        "replay",
        ("XfrmInStateSeqError",),
        "packets arrived outside the replay window",
        "one end was set up anew, or packets were reordered beyond the window: apply both ends "
        "again with rekey, or widen the window",
    ),
    _counted(
        "blocked",
        ("XfrmInPolBlock", "XfrmOutPolBlock"),
        "a policy of this host blocks these packets",
        "look for a policy with action block",
    ),
    _clear,
)

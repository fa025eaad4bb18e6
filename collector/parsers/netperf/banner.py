"""The line that names a test: which test, between which hosts, with which settings.

Built by print_top_test_header in nettest_bsd.c since 2.4; before that ``NAME TEST to HOST``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from ..base import Line

# Longest names first, as some begin like others.
_NAMES = {
    "SCTP 1-TO-MANY REQUEST/RESPONSE": "SCTP_RR_MANY",
    "SCTP 1-TO-MANY STREAM": "SCTP_STREAM_MANY",
    "SCTP REQUEST/RESPONSE": "SCTP_RR",
    "SCTP STREAM": "SCTP_STREAM",
    "SDP REQUEST/RESPONSE": "SDP_RR",
    "SDP STREAM": "SDP_STREAM",
    "SDP MAERTS": "SDP_MAERTS",
    "TCP Transactional/Request/Response": "TCP_TRR",
    "TCP Connect/Request/Response": "TCP_CRR",
    "TCP Connect/Close": "TCP_CC",
    "TCP REQUEST/RESPONSE": "TCP_RR",
    "TCP STREAM": "TCP_STREAM",
    "TCP MAERTS": "TCP_MAERTS",
    "TCP SENDFILE": "TCP_SENDFILE",
    "TCP MSS": "TCP_MSS",
    "TCPIPV6 REQUEST/RESPONSE": "TCPIPV6_RR",
    "TCPIPV6 STREAM": "TCPIPV6_STREAM",
    "UDP UNIDIRECTIONAL SEND": "UDP_STREAM",
    "UDP REQUEST/RESPONSE": "UDP_RR",
    "UDP STREAM": "UDP_STREAM",
    "UDPIPV6 UNIDIRECTIONAL SEND": "UDPIPV6_STREAM",
    "UDPIPV6 REQUEST/RESPONSE": "UDPIPV6_RR",
    "XTI TCP STREAM": "XTI_TCP_STREAM",
    "XTI TCP REQUEST/RESPONSE": "XTI_TCP_RR",
    "XTI UDP UNIDIRECTIONAL SEND": "XTI_UDP_STREAM",
    "XTI UDP REQUEST/RESPONSE": "XTI_UDP_RR",
    "DLPI CO STREAM": "DLCO_STREAM",
    "DLPI CO REQUEST/RESPONSE": "DLCO_RR",
    "DLPI CL UNIDIRECTIONAL SEND": "DLCL_STREAM",
    "DLPI CL REQUEST/RESPONSE": "DLCL_RR",
    "STREAM STREAM": "STREAM_STREAM",
    "STREAM REQUEST/RESPONSE": "STREAM_RR",
    "DG UNIDIRECTIONAL SEND": "DG_STREAM",
    "DG REQUEST/RESPONSE": "DG_RR",
    "OMNI Send|Recv": "OMNI_RR",
    "OMNI Send": "OMNI_SEND",
    "OMNI Receive": "OMNI_RECV",
    "OMNI Recv": "OMNI_RECV",
}
_START = re.compile(
    # A log may have the words of its own before it.
    r"(?:.*\b(?:STDOUT|Stdout):)?\s*(?P<migrated>MIGRATED )?(?P<name>"
    + "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(_NAMES, key=len)[::-1])
    + r")\s+TEST\b(?P<rest>.*)",
    re.DOTALL,
)
_END = (
    r"\s*(?::\s*)?(?:\+/-\s*(?P<half>[0-9]+(?:\.[0-9]+)?)% @\s+(?P<level>[0-9]+)% conf\."
    r"(?P<only>\s+on result only)?\s*)?(?P<flags>(?:\s*:\s*(?:FLAGS))*)\s*"
)
_FLAGS = (
    r"nodelay|copy avoidance|no control|histogram|spin interval|interval|dirty data|demo"
    r"|first burst [0-9]+|cpu bind|[a-z][a-z_-]*"
)
# A banner with "from" (since 2.4) has both ends in full, or it has been cut.
_REST = re.compile(
    r"(?:\s+from\s+(?P<source>\S+)\s+\([^)\s]*\)\s+port\s+[0-9]+\s+AF_\w+"
    r"\s+to\s+(?P<host>\S+)\s+\((?P<address>[^)\s]*)\)\s+port\s+[0-9]+\s+(?P<family>AF_\w+)"
    r"|\s+to\s+(?:(?P<old_host>(?!:)\S+)|(?=:)))?" + _END.replace("FLAGS", _FLAGS)
)
_MAX_LINES = 5


@dataclass(frozen=True, slots=True)
class Banner:
    """What a banner says; None and empty where it does not."""

    text: str
    test: str
    migrated: bool
    source: str | None = None
    host: str | None = None
    address: str | None = None
    family: str | None = None
    flags: tuple[str, ...] = ()
    half_width_pct: float | None = None
    level_pct: float | None = None
    result_only: bool = False

    @property
    def first_burst(self) -> int | None:
        """Transactions put in flight at the start (``: first burst N``); None if not said."""
        for flag in self.flags:
            if flag.startswith("first burst "):
                return int(flag.split()[-1])
        return None

    @property
    def concerns_requests(self) -> bool:
        """Whether netperf's own unit for the test is transactions a second."""
        return self.test.endswith(("_RR", "_CRR", "_CC", "_TRR", "_RR_MANY"))


def _literal(text: str | None) -> str | None:
    """A whole address: netperf cuts the one it prints in parentheses (``10.244.``)."""
    try:
        return str(ip_address(text)) if text else None
    except ValueError:
        return None


def starts(text: str) -> bool:
    """Whether a line begins like a banner."""
    return _START.match(text) is not None


def read_banner(lines: tuple[Line, ...], at: int) -> tuple[Banner, int] | None:
    """Read the banner that starts at ``lines[at]``, over as many lines as mail broke it into.

    Returns the banner and how many lines it takes; None if there is none or it cannot be read
    to its end.
    """
    if not starts(lines[at].text):
        return None
    best: tuple[Banner, int] | None = None
    for count in range(1, _MAX_LINES + 1):
        part = lines[at : at + count]
        if len(part) < count or (count > 1 and not part[-1].text.strip()):
            break
        banner = _whole(" ".join(line.text.strip() for line in part))
        if banner is not None:
            best = banner, count
    return best


def _whole(text: str) -> Banner | None:
    start = _START.fullmatch(text)
    if start is None:
        return None
    rest = _REST.fullmatch(start["rest"])
    if rest is None:
        return None
    flags = tuple(" ".join(f.split()) for f in rest["flags"].split(":") if f.strip())
    return Banner(
        text=" ".join(text.split()),
        test=_NAMES[" ".join(start["name"].split())],
        migrated=start["migrated"] is not None,
        source=rest["source"],
        host=rest["host"] or rest["old_host"],
        address=_literal(rest["address"]),
        family=rest["family"],
        flags=flags,
        half_width_pct=float(rest["half"]) if rest["half"] else None,
        level_pct=float(rest["level"]) if rest["level"] else None,
        result_only=rest["only"] is not None,
    )

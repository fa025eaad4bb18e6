"""What the tools say when they refuse: a stable class, the errno, and what to look at.

Texts: netlabelctl/main.c (own words for some errnos, strerror for the others), iproute2
("RTNETLINK answers: …", "Error: …"), libselinux' secon, libreswan's notifications. Hints name
the usual cause in this field, not the only one.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from .errors import KEYS_HIDDEN, redact


@dataclass(frozen=True)
class KernelFailure:
    """Why a command was refused. ``tool``: ``netlabelctl``, ``ip``, ``secon`` or ``ike``."""

    tool: str
    error_class: str
    text: str
    errno: Optional[int] = None
    errno_name: Optional[str] = None
    hint: Optional[str] = None


# strerror texts of Linux in the C locale, as both tools print them.
_STRERROR: Dict[str, int] = {os.strerror(number): number for number in errno.errorcode}
_NETLABELCTL_WORDS = {
    "invalid argument or parameter": errno.EINVAL,
    "out of memory": errno.ENOMEM,
    "entry does not exist": errno.ENOENT,
    "no data was available": errno.ENODATA,
    "bad message": errno.EBADMSG,
    "not supported": errno.ENOPROTOOPT,
    "try again": errno.EAGAIN,
    "no message was received": errno.ENOMSG,
}
_NETLABEL = {
    errno.EINVAL: (
        "invalid_argument",
        "the kernel takes no translation with tags other than 1, no DOI 0, at most 5 tags, and no "
        "address selector beside a mapping without one",
    ),
    errno.ENOENT: ("entry_missing", "on removal this is the wanted state, not an error"),
    errno.EEXIST: ("entry_exists", "delete the DOI or the domain's mapping before adding it anew"),
    errno.EBUSY: ("doi_in_use", "a domain mapping still uses the DOI: remove mappings before DOIs"),
    errno.EPERM: ("not_permitted", "NetLabel needs CAP_NET_ADMIN in the initial namespaces"),
    errno.EACCES: ("not_permitted", "the security policy refuses this domain NetLabel's netlink"),
    errno.ENOMSG: ("no_answer", "the kernel did not answer within netlabelctl's time limit"),
    errno.EAGAIN: ("no_answer", "the kernel did not answer within netlabelctl's time limit"),
    errno.ENOPROTOOPT: ("not_supported", "this kernel lacks the protocol (CALIPSO: from 4.8 on)"),
    errno.ENOSPC: ("label_does_not_fit_tag", "the categories do not fit the DOI's tags"),
}
_XFRM = {
    errno.ENOSYS: (
        "algorithm_not_allowed",
        "this kernel has no such algorithm, or FIPS mode does not allow it",
    ),
    errno.EEXIST: (
        "sa_exists",
        "an SA is one per destination, protocol, SPI and mark, whatever its source; a policy one "
        "per selector, direction, mark, interface id and label",
    ),
    errno.ESRCH: ("sa_missing", "no such SA: on removal this is the wanted state"),
    errno.ENOENT: ("policy_missing", "no such policy: on removal this is the wanted state"),
    errno.EINVAL: ("invalid_argument", "check key lengths, label, replay window and families"),
    errno.EPERM: ("not_permitted", "IPsec needs CAP_NET_ADMIN in this network namespace"),
    errno.EACCES: (
        "not_permitted",
        "the security policy refuses the label: the caller needs association setcontext",
    ),
    errno.EPROTONOSUPPORT: ("kernel_without_xfrm", "this kernel lacks CONFIG_XFRM_USER or ESP"),
    errno.EOPNOTSUPP: ("not_supported", "this kernel or device lacks it (offload, labels)"),
    errno.ENOBUFS: ("no_memory", "too much in one message or no memory left"),
    errno.ENODEV: ("device_missing", "the named device does not exist"),
}
_EXTACK = (
    (
        re.compile(r"Requested \w+ algorithm not found"),
        "algorithm_not_allowed",
        "this kernel has no such algorithm, or FIPS mode does not allow it",
    ),
    (
        re.compile(r"Requested type not found|Requested mode not found"),
        "kernel_without_xfrm",
        "this kernel lacks the protocol or mode (CONFIG_INET_ESP, CONFIG_INET6_ESP, …)",
    ),
    (
        re.compile(r'argument "ctx" is wrong'),
        "iproute_without_ctx",
        "this iproute2 cannot set labels; `ip xfrm policy help` must name ctx",
    ),
    (
        re.compile(
            r'argument ".*" is wrong|"\w[\w-]*" is invalid|is required|is unknown|duplicate'
        ),
        "iproute_usage",
        "this iproute2 does not know the argument",
    ),
    (
        re.compile(r"ESN replay window|replay window", re.I),
        "invalid_argument",
        "extended sequence numbers need a replay window of 1 to 4096",
    ),
)
_IKE = {
    "TS_UNACCEPTABLE": (
        "no_child_sa",
        "no child SA (label mismatch?): the IKE SA is up, but the peers' traffic selectors or "
        "labels do not agree; one side may have no label",
    ),
    "NO_PROPOSAL_CHOSEN": ("no_proposal", "the peers share no set of algorithms"),
    "AUTHENTICATION_FAILED": ("authentication", "identities, keys or certificates differ"),
    "INVALID_KE_PAYLOAD": ("ke_group", "the peers prefer different groups; a retry is normal"),
    "NO_ADDITIONAL_SAS": ("no_more_sas", "the peer takes no further child SA"),
    "FAILED_CP_REQUIRED": ("configuration", "the peer wants a configuration request"),
    "INVALID_SYNTAX": ("protocol", "the peer could not read a message: versions may differ"),
    "INVALID_MAJOR_VERSION": ("protocol", "the peer speaks another IKE version"),
    "SINGLE_PAIR_REQUIRED": ("no_child_sa", "the peer takes one pair of addresses only"),
    "TEMPORARY_FAILURE": ("temporary", "the peer was busy rekeying; a retry is normal"),
    "CHILD_SA_NOT_FOUND": ("no_child_sa", "the peer has no such child SA any more"),
}
_IKE_NAME = re.compile(r"\b(" + "|".join(_IKE) + r")\b")
_IKE_CONTEXT = re.compile(r"notif|reject|fail|receiv|respon|sending|error", re.I)
_NETLABELCTL_LINE = re.compile(
    r"netlabelctl: (?:(?:\w+: )?error(?:\[\w+\])?[,:]) *(?P<text>.+?)(?:\s{2,}\(.*\))?$"
)
_RTNETLINK_LINE = re.compile(r"RTNETLINK (?:answers|error): (?P<text>[A-Z].*?)(?:\s{2,}\(.*\))?$")
_ERROR_LINE = re.compile(r"(?:^|\s)Error: (?P<text>\S.*?)(?:\s{2,}\(.*\))?$")
_SECON_LINE = re.compile(
    r"secon:\s+(?P<text>Couldn't read security context: .*?)(?:\s{2,}\(.*\))?$"
)
_BATCH_LINE = re.compile(r"Command failed (?:[^:\s]+):([0-9]+)")


def _named(number: Optional[int]) -> Optional[str]:
    return None if number is None else errno.errorcode[number]


def classify_netlabelctl(line: str) -> Optional[KernelFailure]:
    """A line of netlabelctl's stderr, or None when it is no error of netlabelctl."""
    match = _NETLABELCTL_LINE.search(line.rstrip())
    if match is None:
        return None
    text = match.group("text")
    if "failed to initialize the NetLabel library" in text:
        return KernelFailure(
            "netlabelctl",
            "netlabel_unavailable",
            text,
            None,
            None,
            "NetLabel is reachable from the initial network namespace only, and only in a kernel "
            "with CONFIG_NETLABEL: CIPSO cells need real hosts or VMs",
        )
    if "unknown or missing module" in text or "unknown command" in text:
        return KernelFailure(
            "netlabelctl",
            "usage",
            text,
            None,
            None,
            "this netlabelctl does not know the module or command",
        )
    number = _NETLABELCTL_WORDS.get(text, _STRERROR.get(text))
    if number is None:
        return KernelFailure("netlabelctl", "refused", text)
    error_class, hint = _NETLABEL.get(number, ("refused", None))
    return KernelFailure("netlabelctl", error_class, text, number, _named(number), hint)


def classify_ip(line: str) -> Optional[KernelFailure]:
    """A line of ``ip xfrm``'s stderr, or None when it is no error of it."""
    line = line.rstrip()
    match = _RTNETLINK_LINE.search(line)
    if match is not None:
        text = match.group("text")
        number = _STRERROR.get(text)
        error_class, hint = _XFRM.get(number, ("refused", None)) if number else ("refused", None)
        return KernelFailure("ip", error_class, text, number, _named(number), hint)
    if re.search(
        r"Cannot open netlink socket: Protocol not supported|ip xfrm \w+ list fails", line
    ):
        return KernelFailure(
            "ip",
            "kernel_without_xfrm",
            line.strip(),
            None,
            None,
            "this kernel lacks CONFIG_XFRM_USER",
        )
    if re.search(r'Object "x\w*" is unknown', line):
        return KernelFailure(
            "ip",
            "iproute_without_xfrm",
            line.strip(),
            None,
            None,
            "this iproute2 (or busybox ip) has no xfrm",
        )
    match = _ERROR_LINE.search(line)
    if match is None:
        return None
    text = redact(match.group("text"))
    if "ALGO-KEYMAT" in text:  # ip quotes the key that it does not like, in any form
        text = re.sub(r'"[^"]*"', f'"{KEYS_HIDDEN}"', text)
    for pattern, error_class, hint in _EXTACK:
        if pattern.search(text):
            return KernelFailure("ip", error_class, text, None, None, hint)
    return KernelFailure("ip", "refused", text)


def classify_secon(line: str) -> Optional[KernelFailure]:
    """secon reads its standard input by default, which is no terminal under automation."""
    match = _SECON_LINE.search(line.rstrip())
    if match is None:
        return None
    return KernelFailure(
        "secon",
        "no_terminal",
        match.group("text"),
        errno.ENOTTY,
        "ENOTTY",
        "run without a terminal: pass the context explicitly, or use `secon --pid`",
    )


def classify_ike(line: str) -> Optional[KernelFailure]:
    """A refusal in an IKE daemon's log (RFC 7296 notification names), else None."""
    match = _IKE_NAME.search(line)
    if match is None or _IKE_CONTEXT.search(line) is None:
        return None
    name = match.group(1)
    error_class, hint = _IKE[name]
    return KernelFailure("ike", error_class, name, None, None, hint)


def classify(line: str) -> Optional[KernelFailure]:
    """The first of the above that knows the line."""
    for reader in (classify_netlabelctl, classify_secon, classify_ip, classify_ike):
        failure = reader(line)
        if failure is not None:
            return failure
    return None


def classify_labelled_connect(text: str) -> Optional[KernelFailure]:
    """What a tool said when its connect() failed in a cell with CIPSO or CALIPSO labels.

    Older kernels label sockets, and connect() fails with ENOSPC; newer ones label packets, and
    it hangs in progress until it times out. None when the text says neither.
    """
    for wanted in (errno.ENOSPC, errno.EINPROGRESS, errno.ETIMEDOUT):
        if os.strerror(wanted) in text:
            return KernelFailure(
                "connect",
                "label_does_not_fit_tag",
                os.strerror(wanted),
                wanted,
                _named(wanted),
                "the label's categories do not fit the DOI's tags (tag 1: 0 to 239; tag 2: 15; "
                "tag 5: 7 ranges)",
            )
    return None


def batch_failures(stderr: str) -> List[Tuple[Optional[int], KernelFailure]]:
    """Failures of ``ip -batch``: (line of the batch from 1, failure), in order.

    The line is None for ``ip xfrm``: it ends the whole process at its first refusal, without
    ip's "Command failed FILE:LINE"; the lines before it have been done.
    """
    found: List[Tuple[Optional[int], KernelFailure]] = []
    pending: Optional[KernelFailure] = None
    for line in stderr.splitlines():
        match = _BATCH_LINE.search(line)
        if match is not None:
            found.append((int(match.group(1)), pending or KernelFailure("ip", "refused", line)))
            pending = None
        else:
            pending = classify_ip(line) or pending
    return found if pending is None else [*found, (None, pending)]

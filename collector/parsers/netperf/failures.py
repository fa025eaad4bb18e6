"""The error texts netperf prints, and the classes they belong to.

Texts: netlib.c, netsh.c, nettest_bsd.c, nettest_omni.c, nettest_sctp.c of 2.1 to 2.7.1. Most go
to stdout and some to stderr, so they may stand before the banner of the run they belong to.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from ..base import Failure, Line

_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}
# Other systems' and other versions' words for the same.
_BY_TEXT |= {
    "Message too long": errno.EMSGSIZE,
    "Unknown error 11": errno.EAGAIN,
    "Operation now in progress": errno.EINPROGRESS,
}
_HINTS_BY_ERRNO = {
    "EMSGSIZE": "the message is larger than the socket buffer or than the path takes; labels and"
    " encryption make that limit smaller: lower -m",
    "ENETUNREACH": "UDP_STREAM does not route unless the test-specific -R 1 is given",
    "EHOSTUNREACH": "the configuration changed during the run, or the peer does not answer ARP",
    "EINVAL": "UDP_RR does not support a test-specific -H; a packet filter has been blamed too",
    "ECONNRESET": "the peer closed the connection; a start delay (-s) above netperf's pad of 4 s"
    " does that too",
    "ECONNREFUSED": "a packet filter refuses the data connection, or netperf and netserver are of"
    " different versions",
    "ENOBUFS": "the sender was faster than its network interface",
    "EADDRINUSE": "another process has the port",
}
_HINTS_BY_CLASS = {
    "control_unreachable": "check that netserver runs there and that no packet filter is between;"
    " if the port is not the one configured, the option was not passed on",
    "control_closed": "netserver closed the control connection: netperf and netserver of different"
    " versions or builds, or netserver died",
    "control_timeout": "netserver stopped answering during the test",
    "netserver_start": "another netserver, or another process, has the port",
    "unknown_test": "this build of netperf lacks the test",
}


@dataclass(frozen=True, slots=True)
class _Pattern:
    error_class: str
    regex: re.Pattern[str]


def _pattern(error_class: str, text: str) -> _Pattern:
    return _Pattern(error_class, re.compile(text))


_NAME = r"[A-Za-z_0-9]+"
# A list in a mail may number them: "1  ", "2a ", "- "; flent says which stream they are of.
_LABEL = re.compile(r"\s*(?:Std(?:out|err):\s+)?(?:\(?[0-9]{1,2}[a-z]?[).:]?\s+|[-*•]\s+)?")
_PATTERNS = (
    _pattern(
        "control_unreachable",
        r"establish[ _]control: are you sure there is a netserver\s+listening on \S+ at port"
        r"\s+\S+?\?",
    ),
    _pattern("control_unreachable", r"establish_control:? could not establish the control.*"),
    _pattern("control_unreachable", r"establish_control: (?:connect|bind) failed, errno.*"),
    _pattern("control_unreachable", r"establish_control: unable to .*"),
    _pattern("host_unknown", rf"(?:establish_control|resolve_host|{_NAME}): could not resolve.*"),
    _pattern("host_unknown", r"Netperf could not resolve \S+ as a host name.*"),
    _pattern("host_unknown", r"getaddrinfo returned -[0-9]+ .*"),
    _pattern("control_closed", r"recv_response\w*: partial response received: [0-9]+ bytes.*"),
    _pattern("control_closed", rf"(?:recv_request|recv_response)\w*: {_NAME}.*closed.*"),
    _pattern("control_timeout", r"recv_response\w*: no response received\.? *errno [0-9]+.*"),
    _pattern("control_timeout", r"shutdown_control: no response received.*"),
    _pattern("control_error", r"shutdown_control: error in shutdown.*"),
    _pattern("control_error", r"send_re(?:quest|sponse)\w*: send call failure.*"),
    _pattern("control_error", r"recv_re(?:quest|sponse)\w*: (?:error|partial).*"),
    _pattern("remote_error", r"(?:netperf: )?remote error [0-9]+.*"),
    _pattern("unknown_test", r"The test you requested \(.*\) is unknown to this netperf\..*"),
    _pattern("usage", r"Usage: netperf \[global options\].*"),
    _pattern("usage", r"\S*netperf: (?:invalid option|option requires an argument|unrecognized).*"),
    _pattern("usage", r"Only 95%+ and 99%+ confidence level is supported.*"),
    _pattern("usage", r"(?:Packet rate control|Packet burst size) is not compiled in\..*"),
    _pattern("usage", r"Could not open (?:output selection|requested fill) file.*"),
    _pattern("usage", r"Netperf does not understand .*"),
    _pattern("version_mismatch", r".*netperf.*netserver.*version.*mismatch.*"),
    _pattern("data_connect", rf"(?:netperf: )?(?:{_NAME}: )?connect_data_socket failed.*"),
    _pattern("data_connect", rf"(?:netperf: )?(?:{_NAME}: )?data socket connect failed.*"),
    _pattern("data_socket", rf"netperf: {_NAME}: unable to create data socket.*"),
    _pattern(
        "data_socket",
        r"(?:netperf: )?create_data_socket: .*(?:errno|failed|errmsg).*"
        rf"|netperf: {_NAME}: socket.*",
    ),
    _pattern("data_send", rf"(?:netperf: )?{_NAME}: (?:initial burst )?data send error.*"),
    _pattern("data_send", r"netperf: data send error.*"),
    _pattern("data_send", rf"(?:netperf: )?(?:{_NAME}: )?send_data failed.*"),
    _pattern("data_recv", rf"(?:netperf: )?{_NAME}: data (?:recv|receive) error.*"),
    _pattern("data_recv", rf"(?:netperf: )?(?:{_NAME}: )?recv_data failed.*"),
    _pattern("data_recv", r"Timeout receiving resonse from remote.*"),
    _pattern("data_close", rf"(?:netperf: )?(?:{_NAME}: )?(?:dis)?(?:connect|close)_data_socket"
             r" failed.*"),
    _pattern("data_close", r"netperf: cannot shutdown .*"),
    _pattern("address_family", r"get_sockaddr_family_addr_port:? .*(?:mismatch|Unexpected).*"),
    _pattern("address_family", r"set_(?:port_number|sockaddr_family_addr_port) Unexpected.*"),
    _pattern("timer", rf"start_(?:i?timer): error .*|error starting alarm timer.*|{_NAME}:"
             r" unable to get sigmask.*"),
    _pattern("timer", r"catcher: interval timer running unexpectedly!.*"),
    _pattern("memory", r"malloc\([0-9]+\) failed!.*|[Uu]nable to (?:malloc|allocate) .*"),
    _pattern("sctp", r"sctp_enable_event: could not set sctp events errno [0-9]+.*"),
    _pattern("netserver_start", r"Unable to start netserver with\s+'[^']*' port '[^']*'.*"),
    _pattern("accept", rf"(?:netserver: )?{_NAME}: accept: errno = [0-9]+.*"),
    _pattern("netperf_error", r"netperf: (?!get_sock_buffer|set_sock_buffer|get_tcp_info)"
             rf"{_NAME}: .*(?:failed|error|unable|cannot).*"),
)  # fmt: skip
_ANY = re.compile("|".join(one.regex.pattern for one in _PATTERNS))
_POPPED = re.compile(r"catcher: timer popped with times_up != 0")
# Said beside a sound result: a setting that did not take, a library that is missing something.
_NOTES = re.compile(
    r"(?:enable_enobufs|SO_\w+|\w+) failed: (?:getprotobyname|setsockopt).*"
    r"|netperf: (?:get|set)_sock_buffer: (?!.*(?:determined to be|requested\.$)).*"
    r"|netperf: get_tcp_info: .*|netperf: setsockopt: .*"
    r"|netperf: \w+: setsockopt .*|WARNING!? .*(?:getaddrinfo|CPU usage|htonl|address family).*"
    r"|Local CPU usage numbers based on process.*|Remote CPU usage numbers based on process.*"
    r"|failed to set PID [0-9]+'s CPU affinity.*|Local (?:send|recv) copy avoidance not available.*"
    r"|Note - attempt to set a receive timeout.*|Ignoring unknown output selector.*"
    r"|\w+: unable to set SO_KEEPALIVE.*|\w+ ip_tos failed with .*|Adjusting elapsed.time by .*"
)
# What follows the text about an unknown test.
_TAILS = re.compile(
    r"Please verify that you have the correct test name,|and that test family has been compiled.*"
)
_ERRNO = re.compile(r"\berrno(?: =)? (?P<number>[0-9]+)|remote error (?P<remote>[0-9]+)")
_TAIL = re.compile(r"(?:failed|error|error [0-9]+):? (?P<text>[A-Z][A-Za-z ,/'-]+?)\s*(?:\(|$)")


# Errors that netperf meets before it prints a banner.
BEFORE_BANNER = frozenset({"control_unreachable", "host_unknown", "usage", "unknown_test"})


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One error as printed: its class, text (rejoined) and errno, and how many lines it takes."""

    error_class: str
    text: str
    number: int | None
    lines: int
    to_stderr: bool

    def failure(self) -> Failure:
        """The failure of a run that stopped with this."""
        name = errno.errorcode.get(self.number) if self.number is not None else None
        return Failure(
            error_class=self.error_class,
            text=self.text,
            errno=self.number if name else None,
            errno_name=name,
            hint=_HINTS_BY_CLASS.get(self.error_class) or _HINTS_BY_ERRNO.get(name or ""),
        )


def read_error(lines: tuple[Line, ...], at: int) -> ErrorText | None:
    """The error text that starts at ``lines[at]``; None if that is no error text."""
    plain = lines[at].text[_LABEL.match(lines[at].text).end() :].strip()  # type: ignore[union-attr]
    pattern = _match(plain)
    count = 1
    if pattern is None and at + 1 < len(lines) and re.match(r"establish[ _]control", plain):
        plain = f"{plain} {lines[at + 1].text.strip()}"
        pattern, count = _match(plain), 2
    if pattern is None:
        return None
    if pattern.error_class == "control_unreachable" and "could not establish" in plain:
        plain, count = _rejoin(lines, at, plain, count)
    number = errno_of(plain)
    return ErrorText(pattern.error_class, plain, number, count, plain.startswith("netperf:"))


def _match(text: str) -> _Pattern | None:
    if not _ANY.fullmatch(text):
        return None
    return next((one for one in _PATTERNS if one.regex.fullmatch(text)), None)


def _rejoin(lines: tuple[Line, ...], at: int, text: str, count: int) -> tuple[str, int]:
    """``… could not establish …`` is 150 columns long: mail breaks it."""
    whole = re.compile(r".* to \S+ port \S+ address family AF_\w+")
    for more in range(3):
        if whole.fullmatch(text):
            return text, count
        index = at + count
        if more == 2 or index >= len(lines) or not lines[index].text.strip():
            break
        text, count = f"{text} {lines[index].text.strip()}", count + 1
    return lines[at].text.strip(), 1


def errno_of(text: str) -> int | None:
    """The errno an error text gives as a number or in words; None if it gives none."""
    match = _ERRNO.search(text)
    if match:
        return int(match["number"] or match["remote"])
    match = _TAIL.search(text)
    if match:
        return _BY_TEXT.get(match["text"].strip())
    return None


def is_timer_note(text: str) -> bool:
    """``catcher: timer popped …``: the watchdog rang; the error itself follows, or not."""
    return _POPPED.search(text) is not None


def is_note(text: str) -> bool:
    """Whether a line is a complaint of netperf that does not end the run."""
    return _NOTES.fullmatch(text.strip()) is not None


def is_tail(text: str) -> bool:
    """Whether a line only goes on with the error text above it."""
    return _TAILS.fullmatch(text.strip()) is not None

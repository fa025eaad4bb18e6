"""The selectors of netperf's omni output: name (``-k``), title (``-o``, ``-O``) and format.

A table, in the order of ``netperf -t omni -- -k '?'`` of 2.7.1. Format ``d`` is a whole number,
a digit is a number with that many decimals, ``s`` is text.
"""

from __future__ import annotations

from dataclasses import dataclass

_TABLE = """\
SOCKET_TYPE|Socket Type|s
PROTOCOL|Protocol|s
DIRECTION|Direction|s
ELAPSED_TIME|Elapsed Time (sec)|2
THROUGHPUT|Throughput|2
THROUGHPUT_UNITS|Throughput Units|s
LSS_SIZE_REQ|Local Send Socket Size Requested|d
LSS_SIZE|Local Send Socket Size Initial|d
LSS_SIZE_END|Local Send Socket Size Final|d
LSR_SIZE_REQ|Local Recv Socket Size Requested|d
LSR_SIZE|Local Recv Socket Size Initial|d
LSR_SIZE_END|Local Recv Socket Size Final|d
RSS_SIZE_REQ|Remote Send Socket Size Requested|d
RSS_SIZE|Remote Send Socket Size Initial|d
RSS_SIZE_END|Remote Send Socket Size Final|d
RSR_SIZE_REQ|Remote Recv Socket Size Requested|d
RSR_SIZE|Remote Recv Socket Size Initial|d
RSR_SIZE_END|Remote Recv Socket Size Final|d
LOCAL_SEND_SIZE|Local Send Size|d
LOCAL_RECV_SIZE|Local Recv Size|d
REMOTE_SEND_SIZE|Remote Send Size|d
REMOTE_RECV_SIZE|Remote Recv Size|d
REQUEST_SIZE|Request Size Bytes|d
RESPONSE_SIZE|Response Size Bytes|d
LOCAL_CPU_UTIL|Local CPU Util %|2
LOCAL_CPU_PERCENT_USER|Local CPU User %|2
LOCAL_CPU_PERCENT_SYSTEM|Local CPU System %|2
LOCAL_CPU_PERCENT_IOWAIT|Local CPU I/O %|2
LOCAL_CPU_PERCENT_IRQ|Local CPU IRQ %|2
LOCAL_CPU_PERCENT_SWINTR|Local CPU swintr %|2
LOCAL_CPU_METHOD|Local CPU Util Method|s
LOCAL_SD|Local Service Demand|3
REMOTE_CPU_UTIL|Remote CPU Util %|2
REMOTE_CPU_PERCENT_USER|Remote CPU User %|2
REMOTE_CPU_PERCENT_SYSTEM|Remote CPU System %|2
REMOTE_CPU_PERCENT_IOWAIT|Remote CPU I/O %|2
REMOTE_CPU_PERCENT_IRQ|Remote CPU IRQ %|2
REMOTE_CPU_PERCENT_SWINTR|Remote CPU swintr %|2
REMOTE_CPU_METHOD|Remote CPU Util Method|s
REMOTE_SD|Remote Service Demand|3
SD_UNITS|Service Demand Units|s
CONFIDENCE_LEVEL|Confidence Level Percent|d
CONFIDENCE_INTERVAL|Confidence Width Target|6
CONFIDENCE_ITERATION|Confidence Iterations Run|d
THROUGHPUT_CONFID|Throughput Confidence Width (%)|3
LOCAL_CPU_CONFID|Local CPU Confidence Width (%)|3
REMOTE_CPU_CONFID|Remote CPU Confidence Width (%)|3
TRANSACTION_RATE|Transaction Rate Tran/s|3
RT_LATENCY|Round Trip Latency usec/tran|3
BURST_SIZE|Initial Burst Requests|d
LOCAL_TRANSPORT_RETRANS|Local Transport Retransmissions|d
REMOTE_TRANSPORT_RETRANS|Remote Transport Retransmissions|d
TRANSPORT_MSS|Transport MSS bytes|d
LOCAL_SEND_THROUGHPUT|Local Send Throughput|2
LOCAL_RECV_THROUGHPUT|Local Recv Throughput|2
REMOTE_SEND_THROUGHPUT|Remote Send Throughput|2
REMOTE_RECV_THROUGHPUT|Remote Recv Throughput|2
LOCAL_CPU_BIND|Local CPU Bind|d
LOCAL_CPU_COUNT|Local CPU Count|d
LOCAL_CPU_PEAK_UTIL|Local Peak Per CPU Util %|2
LOCAL_CPU_PEAK_ID|Local Peak Per CPU ID|d
LOCAL_CPU_MODEL|Local CPU Model|s
LOCAL_CPU_FREQUENCY|Local CPU Frequency MHz|d
REMOTE_CPU_BIND|Remote CPU Bind|d
REMOTE_CPU_COUNT|Remote CPU Count|d
REMOTE_CPU_PEAK_UTIL|Remote Peak Per CPU Util %|2
REMOTE_CPU_PEAK_ID|Remote Peak Per CPU ID|d
REMOTE_CPU_MODEL|Remote CPU Model|s
REMOTE_CPU_FREQUENCY|Remote CPU Frequency MHz|d
SOURCE_PORT|Source Port|d
SOURCE_ADDR|Source Address|s
SOURCE_FAMILY|Source Family|d
DEST_PORT|Destination Port|d
DEST_ADDR|Destination Address|s
DEST_FAMILY|Destination Family|d
LOCAL_SEND_CALLS|Local Send Calls|d
LOCAL_RECV_CALLS|Local Recv Calls|d
LOCAL_BYTES_PER_RECV|Local Bytes Per Recv|2
LOCAL_BYTES_PER_SEND|Local Bytes Per Send|2
LOCAL_BYTES_SENT|Local Bytes Sent|d
LOCAL_BYTES_RECVD|Local Bytes Received|d
LOCAL_BYTES_XFERD|Local Bytes Xferred|d
LOCAL_SEND_OFFSET|Local Send Offset|d
LOCAL_RECV_OFFSET|Local Recv Offset|d
LOCAL_SEND_ALIGN|Local Send Alignment|d
LOCAL_RECV_ALIGN|Local Recv Alignment|d
LOCAL_SEND_WIDTH|Local Send Width|d
LOCAL_RECV_WIDTH|Local Recv Width|d
LOCAL_SEND_DIRTY_COUNT|Local Send Dirty Count|d
LOCAL_RECV_DIRTY_COUNT|Local Recv Dirty Count|d
LOCAL_RECV_CLEAN_COUNT|Local Recv Clean Count|d
LOCAL_NODELAY|Local NODELAY|d
LOCAL_CORK|Local Cork|d
REMOTE_SEND_CALLS|Remote Send Calls|d
REMOTE_RECV_CALLS|Remote Recv Calls|d
REMOTE_BYTES_PER_RECV|Remote Bytes Per Recv|2
REMOTE_BYTES_PER_SEND|Remote Bytes Per Send|2
REMOTE_BYTES_SENT|Remote Bytes Sent|d
REMOTE_BYTES_RECVD|Remote Bytes Received|d
REMOTE_BYTES_XFERD|Remote Bytes Xferred|d
REMOTE_SEND_OFFSET|Remote Send Offset|d
REMOTE_RECV_OFFSET|Remote Recv Offset|d
REMOTE_SEND_ALIGN|Remote Send Alignment|d
REMOTE_RECV_ALIGN|Remote Recv Alignment|d
REMOTE_SEND_WIDTH|Remote Send Width|d
REMOTE_RECV_WIDTH|Remote Recv Width|d
REMOTE_SEND_DIRTY_COUNT|Remote Send Dirty Count|d
REMOTE_RECV_DIRTY_COUNT|Remote Recv Dirty Count|d
REMOTE_RECV_CLEAN_COUNT|Remote Recv Clean Count|d
REMOTE_NODELAY|Remote NODELAY|d
REMOTE_CORK|Remote Cork|d
LOCAL_SYSNAME|Local Sysname|s
LOCAL_SYSTEM_MODEL|Local System Model|s
LOCAL_RELEASE|Local Release|s
LOCAL_VERSION|Local Version|s
LOCAL_MACHINE|Local Machine|s
REMOTE_SYSNAME|Remote Sysname|s
REMOTE_SYSTEM_MODEL|Remote System Model|s
REMOTE_RELEASE|Remote Release|s
REMOTE_VERSION|Remote Version|s
REMOTE_MACHINE|Remote Machine|s
LOCAL_INTERFACE_NAME|Local Interface Name|s
LOCAL_INTERFACE_VENDOR|Local Interface Vendor|s
LOCAL_INTERFACE_DEVICE|Local Interface Device|s
LOCAL_INTERFACE_SUBVENDOR|Local Interface Subvendor|s
LOCAL_INTERFACE_SUBDEVICE|Local Interface Subdevice|s
LOCAL_DRIVER_NAME|Local Driver Name|s
LOCAL_DRIVER_VERSION|Local Driver Version|s
LOCAL_DRIVER_FIRMWARE|Local Driver Firmware|s
LOCAL_DRIVER_BUS|Local Driver Bus|s
LOCAL_INTERFACE_SLOT|Local Interface Slot|s
REMOTE_INTERFACE_NAME|Remote Interface Name|s
REMOTE_INTERFACE_VENDOR|Remote Interface Vendor|s
REMOTE_INTERFACE_DEVICE|Remote Interface Device|s
REMOTE_INTERFACE_SUBVENDOR|Remote Interface Subvendor|s
REMOTE_INTERFACE_SUBDEVICE|Remote Interface Subdevice|s
REMOTE_DRIVER_NAME|Remote Driver Name|s
REMOTE_DRIVER_VERSION|Remote Driver Version|s
REMOTE_DRIVER_FIRMWARE|Remote Driver Firmware|s
REMOTE_DRIVER_BUS|Remote Driver Bus|s
REMOTE_INTERFACE_SLOT|Remote Interface Slot|s
LOCAL_INTERVAL_USECS|Local Interval Usecs|d
LOCAL_INTERVAL_BURST|Local Interval Burst|d
REMOTE_INTERVAL_USECS|Remote Interval Usecs|d
REMOTE_INTERVAL_BURST|Remote Interval Burst|d
LOCAL_SECURITY_TYPE_ID|Local OS Security Type ID|d
LOCAL_SECURITY_TYPE|Local OS Security Type|s
LOCAL_SECURITY_ENABLED_NUM|Local OS Security Enabled Num|d
LOCAL_SECURITY_ENABLED|Local OS Security Enabled|s
LOCAL_SECURITY_SPECIFIC|Local OS Security Specific|s
REMOTE_SECURITY_TYPE_ID|Remote OS Security Type|d
REMOTE_SECURITY_TYPE|Remote OS Security Type|s
REMOTE_SECURITY_ENABLED_NUM|Remote OS Security Enabled|d
REMOTE_SECURITY_ENABLED|Remote OS Security Enabled|s
REMOTE_SECURITY_SPECIFIC|Remote OS Security Specific|s
RESULT_BRAND|Result Tag|s
UUID|Test UUID|s
MIN_LATENCY|Minimum Latency Microseconds|d
MAX_LATENCY|Maximum Latency Microseconds|d
P50_LATENCY|50th Percentile Latency Microseconds|d
P90_LATENCY|90th Percentile Latency Microseconds|d
P99_LATENCY|99th Percentile Latency Microseconds|d
MEAN_LATENCY|Mean Latency Microseconds|2
STDDEV_LATENCY|Stddev Latency Microseconds|2
LOCAL_SOCKET_PRIO|Local Socket Priority|d
REMOTE_SOCKET_PRIO|Remote Socket Priority|d
LOCAL_SOCKET_TOS|Local Socket TOS|s
REMOTE_SOCKET_TOS|Remote Socket TOS|s
LOCAL_CONG_CONTROL|Local Congestion Control Algorithm|s
REMOTE_CONG_CONTROL|Remote Congestion Control Algorithm|s
LOCAL_FILL_FILE|Local Fill File|s
REMOTE_FILL_FILE|Remote Fill File|s
COMMAND_LINE|Command Line|s
"""


@dataclass(frozen=True, slots=True)
class Selector:
    """One quantity of the omni output. ``decimals`` is None unless it is a fixed-point number."""

    name: str
    title: str
    is_text: bool
    decimals: int | None


def _selector(line: str) -> Selector:
    name, title, form = line.split("|")
    return Selector(name, title, form == "s", int(form) if form.isdigit() else None)


SELECTORS: dict[str, Selector] = {
    one.name: one for one in map(_selector, _TABLE.strip().splitlines())
}


def _by_title() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in SELECTORS.values():
        found[one.title] = (*found.get(one.title, ()), one.name)
    return found


# Four titles belong to two selectors each: a number and its words.
NAMES_BY_TITLE: dict[str, tuple[str, ...]] = _by_title()
TITLE_WORDS: frozenset[str] = frozenset(w for title in NAMES_BY_TITLE for w in title.split())

# Averaged over the iterations of -i/-I (nettest_omni.c, retrieve_confident_values); every other
# measured quantity is of the last iteration.
_MEANS = frozenset({
    "ELAPSED_TIME", "THROUGHPUT", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD",
})  # fmt: skip
_SETTINGS_END = ("_REQ", "_SIZE", "_FAMILY", "_ADDR", "_PORT", "_ALIGN", "_OFFSET", "_WIDTH",
                 "_NODELAY", "_CORK", "_METHOD", "_BIND", "_COUNT", "_UNITS", "_PRIO", "_TOS",
                 "_CONTROL", "_FREQUENCY", "_USECS", "_BURST", "_FILE", "_CONFID")  # fmt: skip


def last_iteration_only(names: list[str]) -> tuple[str, ...]:
    """Which of ``names`` are measured in the last iteration only, not averaged over all."""
    return tuple(
        name
        for name in names
        if (one := SELECTORS.get(name)) is not None
        and not one.is_text
        and name not in _MEANS
        and not name.startswith("CONFIDENCE_")
        and not name.endswith(_SETTINGS_END)
    )

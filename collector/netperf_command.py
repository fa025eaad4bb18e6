"""The netperf command lines of the cells, and what each must answer.

Key=value output of a fixed list of selectors: netperf drops an unknown selector without a word,
so every key asked for must come back (netperf manual, "Omni Output Selectors").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Means over the iterations of a test, then quantities of its last iteration only.
SELECTORS = (
    "PROTOCOL,DIRECTION,SOURCE_ADDR,DEST_ADDR,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,"
    "CONFIDENCE_LEVEL,CONFIDENCE_INTERVAL,CONFIDENCE_ITERATION,"
    "THROUGHPUT_CONFID,LOCAL_CPU_CONFID,REMOTE_CPU_CONFID,"
    "LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_CPU_METHOD,REMOTE_CPU_METHOD,"
    "LOCAL_CPU_COUNT,REMOTE_CPU_COUNT,LOCAL_SD,REMOTE_SD,SD_UNITS,"
    "LOCAL_SEND_THROUGHPUT,LOCAL_RECV_THROUGHPUT,REMOTE_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,"
    "TRANSACTION_RATE,RT_LATENCY,BURST_SIZE,REQUEST_SIZE,RESPONSE_SIZE,"
    "MIN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY,MEAN_LATENCY,STDDEV_LATENCY,"
    "TRANSPORT_MSS,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,"
    "LSS_SIZE_REQ,LSS_SIZE,LSS_SIZE_END,LSR_SIZE_REQ,LSR_SIZE,LSR_SIZE_END,"
    "RSS_SIZE_REQ,RSS_SIZE,RSS_SIZE_END,RSR_SIZE_REQ,RSR_SIZE,RSR_SIZE_END,"
    "LOCAL_SEND_SIZE,LOCAL_RECV_SIZE,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,"
    "LOCAL_SEND_CALLS,LOCAL_RECV_CALLS,REMOTE_SEND_CALLS,REMOTE_RECV_CALLS,"
    "LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD,"
    "LOCAL_NODELAY,REMOTE_NODELAY,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL"
)
SECONDS_OF_GRACE = 30


@dataclass(frozen=True, slots=True)
class Path:
    """The addresses of a pair: control connection and data, without prefix lengths."""

    control: str
    port: int
    server: str
    client: str


def argv(settings: Mapping[str, Any], path: Path, payload_bytes: int) -> list[str]:
    """The netperf command line of a test. ``payload_bytes`` is what ``"fit"`` means here."""
    command = ["netperf", "-H", path.control, "-p", str(path.port), "-t", settings["netperf"]]
    command += ["-l", str(settings["duration_s"]), "-c", "-C", "-j", "-P", "0"]
    confidence = settings["confidence"]
    if confidence is not None:
        command += ["-i", f"{confidence['max_iterations']},{confidence['min_iterations']}"]
        command += ["-I", f"{confidence['level_pct']},{confidence['width_pct']:g}"]
    return [*command, "--", *data_options(settings, path, payload_bytes), "-k", SELECTORS]


def data_options(settings: Mapping[str, Any], path: Path, payload_bytes: int) -> list[str]:
    """The options that concern the data connection: what stands behind ``--``."""
    # The control connection keeps its own family; only the data connection has the measured one.
    command = ["-H", path.server, "-L", path.client, "-6" if ":" in path.server else "-4"]
    if settings["netperf"] == "UDP_STREAM":
        command += ["-R", "1"]  # netperf forbids routing of UDP_STREAM unless told otherwise
    message = settings["message_bytes"]
    if message is not None:
        size = payload_bytes if message == "fit" else message
        command += ["-m", str(size)]
    if settings["request_bytes"] is not None or settings["response_bytes"] is not None:
        command += ["-r", f"{settings['request_bytes'] or 1},{settings['response_bytes'] or 1}"]
    if settings["local_socket_bytes"] is not None:
        command += ["-s", str(settings["local_socket_bytes"])]
    if settings["remote_socket_bytes"] is not None:
        command += ["-S", str(settings["remote_socket_bytes"])]
    return command


def timeout_s(settings: Mapping[str, Any]) -> float:
    """When a netperf counts as hanging: half as long again as its longest run, and a grace."""
    confidence = settings["confidence"]
    iterations = confidence["max_iterations"] if confidence else 1
    return float(settings["duration_s"]) * iterations * 1.5 + SECONDS_OF_GRACE

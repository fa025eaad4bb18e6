"""The netperf command lines of the cells, and what each must answer.

Key=value output of a fixed list of selectors: netperf drops an unknown selector without a word,
so every key asked for must come back (netperf manual, "Omni Output Selectors").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.matrix.tests import FIT, STREAMS
from collector.sessions.launch import LENGTH, WAIT

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
# Sessions run before and after the window that they share: until all have found their rate, and
# until the first of them has ended.
SETTLE_S, TAIL_S = 0.5, 0.5
# They begin within the second that netperf's wait is rounded to, and wake one after the other.
SPREAD_S, SPREAD_A_SESSION_S = 1.0, 0.02
# Interim results in a window, at least; seconds of one; of all sessions in a second, at the most;
# and the share of a window that one may be, so that it can be cut at the window's ends.
INTERIMS = 20
SHORTEST_INTERIM_S, LONGEST_INTERIM_S = 0.1, 2.0
MOST_INTERIMS_A_SECOND = 200.0
SESSIONS_A_SECOND = 40  # of a window, so that the cut at its ends is a small share of the sum
LONGEST_SHARE = 0.4
# Seconds between two samples of the CPU: a sample costs an emulated host a millisecond or two.
SHORTEST_SAMPLE_S = 0.25
# A process that starts beside many others waits for its turn.
SECONDS_A_SESSION = 0.2
STREAM_UNIT = ("-f", "k")


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
    command += [*_length(settings), "-c", "-C", "-j", "-P", "0"]
    confidence = settings["confidence"]
    if settings.get("sessions"):
        # Below zero: look at the clock after every send, so that a slow session keeps to it.
        command += ["-D", f"-{interim_s(settings):g}"]
        if settings["netperf"] in STREAMS:
            # Two decimals of 10^6 bits a second are too few for one of many slow sessions.
            command += STREAM_UNIT
    elif confidence is not None:
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
        size = payload_bytes if message == FIT else message
        command += ["-m", str(size)]
    if settings["request_bytes"] is not None or settings["response_bytes"] is not None:
        request = payload_bytes if settings["request_bytes"] == FIT else settings["request_bytes"]
        command += ["-r", f"{request or 1},{settings['response_bytes'] or 1}"]
    if settings["local_socket_bytes"] is not None:
        command += ["-s", str(settings["local_socket_bytes"])]
    if settings["remote_socket_bytes"] is not None:
        command += ["-S", str(settings["remote_socket_bytes"])]
    return command


def _length(settings: Mapping[str, Any]) -> list[str]:
    """``-l``, and ``-s`` where sessions wait for each other: each gets values of its own."""
    if (settings.get("sessions") or 0) > 1:
        return ["-s", WAIT, "-l", LENGTH]
    return ["-l", str(run_s(settings))]


def run_s(settings: Mapping[str, Any]) -> int:
    """How long one netperf sends, seconds: the duration, for sessions what is around it besides."""
    sessions = int(settings.get("sessions") or 0)
    if not sessions:
        return int(settings["duration_s"])
    spread = 0.0 if sessions == 1 else SPREAD_S + sessions * SPREAD_A_SESSION_S
    return math.ceil(spread + SETTLE_S + window_s(settings) + TAIL_S)


def window_s(settings: Mapping[str, Any]) -> float:
    """The window that sessions share, seconds: the form's duration, longer for very many, whose
    interim results come too seldom for a short one."""
    return float(max(int(settings["duration_s"]), int(settings["sessions"]) / SESSIONS_A_SECOND))


def length_s(settings: Mapping[str, Any]) -> int:
    """How long a test takes, seconds, with the time that sessions are given to set up."""
    return run_s(settings) + int(settings.get("start_s") or 0)


def interim_s(settings: Mapping[str, Any]) -> float:
    """Seconds between two interim results of a session. Many sessions print theirs less often: each
    is a write, and together they would take the time from what is measured."""
    duration = window_s(settings)
    wanted = max(duration / INTERIMS, int(settings["sessions"]) / MOST_INTERIMS_A_SECOND)
    limit = min(LONGEST_INTERIM_S, LONGEST_SHARE * duration)
    return round(max(min(wanted, limit), SHORTEST_INTERIM_S), 2)


def sample_s(settings: Mapping[str, Any]) -> float:
    """Seconds between two samples of the CPU."""
    wanted = window_s(settings) / INTERIMS
    return round(min(max(wanted, SHORTEST_SAMPLE_S), LONGEST_INTERIM_S), 2)


def timeout_s(settings: Mapping[str, Any]) -> float:
    """When a netperf counts as hanging: half as long again as its longest run, and a grace."""
    sessions = settings.get("sessions") or 0
    confidence = None if sessions else settings["confidence"]
    iterations = confidence["max_iterations"] if confidence else 1
    grace = SECONDS_OF_GRACE + SECONDS_A_SESSION * sessions
    # Sessions that are not told to end run on as long as they have waited.
    longest = length_s(settings) + int(settings.get("start_s") or 0)
    return float(longest) * iterations * 1.5 + grace


def command(
    cell_id: str, settings: Mapping[str, Any], path: Path, payload_bytes: int
) -> dict[str, Any]:
    """A cell's entry for the module ``bench_measure``."""
    made: dict[str, Any] = {
        "cell_id": cell_id,
        "argv": argv(settings, path, payload_bytes),
        "timeout": timeout_s(settings),
    }
    if settings.get("sessions"):
        made["sessions"] = settings["sessions"]
        made["window"] = {
            "settle_s": SETTLE_S,
            "wanted_s": window_s(settings),
            "start_s": settings["start_s"],
            "run_s": run_s(settings),
            # The server keeps the time of this one.
            "interrupt": settings["netperf"] != "TCP_MAERTS",
        }
    return made


def sampling(settings: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """How the hosts sample their CPUs while the tests of a group run; None if none wants it."""
    windowed = [one for one in settings if one.get("sessions")]
    if not windowed:
        return None
    return {
        "period_s": min(sample_s(one) for one in windowed),
        "lifetime_s": sum(timeout_s(one) for one in settings) + SECONDS_OF_GRACE,
    }

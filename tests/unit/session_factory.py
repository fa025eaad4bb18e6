"""Sessions as netperf writes them: interim results, then the result that they add up to."""

import math
from typing import Any

from evidence_factory import netperf_output, result

from collector.sessions.launch import Session, pack

STARTED = 1_796_000_000.0
STEP_S = 0.25
STAT = "cpu {0} 0 0 {1}\ncpu0 {0} 0 0 {1}\nbtime 1700000000\n"


def settings(netperf: str = "TCP_RR", sessions: int = 5, **changes: Any) -> dict[str, Any]:
    """A test's settings as the plan has them."""
    return {
        "netperf": netperf,
        "duration_s": 2,
        "warm_up_s": 1.0,
        "confidence": None,
        "message_bytes": None,
        "request_bytes": 1,
        "response_bytes": 1,
        "local_socket_bytes": None,
        "remote_socket_bytes": None,
        "sessions": sessions,
        "start_s": 1,
        **changes,
    }


def interims(rate: float, unit: str, start: float, seconds: float, step: float = STEP_S) -> str:
    """Interim results of a steady rate."""
    lines = []
    for number in range(math.ceil(seconds / step)):
        end = min((number + 1) * step, seconds)
        lines += [
            f"NETPERF_INTERIM_RESULT[{number}]={rate:.2f}",
            f"NETPERF_UNITS[{number}]={unit}",
            f"NETPERF_INTERVAL[{number}]={end - number * step:.3f}",
            f"NETPERF_ENDING[{number}]={start + end:.3f}",
        ]
    return "".join(line + "\n" for line in lines)


def rr(number: int, rate: float = 100.0, start: float = 0.0, seconds: float = 4.0, **own: Any):
    """A session of requests that began ``start`` seconds after the first and ran evenly.

    ``step`` is the length of its interim results, ``values`` what netperf says otherwise, and what
    else is given are fields of the session.
    """
    step, values = own.pop("step", STEP_S), own.pop("values", {})
    said = {"THROUGHPUT": f"{rate:.2f}", "ELAPSED_TIME": f"{seconds:.2f}", **values}
    text = interims(rate, "Trans/s", STARTED + start, seconds, step)
    fields = {"rc": 0, "timed_out": False, "started_at": STARTED + start, "stderr": "", **own}
    return Session(
        number=number,
        stdout=own.get("stdout", text + netperf_output(**said)),
        **{key: value for key, value in fields.items() if key != "stdout"},
    )


def udp(number: int, rate_bps: float, share: float, seconds: float = 4.0) -> Session:
    """A stream of datagrams of which a share arrives."""
    sent = rate_bps * seconds / 8
    text = netperf_output(
        "udp_stream",
        THROUGHPUT=f"{rate_bps * share / 1e3:.2f}",
        THROUGHPUT_UNITS="10^3bits/s",
        ELAPSED_TIME=f"{seconds:.2f}",
        LOCAL_BYTES_SENT=f"{sent:.0f}",
        REMOTE_BYTES_RECVD=f"{sent * share:.0f}",
    )
    head = interims(rate_bps / 1e3, "10^3bits/s", STARTED, seconds)
    return Session(number, 0, False, STARTED, head + text, "")


def reading(at: float, busy: int, idle: int) -> dict[str, Any]:
    """``/proc/stat`` of one CPU."""
    return {"at": at, "monotonic": at - STARTED, "stat": STAT.format(busy, idle)}


def cpu(busy_pct: float, seconds: float = 1.5) -> dict[str, Any]:
    """Readings over a window in which one CPU was busy for so much of the time."""
    ticks = round(seconds * 1000)
    busy = round(ticks * busy_pct / 100)
    start = STARTED + 1.0
    return {"first": reading(start, 0, 0), "last": reading(start + seconds, busy, ticks - busy)}


def sessions_result(cell_id: str, sessions: list[Session], **changes: Any) -> dict[str, Any]:
    """The entry of ``bench_measure``'s results for sessions with a window of 2 s."""
    made = result(cell_id, sessions=len(sessions), packed=pack(sessions), no_room=None)
    made |= {
        "window": {"start": STARTED + 1.0, "end": STARTED + 3.0},
        "window_error": None,
        "cpu": cpu(50.0),
        "rc": next((one.rc for one in sessions if one.rc), 0),
    }
    del made["stdout"], made["stderr"]
    return {**made, **changes}

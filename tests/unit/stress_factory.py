"""Stress plans and timelines for tests: a quiet run, and what the tests change about it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from collector.stress.log import Timeline, parse_log
from collector.stress.plan import StressPlan, parse_stress

INTERVAL_S = 60.0
BOOT = {"client": "c0ffee", "server": "5eed"}
CONTEXT = "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023"
SA = """src 198.18.0.1 dst 198.18.0.2
\tproto esp spi 0x00001000(4096) reqid 1(0x00000001) mode transport
\treplay-window 32 seq 0x00000000 flag  (0x00000000)
\taead rfc4106(gcm(aes)) <<Keys hidden>> (160 bits) 128
\tanti-replay context: seq 0x0, oseq 0x19, bitmap 0x00000000
\tsel src 0.0.0.0/0 dst 0.0.0.0/0 uid 0
\tlifetime config:
\t  limit: soft (INF)(bytes), hard (INF)(bytes)
\t  limit: soft (INF)(packets), hard (INF)(packets)
\t  expire add: soft 0(sec), hard 0(sec)
\t  expire use: soft 0(sec), hard 0(sec)
\tlifetime current:
\t  BYTES(bytes), PACKETS(packets)
\t  add 2026-11-30 12:00:00 use 2026-11-30 12:00:01
\tstats:
\t  replay-window 0 replay 0 failed 0
"""
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "run_id": "stress-x-1",
    "matrix": "small",
    "configuration": "x",
    "about": "a configuration",
    "created_at": "2026-11-30T10:00:00.000Z",
    "lab": {"kind": "hardware", "accelerator": "none", "name": "pair"},
    "keying": "none",
    "duration_s": 3600.0,
    "interval_s": INTERVAL_S,
    "chunk_s": 60.0,
    "limits": {
        "drift_pct": 5.0,
        "leak_mib_h": 4.0,
        "silent_intervals": 5,
        "clock_step_s": 0.5,
    },
    "streams": {"tcp": ["netperf", "-l", "@seconds"], "udp": ["netperf", "-l", "@seconds"]},
    "hosts": {"client": "a", "server": "b"},
    "group": {},
}

Line = dict[str, Any]
Change = Callable[[Line, int], object]


def plan(**changes: Any) -> StressPlan:
    """The plan of an hour, with some fields set."""
    return parse_stress({**copy.deepcopy(DOCUMENT), **changes}, "stress.json")


def output(received: float, sent: float | None = None) -> str:
    """What a chunk of netperf prints; rates in 10^6 bit/s."""
    return (
        "PROTOCOL=TCP\nELAPSED_TIME=60.00\nTHROUGHPUT_UNITS=10^6bits/s\n"
        f"LOCAL_SEND_THROUGHPUT={received if sent is None else sent:.2f}\n"
        f"REMOTE_RECV_THROUGHPUT={received:.2f}\nLOCAL_TRANSPORT_RETRANS=0\n"
    )


def chunk(stream: str, minute: int, **changes: Any) -> Line:
    """The chunk that ended at the end of a minute."""
    return {
        "stream": stream,
        "began_s": 60.0 * (minute - 1),
        "took_s": 60.0,
        "seconds": 60.0,
        "rc": 0,
        "timed_out": False,
        "stdout": output(100.0),
        "stderr": "",
        **changes,
    }


def sas(bytes_: int, spi: int = 0x1000, failed: int = 0) -> Line:
    """One SA that has carried so much; so many packets failed its integrity check."""
    text = SA.replace("BYTES", str(bytes_)).replace("PACKETS", str(bytes_ // 100))
    text = text.replace("failed 0", f"failed {failed}")
    text = text.replace("0x00001000(4096)", f"{spi:#010x}({spi})")
    return {"text": text, "bytes": len(text), "error": None}


def line(host: str, seq: int, event: str, minute: float, **details: Any) -> Line:
    """A line of a host, as it stands in stress.jsonl."""
    return {
        "host": host,
        "schema": 1,
        "event": event,
        "seq": seq,
        "time": 1_800_000_000.0 + 60 * minute,
        "elapsed_s": 60 * minute,
        **details,
    }


def sample(host: str, minute: int, *, ipsec: bool) -> Line:
    """A quiet sample at the end of a minute."""
    client = host == "client"
    streams = ("tcp", "udp") if client and minute else ()
    return line(
        host,
        minute + 1,
        "sample",
        minute,
        boot_id=BOOT[host],
        memory_kib={"MemAvailable": 512_000, "SUnreclaim": 20_480, "SReclaimable": 10_240},
        xfrm={
            "XfrmInError": 0,
            "XfrmOutNoStates": 0,
            "XfrmInStateSeqError": 0,
            "XfrmInStateProtoError": 0,
        },
        device={"rx_bytes": 1, "rx_dropped": 0, "tx_dropped": 0, "rx_errors": 0, "tx_errors": 0},
        sas=sas(1000 * minute) if ipsec else None,
        kernel_log=[],
        kernel_log_lost=False,
        denials=[],
        chunks=[chunk(stream, minute) for stream in streams],
        netserver=None if client else True,
    )


def lines(
    minutes: int = 60,
    *,
    change: Change | None = None,
    ipsec: bool = False,
    end: bool = True,
) -> list[Line]:
    """A quiet run. ``change(sample, minute)`` edits each sample in place."""
    found = []
    for host in ("client", "server"):
        identity = {"kernel": "6.12", "boot_id": BOOT[host], "context": CONTEXT}
        found.append(line(host, 0, "begin", 0, pid=1, identity=identity))
        for minute in range(minutes + 1):
            made = sample(host, minute, ipsec=ipsec)
            if change is not None:
                change(made, minute)
            found.append(made)
        if end:
            last = found[-1]
            made = line(host, minutes + 2, "end", minutes, reason="time is over")
            made["time"] = last["time"]
            found.append(made)
    return found


def poll(host: str, minute: float, **changes: Any) -> Line:
    """A poll that found all well."""
    return {
        "schema": 1,
        "event": "poll",
        "host": host,
        "time": "2026-11-30T10:00:00Z",
        "offset": int(1000 * minute),
        "active": True,
        "boot_id": BOOT[host],
        "host_time": 1_800_000_000.0 + 60 * minute,
        "words": "",
        "clock_offset_s": 0.01,
        "clock_uncertainty_s": 0.005,
        **changes,
    }


def timeline(found: list[Line]) -> Timeline:
    """The timeline of such lines."""
    return parse_log([json.dumps(item) for item in found], "stress.jsonl")

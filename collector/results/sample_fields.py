"""The measured fields of a sample, from one netperf by itself or from many sessions at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from collector.matrix.tests import STREAMS
from collector.results.cpu_use import HostCpu, work_units
from collector.results.netperf_result import Values, number, value_of
from collector.results.session_results import Latency, merge_latency, together
from collector.sessions.launch import Session
from collector.sessions.window import Window

# What netperf calls the units in which we keep its service demand.
_DEMAND_UNITS = {"bit/s": "usec/KB", "1/s": "usec/Tran"}


def from_netperf(values: Values, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that one netperf says of its own run. Raises InputError for no number."""
    value, unit = value_of(values, settings)
    wish = settings.get("confidence")
    got = number(values, "THROUGHPUT_CONFID") if wish else None
    demand = values["SD_UNITS"] == _DEMAND_UNITS[unit]
    return {
        "value": value,
        "unit": unit,
        "elapsed_s": number(values, "ELAPSED_TIME"),
        "confidence_got_pct": got,
        "confidence_met": None if not wish or got is None else got <= wish["width_pct"],
        "cpu_local_pct": number(values, "LOCAL_CPU_UTIL"),
        "cpu_remote_pct": number(values, "REMOTE_CPU_UTIL"),
        "sd_local_us": number(values, "LOCAL_SD") if demand else None,
        "sd_remote_us": number(values, "REMOTE_SD") if demand else None,
        **_latency(None if settings["netperf"] in STREAMS else merge_latency([values])),
    }


def from_sessions(
    sessions: Sequence[Session],
    window: Window,
    settings: Mapping[str, Any],
    cpu: Mapping[str, HostCpu | str],
) -> dict[str, Any]:
    """Fields of sessions over their window, with the CPU of both hosts over the same window.

    A host of whose CPU nothing is known (``cpu`` has a sentence in its place) has none of its
    fields. Raises InputError.
    """
    found = together(sessions, window, settings)
    near, far = cpu["client"], cpu["server"]
    return {
        "value": found.value,
        "unit": found.unit,
        "elapsed_s": window.seconds,
        "sessions": len(sessions),
        "window_s": window.seconds,
        "start_skew_s": found.skew_s,
        "session_low": found.low,
        "session_high": found.high,
        **_cpu("local", near, work_units(found.sent, found.unit)),
        **_cpu("remote", far, work_units(found.value, found.unit)),
        **_latency(found.latency),
    }


def _cpu(side: str, host: HostCpu | str, units_a_second: float) -> dict[str, Any]:
    if isinstance(host, str):
        return {}
    return {
        f"cpu_{side}_pct": host.spent_pct,
        f"cpu_{side}_kinds": host.kinds,
        f"cpu_{side}_each": host.each,
        f"sd_{side}_us": host.demand_us(units_a_second),
    }


def _latency(found: Latency | None) -> dict[str, Any]:
    if found is None:
        return {}
    fields: dict[str, Any] = {
        "latency_mean_us": found.mean,
        "latency_stddev_us": found.stddev,
        "latency_min_us": found.lowest,
        "latency_max_us": found.highest,
    }
    for percent, (low, high) in found.percentiles.items():
        fields[f"latency_p{percent}_low_us"] = low
        fields[f"latency_p{percent}_high_us"] = high
    return fields

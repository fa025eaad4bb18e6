# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host knows about its IPsec traffic, gathered for :mod:`.xfrm_explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, List, Sequence

from . import audit, ike_daemons, ipsec_fits, ipsec_host, ipsec_last
from .host import record as record_file
from .host.errors import HostError
from .ipsec_host import IpsecError, Record
from .ipsec_view import shown_state_of
from .kernel_state.errors import StateError
from .kernel_state.xfrm import State
from .kernel_state.xfrm_stat import growth
from .xfrm_explain import Evidence, explain


def missing(record: Record, states: Sequence[State]) -> List[str]:
    """Connections that this collection added and that lack SAs now."""
    found = []
    for name, item in record.connections.items():
        low, high = item["reqids"]
        count = sum(1 for state in states if low <= (state.reqid or 0) <= high)
        if count < item.get("sas", 1):
            found.append(f"{item.get('sas', 1) - count} of {item.get('sas', 1)} SAs of {name}")
    return found


def clock_step(record: Record) -> float:
    """Seconds by which the wall clock was set since the connections were added; 0 if not."""
    steps = [
        ipsec_host.clock_base() - item["clock"]
        for item in record.connections.values()
        if "clock" in item
    ]
    return max(steps, key=abs, default=0.0)


def daemon_complaints() -> List[str]:
    """What the IKE daemon of this collection, if one runs, says of trouble."""
    try:
        known = record_file.load(ike_daemons.RECORD)
    except HostError as error:
        raise IpsecError(str(error)) from error
    return ike_daemons.DAEMONS[known["keying"]]().complaints() if known else []


def observe(wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """The module's result. Raises :class:`~.ipsec_host.IpsecError`."""
    record = ipsec_host.read_record()
    present = ipsec_host.read_present()
    stat = ipsec_host.read_stat()
    context = ipsec_host.process_context(wanted.get("level"))
    gone = missing(record, present.states)
    result: Dict[str, Any] = {
        "evidence": {"stat": stat, "audit": audit.position()},
        "state": shown_state_of(present),
        "context": context,
        "missing": gone,
    }
    since, error, level = wanted.get("since"), wanted.get("error") or "", wanted.get("level")
    if wanted.get("since_applied"):
        last = ipsec_last.read()
        result["last"] = last
        since = (last or {}).get("since")
        level = level or (last or {}).get("level")
        error = "\n".join([*daemon_complaints(), error])
    if not since:
        return result
    context = ipsec_host.process_context(level)
    try:
        grown = {item.name: item.count for item in growth(since["stat"], stat)}
    except (StateError, KeyError) as error:
        raise IpsecError(f"since: {error}; wanted evidence of this host and boot") from error
    denials = audit.denials_since(since["audit"])
    evidence = Evidence(
        error=error,
        grown=grown,
        states=present.states,
        policies=present.policies,
        context=context,
        denials=denials,
        clock_step_s=clock_step(record),
        missing=gone,
        payload_bytes=wanted.get("payload_bytes"),
        fits_bytes=wanted.get("fits_bytes"),
    )
    reasons = [reason.as_dict() for reason in explain(evidence)]
    if wanted.get("since_applied"):
        result["fits"] = ipsec_fits.largest(present.policies, level)
    return {**result, "grown": grown, "denials": denials, "explain": reasons}

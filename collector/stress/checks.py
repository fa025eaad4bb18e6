"""What must not happen in a stress run: each check goes through the timeline and says when it
happened, on which host, and what. Pure; docs/methodology.md has the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from collector.kernel_state.avc import Avc, parse_avcs
from collector.kernel_state.context import LabelError, parse_context
from collector.kernel_state.xfrm_stat import MEANING
from collector.stress.log import Sample, Timeline
from collector.stress.plan import ROLES, StressPlan

# Words of Linux's own reports (kernel/panic.c, lib/bug.c, mm/kasan, kernel/hung_task.c).
FATAL = re.compile(
    r"\bBUG\b|\bWARNING: |\bOops\b|\bK[ACM]SAN\b|\bUBSAN\b|\bKFENCE\b|Kernel panic"
    r"|general protection|Unable to handle kernel|blocked for more than|Out of memory"
    r"|refcount_t:|list_(?:add|del) corruption|kmemleak"
)
# On emulated hosts these mean that the machine below was busy (kernel/watchdog.c, kernel/rcu).
STALL = re.compile(
    r"soft lockup|hard LOCKUP|rcu\S* .*(?:stall|starved)|clocksource.*(?:skew|unstable|watchdog)"
)
EMULATED = ("guests", "exact")
# While IKE replaces SAs a packet may find none, or one that is on its way out.
WHILE_REKEYING = frozenset(
    {
        "XfrmInNoStates",
        "XfrmInStateInvalid",
        "XfrmInStateExpired",
        "XfrmOutNoStates",
        "XfrmOutStateInvalid",
        "XfrmOutStateExpired",
        "XfrmOutBundleCheckError",
        "XfrmAcquireError",
    }
)
# Packets that the cipher could not take because its queue was full count as errors of the protocol
# (net/xfrm/xfrm_input.c and xfrm_output.c, crypto/cryptd.c). Inbound so do those whose integrity
# check fails, which their SA counts too; outbound nothing is checked.
CIPHER_IN, CIPHER_OUT = "XfrmInStateProtoError", "XfrmOutStateProtoError"
NETWORK_CLASSES = re.compile(
    r"(?:packet|peer|association|netif|node|(?:tcp|udp|rawip|dccp|sctp|icmp|packet)_?socket)"
)
LEAST_SILENCE_S = 30.0  # a busy machine is late by seconds
LEAST_INTERVAL_S = 10.0  # shorter ones may fall between two chunks


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that must not happen: when (seconds from the begin), on which host, what."""

    elapsed_s: float
    host: str
    what: str

    @property
    def minute(self) -> int:
        """The minute of the run, counted from 1."""
        return int(self.elapsed_s // 60) + 1

    def __str__(self) -> str:
        return f"{self.host}: {self.what}"


Check = Callable[[StressPlan, Timeline, str], Iterator[Failure]]


def failures(plan: StressPlan, timeline: Timeline, *, final: bool) -> list[Failure]:
    """All of them in the order in which they happened. ``final``: nothing more will come, so what
    is missing is missing for good."""
    found = [
        failure for check in CHECKS for host in ROLES for failure in check(plan, timeline, host)
    ]
    if final:
        # A run that failed is ended for that; its end is then no failure of its own.
        early = [] if found else [f for host in ROLES for f in _early(plan, timeline, host)]
        found += early + [failure for host in ROLES for failure in _end(plan, timeline, host)]
    return sorted(found, key=lambda failure: failure.elapsed_s)


def notes(plan: StressPlan, timeline: Timeline) -> list[str]:
    """What a reader should know although it is no failure."""
    found = []
    for host in ROLES:
        lines = [line for sample in timeline.samples[host] for line in sample.kernel_log]
        harmless = [line for line in lines if not _is_fatal(plan, line)]
        if harmless:
            found.append(
                f"{host}: {_count(len(harmless), 'kernel log line')} of level warning or worse, "
                f"first: {harmless[0]}"
            )
        if any(sample.kernel_log_lost for sample in timeline.samples[host]):
            found.append(f"{host}: kernel log lines were lost: too many within an interval")
        other = [avc for sample in timeline.samples[host] for avc in _avcs(timeline, sample)[1]]
        if other:
            found.append(
                f"{host}: {_count(len(other), 'AVC denial')} of other programs, first: "
                f"{other[0].comm or '?'} {{ {' '.join(other[0].permissions)} }} {other[0].tclass}"
            )
        found += _sa_notes(timeline, host)
        for name, when in ((CIPHER_IN, "decryption"), (CIPHER_OUT, "encryption")):
            dropped = _overload(timeline, host, name)
            if dropped:
                found.append(
                    f"{host}: {_count(dropped, 'packet')} dropped before {when} ({name} without a "
                    "failed integrity check): more came than the cipher's queue takes"
                )
        offsets = [
            abs(poll.clock_offset_s) - (poll.clock_uncertainty_s or 0.0)
            for poll in timeline.polls[host]
            if poll.clock_offset_s is not None
        ]
        if offsets and max(offsets) > plan.limits.clock_step_s:
            found.append(
                f"{host}: its clock stood {max(offsets):.1f} s from the controller's, so times of "
                "the hosts cannot be put together"
            )
        missed = sum(poll.error is not None for poll in timeline.polls[host])
        if missed:
            found.append(f"{host}: {_count(missed, 'poll')} without an answer")
    return found


def _sa_notes(timeline: Timeline, host: str) -> list[str]:
    found = []
    for sample in timeline.samples[host]:
        if any(sa.soft_limit for sa in sample.sas or ()):
            minute = int(sample.elapsed_s // 60) + 1
            found.append(f"{host}: an SA reached its soft limit in minute {minute}")
            break
    larval = [any(sa.larval for sa in sample.sas or ()) for sample in timeline.samples[host]]
    if any(first and second for first, second in pairwise(larval)):
        found.append(f"{host}: an SA waited for IKE through two samples in a row")
    errors = [sample.sas_error for sample in timeline.samples[host] if sample.sas_error]
    if errors:
        found.append(f"{host}: SAs not kept in {_count(len(errors), 'sample')}: {errors[0]}")
    return found


def rekeys(timeline: Timeline, host: str) -> int:
    """How many SPIs came after the first sample of the host."""
    seen: set[tuple[str, int | None]] | None = None
    fresh = 0
    for sample in timeline.samples[host]:
        if sample.sas is None:
            continue
        now = _identities(sample)
        if seen is None:
            seen = now
        fresh += len(now - seen)
        seen = seen | now
    return fresh


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _samples(timeline: Timeline, host: str) -> list[Sample]:
    return [sample for sample in timeline.samples[host] if sample.event == "sample"]


def _reboots(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    first: str | None = None
    last = 0.0
    for sample in timeline.samples[host]:
        first = first or sample.boot_id
        if sample.boot_id not in (None, first):
            yield Failure(sample.elapsed_s, host, "rebooted")
            return
        last = sample.elapsed_s
    for poll in timeline.polls[host]:
        if first is not None and poll.boot_id not in (None, first):
            yield Failure(last, host, "rebooted (its boot id is another)")
            return


def _chunks(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for sample in timeline.samples[host]:
        for chunk in sample.chunks:
            if chunk.error is not None:
                at = chunk.began_s + chunk.took_s
                yield Failure(at, host, f"{chunk.stream} stream: {chunk.error}")


def _xfrm(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for before, after in pairwise(_samples(timeline, host)):
        if before.xfrm is None or after.xfrm is None or before.boot_id != after.boot_id:
            continue
        rekeyed = plan.keying == "ike" and (
            _identities(before) != _identities(after) or _waits(before) or _waits(after)
        )
        for name, count in after.xfrm.items():
            grown = count - before.xfrm.get(name, 0)
            if grown <= 0 or (rekeyed and name in WHILE_REKEYING):
                continue
            if name == CIPHER_OUT:
                continue  # overload; a cipher that never works lets no chunk pass
            if name == CIPHER_IN and _forged(before, after) is not None:
                continue  # the SAs' own counts tell forgery from overload
            meaning = MEANING.get(name, ("a counter newer than this reader", ""))[0]
            yield Failure(after.elapsed_s, host, f"{name} grew by {grown}: {meaning}")


def _forged(before: Sample, after: Sample) -> int | None:
    """Packets that failed their SA's integrity check between two samples, None if not known."""
    if not before.sas or not after.sas:
        return None
    known = {(sa.dst, sa.spi): sa.forged for sa in before.sas}
    grown = 0
    for sa in after.sas:
        first = known.get((sa.dst, sa.spi), 0)
        if sa.forged is None or first is None:
            return None
        grown += max(0, sa.forged - first)
    return grown


def _forgeries(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for before, after in pairwise(_samples(timeline, host)):
        count = _forged(before, after)
        if count:
            text = f"{_count(count, 'packet')} failed the integrity check of their SA"
            yield Failure(after.elapsed_s, host, text)


def _overload(timeline: Timeline, host: str, name: str) -> int:
    """Packets that the cipher could not take, of a counter: those it has without the forged."""
    total = 0
    for before, after in pairwise(_samples(timeline, host)):
        forged = _forged(before, after) if name == CIPHER_IN else 0
        if forged is not None and before.xfrm and after.xfrm and before.boot_id == after.boot_id:
            total += after.xfrm.get(name, 0) - before.xfrm.get(name, 0) - forged
    return max(0, total)


def _avcs(timeline: Timeline, sample: Sample) -> tuple[list[Avc], list[Avc]]:
    """Denials that concern the measured processes or the network, and others."""
    begin = timeline.of(sample.host, "begin")
    own = _type(begin.context) if begin is not None else None
    concerned: list[Avc] = []
    other: list[Avc] = []
    for avc in parse_avcs("\n".join(sample.denials)):
        ours = NETWORK_CLASSES.fullmatch(avc.tclass) or own in (avc.source.type, avc.target.type)
        (concerned if ours else other).append(avc)
    return concerned, other


def _type(context: str | None) -> str | None:
    try:
        return parse_context(context).type if context else None
    except LabelError:
        return None


def _denials(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for sample in timeline.samples[host]:
        concerned = _avcs(timeline, sample)[0]
        if concerned:
            avc = concerned[0]
            what = (
                f"AVC denial: {avc.source.type} {avc.target.type}:{avc.tclass} "
                f"{{ {' '.join(avc.permissions)} }}"
            )
            more = f" and {len(concerned) - 1} more" if len(concerned) > 1 else ""
            yield Failure(sample.elapsed_s, host, what + more)


def _is_fatal(plan: StressPlan, line: str) -> bool:
    if STALL.search(line):
        return plan.lab.kind not in EMULATED
    return FATAL.search(line) is not None


def _kernel(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for sample in timeline.samples[host]:
        fatal = [line for line in sample.kernel_log if _is_fatal(plan, line)]
        if fatal:
            yield Failure(sample.elapsed_s, host, f"kernel log: {fatal[0]}")


def _identities(sample: Sample) -> set[tuple[str, int | None]]:
    return {(sa.dst, sa.spi) for sa in sample.sas or () if not sa.larval}


def _waits(sample: Sample) -> bool:
    return any(sa.larval for sa in sample.sas or ())


def _sas(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    if plan.keying == "none":
        return
    declared: set[tuple[str, int | None]] = set()
    before: Sample | None = None
    carried = False
    for sample in _samples(timeline, host):
        if sample.sas is None:
            continue
        now = _identities(sample)
        if not now:
            yield Failure(sample.elapsed_s, host, "no SA is left")
        elif plan.keying == "manual" and declared - now:
            _dst, spi = min(declared - now, key=str)
            yield Failure(sample.elapsed_s, host, f"the SA with SPI {spi or 0:#010x} is gone")
        if before is not None:
            moved = _moved(before, sample)
            whole = sample.elapsed_s - before.elapsed_s >= LEAST_INTERVAL_S
            if carried and not moved and whole and sample.elapsed_s <= plan.duration_s:
                yield Failure(sample.elapsed_s, host, "the SAs carried nothing for an interval")
            carried = carried or moved > 0
        declared, before = declared or now, sample


def _moved(before: Sample, after: Sample) -> int:
    """Bytes that the SAs carried between two samples."""
    known = {(sa.dst, sa.spi): sa.bytes for sa in before.sas or ()}
    return sum(max(0, sa.bytes - known.get((sa.dst, sa.spi), 0)) for sa in after.sas or ())


def _clock(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for before, after in pairwise(timeline.samples[host]):
        step = (after.time - before.time) - (after.elapsed_s - before.elapsed_s)
        if abs(step) > plan.limits.clock_step_s:
            yield Failure(after.elapsed_s, host, f"the clock was stepped by {step:+.1f} s")


def _netserver(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    for sample in timeline.samples[host]:
        if sample.netserver is False:
            yield Failure(sample.elapsed_s, host, "netserver ended")
            return


def _gaps(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    longest = max(plan.limits.silent_intervals * plan.interval_s, LEAST_SILENCE_S)
    found = timeline.samples[host]
    for before, after in pairwise(found):
        if after.elapsed_s - before.elapsed_s > longest:
            yield _gap(before, after.elapsed_s - before.elapsed_s)
    answered = [poll for poll in timeline.polls[host] if poll.host_time is not None]
    if found and answered and found[-1].event != "end":
        silent = (answered[-1].host_time or 0.0) - found[-1].time
        if silent > longest and answered[-1].boot_id == found[0].boot_id:
            yield _gap(found[-1], silent)


def _gap(last: Sample, silent_s: float) -> Failure:
    return Failure(last.elapsed_s, last.host, f"no sample for {silent_s:.0f} s after this one")


def _death(_plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    """The program is gone and wrote no last line."""
    found, polls = timeline.samples[host], timeline.polls[host]
    if not polls or timeline.of(host, "end") is not None:
        return
    if polls[-1].active is False and (not found or polls[-1].boot_id == found[0].boot_id):
        at = found[-1].elapsed_s if found else 0.0
        said = polls[-1].words.splitlines()
        yield Failure(at, host, f"the stress program died: {said[-1] if said else 'silently'}")


def _early(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    end = timeline.of(host, "end")
    if end is not None and end.elapsed_s < plan.duration_s - 1:
        yield Failure(end.elapsed_s, host, f"ended before its time ({end.reason})")


def _end(plan: StressPlan, timeline: Timeline, host: str) -> Iterator[Failure]:
    """Nothing more will come: what is missing at the end is missing for good."""
    found = timeline.samples[host]
    last = found[-1].elapsed_s if found else 0.0
    if timeline.of(host, "end") is None:
        yield Failure(last, host, "no sample came home after this one")
    kept = [sample for sample in _samples(timeline, host) if sample.sas is not None]
    if plan.keying != "none" and kept and not any(_moved(*pair) for pair in pairwise(kept)):
        yield Failure(last, host, "the SAs never carried anything")
    for stream in plan.streams if host == "client" else ():
        if not any(chunk.stream == stream for chunk in timeline.chunks):
            yield Failure(last, host, f"{stream} stream: no chunk ended")


CHECKS: tuple[Check, ...] = (
    _reboots,
    _chunks,
    _xfrm,
    _forgeries,
    _denials,
    _kernel,
    _sas,
    _clock,
    _netserver,
    _gaps,
    _death,
)

"""What the hosts of a stress run noted: ``stress.jsonl``, one JSON object a line.

Lines of the hosts are kept as they came, with ``host`` (client or server) added. Between them
stand the controller's own: ``poll`` (what it asked and up to which offset it has read) and
``controller`` (begun, attached, stopped). A line that came twice, because a controller died
before it had noted its poll, counts once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.kernel_state.errors import StateError
from collector.kernel_state.xfrm_state import parse_states
from collector.parsers.netperf import read_omni_keyval
from collector.runfolder import journal
from collector.shape import Shape
from collector.stress.plan import ROLES, SELECTORS

LOG_FILE = "stress.jsonl"
SCHEMA = 1
_MEGABIT = "10^6bits/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One netperf of a stream. Rates in bit/s, None where it failed; ``error`` says how then."""

    stream: str
    began_s: float
    took_s: float
    sent: float | None
    received: float | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sa:
    """An SA as it was: who it is, whether it waits for IKE (``larval``), what it carried, how many
    packets failed its integrity check (None if not said), whether a soft limit was reached."""

    spi: int | None
    dst: str
    larval: bool
    bytes: int
    packets: int
    forged: int | None
    soft_limit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line of a host. ``elapsed_s`` counts from the program's begin, ``time`` is the host's
    clock. What the host did not say is None."""

    host: str
    seq: int
    event: str
    time: float
    elapsed_s: float
    boot_id: str | None = None
    context: str | None = None
    reason: str | None = None
    memory_kib: Mapping[str, int | None] | None = None
    xfrm: Mapping[str, int] | None = None
    device: Mapping[str, int | None] | None = None
    sas: tuple[Sa, ...] | None = None
    sas_error: str | None = None
    kernel_log: tuple[str, ...] = ()
    kernel_log_lost: bool = False
    denials: tuple[str, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    netserver: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What the controller found when it asked a host. ``error`` is set when it got no answer."""

    host: str
    time: str
    offset: int
    active: bool | None
    boot_id: str | None
    host_time: float | None
    words: str
    clock_offset_s: float | None
    clock_uncertainty_s: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """All of it. ``samples`` and ``polls`` by host in order; ``events`` are the controller's."""

    samples: Mapping[str, tuple[Sample, ...]]
    polls: Mapping[str, tuple[Poll, ...]]
    events: tuple[str, ...]

    def offset(self, host: str) -> int:
        """Up to which offset the host's lines are here."""
        known = [poll.offset for poll in self.polls[host] if poll.error is None]
        return known[-1] if known else 0

    def of(self, host: str, event: str) -> Sample | None:
        """The last line of a kind, None if there is none."""
        found = [sample for sample in self.samples[host] if sample.event == event]
        return found[-1] if found else None

    @property
    def ended(self) -> bool:
        """Whether both programs wrote their last line."""
        return all(self.of(host, "end") is not None for host in ROLES)

    @property
    def stopped(self) -> bool:
        """Whether a controller has ended the run and put the hosts back."""
        return any(event.endswith(" stopped") for event in self.events)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks in the order in which they ended."""
        return tuple(chunk for sample in self.samples["client"] for chunk in sample.chunks)


def append_event(folder: Path, what: str, **details: Any) -> None:
    """Note what the controller did (begun, attached, stopped)."""
    line = {"schema": SCHEMA, "event": "controller", "time": journal.now(), "what": what}
    journal.append_lines(folder / LOG_FILE, [json.dumps({**line, **details})])


def append_poll(folder: Path, host: str, result: Mapping[str, Any]) -> int:
    """Write what the module ``stress`` returned for a host; returns how many lines came.

    The poll's own line is the last of the batch: a controller that dies before it asks again for
    the same lines.
    """
    lines = []
    for text in result["lines"]:
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            where = f"{host}: samples.jsonl"
            raise InputError(where, f"no JSON ({error.msg})", "one JSON object a line") from error
        lines.append(json.dumps({"host": host, **line}))
    clock = result.get("clock") or {}
    poll = {
        "schema": SCHEMA,
        "event": "poll",
        "host": host,
        "time": journal.now(),
        "offset": int(result["offset"]),
        "active": bool(result["active"]),
        "boot_id": result["identity"]["boot_id"],
        "host_time": float(result["time"]),
        "words": result["words"],
        "clock_offset_s": clock.get("offset_s"),
        "clock_uncertainty_s": clock.get("uncertainty_s"),
    }
    journal.append_lines(folder / LOG_FILE, [*lines, json.dumps(poll)])
    return len(lines)


def append_failed_poll(folder: Path, error: str) -> None:
    """Note that the hosts could not be asked."""
    line = {"schema": SCHEMA, "event": "poll", "time": journal.now(), "error": error}
    lines = [json.dumps({**line, "host": host}) for host in ROLES]
    journal.append_lines(folder / LOG_FILE, lines)


def read_log(folder: Path) -> Timeline:
    """The timeline of a run folder; a torn last line is let by. Raises InputError."""
    path = folder / LOG_FILE
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return parse_log(text.split("\n")[:-1], str(path))


def parse_log(lines: Sequence[str], where: str) -> Timeline:
    """Make a Timeline of lines; ``where`` names the file in errors (InputError)."""
    samples: dict[str, dict[int, Sample]] = {role: {} for role in ROLES}
    polls: dict[str, list[Poll]] = {role: [] for role in ROLES}
    events = []
    for number, text in enumerate(lines, start=1):
        if not text:
            continue
        place = f"{where}:{number}"
        try:
            line = Shape(json.loads(text), place)
        except json.JSONDecodeError as error:
            raise InputError(place, f"no JSON ({error.msg})", "one JSON object a line") from error
        line.schema(SCHEMA)
        event = line.choice("event", ("begin", "sample", "end", "poll", "controller"))
        if event == "controller":
            events.append(f"{line.text('time')} {line.text('what')}")
            line.rest()
            continue
        host = line.choice("host", ROLES)
        if event == "poll":
            polls[host].append(_poll(line, host))
        else:
            sample = _sample(line, host, event, place)
            samples[host].setdefault(sample.seq, sample)
        line.done()
    return Timeline(
        {host: tuple(found[seq] for seq in sorted(found)) for host, found in samples.items()},
        {host: tuple(found) for host, found in polls.items()},
        tuple(events),
    )


def _poll(line: Shape, host: str) -> Poll:
    return Poll(
        host=host,
        time=line.text("time"),
        offset=line.integer("offset", default=0),
        active=line.boolean("active", default=None),
        boot_id=line.optional_text("boot_id"),
        host_time=line.number("host_time", default=None),
        words=line.text("words", default=""),
        clock_offset_s=line.number("clock_offset_s", default=None),
        clock_uncertainty_s=line.number("clock_uncertainty_s", default=None),
        error=line.optional_text("error"),
    )


def _sample(line: Shape, host: str, event: str, where: str) -> Sample:
    seq, time = line.integer("seq"), line.number("time")
    elapsed = line.number("elapsed_s")
    if event == "begin":
        line.integer("pid")
        who = line.anything("identity")
        return Sample(
            host=host,
            seq=seq,
            event=event,
            time=time,
            elapsed_s=elapsed,
            boot_id=who.get("boot_id"),
            context=who.get("context"),
        )
    if event == "end":
        reason = line.text("reason")
        return Sample(host=host, seq=seq, event=event, time=time, elapsed_s=elapsed, reason=reason)
    sas, sas_error = _sas(line.take_any("sas", (dict,), "a mapping or null", None), where)
    return Sample(
        host=host,
        seq=seq,
        event=event,
        time=time,
        elapsed_s=elapsed,
        boot_id=line.optional_text("boot_id"),
        memory_kib=line.anything("memory_kib"),
        xfrm=line.take_any("xfrm", (dict,), "a mapping or null", None),
        device=line.anything("device"),
        sas=sas,
        sas_error=sas_error,
        kernel_log=line.strings("kernel_log"),
        kernel_log_lost=line.boolean("kernel_log_lost"),
        denials=line.strings("denials"),
        chunks=tuple(_chunk(item) for item in line.shapes("chunks")),
        netserver=line.boolean("netserver", default=None),
    )


def _sas(found: Mapping[str, Any] | None, where: str) -> tuple[tuple[Sa, ...] | None, str | None]:
    if found is None:
        return None, None
    if found.get("error") is not None:
        return None, str(found["error"])
    if found.get("text") is None:
        return None, f"{found.get('bytes')} bytes of SAs, too many to be kept each time"
    try:
        states = parse_states(str(found["text"]))
    except StateError as error:
        raise InputError(f"{where}: sas", error.found, error.wanted) from error
    return tuple(
        Sa(
            spi=state.spi,
            dst=state.dst,
            larval=not state.spi,
            bytes=state.usage.bytes if state.usage else 0,
            packets=state.usage.packets if state.usage else 0,
            forged=state.replay_errors.failed if state.replay_errors else None,
            soft_limit=_soft_limit(state.usage, state.limits),
        )
        for state in states
    ), None


def _soft_limit(usage: Any, limits: Any) -> bool:
    if usage is None or limits is None:
        return False
    pairs = ((usage.bytes, limits.soft_bytes), (usage.packets, limits.soft_packets))
    return any(limit is not None and used >= limit for used, limit in pairs)


def _chunk(item: Shape) -> Chunk:
    stream, began, took = item.text("stream"), item.number("began_s"), item.number("took_s")
    item.number("seconds")
    code, hung = item.integer("rc"), item.boolean("timed_out")
    out, err = item.text("stdout"), item.text("stderr")
    item.done()
    sent = received = None
    error = None
    if hung:
        error = f"netperf hung and was ended after {took:.0f} s"
    elif code:
        words = (err or out).strip().splitlines()
        error = f"netperf ended with {code}: {words[-1] if words else 'silently'}"
    else:
        try:
            sent, received = read_rates(out)
        except InputError as failure:
            error = str(failure)
        if received == 0:
            error = "nothing arrived"
    if error is not None:
        sent = received = None
    return Chunk(
        stream=stream, began_s=began, took_s=took, sent=sent, received=received, error=error
    )


def read_rates(text: str) -> tuple[float, float]:
    """(sent, received) of a chunk's output, bit/s. Raises InputError."""
    values = read_omni_keyval(text, SELECTORS.split(","))
    unit = values["THROUGHPUT_UNITS"]
    if unit != _MEGABIT:
        raise InputError("netperf THROUGHPUT_UNITS", repr(unit), _MEGABIT)
    rates = []
    for key in ("LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT"):
        value = values[key]
        if not isinstance(value, (int, float)) or value < 0:
            raise InputError(f"netperf {key}", repr(value), "a rate")
        rates.append(value * 1e6)
    return rates[0], rates[1]


def received(chunks: Iterable[Chunk], stream: str) -> list[tuple[float, float]]:
    """(seconds of the chunk's middle, bit/s received) of a stream's good chunks."""
    return [
        (chunk.began_s + chunk.took_s / 2, chunk.received)
        for chunk in chunks
        if chunk.stream == stream and chunk.received is not None
    ]

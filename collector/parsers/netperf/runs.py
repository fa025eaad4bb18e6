"""Which lines belong to one run of netperf: open runs, started commands, finished records."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..base import Document, Failure, Problem, Reading, Record, Source, Status
from .banner import Banner
from .build import Fields, from_banner, interim_warnings
from .checks import checked
from .command import Command
from .failures import BEFORE_BANNER, ErrorText
from .records import TOOL, Interim, NetperfResult


@dataclass(slots=True)
class Run:
    """A run that has begun to print and has no result yet. Indexes are into the lines."""

    first: int
    last: int
    banner: Banner | None = None
    command: Command | None = None
    interim: list[Interim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timer: str | None = None
    early: int | None = None  # place of a record made of an error on stderr above the banner
    ambiguous: bool = False


def kind_of(test: str | None) -> str:
    """The family of a test: ``request_response``, ``udp_stream``, ``mss``, ``stream``, ``run``."""
    if not test:
        return "run"
    if test.endswith(("_RR", "_CRR", "_CC", "_TRR", "_RR_MANY")):
        return "request_response"
    if test in {"UDP_STREAM", "UDPIPV6_STREAM", "XTI_UDP_STREAM", "DLCL_STREAM", "DG_STREAM"}:
        return "udp_stream"
    return "mss" if test.endswith("_MSS") else "stream"


class Ledger:
    """Keeps open runs and unclaimed commands, and turns them into records and problems."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines = document.lines
        self.reading = Reading()
        self.records: list[NetperfResult | None] = []
        self.open: list[Run] = []
        self.commands: list[Command] = []
        # Place, index of the line and command of an error on stderr that may precede its banner.
        self.early: tuple[int, int, Command | None] | None = None
        self.notes: list[str] = []  # complaints that belong to the next record
        self.gap = False  # text of other sorts since the last line of an open run
        self.commands_started = 0
        self.background_started = 0
        self.in_background: list[int] = []  # places of records of such commands

    # -- problems and claims -------------------------------------------------------------

    def problem(self, index: int, found: str, wanted: str) -> None:
        """Report line ``index`` as unreadable."""
        number = self.lines[min(index, len(self.lines) - 1)].number
        self.reading.problems.append(Problem(self.document.file, number, found, wanted))

    def claim(self, first: int, count: int) -> None:
        """Account for ``count`` lines from index ``first``."""
        self.reading.claimed.update(line.number for line in self.lines[first : first + count])

    # -- commands ------------------------------------------------------------------------

    def started(self, command: Command) -> None:
        """A command line: what ran in the foreground before it has ended."""
        self.close([r for r in self.open if not (r.command and r.command.background)])
        self.commands.append(command)
        self.commands_started += 1
        self.background_started += command.background

    def command_for(
        self, banner: Banner | None, fits: Callable[[Command], bool] = lambda _: True
    ) -> Command | None:
        """Take the command that the next output belongs to; None if several different ones may.

        The last one in the foreground, else the first fitting one in the background. ``fits``
        says whether a command can have printed that output.
        """
        fitting = [c for c in self.commands if (banner is None or _fits(c, banner)) and fits(c)]
        if banner is not None and len({c.text for c in fitting}) > 1:
            same = [c for c in fitting if c.host in {banner.host, banner.address}]
            fitting = same or fitting
        if not fitting:
            return None
        if fitting[-1] is self.commands[-1] and not fitting[-1].background:
            self.commands.remove(fitting[-1])
            return fitting[-1]
        behind = [c for c in fitting if c.background]
        if not behind:
            self.commands.remove(fitting[-1])
            return fitting[-1]
        self.commands.remove(behind[0])
        return behind[0] if len({c.text for c in behind}) == 1 else None

    # -- open runs -----------------------------------------------------------------------

    def begin(self, banner: Banner, first: int, count: int) -> None:
        """A banner opens a run. What was open and has been followed by other text has ended."""
        if self.gap:
            self.close([r for r in self.open if not (r.command and r.command.background)])
        self.close([r for r in self.open if r.banner is None])
        run = Run(first, first + count - 1, banner=banner)
        if self.early is not None and self.early[1] == first - 1:
            run.early, _, run.command = self.early
        if run.command is None:
            run.command = self.command_for(banner)
        self.open.append(run)
        self.gap = False

    def choose(self, fits: Callable[[Run], bool], at: int) -> Run | None:
        """The open run that a result or error at index ``at`` belongs to; it is open no more.

        ``fits`` says whether a run can have printed it. Among several it is not known which did:
        then only what they have in common is known.
        """
        fitting = [run for run in self.open if fits(run)]
        if not fitting:
            return None
        banners = [run.banner for run in fitting if run.banner is not None]
        if len({banner.text for banner in banners}) > 1:
            common = _common(banners)
            for run in fitting:
                run.banner, run.ambiguous, run.command = common, True, None
        chosen = fitting[0]
        self.open.remove(chosen)
        chosen.last = max(chosen.last, at)
        return chosen

    def close(self, runs: list[Run]) -> None:
        """End runs without a result: incomplete, or failed if the watchdog had rung."""
        for run in list(runs):
            self.open.remove(run)
            if run.early is not None:
                self._join_early(run, None)
                continue
            fields = from_banner(run.banner, run.command)
            failure = None
            status = Status.INCOMPLETE
            if run.timer is not None:
                status = Status.FAILED
                failure = Failure("control_timeout", run.timer)
            self.finish(run, fields | {"status": status, "failure": failure}, run.last)

    def _join_early(self, run: Run, error: ErrorText | None) -> None:
        """An error on stderr came above the banner: the two are one failed run."""
        assert run.early is not None
        early = self.records[run.early]
        assert early is not None
        failure = early.failure
        assert failure is not None
        self.records[run.early] = None
        if error is not None:
            failure = _both(failure, error)
        fields = from_banner(run.banner, run.command)
        run.early = None
        run.first = run.first - 1
        self.finish(run, fields | {"status": Status.FAILED, "failure": failure}, run.last)

    # -- records -------------------------------------------------------------------------

    def finish(self, run: Run, fields: Fields, last: int) -> None:
        """Make the record of a run that has ended."""
        values: dict[str, Any] = dict(fields)
        status = values.pop("status", Status.OK)
        reason = values.pop("failure_text", None)
        failure = values.pop("failure", None)
        if reason is not None:
            failure = Failure("zero_throughput" if "zero" in reason else "no_value", reason)
        warnings = [
            *values.pop("warnings", ()),
            *run.notes,
            *self.notes,
            *interim_warnings(run.interim),
        ]
        self.notes = []
        if run.ambiguous:
            warnings.append("several runs were under way: whose output this is is not known")
        if status is Status.INCOMPLETE and "no THROUGHPUT" not in " ".join(warnings):
            warnings.append("the run ended without a result")
        first = run.first
        if run.command is not None and run.command.last_line <= self.lines[run.first].number:
            first = min(first, self._index(run.command.line))
        record = NetperfResult(
            tool=TOOL,
            kind=kind_of(values.get("test")),
            status=status,
            source=Source(self.document.file, self.lines[first].number, self.lines[last].number),
            warnings=tuple(warnings),
            failure=failure,
            interim=tuple(run.interim),
            **values,
        )
        if run.command is not None and run.command.background:
            self.in_background.append(len(self.records))
        self.records.append(checked(record))

    def _index(self, number: int) -> int:
        return number - self.lines[0].number

    def fail(self, error: ErrorText, first: int) -> None:
        """An error text ends the run it belongs to, or is a failed run of its own."""
        last = first + error.lines - 1
        previous = self.records[-1] if self.records else None
        if previous is not None and self._continues(previous, error, first):
            assert previous.failure is not None
            self.records[-1] = replace(
                previous,
                failure=_both(previous.failure, error),
                source=replace(previous.source, last_line=self.lines[last].number),
            )
            return
        early = error.error_class in BEFORE_BANNER
        run = self.choose(lambda one: one.banner is None or not early, last)
        if run is not None and run.early is not None:
            above = self.records[run.early]
            if above is not None and _agree(above.failure, error):
                self._join_early(run, error)
                return
        if run is None:
            run = Run(first, last, command=self.command_for(None))
        if run.timer:
            error = replace(error, text=f"{run.timer}; {error.text}")
        fields = from_banner(run.banner, run.command)
        fields["printed"] |= _address(error.text)
        if fields.get("host") is None:
            fields["host"] = fields["printed"].get("server")
        self.finish(run, fields | {"status": Status.FAILED, "failure": error.failure()}, last)
        if run.banner is None and error.to_stderr:
            self.early = (len(self.records) - 1, last, run.command)

    def _continues(self, previous: Record, error: ErrorText, first: int) -> bool:
        failure = previous.failure
        if failure is None or previous.status is not Status.FAILED or self.open:
            return False
        between = self.lines[self._index(previous.source.last_line) + 1 : first]
        if any(line.text.strip() for line in between):
            return False
        pair = (failure.error_class, error.error_class)
        if pair == ("control_unreachable", "control_unreachable"):
            return "could not establish" in error.text and "could not" not in failure.text
        if pair in {("host_unknown", "host_unknown"), ("usage", "usage")}:
            return not between or pair[0] == "usage"
        if pair == ("address_family", "data_connect"):
            return True
        return (
            error.to_stderr and not failure.text.startswith("netperf:") and _agree(failure, error)
        )

    # -- the end -------------------------------------------------------------------------

    def end(self) -> Reading:
        """Close everything and hand over the reading."""
        self.close(list(self.open))
        self._mark_shared()
        found = sum(record is not None for record in self.records)
        if found:
            for command in self.commands:
                run = Run(self._index(command.line), self._index(command.last_line))
                run.command = command
                fields = from_banner(None, command)
                note = f"{self.commands_started} commands were started: this one has no output"
                run.notes.append(note)
                self.finish(run, fields | {"status": Status.INCOMPLETE}, run.last)
        records = [record for record in self.records if record is not None]
        self.reading.records.extend(records)
        return self.reading

    def _mark_shared(self) -> None:
        """A service demand counts the CPU time of all runs that were under way together."""
        if self.background_started < 2:
            return
        for place in self.in_background:
            record = self.records[place]
            if record is not None and record.cpu_local_pct is not None:
                self.records[place] = replace(record, service_demand_shared=True)


def _fits(command: Command, banner: Banner) -> bool:
    return command.test == banner.test or (
        command.test == "OMNI" and banner.test.startswith("OMNI_")
    )


def _common(banners: list[Banner]) -> Banner:
    """What all banners say; the empty or unknown value where they differ."""
    first = banners[0]

    def same(name: str) -> bool:
        return all(getattr(one, name) == getattr(first, name) for one in banners)

    return replace(
        first,
        text="",
        test=first.test if same("test") else "",
        source=first.source if same("source") else None,
        host=first.host if same("host") else None,
        address=first.address if same("address") else None,
        family=first.family if same("family") else None,
        flags=first.flags if same("flags") else (),
        half_width_pct=first.half_width_pct if same("half_width_pct") else None,
        level_pct=first.level_pct if same("level_pct") else None,
    )


def _agree(failure: Failure | None, error: ErrorText) -> bool:
    """Whether two texts are one error: same class, and the same errno where both give one."""
    if failure is None or failure.error_class != error.error_class:
        return False
    return failure.errno is None or error.number is None or failure.errno == error.number


def _both(failure: Failure, error: ErrorText) -> Failure:
    other = error.failure()
    return replace(
        failure,
        text=f"{failure.text}; {error.text}",
        errno=failure.errno if failure.errno is not None else other.errno,
        errno_name=failure.errno_name or other.errno_name,
        hint=failure.hint or other.hint,
    )


def _address(text: str) -> dict[str, str]:
    """Server and port as the error text has them, to compare with what was asked for."""
    match = re.search(r"listening\s+on (\S+) at port\s+(\S+?)\?", text) or re.search(
        r" to (\S+) port (\S+) address family", text
    )
    return {"server": match[1], "port": match[2]} if match else {}

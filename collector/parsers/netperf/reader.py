"""Reads a document line by line: what each block is, and to which run it belongs."""

from __future__ import annotations

import re
from dataclasses import replace

from ..base import Document, Reading, Status
from .banner import Banner, read_banner
from .banner import starts as banner_starts
from .beside import why_not, with_block
from .blocks import (
    Broken,
    DetailBlock,
    Histogram,
    Widths,
    read_detail,
    read_histogram,
    read_interim,
    read_mss,
    read_warning,
)
from .build import bare_demand, bare_result, default_unit, fail, from_banner, from_table, warn
from .build_omni import from_row
from .checks import checked
from .command import Command, read_command
from .failures import is_note, is_tail, is_timer_note, read_error
from .matching import (
    number_fits,
    omni_fits,
    output_of,
    shape_fits_test,
    shape_of,
    table_fits,
)
from .omni import Row, read_csv, read_human, read_keyval, read_named_row
from .runs import Ledger, Run, kind_of
from .stray import is_header_fragment, is_row
from .tables import Heading, Shape, Table, Unreadable, read_rows, read_table

_ONE_NUMBER = re.compile(r"\s*(?P<number>[0-9]+\.[0-9]{2,3})(?:\s+(?P<method>[A-Z?]))?\s*")
_WANTED_HEADER = "its header, or the command line with -t, -f, -c and -C above it"


class Reader:
    """One pass over a document. ``read`` gives the records and problems."""

    def __init__(self, document: Document) -> None:
        self.lines = document.lines
        self.ledger = Ledger(document)
        self.warning: Widths | None = None
        self.attach: int | None = None  # place of the record that -v 2 blocks belong to
        self.table = False  # whether that record is of a classic table
        self.stray: int | None = None  # index of the last line reported as belonging to nothing

    def read(self) -> Reading:
        """Read every line."""
        at = 0
        while at < len(self.lines):
            if not self.lines[at].text.strip():
                at += 1
                continue
            count = self._block(at)
            if count:
                self.ledger.claim(at, count)
            else:
                self._other(at)
                count = 1
            at += count
        return self.ledger.end()

    def _block(self, at: int) -> int:
        for step in (
            self._command, self._banner, self._warning, self._interim, self._table, self._beside,
            self._keyval, self._error, self._titled, self._bare,
        ):  # fmt: skip
            count = step(at)
            if count:
                return count
        return 0

    def _broken(self, at: int, wanted: str) -> None:
        text = self.lines[at].text.strip()
        self.ledger.problem(at, repr(text[:60]), wanted)

    def _other(self, at: int) -> None:
        """Prose is let by; a row or a header of a table that was not read is not."""
        text = self.lines[at].text
        if is_row(text) or is_header_fragment(text):
            if self.stray is None or self.stray != at - 1:
                wanted = _WANTED_HEADER if is_row(text) else "a whole table"
                self._broken(at, wanted)
            self.stray = at
            self.ledger.claim(at, 1)
            return
        self.ledger.gap = True

    # -- what opens a run ----------------------------------------------------------------

    def _command(self, at: int) -> int:
        found = read_command(self.lines, at)
        if found is None:
            return 0
        self.ledger.started(found[0])
        self.attach = None
        return found[1]

    def _banner(self, at: int) -> int:
        if not banner_starts(self.lines[at].text):
            return 0
        found = read_banner(self.lines, at)
        if found is None:
            self._broken(at, "a whole 'NAME TEST from … to …' line")
            return 1
        self.ledger.begin(found[0], at, found[1])
        self.attach = None
        return found[1]

    def _warning(self, at: int) -> int:
        found = read_warning(self.lines, at)
        if found is None:
            return 0
        what, count = found
        if isinstance(what, Broken):
            self._broken(at, what.wanted)
            # Something was missed, it is not known what.
            self.warning = Widths(None, None, None)
        else:
            if self.warning is not None:
                self._broken(at, "one confidence warning for each table")
            self.warning = what
        return count

    def _interim(self, at: int) -> int:
        found = read_interim(self.lines, at)
        if found is None:
            return 0
        what, count = found
        if isinstance(what, Broken):
            self._broken(at, what.wanted)
            return count
        if len(self.ledger.open) > 1 and len({r.banner for r in self.ledger.open}) > 1:
            self._broken(at, "one run under way, so that it is clear whose interim result this is")
            return count
        if not self.ledger.open:
            command = self.ledger.command_for(None)
            self.ledger.open.append(Run(at, at, command=command))
            self.attach = None
        run = self.ledger.open[-1]
        run.interim.append(what)
        run.last = at + count - 1
        self.ledger.gap = False
        return count

    # -- results -------------------------------------------------------------------------

    def _table(self, at: int) -> int:
        found = read_table(self.lines, at)
        if found is None:
            return 0
        if isinstance(found, Unreadable):
            self.ledger.problem(found.at, found.found, found.wanted)
            shape = found.shape
            run = self.ledger.choose(lambda one: table_fits(one, shape), found.at)
            run = run or Run(at, found.at)
            run.notes.append("its table could not be read")
            fields = from_banner(run.banner, run.command)
            self.ledger.finish(run, fields | {"status": Status.INCOMPLETE}, found.at)
            self.warning, self.attach = None, None
            return found.lines
        self._accept(found, at, found.last_line)
        return found.lines

    def _accept(self, table: Table, at: int, last: int, run: Run | None = None) -> None:
        if run is None:
            run = self.ledger.choose(lambda one: table_fits(one, table.shape), last)
        if run is None:
            run = Run(at, last, command=self._own_command(table.shape))
            self._banner_missed()
        fields = from_table(table, run.banner, run.command, self.warning)
        if fields.get("test") is None:
            warn(fields, "no banner: the table does not say which test it is of")
        self._finish(run, fields, last)

    def _banner_missed(self) -> None:
        """A table without its banner: the omni result above may have been given that one."""
        place = len(self.ledger.records) - 1
        record = self.ledger.records[place] if place >= 0 else None
        if record is None or self.table or not record.printed.get("banner") or self.ledger.gap:
            return
        warning = "its banner may be that of the table below, which has none"
        self.ledger.records[place] = replace(
            record, status=Status.SUSPECT, warnings=(*record.warnings, warning)
        )

    def _own_command(self, shape: Shape) -> Command | None:
        """The command of a table without a banner, if its test prints such a table."""
        commands = self.ledger.commands
        if commands and shape_fits_test(shape, commands[-1].test):
            return self.ledger.command_for(None, lambda one: one.output is None)
        return None

    def _finish(self, run: Run, fields: dict[str, object], last: int) -> None:
        self.ledger.finish(run, fields, last)
        self.warning = None
        self.attach, self.table = len(self.ledger.records) - 1, True
        self.ledger.gap = False

    def _keyval(self, at: int) -> int:
        found = read_keyval(self.lines, at)
        if found is None:
            return 0
        self._rows(found[0], at, "keyval")
        return found[1]

    def _titled(self, at: int) -> int:
        csv = read_csv(self.lines, at)
        if csv is not None:
            what, count = csv
            if isinstance(what, Broken):
                self._broken(at, what.wanted)
            else:
                self._rows(what, at, "csv")
            return count
        human = read_human(self.lines, at)
        if human is not None:
            self._rows([human[0]], at, "human")
            return human[1]
        return 0

    def _rows(self, rows: list[Row], at: int, form: str) -> None:
        """Omni results. Rows below one header are of one kind of run, under the same banner."""
        run = self.ledger.choose(lambda one: omni_fits(one, rows[0], form), rows[0].last_line)
        if run is None:
            command = self.ledger.command_for(None, lambda one: output_of(one) == form)
            run = Run(at, rows[0].last_line, command=command)
        for number, row in enumerate(rows):
            for place, found, wanted in row.complaints:
                self.ledger.problem(place, found, wanted)
            own = run if number == 0 else Run(row.first_line, row.last_line)
            if number:
                # The banner is the same for all; a command line is of one run only.
                own.banner, own.command = run.banner, self._next_command(run, form)
            fields = from_row(row, own.banner, own.command or run.command)
            if row.complaints and fields.get("status", Status.OK) is Status.OK:
                fields["status"] = Status.SUSPECT
            self._finish(own, fields, row.last_line)
        self.table = False

    def _next_command(self, run: Run, form: str) -> Command | None:
        return self.ledger.command_for(run.banner, lambda one: output_of(one) == form)

    def _error(self, at: int) -> int:
        text = self.lines[at].text
        if is_timer_note(text):
            if self.ledger.open:
                self.ledger.open[-1].timer = text.strip()
                self.ledger.open[-1].last = at
            else:
                self.ledger.open.append(Run(at, at, timer=text.strip()))
            return 1
        error = read_error(self.lines, at)
        if error is not None:
            self.ledger.fail(error, at)
            self.attach, self.warning = None, None
            return error.lines
        if is_note(text):
            self.ledger.notes.append(text.strip())
            return 1
        return 1 if is_tail(text) else 0

    # -- rows without a header -----------------------------------------------------------

    def _bare(self, at: int) -> int:
        """The number of ``-v 0``, or a row of ``-P 0``: read only if it is known of what."""
        one = _ONE_NUMBER.fullmatch(self.lines[at].text)
        run = self.ledger.open[-1] if len(self.ledger.open) == 1 else None
        if run is not None and run.banner is not None:
            return self._one(run, one, at) if one is not None and number_fits(run) else 0
        command = run.command if run is not None else None
        if command is None and not self.ledger.open and self.ledger.commands:
            command = self.ledger.commands[-1]
        if command is None or command.print_headers:
            return 0
        if command.output is not None:
            return self._named(command, run, at)
        if command.verbosity == 0:
            return 0 if one is None else self._one(self._run_of(command, run, at), one, at)
        return self._row_of(command, run, at)

    def _row_of(self, command: Command, run: Run | None, at: int) -> int:
        requests = kind_of(command.test) == "request_response"
        shape, unit = shape_of(command, default_unit(requests, command))
        if shape is None or not is_row(self.lines[at].text):
            return 0
        found = read_rows(self.lines, at, Heading(shape, unit, (None, None), at))
        if isinstance(found, Unreadable):
            return 0
        self._accept(found, at, found.last_line, self._run_of(command, run, at))
        return found.lines

    def _run_of(self, command: Command, run: Run | None, at: int) -> Run:
        if run is not None:
            self.ledger.open.remove(run)
            return run
        self.ledger.commands.remove(command)
        return Run(at, at, command=command)

    def _named(self, command: Command, run: Run | None, at: int) -> int:
        if not command.selectors or command.output == "keyval":
            return 0
        row = read_named_row(self.lines[at], at, command.selectors, command.output or "")
        if row is None:
            return 0
        own = self._run_of(command, run, at)
        self._finish(own, from_row(row, None, command), at)
        return 1

    def _one(self, run: Run, one: re.Match[str], at: int) -> int:
        """The number of ``-v 0``: a rate has two decimals, a service demand three or a letter.

        (UDP_STREAM prints two decimals and a letter for a demand; TCP_CC three and no letter.)
        """
        if run in self.ledger.open:
            self.ledger.open.remove(run)
        decimals = len(one["number"].partition(".")[2])
        if one["method"] or decimals == 3:
            fields = bare_demand(one["number"], one["method"], run.banner, run.command)
        else:
            test = run.command.test if run.command else None
            number = float(one["number"])
            fields = bare_result(number, one["number"], run.banner, run.command, test)
        self._finish(run, fields, at)
        return 1

    # -- what stands beside a result -----------------------------------------------------

    def _beside(self, at: int) -> int:
        for reader in (read_detail, read_mss, read_histogram):
            found = reader(self.lines, at)
            if found is None:
                continue
            what, count = found
            if isinstance(what, Broken):
                self._broken(at, what.wanted)
            elif isinstance(what, int) and self._is_mss_test():
                self._mss_test(what, at + count - 1)
            else:
                self._attach(what, at, count)
            return count
        return 0

    def _is_mss_test(self) -> bool:
        return any(run.banner is not None and _is_mss(run.banner) for run in self.ledger.open)

    def _mss_test(self, mss: int, last: int) -> None:
        run = self.ledger.choose(lambda one: one.banner is not None and _is_mss(one.banner), last)
        if run is None:
            return
        fields = from_banner(run.banner, run.command) | {"mss_bytes": mss if mss > 0 else None}
        fields["printed"]["mss"] = str(mss)
        if mss <= 0:
            fail(fields, "no maximum segment size")
        self._finish(run, fields, last)

    def _attach(self, what: DetailBlock | Histogram | int, at: int, count: int) -> None:
        place = self.attach
        record = self.ledger.records[place] if place is not None else None
        problem = why_not(record, what) if record is not None else "no result above it"
        if record is not None and not self.table and not isinstance(what, Histogram):
            problem = "the result above it is of another form of output"
        if record is None or place is None or problem:
            self._broken(at, f"the result this belongs to ({problem})")
            return
        last = self.lines[at + count - 1].number
        record = replace(record, source=replace(record.source, last_line=last))
        self.ledger.records[place] = checked(with_block(record, what))


def _is_mss(banner: Banner) -> bool:
    return banner.test == "TCP_MSS"

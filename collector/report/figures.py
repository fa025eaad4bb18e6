"""The figures of an experiment in the form the table shapes print: rows, columns, entries.

The same form is made from a published experiment and from a judged run, so that both appear in
the table of the same post.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from collector.forwarding.spec import BURST_UNIT
from collector.published import Published, Quantity
from collector.stats.bounded import cell_bounded
from collector.stats.model import CellSummary, MatrixSummary
from collector.verdict import Verdict

# How a run's units are printed: unit of the sample -> (text under the heading, scale).
# The netlabel post prints 10^6 bits/sec and rate/sec; netperf itself does the same.
Units = Mapping[str, tuple[str, int]]
PRINTED_UNITS: Units = {
    "bit/s": ("10^6 bits/sec", 1_000_000),
    "1/s": ("rate / sec", 1),
    "%": ("per cent", 1),
}
# The text of a cell that was not run.
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A configuration. ``reason`` says why none of its cells has a number (skipped), else None."""

    name: str
    description: str | None = None
    factors: dict[str, str] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A test with its quantities, as published or as measured."""

    name: str
    title: str | None
    quantities: tuple[Quantity, ...]
    factors: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    details: dict[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> Quantity:
        """The quantity of the cell itself: the throughput, else the first one."""
        return next((q for q in self.quantities if q.name == "throughput"), self.quantities[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One cell's text. ``value`` is in the quantity's ``unit``; None when there is no number."""

    text: str
    value: float | None
    footnote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSet:
    """Everything a table shape needs. ``entries`` is keyed by (row, column, quantity) names."""

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    entries: dict[tuple[str, str, str], Entry]
    baseline: str

    def entry(self, row: str, column: Column, quantity: str | None = None) -> Entry | None:
        """The entry of a cell (headline by default), or None if the cell does not exist."""
        return self.entries.get((row, column.name, quantity or column.headline.name))


def printed_number(value: float, quantity: Quantity) -> str:
    """The value in the printed unit: two decimals, three for Gbit, none to two for per cent
    (forwarded shares are published whole, CPU loads with up to two decimals), none for frames."""
    shown = value / quantity.scale
    if quantity.unit == BURST_UNIT:
        return f"{shown:.0f}"
    if quantity.unit == "%" and shown >= 10:
        return f"{shown:.1f}" if quantity.name.startswith("cpu_") else f"{shown:.0f}"
    if quantity.scale == 1_000_000_000:
        # Small packets through an emulated host make some Mbit/s: three digits must be left.
        return f"{shown:.3f}" if shown >= 0.1 else f"{shown:.5f}"
    return f"{shown:.2f}"


def from_published(published: Published) -> FigureSet:
    """The figures of a post, digit for digit."""
    entries: dict[tuple[str, str, str], Entry] = {}
    for figure in published.figures:
        notes: list[str] = []
        if figure.unmet_width_printed is not None:
            notes.append(_published_confidence(published, figure.test, figure.unmet_width_printed))
        if figure.range_printed is not None:
            low, high = figure.range_printed
            notes.append(f"varies from {low} to {high}")
        if figure.note is not None:
            notes.append(figure.note)
        entries[(figure.configuration, figure.test, figure.quantity)] = Entry(
            text=figure.printed, value=figure.value, footnote="; ".join(notes) or None
        )
    return FigureSet(
        rows=tuple(
            Row(name=c.name, description=c.description, factors=c.factors)
            for c in published.configurations
        ),
        columns=tuple(
            Column(
                name=t.name,
                title=t.title,
                quantities=t.quantities,
                factors=t.factors,
                command=t.command,
                details=t.details,
            )
            for t in published.tests
        ),
        entries=entries,
        baseline=published.baseline,
    )


def _published_confidence(published: Published, test: str, width: str) -> str:
    wanted = published.test(test).confidence
    if wanted is None:
        return f"confidence not met, width {width} %"
    return (
        f"confidence not met: width {width} %, wanted {wanted.wanted_width_pct:g} % "
        f"at {wanted.level_pct:g} %"
    )


def from_summary(
    summary: MatrixSummary,
    *,
    units: Units = PRINTED_UNITS,
    commands: Mapping[str, tuple[str, ...]] | None = None,
) -> FigureSet:
    """The figures of a run: medians over the blocks, in the order of the cells.

    ``units`` as in PRINTED_UNITS; ``commands`` has the command line of a test, where known.
    """
    cells = [cell for cell in summary.cells if cell.arm == ""]
    entries: dict[tuple[str, str, str], Entry] = {}
    for cell in cells:
        quantities = {q.name: q for q in quantities_of(cell, units)}
        headline = quantities["throughput"]
        entries[(cell.configuration, cell.test, "throughput")] = _measured(cell, headline)
        for name, value in (("cpu_local", cell.cpu_local_pct), ("cpu_remote", cell.cpu_remote_pct)):
            if value is not None and cell.median is not None:
                entries[(cell.configuration, cell.test, name)] = Entry(
                    text=printed_number(value, quantities[name]), value=value
                )
        if has_number(cell):
            for name, text in _beside(cell).items():
                entries[(cell.configuration, cell.test, name)] = Entry(text=text, value=None)
    return FigureSet(
        rows=tuple(_row(name, cells) for name in _unique(c.configuration for c in cells)),
        columns=tuple(
            _column(name, cells, units, (commands or {}).get(name))
            for name in _unique(c.test for c in cells)
        ),
        entries=entries,
        baseline=summary.baseline,
    )


# Kinds of CPU time as a table has them; idle and waiting are what is left. Two are rare and named
# only where there is any.
_SHOWN_KINDS = ("user", "nice", "system", "irq", "softirq", "steal")
_RARE_KINDS, _RARELY_PCT = frozenset({"nice", "irq"}), 0.05


def _beside(cell: CellSummary) -> dict[str, str]:
    """What stands beside a cell's number where it was measured: CPU time by kind
    (``cpu_local_kinds``, ``cpu_remote_kinds``), service demand (``demand``), ``latency``."""
    found: dict[str, str] = {}
    for end, kinds in (("local", cell.cpu_local_kinds), ("remote", cell.cpu_remote_kinds)):
        if kinds is not None:
            shown = [
                f"{kind} {kinds[kind]:.1f}"
                for kind in _SHOWN_KINDS
                if kind in kinds and (kind not in _RARE_KINDS or kinds[kind] >= _RARELY_PCT)
            ]
            found[f"cpu_{end}_kinds"] = ", ".join(shown)
    unit = "us/KB" if cell.unit == "bit/s" else "us/Tran"
    if cell.sd_local_us is not None and cell.sd_remote_us is not None:
        found["demand"] = f"local {cell.sd_local_us:.2f}, remote {cell.sd_remote_us:.2f} {unit}"
    low, high = cell.latency_p99_low_us, cell.latency_p99_high_us
    if cell.latency_mean_us is not None and low is not None and high is not None:
        one = cell.factors.get("sessions", "1") == "1" and low == high
        tail = f"{high:.0f}" if one else f"{low:.0f} to {high:.0f}"
        found["latency"] = f"mean {cell.latency_mean_us:.0f} us, p99 of a session {tail} us"
    return found


def quantities_of(cell: CellSummary, units: Units = PRINTED_UNITS) -> tuple[Quantity, ...]:
    """What a run's cell yields: CPU of both ends (when measured) and the headline value."""
    printed_unit, scale = units.get(cell.unit, (cell.unit, 1))
    percent = {"unit": "%", "printed_unit": "%", "scale": 1, "higher_is_better": False}
    return (
        Quantity(name="cpu_local", **percent),  # type: ignore[arg-type]
        Quantity(name="cpu_remote", **percent),  # type: ignore[arg-type]
        Quantity(
            name="throughput",
            unit=cell.unit,
            printed_unit=printed_unit,
            scale=scale,
            higher_is_better=cell.higher_is_better,
        ),
    )


def has_number(cell: CellSummary) -> bool:
    """Whether a number may be shown: there is one, and the cell is not invalid or skipped."""
    return cell.median is not None and cell.verdict not in (Verdict.INVALID, Verdict.SKIPPED)


def _measured(cell: CellSummary, quantity: Quantity) -> Entry:
    if cell.verdict is Verdict.INVALID:
        return Entry(text="invalid", value=None, footnote=cell.reason)
    if cell.verdict is Verdict.SKIPPED:
        return Entry(text=SKIPPED, value=None)
    if cell.median is None:
        return Entry(text="no result", value=None, footnote=cell.reason)
    return Entry(
        text=("≥" if cell_bounded(cell) else "") + printed_number(cell.median, quantity),
        value=cell.median,
        footnote="; ".join(cell_remarks(cell)) or None,
    )


def cell_remarks(cell: CellSummary) -> tuple[str, ...]:
    """What must stand under the table about a cell that has a number."""
    remarks: list[str] = []
    if cell.confidence_unmet:
        worst = (
            "unknown" if cell.confidence_worst_pct is None else f"{cell.confidence_worst_pct:.1f} %"
        )
        wanted = (
            ""
            if cell.confidence_wanted_pct is None
            else f", wanted {cell.confidence_wanted_pct:g} %"
        )
        remarks.append(
            f"confidence not met in {cell.confidence_unmet} of {cell.n} repeats, "
            f"widest {worst}{wanted}"
        )
    if cell.bimodal:
        remarks.append("samples fall into two bands; the median may describe neither")
    if cell_bounded(cell):
        remarks.append(
            "the generator was (or may have been) the bottleneck; at least this is forwarded"
        )
    if cell.n_invalid:
        remarks.append(
            f"{cell.n_invalid} of {cell.n + cell.n_invalid} repeats are without a valid result"
        )
    return tuple(remarks)


def _row(name: str, cells: list[CellSummary]) -> Row:
    own = [cell for cell in cells if cell.configuration == name]
    skipped = all(cell.verdict is Verdict.SKIPPED for cell in own)
    common = set.intersection(*(set(cell.factors.items()) for cell in own))
    return Row(
        name=name,
        factors={key: value for key, value in own[0].factors.items() if (key, value) in common},
        reason=(own[0].reason or "no reason recorded") if skipped else None,
    )


def _column(
    name: str, cells: list[CellSummary], units: Units, command: tuple[str, ...] | None
) -> Column:
    own = [cell for cell in cells if cell.test == name]
    common = set.intersection(*(set(cell.factors.items()) for cell in own))
    return Column(
        name=name,
        title=None,
        quantities=quantities_of(own[0], units),
        command=command,
        factors={key: value for key, value in own[0].factors.items() if (key, value) in common},
    )


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

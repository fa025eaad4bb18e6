"""What a report says, as sentences and short texts, apart from any format."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.published import Citation
from collector.report.layout import WIDTH, Table
from collector.report.model import Report
from collector.stats.bounded import cell_bounded
from collector.stats.model import CellSummary, MatrixSummary
from collector.stats.paired import MAX_T
from collector.verdict import Verdict

_ACCELERATORS = {"tcg": "QEMU's TCG (no hardware acceleration)", "kvm": "KVM"}
_SHORT_VERDICT = {Verdict.NO_DIFFERENCE: "no difference"}
# The order in which a headline counts verdicts.
_COUNTED = (
    Verdict.SLOWER,
    Verdict.FASTER,
    Verdict.NO_DIFFERENCE,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_ENOUGH_DATA,
)


def lab_note(summary: MatrixSummary) -> str:
    """What kind of lab the numbers come from, and what they may be compared with."""
    return lab_sentence(summary.lab_kind, summary.accelerator)


def lab_sentence(kind: str, accelerator: str) -> str:
    """The same for a kind of lab and an accelerator as in the plan."""
    if kind == "guests":
        under = _ACCELERATORS.get(accelerator, accelerator)
        return (
            f"The lab is emulated: the hosts are guests under {under}. The numbers show function "
            "and the shape of the results. They cannot be compared with hardware or with another "
            "accelerator."
        )
    if kind == "exact":
        return (
            "The lab is emulated with instruction counting: rates are per virtual second and count "
            "instructions, not cycles. They can be compared within such labs only, never with "
            "hardware."
        )
    if kind == "netns":
        return (
            "The hosts are network namespaces of one machine and share its kernel and CPUs: the "
            "use of CPU is the whole machine's on both. The numbers cannot be compared with two "
            "machines on a wire."
        )
    return "Measured on the hosts described below."


def verdict_line(summary: MatrixSummary) -> str:
    """The verdict over the whole matrix in one sentence."""
    judged = [c for c in summary.cells if c.arm == "" and c.configuration != summary.baseline]
    valid = [c for c in judged if c.verdict not in (Verdict.INVALID, Verdict.SKIPPED)]
    counts = {v: sum(c.verdict is v for c in valid) for v in _COUNTED}
    if not valid:
        return f"No verdict: no cell of {summary.matrix} has a valid result beside the baseline."
    if counts[Verdict.NOT_ENOUGH_DATA] == len(valid):
        return (
            f"No verdict yet: {_blocks(summary.blocks)} measured, too few for a verdict "
            f"(at least {summary.min_blocks} are needed). The ratios are a first look."
        )
    words = {
        Verdict.SLOWER: "slower",
        Verdict.FASTER: "faster",
        Verdict.NO_DIFFERENCE: f"without a difference beyond {percent(summary.delta)}",
        Verdict.INCONCLUSIVE: "inconclusive",
        Verdict.NOT_ENOUGH_DATA: "with too few blocks for a verdict",
    }
    parts = [f"{counts[v]} {words[v]}" for v in _COUNTED if counts[v]]
    return (
        f"Against {summary.baseline}, of {len(valid)} valid cells: {', '.join(parts)} "
        f"({_blocks(summary.blocks)})."
    )


def headline(summary: MatrixSummary) -> tuple[str, ...]:
    """The verdict first, then what takes something away from it."""
    sentences = [verdict_line(summary)]
    cells = [cell for cell in summary.cells if cell.arm == ""]
    invalid = [cell for cell in cells if cell.verdict is Verdict.INVALID]
    if invalid:
        names = ", ".join(f"{cell.configuration} {cell.test}" for cell in invalid)
        sentences.append(f"Invalid, so without a number: {names}.")
    sentences += bounded_sentences(cells)
    sentences += skipped_sentences(summary)
    widest = max(summary.noise.values(), key=lambda noise: noise.floor, default=None)
    if widest is not None:
        sentences.append(
            f"The baseline measured against itself differs by up to {percent(widest.floor)} "
            f"({widest.test}); nothing below that is called a difference."
        )
    return tuple(sentences)


def bounded_sentences(cells: Sequence[CellSummary]) -> list[str]:
    """Where the generator was the bottleneck of a forwarding rate."""
    bounded = [cell for cell in cells if cell_bounded(cell)]
    if not bounded:
        return []
    tests = ", ".join(dict.fromkeys(cell.test for cell in bounded))
    measured = sum(cell.n > 0 for cell in cells)
    where = f"{len(bounded)} of {measured} cells ({tests})"
    if len(bounded) == measured:
        where = f"all {measured} cells"
    return [
        f"In {where} the generator was the bottleneck, or cannot be excluded as one: the device "
        "forwarded all that was offered, so these numbers are what it forwards at least, and "
        "nothing compares them."
    ]


def skipped_sentences(summary: MatrixSummary) -> list[str]:
    """Skipped configurations, tests and cells, those with the same reason together. A test that was
    skipped wherever its configuration was not is named once."""
    skipped = [cell for cell in summary.cells if cell.verdict is Verdict.SKIPPED]
    configurations = _skipped_as_a_whole(summary.cells, "configuration")
    tests = _skipped_as_a_whole(
        [cell for cell in summary.cells if cell.configuration not in configurations], "test"
    )
    by_reason: dict[str, list[str]] = {}
    for cell in skipped:
        names = by_reason.setdefault(cell.reason or "no reason recorded", [])
        name = f"{cell.configuration} {cell.test}"
        if cell.configuration in configurations:
            name = cell.configuration
        elif cell.test in tests:
            name = f"test {cell.test}"
        if name not in names:
            names.append(name)
    return [f"Skipped: {', '.join(names)} ({reason})." for reason, names in by_reason.items()]


def _skipped_as_a_whole(cells: Iterable[CellSummary], kind: str) -> set[str]:
    """Names of the configurations (or tests) of which every cell was skipped."""
    run: set[str] = set()
    seen: set[str] = set()
    for cell in cells:
        name: str = getattr(cell, kind)
        seen.add(name)
        if cell.verdict is not Verdict.SKIPPED:
            run.add(name)
    return seen - run


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioRow:
    """A line of the table of ratios, as texts."""

    test: str
    configuration: str
    ratio: str
    interval: str
    blocks: str
    p: str
    verdict: str
    verdict_word: str  # the full verdict, for a class name or an attribute


def ratio_rows(summary: MatrixSummary) -> tuple[RatioRow, ...]:
    """Every cell but the baseline's, tests together, in the order of the matrix."""
    tests = dict.fromkeys(cell.test for cell in summary.cells)
    return tuple(
        _ratio_row(cell, summary)
        for test in tests
        for cell in summary.cells
        if cell.test == test and cell.arm == "" and cell.verdict is not Verdict.SKIPPED
        if cell.configuration != summary.baseline
    )


def _ratio_row(cell: CellSummary, summary: MatrixSummary) -> RatioRow:
    shown = cell.verdict is not Verdict.INVALID and cell.ratio is not None
    p = adjusted_p(cell, summary.procedure)
    return RatioRow(
        test=cell.test,
        configuration=cell.configuration,
        ratio=f"{cell.ratio:.3f}" if shown and cell.ratio is not None else "-",
        interval=interval(cell.ratio_low, cell.ratio_high) if shown else "-",
        blocks=str(cell.n_pairs),
        p="-" if p is None or not shown else p_text(p),
        verdict=_SHORT_VERDICT.get(cell.verdict, cell.verdict.value),
        verdict_word=cell.verdict.value,
    )


def baseline_sentences(summary: MatrixSummary) -> tuple[str, ...]:
    """Which configurations in the table are compared with another baseline than the matrix's."""
    others = dict.fromkeys(
        (cell.configuration, cell.baseline)
        for cell in summary.cells
        if cell.verdict is not Verdict.SKIPPED
        and cell.baseline not in (summary.baseline, cell.configuration)
    )
    return tuple(f"{name} is compared with {baseline}." for name, baseline in others)


def adjusted_p(cell: CellSummary, procedure: str) -> float | None:
    """The p-value, adjusted over the matrix, of the procedure that decided."""
    return cell.p_maxt if procedure == MAX_T else cell.p_holm


def p_text(p: float) -> str:
    """A p-value with three decimals, or ``<0.001``."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """``0.861 – 0.899``, or a dash where there is no interval."""
    return "-" if low is None or high is None else f"{low:.3f} – {high:.3f}"


def cell_reasons(summary: MatrixSummary) -> tuple[str, ...]:
    """Why cells have no verdict, or not the expected one; equal reasons together."""
    by_reason: dict[str, list[str]] = {}
    for cell in summary.cells:
        if cell.reason and cell.verdict is not Verdict.SKIPPED and cell.arm == "":
            by_reason.setdefault(cell.reason, []).append(f"{cell.configuration} {cell.test}")
    return tuple(
        f"{', '.join(names) if len(names) <= 4 else f'{len(names)} cells'}: {reason}"
        for reason, names in by_reason.items()
    )


def citation(source: Citation) -> str:
    """Author, list, date and subject of a post; what the copy does not say is left out."""
    parts = [source.author, f"{source.list} list", source.date or "undated copy"]
    if source.subject is not None:
        parts.append(f'"{source.subject}"')
    return ", ".join(parts)


def title(report: Report) -> str:
    """Matrix, run and when it was measured."""
    when = "" if report.started_at is None else f", {report.started_at[:10]}"
    return f"{report.summary.matrix}, run {report.summary.run_id}{when}"


def command_line(argv: Iterable[str] | str) -> str:
    """The argv quoted for a shell, ready to copy; a line for a shell as it is."""
    return argv if isinstance(argv, str) else shlex.join(argv)


def command_lines(argv: Iterable[str] | str) -> str:
    """The same over several lines of a mail's width, joined by backslashes: still ready to copy.
    What has several lines for a shell already, or is a comment, stays as it is."""
    if isinstance(argv, str) and ("\n" in argv or argv.startswith("#")):
        return argv
    lines: list[str] = []
    current = ""
    for word in _words(argv) if isinstance(argv, str) else map(shlex.quote, argv):
        longer = f"{current} {word}" if current else word
        # two of indent before, a blank and a backslash behind
        if current and len(longer) > WIDTH - 4:
            lines.append(current)
            current = f"    {word}"
        else:
            current = longer
    return " \\\n".join(f"  {line}" for line in [*lines, current])


def _words(line: str) -> list[str]:
    """A line for a shell cut at blanks, but not within quotes or a substitution."""
    words, word, quote, depth = [], "", "", 0
    for before, char in zip(" " + line, line, strict=False):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and before != "\\":
            quote = char
        depth += (char == "(") - (char == ")" and depth > 0) if not quote else 0
        if char == " " and not quote and not depth:
            words.append(word)
            word = ""
        else:
            word += char
    return [one for one in [*words, word] if one]


def files_sentence(report: Report) -> str:
    """Where the raw files are, and how to pack them."""
    count = len(report.raw_files)
    if count == 0:
        return f"The run folder is {report.folder}; it holds no raw files."
    return (
        f"The run folder is {report.folder}; {count} raw file{'' if count == 1 else 's'} "
        f"of the tools, untouched, are below {report.folder}/raw. `crossover report "
        f"{report.folder} --tarball` packs them into one archive."
    )


def ratio_table(summary: MatrixSummary) -> Table:
    """The ratios as a table for Markdown and text."""
    rows = tuple(
        (r.test, r.configuration, r.ratio, r.interval, r.blocks, r.p, r.verdict)
        for r in ratio_rows(summary)
    )
    adjusted = (
        f", p adjusted over {summary.comparisons} comparisons ({summary.procedure})"
        if summary.comparisons
        else ""
    )
    return Table(
        caption=(
            f"Ratios to {summary.baseline}: median of the within-block ratios with its 95 % "
            f"block-bootstrap interval{adjusted}; delta {percent(summary.delta)}"
        ),
        head=("Test", "Configuration", "Ratio", "95 % interval", "Blocks", "p", "Verdict"),
        texts=2,
        rows=rows,
    )


def percent(fraction: float) -> str:
    """``2 %`` for 0.02: two significant digits below ten per cent, none lost above."""
    value = 100 * fraction
    return f"{value:.2g} %" if value < 10 else f"{value:.0f} %"


def _blocks(count: int) -> str:
    return f"{count} block{'' if count == 1 else 's'}"

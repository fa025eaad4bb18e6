"""CSV (a row a cell) and JSON (everything the report knows), for programs.

Both use SI units and say so in the names; what is not known is an empty field or null.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from typing import Any

from collector.published import Published
from collector.report import words
from collector.report.model import Report
from collector.stats.model import CellSummary

REPORT_SCHEMA = 1

_COLUMNS = (
    "run_id matrix lab_kind accelerator configuration test arm factors unit higher_is_better "
    "baseline n n_invalid n_pairs median mean cv ratio ratio_low ratio_high p verdict reason "
    "bimodal confidence_unmet confidence_worst_pct confidence_wanted_pct cpu_local_pct "
    "cpu_remote_pct published_ratio"
)
_PUBLISHED_COLUMNS = (
    "experiment configuration test quantity value unit printed printed_unit ratio_to_baseline "
    "unmet_width_pct note"
)


def run_csv(report: Report) -> str:
    """A header line and a line a cell, A/A members included, in the order of the matrix."""
    theirs = {}
    if report.comparison is not None:
        theirs = {(c.configuration, c.test): c.published_ratio for c in report.comparison.cells}
    summary = report.summary
    run = {
        "run_id": summary.run_id,
        "matrix": summary.matrix,
        "lab_kind": summary.lab_kind,
        "accelerator": summary.accelerator,
    }
    return _csv(
        _COLUMNS.split(),
        [
            {
                **run,
                **_cell(cell, summary.procedure),
                "published_ratio": None
                if cell.arm
                else theirs.get((cell.configuration, cell.test)),
            }
            for cell in summary.cells
        ],
    )


def _cell(cell: CellSummary, procedure: str) -> dict[str, Any]:
    row = asdict(cell)
    row["factors"] = ";".join(f"{key}={value}" for key, value in sorted(cell.factors.items()))
    row["p"] = words.adjusted_p(cell, procedure)
    return row


def published_csv(published: Published) -> str:
    """A header line and a line a published figure."""
    rows = []
    for figure in published.figures:
        test = published.test(figure.test)
        quantity = next(q for q in test.quantities if q.name == figure.quantity)
        headline = figure.quantity == test.headline.name
        ratio = published.ratio(figure.configuration, figure.test) if headline else None
        rows.append(
            {
                "experiment": published.name,
                "configuration": figure.configuration,
                "test": figure.test,
                "quantity": figure.quantity,
                "value": figure.value,
                "unit": figure.unit,
                "printed": figure.printed,
                "printed_unit": quantity.printed_unit,
                "ratio_to_baseline": ratio,
                "unmet_width_pct": figure.unmet_width_pct,
                "note": figure.note,
            }
        )
    return _csv(_PUBLISHED_COLUMNS.split(), rows)


def _csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(row[name]) for name in columns} for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A field's text: booleans in lower case, no infinities, None as empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def run_json(report: Report) -> str:
    """The whole report as a JSON document with a schema version."""
    return _json(
        {
            "schema": REPORT_SCHEMA,
            "title": words.title(report),
            "verdict": words.verdict_line(report.summary),
            "lab_note": words.lab_note(report.summary),
            "started_at": report.started_at,
            "folder": report.folder,
            "summary": asdict(report.summary),
            "comparison": None if report.comparison is None else asdict(report.comparison),
            "hosts": [{"name": host.name, "facts": dict(host.facts)} for host in report.hosts],
            "differences": [
                {"key": difference.key, "values": dict(difference.values)}
                for difference in report.differences
            ],
            "commands": [asdict(group) for group in report.commands],
            "proofs": [asdict(proof) for proof in report.proofs],
            "raw_files": list(report.raw_files),
        }
    )


def published_json(published: Published) -> str:
    """A published experiment as a JSON document with a schema version."""
    return _json({"schema": REPORT_SCHEMA, **asdict(published)})


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

"""The journal of a run: one JSON object a line, appended and flushed to disk before it counts.

Events: ``run`` (started or resumed), ``group`` (a configuration is being applied), ``cell`` (one
repeat ended; ``status`` and ``reason`` as in Sample), ``end``. What is not in the journal did not
happen: a cell that was cut off is run again, from applying its configuration on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collector.runfolder.runfolder import JOURNAL_FILE, JournalEvent


def now() -> str:
    """The time as the documents have it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def append(folder: Path, event: str, **details: Any) -> None:
    """Append one event and wait until it is on disk. A line cut off by an earlier crash is
    closed first, so that it cannot swallow this one."""
    append_lines(folder / JOURNAL_FILE, [json.dumps({"time": now(), "event": event, **details})])


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append lines to a file and wait until they are on disk; a torn last line goes first."""
    with path.open("a+b") as handle:
        size = handle.seek(0, os.SEEK_END)
        if size:
            handle.seek(size - 1)
            if handle.read(1) != b"\n":
                _drop_torn_line(handle, size)
        handle.seek(0, os.SEEK_END)
        handle.write("".join(f"{line}\n" for line in lines).encode())
        handle.flush()
        os.fsync(handle.fileno())


def _drop_torn_line(handle: Any, size: int) -> None:
    handle.seek(0)
    whole = handle.read(size)
    handle.truncate(whole.rfind(b"\n") + 1)


def finished(events: Iterable[JournalEvent]) -> set[tuple[str, int]]:
    """The ``(cell_id, block)`` pairs that ended, with whatever result."""
    return {
        (event.cell_id, event.block)
        for event in events
        if event.event == "cell" and event.cell_id is not None and event.block is not None
    }

"""The live line of a run: cells done and left, the running group, how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from collector.duration import duration
from collector.runfolder.runfolder import Plan, Run, load_run


def counts(run: Run) -> tuple[int, int]:
    """Repeats done and planned."""
    done = {(e.cell_id, e.block) for e in run.journal if e.event == "cell"}
    return len(done), len(run.plan.order)


def running_group(run: Run) -> str:
    """The group that was begun last, in words."""
    for event in reversed(run.journal):
        if event.event == "group":
            name = str(event.details.get("configuration"))
            suffix = " (A/A)" if event.details.get("arm") else ""
            return f"block {(event.block or 0) + 1}/{run.plan.blocks}, {name}{suffix}"
    return "preparing the hosts"


class Progress:
    """Shows a run's journal as it grows. On a terminal one line is rewritten, elsewhere each
    group gets a plain line."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._folder: Path | None = None
        self._began = time.monotonic()
        self._before = 0
        self._shown = ""
        self._task = ""

    @property
    def folder(self) -> Path | None:
        """The run folder, once the run is planned."""
        return self._folder

    def on_event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take an event of the runner."""
        action = str(data.get("task_action", ""))
        result = data.get("res")
        if kind == "playbook_on_task_start":
            self._task = str(data.get("task", ""))
        if kind == "runner_on_ok" and isinstance(result, Mapping):
            if action.endswith("bench_plan"):
                self._planned(result)
            if self._folder is not None and action.endswith("bench_record"):
                self._show()
        elif self._folder is None and kind == "playbook_on_task_start" and self._live:
            self._write(self._task)

    def _planned(self, result: Mapping[str, Any]) -> None:
        self._folder = Path(str(result["run_folder"]))
        self._began = time.monotonic()
        self._before = counts(load_run(self._folder))[0]
        self._show()

    def _show(self) -> None:
        assert self._folder is not None
        run = load_run(self._folder)
        self._write(self.line(run))

    def line(self, run: Run) -> str:
        """The line for the state of a run."""
        done, planned = counts(run)
        text = f"{done} of {planned} cells done, {planned - done} left; {running_group(run)}"
        fresh = done - self._before
        if fresh > 0 and planned > done:
            left = (time.monotonic() - self._began) / fresh * (planned - done)
            text += f"; about {duration(left)} to go"
        return text

    def _write(self, text: str) -> None:
        if text == self._shown:
            return
        self._shown = text
        if self._live:
            self._stream.write(f"\r\x1b[K{text[:100]}")
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the live line."""
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def say_step(kind: str, data: Mapping[str, Any]) -> None:
    """Tell on stderr what a playbook without a run begins to do; baking an image takes a minute."""
    if kind == "playbook_on_task_start":
        print(f"{data.get('task')} …", file=sys.stderr, flush=True)


def planned_text(plan: Plan, estimate_s: float) -> str:
    """What a plan holds, for ``crossover plan``."""
    running = [cell for cell in plan.cells if cell.skip is None]
    lines = [
        f"{plan.matrix}: {len(running)} cells in {plan.blocks} "
        f"block{'s' if plan.blocks != 1 else ''}, {len(plan.order)} measurements,"
        f" about {duration(estimate_s)}",
    ]
    if plan.blocks < plan.min_blocks:
        lines.append(f"too few blocks for a verdict: {plan.blocks} of at least {plan.min_blocks}")
    reasons: dict[str, dict[str, str | None]] = {}
    for cell in plan.cells:
        reasons.setdefault(cell.configuration, {})[cell.cell_id] = cell.skip
    for name, own in reasons.items():
        if None not in own.values():
            told = dict.fromkeys(str(reason) for reason in own.values())
            lines.append(f"skipped: {name}: {'; '.join(told)}")
    rest = sum(
        reason is not None
        for own in reasons.values()
        if None in own.values()
        for reason in own.values()
    )
    if rest:
        lines.append(f"left out: {rest} cells of the other configurations")
    return "\n".join(lines)

"""Running the measuring commands of a group: one process, or many sessions at once."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Sequence

from . import labelled
from .sessions.cpu import Reading, SpanError, within
from .sessions.launch import Session, Timing, launch, own_argv, pack, room_for
from .sessions.window import Window, WindowError, common_window, read_interims


def run_one(command: Dict[str, Any], label: Optional[str], folder: str) -> Dict[str, Any]:
    """Run one measuring command; its output goes to files first, so that it needs no terminal
    and survives a broken connection."""
    argv = labelled.under(label, command["argv"])
    paths = [os.path.join(folder, f"{command['cell_id']}.{end}") for end in ("out", "err")]
    started = datetime.now(timezone.utc)
    began = time.monotonic()
    timed_out = False
    environment = {**os.environ, "LC_ALL": "C"}
    with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
        )
        try:
            code = child.wait(timeout=command["timeout"])
        except subprocess.TimeoutExpired:
            child.kill()
            code, timed_out = child.wait(), True
    texts = []
    for path in paths:
        with open(path, "rb") as handle:
            texts.append(handle.read().decode(errors="replace"))
    return {
        "cell_id": command["cell_id"],
        "argv": argv,
        "rc": code,
        "timed_out": timed_out,
        "stdout": texts[0],
        "stderr": texts[1],
        **_times(started, began),
    }


def run_sessions(command: Dict[str, Any], label: Optional[str], folder: str) -> Dict[str, Any]:
    """Run the sessions of one command and find the window that they share.

    ``argv`` of the result is the first session's; the others differ in how long they wait.
    ``packed`` holds what each session wrote; ``window`` is null, and ``window_error`` says why,
    where they have none in common (judging that is the controller's).
    """
    argv = labelled.under(label, command["argv"])
    own = os.path.join(folder, command["cell_id"])
    os.makedirs(own)
    started = datetime.now(timezone.utc)
    began = time.monotonic()
    wanted = command["window"]
    timing = Timing(int(wanted["start_s"]), int(wanted["run_s"]), bool(wanted["interrupt"]))
    sessions = launch(argv, command["sessions"], command["timeout"], own, timing)
    window, why = _window(sessions, wanted)
    return {
        "cell_id": command["cell_id"],
        "argv": own_argv(argv, sessions[0].wait_s, timing),
        "rc": next((one.rc for one in sessions if one.rc), 0),
        "timed_out": any(one.timed_out for one in sessions),
        "sessions": len(sessions),
        "packed": pack(sessions),
        "window": None if window is None else {"start": window.start, "end": window.end},
        "window_error": why,
        "no_room": room_for(len(sessions)),
        **_times(started, began),
    }


def _times(started: datetime, began: float) -> Dict[str, Any]:
    return {
        "started_at": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "elapsed_s": round(time.monotonic() - began, 3),
    }


def _window(
    sessions: List[Session], wanted: Dict[str, float]
) -> "tuple[Optional[Window], Optional[str]]":
    if any(one.rc or one.timed_out for one in sessions):
        return None, "a session failed"
    try:
        series = [read_interims(one.stdout) for one in sessions]
        return common_window(series, wanted["settle_s"], wanted["wanted_s"]), None
    except WindowError as error:
        return None, str(error)


def add_cpu(results: Sequence[Dict[str, Any]], samples: Sequence[Reading]) -> None:
    """Put this host's CPU readings of its window beside each result that has one."""
    for result in results:
        window = result.get("window")
        if window is not None:
            result["cpu"] = cpu_of(samples, Window(window["start"], window["end"]), 0.0)


def cpu_of(samples: Sequence[Reading], window: Window, uncertainty_s: float) -> Dict[str, Any]:
    """The first and last reading within a window, or ``error`` that says why there are none."""
    try:
        return within(samples, window, uncertainty_s).as_dict()
    except SpanError as error:
        return {"error": str(error)}


def far_windows(results: Sequence[Dict[str, Any]], probe: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The windows by the server's clock, which the probe has compared with this one's."""
    found = []
    for result in results:
        window = result.get("window")
        if window is not None:
            ahead = probe["clock_offset_s"]
            found.append(
                {
                    "cell_id": result["cell_id"],
                    "start": window["start"] + ahead,
                    "end": window["end"] + ahead,
                    "uncertainty_s": probe["clock_uncertainty_s"],
                }
            )
    return found

"""The raw output of sessions in the run folder: what each wrote, their window, both hosts' CPU.

``sessions/NNN.out`` (and ``.err`` where a session said something there), ``window.json`` and
``cpu.json`` lie beside the cell's ``result.json``; docs/data-format.md has their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collector.errors import InputError
from collector.files import write_json, write_whole
from collector.results.cpu_use import CpuError, HostCpu, host_cpu
from collector.sessions.launch import Session, unpack
from collector.sessions.window import Window
from collector.shape import Shape, read_json

FOLDER, WINDOW_FILE, CPU_FILE = "sessions", "window.json", "cpu.json"
HOSTS = ("client", "server")
NOT_SAMPLED = {"error": "the CPU was not sampled"}


def write_sessions(
    raw: Path, result: Mapping[str, Any], probe: Mapping[str, Any], far_cpu: Mapping[str, Any]
) -> None:
    """Write what a result of several sessions holds; ``far_cpu`` is the server's share of it."""
    sessions = unpack(result["packed"])
    for one in sessions:
        write_whole(raw / FOLDER / f"{one.number:03d}.out", one.stdout)
        if one.stderr:
            write_whole(raw / FOLDER / f"{one.number:03d}.err", one.stderr)
    window = result["window"] or {}
    write_json(
        raw / WINDOW_FILE,
        {
            "schema": 1,
            "start": window.get("start"),
            "end": window.get("end"),
            "error": result["window_error"],
            "clock_offset_s": probe.get("clock_offset_s"),
            "clock_uncertainty_s": probe.get("clock_uncertainty_s"),
            "sessions": [
                {
                    "number": one.number,
                    "rc": one.rc,
                    "timed_out": one.timed_out,
                    "started_at": one.started_at,
                    "wait_s": one.wait_s,
                }
                for one in sessions
            ],
        },
    )
    near = result.get("cpu") or NOT_SAMPLED
    write_json(
        raw / CPU_FILE, {"schema": 1, "client": dict(near), "server": dict(far_cpu or NOT_SAMPLED)}
    )


def window_of(result: Mapping[str, Any]) -> Window | None:
    """The window of a result of several sessions, None where it has none."""
    found = result["window"]
    return None if found is None else Window(float(found["start"]), float(found["end"]))


def read_sessions(raw: Path) -> tuple[list[Session], Window]:
    """The sessions of a valid cell and their window. Raises InputError."""
    file = raw / WINDOW_FILE
    top = Shape(read_json(file), str(file))
    top.schema(1)
    window = Window(float(top.number("start")), float(top.number("end")))
    sessions = []
    for item in top.shapes("sessions"):
        number = item.integer("number")
        out = raw / FOLDER / f"{number:03d}.out"
        if not out.is_file():
            raise InputError(str(out), "no file", f"the output of session {number}")
        err = out.with_suffix(".err")
        sessions.append(
            Session(
                number=number,
                rc=item.integer("rc"),
                timed_out=item.boolean("timed_out"),
                started_at=float(item.number("started_at")),
                wait_s=item.integer("wait_s"),
                stdout=out.read_text(encoding="utf-8", errors="replace"),
                stderr=err.read_text(encoding="utf-8", errors="replace") if err.is_file() else "",
            )
        )
    return sessions, window


def read_cpu(raw: Path) -> dict[str, HostCpu | str]:
    """By host (client, server) its CPU use over the window, or why nothing is known of it."""
    file = raw / CPU_FILE
    document = read_json(file)
    found: dict[str, HostCpu | str] = {}
    for host in HOSTS:
        try:
            found[host] = host_cpu(document[host])
        except CpuError as error:
            found[host] = str(error)
        except (KeyError, TypeError) as error:
            raise InputError(f"{file}: {host}", "other fields", "two readings") from error
    return found

"""The few QMP conversations that the lab has with its guests' QEMU, through qemu.qmp."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from .errors import LabError

SNAPSHOT = "ready"
ROOT_NODE = "root"
ANSWER_SECONDS = 20.0
SILENT = "no answer; is QEMU stopped?"


def status(socket: Path, node: str) -> str:
    """QEMU's run state of a guest: ``running``, ``io-error``, ``paused`` ... LabError."""
    from qemu.qmp import QMPClient, QMPError

    async def ask() -> str:
        client = QMPClient(node)
        await client.connect(str(socket))
        try:
            answer = await client.execute("query-status")
        finally:
            await client.disconnect()
        assert isinstance(answer, dict)
        return str(answer["status"])

    try:
        return asyncio.run(asyncio.wait_for(ask(), ANSWER_SECONDS))
    except (QMPError, OSError, asyncio.TimeoutError) as error:
        raise LabError(f"node {node}: QMP on {socket}: {str(error) or SILENT}") from error


async def _save(socket: Path, node: str, timeout_s: float) -> str | None:
    from qemu.qmp import QMPClient

    client = QMPClient(node)
    await client.connect(str(socket))
    try:
        await client.execute(
            "snapshot-save",
            {"job-id": "save", "tag": SNAPSHOT, "vmstate": ROOT_NODE, "devices": [ROOT_NODE]},
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while loop.time() < deadline:
            jobs = await client.execute("query-jobs")
            assert isinstance(jobs, list)
            job: dict[str, Any] = next(j for j in jobs if isinstance(j, dict) and j["id"] == "save")
            if job["status"] == "concluded":
                await client.execute("job-dismiss", {"id": "save"})
                return str(job["error"]) if "error" in job else None
            await asyncio.sleep(0.1)
        return f"not finished within {timeout_s:.0f} s"
    finally:
        await client.disconnect()


def save_state(socket: Path, node: str, timeout_s: float = 120) -> None:
    """Save memory and disk of a running guest as the snapshot ``ready``; it goes on running."""
    from qemu.qmp import ExecuteError, QMPError

    try:
        error = asyncio.run(
            asyncio.wait_for(_save(socket, node, timeout_s), timeout_s + ANSWER_SECONDS)
        )
    except (QMPError, ExecuteError, OSError, asyncio.TimeoutError) as failure:
        raise LabError(f"node {node}: QMP on {socket}: {str(failure) or SILENT}") from failure
    if error:
        raise LabError(f"node {node}: its state could not be saved: {error}")

"""Runs the playbooks, through ansible-runner. The only file of this package that imports it.

Events of the run are handed to a callback as they come; what failed is kept as sentences for
people. An interrupted run is stopped, and whoever called decides what to put back.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from collector.errors import CrossoverError, LockedError
from collector.lab.process import Process, identify

ROOT = Path(__file__).resolve().parents[2]
BUSY = 75
# Playbooks of this machine alone.
ON_THE_CONTROLLER = ("controller", "lab_up", "lab_down")

EventHandler = Callable[[str, Mapping[str, Any]], None]


@dataclass
class Outcome:
    """How a playbook ended. ``failures`` are sentences ``host, task: message``."""

    code: int
    interrupted: bool = False
    busy: bool = False
    failures: list[str] = field(default_factory=list)
    results: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by task action


def strategy_environment() -> dict[str, str]:
    """Mitogen's strategy where it is installed: a task in an emulated guest then costs a tenth
    (docs/performance.md). ``CROSSOVER_STRATEGY=linear`` keeps Ansible's own."""
    wanted = os.environ.get("CROSSOVER_STRATEGY", "mitogen_linear")
    spec = importlib.util.find_spec("ansible_mitogen")
    if wanted == "linear" or spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(next(iter(spec.submodule_search_locations))) / "plugins" / "strategy"
    return {"ANSIBLE_STRATEGY_PLUGINS": str(folder), "ANSIBLE_STRATEGY": wanted}


def environment(remote: bool = True) -> dict[str, str]:
    """The environment of a playbook; ``remote`` tells whether it has tasks on measured hosts,
    for which Mitogen pays."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
        "ANSIBLE_NOCOLOR": "1",
        "PATH": path,
        **(strategy_environment() if remote else {}),
    }


def inventory() -> str:
    """The inventory: ``CROSSOVER_INVENTORY`` (from the current folder) or the embedded lab's."""
    asked = os.environ.get("CROSSOVER_INVENTORY")
    if not asked:
        return str(ROOT / "inventories" / "qemu")
    # Playbooks run in a folder of their own, where a relative path would mean something else.
    return os.path.abspath(asked) if os.path.exists(asked) else asked


def _workers() -> list[Process]:
    """Ansible's processes below this one. Its task workers are sessions of their own, so that
    ending ansible-playbook alone would let a task run on unseen."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended meanwhile
        parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found, left = [], list(parents.get(os.getpid(), []))
    while left:
        pid = left.pop()
        left += parents.get(pid, [])
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        process = identify(pid)
        if process is not None and b"ansible" in command.lower():
            found.append(process)
    return found


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """A question whether SIGINT or SIGTERM came; ansible-runner asks it while it waits."""
    seen: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_playbook(
    name: str,
    variables: Mapping[str, Any] | None = None,
    on_event: EventHandler | None = None,
    options: str = "",
) -> Outcome:
    """Run ``playbooks/<name>.yml`` and return how it ended.

    ``on_event(kind, data)`` gets ansible-runner's events; ``options`` are further words for
    ansible-playbook.
    """
    import ansible_runner

    outcome = Outcome(code=1)

    def handle(event: dict[str, Any]) -> bool:
        data = event.get("event_data", {})
        kind = event.get("event", "")
        _keep(outcome, kind, data)
        if on_event is not None:
            on_event(kind, data)
        return False  # keep no file of the event

    workers: list[Process] = []

    def cancelled() -> bool:
        if asked() and not workers:
            workers.extend(_workers())
        return asked()

    with tempfile.TemporaryDirectory(prefix="crossover-") as scratch, _interruptible() as asked:
        done = ansible_runner.run(
            private_data_dir=scratch,
            project_dir=str(ROOT),
            playbook=str(ROOT / "playbooks" / f"{name}.yml"),
            inventory=inventory(),
            extravars=dict(variables or {}),
            envvars=environment(remote=name not in ON_THE_CONTROLLER),
            event_handler=handle,
            cancel_callback=cancelled,
            cmdline=options or None,
            quiet=True,
            settings={"suppress_env_files": True, "idle_timeout": 0},
        )
        outcome.interrupted = asked()
        for process in workers:
            process.end(patience_s=15)
        outcome.code = int(done.rc)
        if outcome.code and not outcome.failures and not outcome.interrupted:
            with done.stdout as output:
                outcome.failures.append(_complaint(output.read()))
    return outcome


def _complaint(output: str) -> str:
    """What ansible-playbook says of a playbook that it could not even start, with its place."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith("[ERROR]: "):
            origin = lines[number + 1] if number + 1 < len(lines) else ""
            place = f"{origin.removeprefix('Origin: ')}: " if origin.startswith("Origin: ") else ""
            return place + line.removeprefix("[ERROR]: ")
    return lines[-1] if lines else "ansible-playbook said nothing"


def _keep(outcome: Outcome, kind: str, data: Mapping[str, Any]) -> None:
    result = data.get("res")
    if not isinstance(result, Mapping):
        return
    if kind == "runner_on_ok":
        outcome.results[str(data.get("task_action", ""))] = result
    elif kind in ("runner_on_failed", "runner_on_unreachable") and not data.get("ignore_errors"):
        message = str(result.get("msg", "failed without a word")).removeprefix("Task failed: ")
        outcome.failures.append(f"{data.get('host')}, {data.get('task')}: {message}")
        outcome.busy = outcome.busy or result.get("exit_code") == BUSY


def must(outcome: Outcome, what: str) -> Outcome:
    """The outcome if it went well. Raises CrossoverError with the first failure otherwise."""
    if outcome.interrupted:
        raise CrossoverError(f"{what}: interrupted")
    if outcome.code:
        text = f"{what}: {outcome.failures[0] if outcome.failures else 'failed'}"
        raise LockedError(text) if outcome.busy else CrossoverError(text)
    return outcome

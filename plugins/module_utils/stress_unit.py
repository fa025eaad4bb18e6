"""The stress program as a unit of systemd: laid out, started, read and ended.

The unit is a scope: the program keeps the SELinux context of the connection that started it,
which a service would not, and stands outside of that connection's session.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from ansible_collections.crossover.lab.plugins.module_utils import (
    audit,
    host_identity,
    labelled,
    stress_agent,
    stress_health,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import BusyError, HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.run import environment
from ansible_collections.crossover.lab.plugins.module_utils.lab.process import Process, identify

FOLDER = Path("/var/lib/crossover/stress")
PACKAGE = "ansible_collections.crossover.lab.plugins.module_utils"
PROGRAM = (audit, host_identity, stress_health, stress_agent)
SYSTEMD = Path("/run/systemd/system")
START_S = 30.0
END_S = 20.0
MOST_BYTES = 4 * 1024 * 1024  # of samples in one answer
MOST_WORDS = 2000
# -I -S: nothing of the host's Python but its standard library.
STARTER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    f"from {PACKAGE} import stress_agent; sys.exit(stress_agent.main(sys.argv[2:]))"
)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")


class Unit:
    """One run's folder and unit on this host."""

    def __init__(self, name: str, root: Path = FOLDER) -> None:
        if not _ID.fullmatch(name):
            raise HostError(f"stress id: found {name!r}; wanted letters, digits, '_', '-' and '.'")
        self.name = name
        self.root = root
        self.folder = root / name
        self.samples = self.folder / stress_agent.SAMPLES_FILE

    @property
    def unit(self) -> str:
        """The unit's name."""
        return f"crossover-stress-{self.name}.scope"

    def process(self) -> Optional[Process]:
        """The program if it runs, else None."""
        try:
            with open(self.folder / "process.json", encoding="utf-8") as handle:
                data = json.load(handle)
        except (FileNotFoundError, ValueError):
            return None
        if data["boot_id"] != host_identity.identity()["boot_id"]:
            return None
        found = Process(data["pid"], data["started"])
        return found if found.alive() else None

    def start(self, plan: Dict[str, Any], limit_s: int) -> None:
        """Start the program and wait for its first sample. HostError if it does not come up,
        BusyError if another one runs here. ``limit_s``: when systemd ends it at the latest."""
        runner = shutil.which("systemd-run", path=environment()["PATH"])
        if runner is None or not SYSTEMD.is_dir():
            raise HostError(
                "stress: this host has no running systemd with systemd-run; wanted one, because "
                "the streams must outlive the connection"
            )
        for other in self.others():
            raise BusyError(f"stress: {other} runs on this host; wanted it stopped first")
        self._lay_out(plan)
        argv = [runner, "--quiet", "--scope", f"--unit={self.unit}"]
        argv += [f"--property=RuntimeMaxSec={limit_s}", "--", "/usr/bin/python3", "-I", "-S", "-c"]
        argv += [STARTER, str(self.folder / "program"), str(self.folder)]
        with open(self.folder / "words", "wb") as sink:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                cwd="/",
                env=environment(),
            )
        # systemd-run becomes the program: the process stays the same.
        found = identify(child.pid)
        if found is not None:
            data = {"pid": found.pid, "started": found.started}
            data["boot_id"] = host_identity.identity()["boot_id"]
            (self.folder / "process.json").write_text(json.dumps(data), encoding="utf-8")
        deadline = time.monotonic() + START_S
        while b'"sample"' not in self._content():
            code = child.poll()
            if code is not None or time.monotonic() > deadline:
                happened = f"ended with {code}" if code is not None else "made no sample"
                self.stop()
                raise HostError(f"stress: the program {happened}: {self.words() or 'silently'}")
            time.sleep(0.05)

    def others(self) -> List[str]:
        """Runs of other names whose program is alive on this host, and this one's."""
        if not self.root.is_dir():
            return []
        names = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        return [name for name in names if Unit(name, self.root).process() is not None]

    def _lay_out(self, plan: Dict[str, Any]) -> None:
        if self.samples.exists():
            raise HostError(f"{self.folder}: found a run's samples; wanted a new id")
        package = self.folder / "program" / PACKAGE.replace(".", "/")
        package.mkdir(mode=0o700, parents=True, exist_ok=True)
        for module in PROGRAM:
            name = module.__name__.rpartition(".")[2]
            (package / f"{name}.py").write_text(labelled.source_of(module), encoding="utf-8")
        path = self.folder / stress_agent.PLAN_FILE
        path.write_text(json.dumps(plan), encoding="utf-8")

    def _content(self) -> bytes:
        try:
            return self.samples.read_bytes()
        except FileNotFoundError:
            return b""

    def read(self, offset: int, most: int = MOST_BYTES) -> Dict[str, Any]:
        """Whole lines from ``offset`` on, at most about ``most`` bytes of them, and where to go on.

        ``{lines, offset, more}``. HostError for an offset beyond the end: not the same file.
        """
        try:
            size = self.samples.stat().st_size
        except FileNotFoundError:
            raise HostError(f"{self.samples}: not there; wanted the samples of a run") from None
        if offset > size:
            raise HostError(f"{self.samples}: found {size} bytes; wanted at least {offset}")
        with open(self.samples, "rb") as handle:
            handle.seek(offset)
            data = handle.read(most)
            end = data.rfind(b"\n") + 1
            if not end and len(data) == most:
                data += handle.readline()  # one line longer than an answer
                end = len(data) if data.endswith(b"\n") else 0
        data = data[:end]
        lines = data.decode(errors="replace").splitlines()
        return {"lines": lines, "offset": offset + end, "more": offset + end < size and end > 0}

    def words(self) -> str:
        """What the program said beside its samples; it should say nothing."""
        text = stress_health.read_text(str(self.folder / "words")) or ""
        return text.strip()[-MOST_WORDS:]

    def stop(self) -> bool:
        """End the program, which ends its children and writes its last line; whether it ran."""
        found = self.process()
        if found is None:
            return False
        found.end(END_S)
        # Whatever the program could not end is in its unit still.
        subprocess.run(
            ["systemctl", "stop", "--quiet", self.unit],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=120,
            env=environment(),
        )
        return True

    def forget(self) -> bool:
        """Remove the folder; whether there was one."""
        if not self.folder.is_dir():
            return False
        shutil.rmtree(self.folder)
        return True

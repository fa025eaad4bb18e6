# SPDX-License-Identifier: GPL-2.0-or-later
"""Making kernel pktgen send, and making sure that it stops.

Generator threads live in the kernel and send until their count is reached or they are told to
stop, whatever becomes of the process that started them. So "start" is written by a process that
``timeout`` ends: a signal to the writer stops every thread (pktgen_wait_thread_run in Linux
net/core/pktgen.c), even when this module is gone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from .host import kmod, record
from .host.errors import BusyError, HostError
from .host.run import environment
from .kernel_state.errors import StateError
from .kernel_state.pktgen import Report, parse_report, parse_thread
from .pktgen_begin import Begun, Seen, begun
from .pktgen_trial import Sender, Trial, lines, not_held

PROC = Path("/proc/net/pktgen")
RECORD = record.RUN / "pktgen.json"
LOCK = record.RUN / "pktgen.lock"
THREAD = "kpktgend_"
# How long a run with a count may go on beyond its duration, so that a generator that lags a little
# comes to its end: a share of the duration, and seconds.
LAG, LAG_S = 0.05, 0.1
# The longest from "start" to the first frame, and from "stop" to the last.
START_S = 5.0
STOP_S = 5.0
_POLL_S = 0.02


class Generator:
    """The files of pktgen. ``proc`` and ``starter`` are changed by tests only."""

    def __init__(self, proc: Path = PROC, remembered: Path = RECORD) -> None:
        self.proc, self.remembered = proc, remembered

    def require(self) -> None:
        """HostError, with the reason, when this kernel's pktgen cannot be used."""
        if self.proc.is_dir():
            return
        state = kmod.state("pktgen")
        why = (
            "the kernel module pktgen is not loaded; load it (role forwarding does)"
            if state == kmod.UNLOADED
            else f"pktgen is {state}, but not in this network namespace"
        )
        raise HostError(f"pktgen: {self.proc} is not there: {why}")

    def threads(self) -> Tuple[int, ...]:
        """The CPUs that have a generator thread."""
        names = [item.name for item in self.proc.iterdir() if item.name.startswith(THREAD)]
        return tuple(sorted(int(name[len(THREAD) :]) for name in names))

    def read(self, name: str) -> str:
        """The text of a file of pktgen."""
        try:
            return (self.proc / name).read_text()
        except OSError as error:
            raise HostError(f"pktgen: {self.proc / name}: {error.strerror}") from None

    def write(self, name: str, line: str) -> None:
        """Tell pktgen one thing. HostError with the kernel's reason when it refuses."""
        try:
            descriptor = os.open(self.proc / name, os.O_WRONLY)
            try:
                os.write(descriptor, f"{line}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise HostError(f"pktgen: {name}: {line}: {_reason(error)}") from None

    def devices(self) -> Dict[str, Tuple[int, bool]]:
        """Every device that pktgen has: its thread's CPU, and whether it sends now."""
        found: Dict[str, Tuple[int, bool]] = {}
        for cpu in self.threads():
            try:
                thread = parse_thread(self.read(f"{THREAD}{cpu}"))
            except StateError as error:
                raise HostError(f"pktgen: {THREAD}{cpu}: {error}") from None
            found.update(dict.fromkeys(thread.running, (cpu, True)))
            found.update(dict.fromkeys(thread.stopped, (cpu, False)))
        return found

    def stop(self) -> None:
        """See to it that no thread sends. HostError when one still does after some seconds."""
        limit = time.monotonic() + STOP_S
        told = False
        while True:
            sending = [name for name, (_cpu, running) in self.devices().items() if running]
            if not sending:
                return
            if time.monotonic() > limit:
                raise HostError(
                    f"pktgen: {', '.join(sending)} still sends {STOP_S:g} s after it was told to "
                    "stop"
                )
            if not told:
                self.write("pgctrl", "stop")
                told = True
            time.sleep(_POLL_S)

    def clear(self) -> bool:
        """Stop and remove what we have made, also in a call that was killed.

        Returns whether there was anything. Devices of others stay. HostError when a thread has
        both: pktgen forgets all devices of a thread or none.
        """
        ours = self._recorded()
        if not ours:
            return False
        if self.proc.is_dir():
            present = self.devices()
            if any(name in ours and running for name, (_cpu, running) in present.items()):
                self.stop()
            for cpu in sorted({cpu for name, (cpu, _running) in present.items() if name in ours}):
                theirs = sorted(n for n, (at, _r) in present.items() if at == cpu and n not in ours)
                if theirs:
                    raise HostError(
                        f"pktgen: {THREAD}{cpu} has {', '.join(theirs)} beside our devices; "
                        "wanted a thread of our own"
                    )
                self.write(f"{THREAD}{cpu}", "rem_device_all")
        record.forget(self.remembered)
        return True

    def _recorded(self) -> List[str]:
        data = record.load(self.remembered)
        if data is None or data.get("boot_id") != record.boot_id():
            return []
        return [str(name) for name in data.get("devices", [])]

    def make(self, wanted: Sequence[Sender], trial: Trial) -> None:
        """Make the senders and read back what each has taken. HostError when one did not."""
        present = self.devices()
        if present:
            raise BusyError(
                f"pktgen: {', '.join(sorted(present))} is configured by somebody else, and 'start' "
                "starts all; wanted pktgen without devices (rem_device_all)"
            )
        names = [sender.name for sender in wanted]
        # Written first, so that what a killed call leaves behind can be told from others' devices.
        record.save(self.remembered, {"boot_id": record.boot_id(), "devices": names})
        for sender in wanted:
            for name, line in lines(sender, trial):
                self.write(name, line)
            report = self.report(sender.name)
            wrong = not_held(sender, trial, report.settings, report.flags)
            if wrong:
                raise HostError(f"pktgen: {sender.name}: {'; '.join(wrong)}")

    def report(self, name: str) -> Report:
        """A device's report."""
        try:
            return parse_report(self.read(name))
        except StateError as error:
            raise HostError(f"pktgen: {name}: {error}") from None

    def run(
        self,
        duration_s: float,
        bounded: bool,
        wait: Callable[[], Optional[Seen]] = lambda: None,
        wait_s: float = 0.0,
    ) -> Optional[Begun]:
        """Let all devices send for ``duration_s`` seconds from the first frame on; how they began
        where they follow another host. When all is ready ``wait`` is called, which takes ``wait_s``
        seconds at most.

        ``bounded``: each has a count and ends by itself, so one that lags is given a little more
        time. When this returns or raises, none sends. HostError when pktgen could not be started.
        """
        limit_s = duration_s + (duration_s * LAG + LAG_S if bounded else 0)
        longest_s = wait_s + limit_s + START_S
        argv = ["timeout", "--signal=TERM", f"{longest_s:.3f}", "tee"]
        try:
            starter = subprocess.Popen(
                [*argv, str(self.proc / "pgctrl")],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
            )
        except FileNotFoundError:
            raise HostError("timeout: not installed on this host; coreutils has it") from None
        said = b""
        seen: Optional[Seen] = None
        with starter:
            try:
                # Everything is there by now but the word.
                seen = wait()
                _tell(starter, b"start\n")
                began = self._await_start(starter)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    # pktgen's clock is this one (ktime_get).
                    starter.wait(max(0.0, began + limit_s - time.monotonic()))
            finally:
                ours = self._end(starter)
            if starter.stderr is not None:
                said = starter.stderr.read()
        # 124 is how `timeout` says that it had to end the command itself.
        if not ours and starter.returncode not in (0, 124):
            words = said.decode(errors="replace").strip() or f"ended with {starter.returncode}"
            raise HostError(f"pktgen: start: {words}")
        return None if seen is None else begun(seen, began)

    def _await_start(self, starter: "subprocess.Popen[bytes]") -> float:
        """The monotonic time of the first frame; now, if the run was too short to be seen."""
        limit = time.monotonic() + START_S
        while starter.poll() is None:
            started = [
                report.started_us
                for report in (self.report(name) for name in self.devices())
                if report.started_us
            ]
            if started:
                return min(started) / 1e6
            if time.monotonic() > limit:
                raise HostError(f"pktgen: nothing was sent within {START_S:g} s")
            time.sleep(_POLL_S)
        return time.monotonic()

    def _end(self, starter: "subprocess.Popen[bytes]") -> bool:
        """End the starter if it still runs, and all sending; whether it did run."""
        ours = starter.poll() is None
        if ours:
            starter.terminate()
            try:
                starter.wait(STOP_S)
            except subprocess.TimeoutExpired:
                starter.kill()
                starter.wait()
        self.stop()
        return ours


def _tell(starter: "subprocess.Popen[bytes]", text: bytes) -> None:
    """Give a process its whole input; one that is gone already has said why elsewhere."""
    if starter.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            starter.stdin.write(text)
            starter.stdin.close()


def _reason(error: OSError) -> str:
    """The kernel's reason; it has one for which libc has no words."""
    if error.errno == 524:  # ENOTSUPP of the kernel itself
        return "the device cannot send one packet several times (its driver shares no buffers)"
    if error.errno == errno.ENODEV:
        return "no such device"
    return error.strerror or str(error)


@contextlib.contextmanager
def alone(path: Path = LOCK) -> Iterator[None]:
    """One trial at a time on a host. BusyError when another runs."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BusyError(
                "pktgen: another trial runs on this host; wanted one at a time"
            ) from None
        yield


def elapsed_s(reports: Sequence[Report]) -> Optional[float]:
    """From the first start to the last stop of a direction's senders; None if none ever started."""
    if not reports or not all(report.finished for report in reports):
        return None
    first = min(report.started_us for report in reports)
    return (max(report.stopped_us for report in reports) - first) / 1e6

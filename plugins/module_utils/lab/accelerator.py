"""Which accelerator a guest really boots under, found by booting one.

``/dev/kvm`` may exist, open and still never bring a kernel up (nested or cut-down hypervisors), so
KVM is taken only after the lab's own kernel has printed its line under it. The answer is kept per
host, kernel and QEMU.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import qemu
from .paths import cache_root

KVM_DEVICE = "/dev/kvm"
PROBE_SECONDS = 8.0
ALIVE = b"crossover-probe-alive"


@dataclass(frozen=True)
class Accelerator:
    """The accelerator and why it was taken."""

    name: str
    reason: str


def _key() -> list[str]:
    try:
        device = os.stat(KVM_DEVICE)
        kvm = f"{device.st_mode:o}:{device.st_uid}:{device.st_gid}:{os.getuid()}"
    except FileNotFoundError:
        kvm = "absent"
    return [platform.node(), platform.release(), qemu.version(), kvm]


def probe_kvm(kernel: Path, initrd: Path, scratch: Path) -> str | None:
    """Boot the kernel under KVM; None if it came up, else what happened instead."""
    if not os.path.exists(KVM_DEVICE):
        return f"this host has no {KVM_DEVICE}"
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return f"{KVM_DEVICE} may not be opened by this user (group kvm)"
    console = scratch / "probe.console"
    argv = [qemu.BINARY, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    argv += ["-accel", "kvm", "-cpu", "host", "-m", "256", "-serial", f"file:{console}"]
    argv += ["-kernel", str(kernel), "-initrd", str(initrd)]
    argv += ["-append", "console=ttyS0 panic=-1 crossover.probe "]
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert child.stderr is not None
        deadline = time.monotonic() + PROBE_SECONDS
        try:
            while time.monotonic() < deadline:
                if console.exists() and ALIVE in console.read_bytes():
                    return None
                if child.poll() is not None:
                    if console.exists() and ALIVE in console.read_bytes():
                        return None
                    text = child.stderr.read().decode(errors="replace").strip().splitlines()
                    return f"QEMU with KVM ended: {text[-1] if text else 'silently'}"
                time.sleep(0.1)
            return f"a guest under KVM printed nothing within {PROBE_SECONDS:.0f} s"
        finally:
            child.kill()
            child.wait()
            child.stderr.close()
    finally:
        console.unlink(missing_ok=True)


def choose(asked: str, kernel: Path, initrd: Path) -> Accelerator:
    """``asked`` is auto, kvm or tcg. Under auto the remembered answer is used while it fits."""
    if asked != "auto":
        return Accelerator(asked, f"asked for ({asked})")
    memory = cache_root() / "accelerator.json"
    key = _key()
    try:
        kept = json.loads(memory.read_text())
        if kept["key"] == key:
            return Accelerator(kept["name"], kept["reason"])
    except (FileNotFoundError, ValueError, KeyError):
        pass
    failure = probe_kvm(kernel, initrd, cache_root())
    found = (
        Accelerator("kvm", "a guest booted under KVM")
        if failure is None
        else Accelerator("tcg", f"emulation, as {failure}")
    )
    temporary = memory.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({"key": key, **asdict(found)}, indent=2) + "\n")
    temporary.rename(memory)
    return found

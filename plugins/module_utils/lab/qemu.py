"""The QEMU command line of a node, and starting it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .process import Process, identify
from .qmp import ROOT_NODE
from .topology import MANAGEMENT_DEVICE, Topology, mac_address

BINARY = "qemu-system-x86_64"
MANAGEMENT_ADDRESS = "10.0.2.15/24"  # what QEMU's user network forwards to
TRANSLATION_MIB = 256
START_SECONDS = 240.0  # a saved state is read back meanwhile, on a busy machine slowly
CPU_MODEL = {"kvm": "host", "tcg": "max"}
# Guests that this process started.
_GUESTS: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Boot:
    """What a node boots: kernel, initramfs and command line, or (``kernel`` None) the boot
    loader of its own disk. ``modules`` is an ext4 image with the modules of a kernel that is not
    the disk's own."""

    kernel: Path | None
    initrd: Path | None
    append: str
    modules: Path | None = None


@dataclass(frozen=True)
class Machine:
    """The size and speed of the guests."""

    accelerator: str
    memory_mib: int
    cpus: int
    restrict: bool  # whether a guest can reach nothing but the other guests


@dataclass(frozen=True)
class NodeFiles:
    """The files and sockets of one node."""

    overlay: Path
    seed: Path
    console: Path
    qmp: Path
    pid: Path
    sockets: Path  # folder of the link sockets


def append_line(selinux: str, extra: str = "") -> str:
    """The kernel command line of a guest. ``selinux``: enforcing, permissive or disabled."""
    words = ["root=/dev/vda", "rw", "console=ttyS0", "quiet", "net.ifnames=0", "panic=10"]
    words += ["mitigations=off", "audit=1", "audit_backlog_limit=8192"]
    if selinux == "disabled":
        words += ["selinux=0"]
    else:
        words += ["security=selinux", "selinux=1", f"enforcing={int(selinux == 'enforcing')}"]
    return " ".join([*words, *extra.split()])


def _link_options(lab: str, topology: Topology, node: str, sockets: Path) -> list[str]:
    options = []
    for index, (link, end) in enumerate(topology.ends_of(node), start=1):
        mine = sockets / f"{link.name}-{node}"
        other = sockets / f"{link.name}-{link.peer(node).node}"
        options += [
            "-netdev",
            f"dgram,id=link{index},local.type=unix,local.path={mine}"
            f",remote.type=unix,remote.path={other}",
            "-device",
            f"virtio-net-pci,netdev=link{index},mac={mac_address(lab, node, end.device)},romfile=",
        ]
    return options


def command(
    lab: str,
    topology: Topology,
    node: str,
    boot: Boot,
    machine: Machine,
    files: NodeFiles,
    ssh_port: int,
    restore: str | None,
) -> list[str]:
    """The argv that starts a node. ``ssh_port`` on loopback is forwarded to the guest's port 22;
    ``restore`` names a saved state to go on from."""
    mac = mac_address(lab, node, MANAGEMENT_DEVICE)
    argv = [BINARY, "-name", f"crossover-{lab}-{node}", "-nodefaults", "-no-user-config"]
    # By default QEMU takes a gigabyte for translated code, which small guests never fill.
    thread = f",thread=multi,tb-size={TRANSLATION_MIB}" if machine.accelerator == "tcg" else ""
    argv += ["-accel", f"{machine.accelerator}{thread}", "-cpu", CPU_MODEL[machine.accelerator]]
    argv += ["-m", str(machine.memory_mib), "-smp", str(machine.cpus), "-display", "none"]
    argv += ["-serial", f"file:{files.console}", "-pidfile", str(files.pid)]
    argv += ["-qmp", f"unix:{files.qmp},server=on,wait=off"]
    if boot.kernel is not None:
        argv += ["-kernel", str(boot.kernel), "-append", boot.append]
        if boot.initrd is not None:
            argv += ["-initrd", str(boot.initrd)]
    argv += ["-blockdev", f"driver=file,filename={files.overlay},node-name=rootfile"]
    argv += ["-blockdev", f"driver=qcow2,file=rootfile,node-name={ROOT_NODE}"]
    argv += ["-device", f"virtio-blk-pci,drive={ROOT_NODE}"]
    argv += ["-blockdev", f"driver=file,filename={files.seed},node-name=seedfile,read-only=on"]
    argv += ["-blockdev", "driver=raw,file=seedfile,node-name=seed,read-only=on"]
    argv += ["-device", "virtio-blk-pci,drive=seed"]
    if boot.modules is not None:
        argv += ["-blockdev", f"driver=file,filename={boot.modules},node-name=modfile,read-only=on"]
        argv += ["-blockdev", "driver=raw,file=modfile,node-name=modules,read-only=on"]
        argv += ["-device", "virtio-blk-pci,drive=modules"]
    argv += ["-device", "virtio-rng-pci"]
    restrict = "on" if machine.restrict else "off"
    argv += [
        "-netdev",
        f"user,id=management,restrict={restrict},hostfwd=tcp:127.0.0.1:{ssh_port}-:22",
        "-device",
        f"virtio-net-pci,netdev=management,mac={mac},romfile=",
    ]
    argv += _link_options(lab, topology, node, files.sockets)
    if restore:
        argv += ["-loadvm", restore]
    return argv


def version() -> str:
    """QEMU's own version line. LabError if it is not installed."""
    try:
        done = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise LabError(
            f"{BINARY} does not run ({error}); playbooks/controller.yml installs it"
        ) from None
    return done.stdout.splitlines()[0]


def signature(argv: list[str], inputs: list[str]) -> str:
    """What a saved state depends on: the command line without what may differ between two
    starts of the same guest (ports, the folder of sockets, the restore itself), and ``inputs``."""
    stable = []
    skip = False
    for word in argv:
        if skip:
            skip = False
            continue
        if word in ("-loadvm", "-qmp", "-pidfile", "-serial", "-kernel", "-initrd"):
            skip = True
            continue
        kept = re.sub(r"hostfwd=tcp:127\.0\.0\.1:\d+", "hostfwd", word)
        stable.append(re.sub(r"(local\.path|remote\.path|filename)=[^,]*", r"\1", kept))
    return hashlib.sha256(json.dumps([stable, inputs]).encode()).hexdigest()[:16]


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def complaints(files: NodeFiles) -> Path:
    """The file that QEMU's own messages go to."""
    return files.console.with_suffix(".qemu")


@contextmanager
def _every_cpu() -> Iterator[None]:
    """What is started inside may use every CPU. Mitogen pins the process that this runs in to one,
    and all guests would share it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(argv: list[str], files: NodeFiles, node: str) -> Process:
    """Start QEMU in a session of its own; returns once it runs. LabError has QEMU's complaint."""
    errors = complaints(files)
    for stale in (files.pid, files.qmp):
        stale.unlink(missing_ok=True)
    with errors.open("wb") as sink, _every_cpu():
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
        )
    found = identify(child.pid)
    deadline = time.monotonic() + START_SECONDS
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(0.1)
        while time.monotonic() < deadline:
            if child.poll() is not None or found is None:
                child.wait()
                text = errors.read_text(errors="replace").strip() or "silently"
                raise LabError(f"node {node}: QEMU ended with {child.returncode}: {text}")
            if _greets(monitor, files.qmp):
                _outliving(child)
                return found
    child.kill()
    child.wait()
    raise LabError(
        f"node {node}: the monitor {files.qmp} did not answer within {START_SECONDS:.0f} s"
    )


def _outliving(child: subprocess.Popen[bytes]) -> None:
    """Keep the handle of a guest that is to outlive this process, and reap those that ended while
    it lasted: a dropped handle of a running child is what Python warns of as a leak."""
    _GUESTS[:] = [guest for guest in _GUESTS if guest.poll() is None]
    _GUESTS.append(child)


def _greets(monitor: socket.socket, path: Path) -> bool:
    """Whether QEMU's monitor says its greeting. The socket is there before the devices are; the
    greeting comes once they are all made and a saved state is loaded (QEMU, docs/interop/qmp-spec).
    """
    try:
        try:
            monitor.connect(str(path))
        except OSError as error:
            if error.errno != errno.EISCONN:
                time.sleep(0.02)
                return False
        return monitor.recv(4096).startswith(b'{"QMP"')
    except socket.timeout:
        return False
    except ConnectionError:  # it ended meanwhile
        time.sleep(0.02)
        return False

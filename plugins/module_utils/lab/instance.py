"""Bringing a lab up and down: boot once, save the state, restore it ever after."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import qemu, qmp, saved, seed, ssh
from .accelerator import Accelerator, choose
from .booting import boot_of, guest_kernel, own_kernel, own_loader
from .errors import LabError
from .guest_kernel import GuestKernel
from .image import require_space
from .paths import lab_dir, make_runtime_dir, runtime_dir, ssh_config
from .process import with_argument
from .state import LabState, NodeState, load, locked
from .topology import Topology, read_topology
from .wish import Wish, from_document

SNAPSHOT_BYTES_PER_NODE = 600_000_000
USER = "root"
# A restored guest answers in seconds; on a machine full of other work in minutes, and booting anew
# there would take longer still.
RESTORE_TIMEOUT_S = 240.0


def _seed(name: str, node: str) -> Path:
    return lab_dir(name) / f"{node}.seed"


def _node_files(name: str, node: str, disks: Path) -> qemu.NodeFiles:
    folder, sockets = lab_dir(name), runtime_dir(name)
    return qemu.NodeFiles(
        overlay=disks / f"{node}.qcow2",
        seed=_seed(name, node),
        console=folder / f"{node}.console",
        qmp=sockets / f"{node}.qmp",
        pid=folder / f"{node}.pid",
        sockets=sockets,
    )


def _accelerator(wish: Wish) -> Accelerator:
    if wish.cloud:
        # The probe needs the lab's own kernel; a cloud image boots under what was asked for.
        name = "tcg" if wish.accelerator == "auto" else wish.accelerator
        return Accelerator(name, "cloud image: no probe, emulation unless asked otherwise")
    return choose(wish.accelerator, wish.image / "vmlinuz", wish.image / "initrd")


def _inputs(wish: Wish, topology: Topology, kernel: GuestKernel | None) -> list[str]:
    """What a saved state depends on besides the command line."""
    image = str(wish.image.resolve())
    if wish.cloud:
        facts = wish.image.stat()
        image += f":{facts.st_size}:{facts.st_mtime_ns}:{' '.join(wish.cloud_packages)}"
    booted = f"{kernel.facts['identity'] if kernel else 'own'}:{wish.boot}"
    return [qemu.version(), image, repr(topology), booted]


def _write_identity(wish: Wish, topology: Topology, node: str, authorized: str) -> str:
    """Write the node's seed; returns its line for known_hosts."""
    folder = lab_dir(wish.name)
    key = folder / f"{node}.hostkey"
    public = ssh.make_key(key, f"crossover-{node}")
    identity = seed.Identity(wish.name, node, key.read_text(), public, authorized)
    target = _seed(wish.name, node)
    if wish.cloud:
        seed.cloud_seed(identity, topology, list(wish.cloud_packages), target)
    else:
        target.write_bytes(seed.tar_seed(identity, topology))
    return f"crossover-{node} {' '.join(public.split()[:2])}\n"


def _make_overlay(wish: Wish, node: str, overlay: Path) -> None:
    overlay.unlink(missing_ok=True)
    backing = wish.image if wish.cloud else own_loader(wish) or wish.image / "root.ext4"
    backing_format = "qcow2" if wish.cloud else "raw"
    done = subprocess.run(
        [
            *("qemu-img", "create", "-q", "-f", "qcow2", "-F", backing_format),
            *("-b", str(backing.resolve()), str(overlay)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LabError(f"node {node}: qemu-img: {done.stderr.strip()}")


class _Starter:
    """Starts the nodes of one lab, all or none."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.topology = read_topology(wish.topology)
        kernel = guest_kernel(wish)
        measured, own = boot_of(wish, kernel), boot_of(wish, None)
        self.boots = {
            node: measured if self.topology.boots_kernels(node) else own
            for node in self.topology.nodes
        }
        facts = kernel.facts if kernel is not None else own_kernel(wish)
        self.disks = saved.folder(wish.name, facts["name"], wish.boot)
        found = _accelerator(wish)
        self.machine = qemu.Machine(found.name, wish.memory_mib, wish.cpus, wish.restrict)
        self.state = LabState(
            name=wish.name,
            topology=wish.topology,
            accelerator=found.name,
            accelerator_reason=found.reason,
            image=str(wish.image),
            selinux=wish.selinux,
            kernel=facts["name"],
            kernel_identity=facts["identity"],
            kernel_release=facts["release"],
            boot=wish.boot,
            wish=wish.document(),
        )
        self.state.signature = self._signature(kernel)
        self._writing = threading.Lock()  # of the state, by the threads that start nodes

    def _command(self, node: str, port: int, restore: str | None) -> list[str]:
        return qemu.command(
            self.wish.name,
            self.topology,
            node,
            self.boots[node],
            self.machine,
            self.files(node),
            port,
            restore,
        )

    def _signature(self, kernel: GuestKernel | None) -> str:
        words = [word for node in self.topology.nodes for word in self._command(node, 0, None)]
        return qemu.signature(words, _inputs(self.wish, self.topology, kernel))

    def files(self, node: str) -> qemu.NodeFiles:
        """The files and sockets of a node."""
        return _node_files(self.wish.name, node, self.disks)

    def prepare(self, fresh: bool) -> None:
        """Keys, seeds and, for a fresh boot, new overlays."""
        folder = lab_dir(self.wish.name)
        make_runtime_dir(self.wish.name)
        if not fresh:
            return
        self.drop_disks()
        self.disks.mkdir(parents=True, exist_ok=True)
        require_space(
            folder, SNAPSHOT_BYTES_PER_NODE * len(self.topology.nodes), f"lab {self.wish.name}"
        )
        authorized = ssh.make_key(folder / "id_ed25519", f"crossover-{self.wish.name}")
        known = ""
        for node in self.topology.nodes:
            known += _write_identity(self.wish, self.topology, node, authorized)
            _make_overlay(self.wish, node, self.files(node).overlay)
        (folder / "known_hosts").write_text(known)

    def start(self, restore: str | None) -> None:
        """Start every node's QEMU, all at once, and write the SSH configuration."""
        self.on_all(lambda node: self._start_node(node, restore))
        folder = lab_dir(self.wish.name)
        self.state.nodes = {node: self.state.nodes[node] for node in self.topology.nodes}
        ports = {node: state.ssh_port for node, state in self.state.nodes.items()}
        text = ssh.client_config(
            folder / "known_hosts",
            folder / "id_ed25519",
            USER,
            ports,
            runtime_dir(self.wish.name),
        )
        ssh_config(self.wish.name).write_text(text)

    def _start_node(self, node: str, restore: str | None) -> None:
        files = self.files(node)
        for attempt in range(5):
            port = qemu.free_port()
            try:
                process = qemu.start(self._command(node, port, restore), files, node)
            except LabError as error:
                # Somebody else took the port between our look and QEMU's.
                if "host forwarding rule" in str(error) and attempt < 4:
                    continue
                raise
            with self._writing:
                self.state.nodes[node] = NodeState(
                    process.pid, process.started, port, str(files.qmp)
                )
                self.state.write()
            return

    def on_all(self, action: Callable[[str], Any]) -> list[Any]:
        """Run ``action(node)`` for all nodes at once; the first error is raised."""
        with ThreadPoolExecutor(len(self.topology.nodes)) as pool:
            return list(pool.map(action, self.topology.nodes))

    def wait_restored(self, timeout_s: float) -> None:
        """First SSH command on each node; it sets the clock, which stood still in the state."""

        self.on_all(
            lambda node: self._wait(node, lambda: f"date -u -s @{time.time():.3f}", timeout_s)
        )

    def _wait(self, node: str, command: Callable[[], str], timeout_s: float) -> None:
        """``ssh.wait``, which gives up at once if QEMU ended, and says so if QEMU stopped the
        guest: for want of disk space, say."""
        files, process = self.files(node), self.state.nodes[node].process

        def attempt() -> str:
            if not process.alive():
                text = qemu.complaints(files).read_text(errors="replace").strip()
                raise LabError(f"node {node}: QEMU ended: {text or 'silently'}")
            return command()

        try:
            ssh.wait(ssh_config(self.wish.name), node, attempt, timeout_s)
        except LabError as error:
            found = qmp.status(files.qmp, node) if process.alive() else "ended"
            if found in ("running", "ended"):
                raise
            raise LabError(
                f"node {node}: QEMU stopped the guest ({found}); is the file system of"
                f" {lab_dir(self.wish.name)} full?"
            ) from error

    def wait_booted(self) -> None:
        """Login works and the guest has no job left; then the state is saved."""
        ready = "systemctl is-system-running --wait || true; sync"
        if self.wish.cloud:
            ready = f"cloud-init status --wait >/dev/null; {ready}"

        def settle(node: str) -> None:
            self._wait(node, lambda: ready, self.wish.boot_timeout_s)
            files = self.files(node)
            qmp.save_state(files.qmp, node)

        self.on_all(settle)
        self.state.saved = self.state.signature
        state = self.state
        saved.write(self.disks, saved.Saved(state.kernel, state.boot, state.signature, time.time()))
        saved.prune(self.wish.name)

    def drop_disks(self) -> None:
        """Forget the saved state of this boot, and its disks."""
        saved.forget(self.disks)
        for node in self.topology.nodes:
            self.files(node).overlay.unlink(missing_ok=True)


def _stop_nodes(state: LabState | None, name: str) -> bool:
    """End what runs of the lab and take its sockets away; whether anything was there."""
    acted = False
    if state is not None:
        for node in state.nodes.values():
            if node.process.alive():
                acted = True
                node.process.end()
        state.nodes = {}
    for stray in with_argument("-pidfile", lab_dir(name)):
        acted = True
        stray.end()
    sockets = runtime_dir(name)
    if sockets.exists():
        _close_masters(name, sockets)
        shutil.rmtree(sockets)
        acted = True
        with contextlib.suppress(OSError):  # another lab of this user runs
            sockets.parent.rmdir()
    return acted


def _close_masters(name: str, sockets: Path) -> None:
    """Tell kept SSH connections to the nodes to end, so that no process of theirs stays."""
    for socket in sockets.glob("ssh-*"):
        argv = ["ssh", "-F", str(ssh_config(name)), "-S", str(socket), "-O", "exit", "node"]
        try:
            subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=10
            )
        except subprocess.TimeoutExpired:
            continue  # it hangs on a dead guest; without its socket nobody can use it


@contextlib.contextmanager
def _in_words(name: str) -> Iterator[None]:
    """What the operating system refuses (no space, no permission) as a LabError."""
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise LabError(f"lab {name}: {error.strerror or error}{where}") from error


def up(wish: Wish) -> tuple[bool, LabState]:
    """Ensure the lab runs as wished; returns whether anything changed, and its state.

    LabError leaves no process of the lab behind.
    """
    with _in_words(wish.name), locked(wish.name):
        began = time.monotonic()
        starter = _Starter(wish)
        before = load(wish.name)
        same = before is not None and before.signature == starter.state.signature
        if before is not None and same and before.running():
            try:
                for node in before.nodes:
                    ssh.wait(ssh_config(wish.name), node, lambda: "true", ssh.CONNECT_TIMEOUT_S)
                return False, before
            except LabError:
                pass  # it hangs: start it anew
        _stop_nodes(before, wish.name)
        state = saved.read(starter.disks)
        fits = state is not None and state.signature == starter.state.signature
        try:
            restored = fits and _restore(starter)
            if not restored:
                _boot_fresh(starter)
            starter.state.how = "restored" if restored else "booted"
            starter.state.start_s = round(time.monotonic() - began, 2)
            starter.state.write()
        except BaseException:
            _stop_nodes(starter.state, wish.name)
            if starter.state.saved is None:
                starter.drop_disks()  # a half-made disk is of no use and may fill the file system
            # On a full disk, which is the error told below. The next start needs no state.
            with contextlib.suppress(OSError):
                starter.state.write()
            raise
        return True, starter.state


def _restore(starter: _Starter) -> bool:
    """Go on from the saved state; False if that does not work (the state is then given up)."""
    try:
        starter.prepare(fresh=False)
        starter.state.saved = starter.state.signature
        starter.start(qmp.SNAPSHOT)
        starter.wait_restored(RESTORE_TIMEOUT_S)
        saved.used(starter.disks)
        return True
    except LabError as error:
        starter.state.given_up = str(error)
        _stop_nodes(starter.state, starter.wish.name)
        starter.state.saved = None
        saved.forget(starter.disks)
        return False


def _boot_fresh(starter: _Starter) -> None:
    starter.prepare(fresh=True)
    starter.start(None)
    starter.wait_booted()


def switch(name: str, kernel: Path | None, boot: int) -> tuple[bool, LabState]:
    """Boot the nodes of a running lab into another kernel (None: the image's own), everything else
    as it was asked for; returns as ``up`` does. LabError if the lab does not run."""
    before = load(name)
    if before is None or not before.running() or not before.wish:
        raise LabError(f"lab {name} does not run; start it first")
    return up(replace(from_document(before.wish), kernel=kernel, boot=boot))


def down(name: str, forget: bool = False) -> bool:
    """Stop the lab; its saved state stays unless ``forget``. Returns whether anything changed."""
    with _in_words(name), locked(name):
        state = load(name)
        acted = _stop_nodes(state, name)
        if state is not None:
            state.write()
        if forget:
            shutil.rmtree(lab_dir(name))
            return True
        return acted

"""What a host of a netns lab sees of the machine, and how a command gets there. Pure.

A host has network, process numbers, name and mounts of its own. The machine's files are there,
but read-only, as is everything in /proc and /sys that would change the whole machine; what programs
write (/run, /tmp) is the host's own, so that two hosts never share a pid file, lock or record.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..topology import Topology

# Marks a host of such a lab for the modules that run there (module_utils/host/shared.py).
MARK = "/run/crossover-lab-host"
# What is the host's own: empty when it starts, gone when it ends.
OWN = {"/run": "0755", "/tmp": "1777", "/var/tmp": "1777"}
# A record of the machine's own settings (if it is measured itself at other times) is not the host's
# to put back.
MACHINE_RECORDS = "/var/lib/crossover"
# What holds for the whole machine; everything else in these file systems is a namespace's own.
READ_ONLY = (
    "/proc/sys",
    "/proc/irq",
    "/proc/sysrq-trigger",
    "/sys/devices/system",
    "/sys/module",
    "/sys/kernel",
    "/sys/power",
    "/sys/firmware",
    "/sys/bus",
    "/sys/fs",
)
# Within the above, per namespace after all.
WRITABLE = "/proc/sys/net"
# These stay as they are, or are replaced below.
_KEPT = ("/proc", "/sys", "/dev", *OWN)
# A superuser without these cannot load modules, set the clock or stop the machine.
DROPPED = ("sys_module", "sys_boot", "sys_time", "sys_rawio")
NAMESPACES = ("mount", "uts", "ipc", "net", "pid")
# A login's, not the caller's: a virtual environment of the controller is none of the host's.
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "LOGNAME": "root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/sh",
    "USER": "root",
}


def entry(pid: int, command: Iterable[str]) -> list[str]:
    """The argv that runs a command on the host whose first process is ``pid``."""
    argv = ["nsenter", f"--target={pid}", *(f"--{name}" for name in NAMESPACES), "--"]
    dropped = ",".join(f"-{name}" for name in DROPPED)
    return [*argv, "setpriv", f"--bounding-set={dropped}", "--", *command]


def start(program: Path, python: str) -> list[str]:
    """The argv that starts a host's first process in new namespaces."""
    # A session of its own, and nobody's child: the host outlives whoever starts it.
    argv = [
        "setsid",
        "--fork",
        "unshare",
        *(f"--{name}" for name in NAMESPACES),
        "--propagation=private",
        "--fork",
    ]
    # -I -S: nothing of the machine's Python but its standard library.
    return [*argv, "--", python, "-I", "-S", str(program)]


def writable_mounts(mountinfo: str) -> list[str]:
    """Mount points that hold the machine's files and can be written, from ``/proc/PID/mountinfo``
    (proc_pid_mountinfo(5)); those that a host has for itself are left out."""
    found = []
    for line in mountinfo.splitlines():
        words = line.split()
        point = words[4].encode().decode("unicode_escape")  # blanks stand as \040
        own = any(point == top or point.startswith(f"{top}/") for top in _KEPT)
        if not own and "ro" not in words[5].split(","):
            found.append(point)
    return found


def mounts(
    mountinfo: str, hosts: Path, tools: Path | None, exists: Iterable[str]
) -> list[list[str]]:
    """The commands that make a host's view, in order, to be run in its new namespaces.

    ``hosts`` becomes its /etc/hosts; ``tools`` is a tree whose ``usr`` is laid over the machine's;
    ``exists`` names what there is of ``READ_ONLY`` and ``MACHINE_RECORDS``.
    """
    there = set(exists)
    steps = [["mount", "-n", "--bind", str(hosts), "/etc/hosts"]]
    steps.append(["mount", "-n", "-o", "remount,bind,ro", "/etc/hosts"])
    if tools is not None:
        # Without an upper layer an overlay is read-only; /usr then has the tools and their
        # libraries where programs look for them.
        layers = f"lowerdir={tools}/usr:/usr"
        steps.append(["mount", "-n", "-t", "overlay", "-o", layers, "crossover-tools", "/usr"])
    for point in dict.fromkeys(writable_mounts(mountinfo)):
        steps.append(["mount", "-n", "-o", "remount,bind,ro", point])
    for point, mode in OWN.items():
        steps.append(["mount", "-n", "-t", "tmpfs", "-o", f"mode={mode}", "crossover-lab", point])
    if MACHINE_RECORDS in there:
        steps.append(["mount", "-n", "-t", "tmpfs", "crossover-lab", MACHINE_RECORDS])
    steps.append(["mount", "-n", "-t", "proc", "proc", "/proc"])
    steps.append(["mount", "-n", "-t", "sysfs", "sysfs", "/sys"])
    for path in READ_ONLY:
        if path in there:
            steps += [
                ["mount", "-n", "--bind", path, path],
                ["mount", "-n", "-o", "remount,bind,ro", path],
            ]
    steps.append(["mount", "-n", "--bind", WRITABLE, WRITABLE])
    steps.append(["mount", "-n", "-o", "remount,bind,rw", WRITABLE])
    steps.append(["ip", "link", "set", "dev", "lo", "up"])
    return steps


def link_command(ends: Iterable[tuple[str, str, int]]) -> list[str]:
    """The argv that makes a virtual cable; an end is (device, MAC address, pid of its host)."""
    (device, mac, pid), (peer, peer_mac, peer_pid) = ends
    argv = ["ip", "link", "add", "name", device, "address", mac, "netns", str(pid), "type", "veth"]
    return [*argv, "peer", "name", peer, "address", peer_mac, "netns", str(peer_pid)]


def address_script(topology: Topology, node: str) -> str:
    """Lines for ``ip -batch`` that give a host's devices their addresses and switch them on."""
    lines = []
    for _link, end in topology.ends_of(node):
        lines.append(f"address add {end.ipv4} dev {end.device}")
        # Nobody else is on the cable, and an address that waits for an answer cannot be used yet.
        lines.append(f"address add {end.ipv6} dev {end.device} nodad")
        lines.append(f"link set dev {end.device} up")
    return "".join(f"{line}\n" for line in lines)

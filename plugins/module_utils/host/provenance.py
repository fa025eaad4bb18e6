"""What a host was when it was measured, in parts: each part is a function that returns a dict.

Values that the host does not say are None. ``VOLATILE`` names what differs between any two
readings and so is no difference of the host.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ..host_identity import config_file, config_sha256
from . import (
    cpufreq,
    ethtool,
    irq,
    kmod,
    process,
    record,
    rss,
    selinux,
    sysctl,
    topology,
    units,
)
from .cpufreq import read as line_of
from .errors import HostError, NotInstalledError
from .run import Run

SCHEMA = 1
CPU = Path("/sys/devices/system/cpu")
DMI = Path("/sys/class/dmi/id")
# What changes how packets are handled; interfaces' own ones are added for each device.
SYSCTLS = (
    "kernel.randomize_va_space", "kernel.sched_autogroup_enabled", "kernel.timer_migration",
    "net.core.bpf_jit_enable", "net.core.busy_poll", "net.core.busy_read",
    "net.core.default_qdisc", "net.core.dev_weight", "net.core.netdev_budget",
    "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.rmem_default",
    "net.core.rmem_max", "net.core.rps_sock_flow_entries", "net.core.wmem_default",
    "net.core.wmem_max", "net.core.xfrm_acq_expires", "net.ipv4.cipso_cache_bucket_size",
    "net.ipv4.cipso_cache_enable", "net.ipv4.cipso_rbm_optfmt", "net.ipv4.cipso_rbm_strictvalid",
    "net.ipv4.ip_forward", "net.ipv4.ip_no_pmtu_disc", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn", "net.ipv4.tcp_mem", "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem", "net.ipv6.calipso_cache_bucket_size", "net.ipv6.calipso_cache_enable",
    "net.ipv6.conf.all.forwarding",
)  # fmt: skip
DEVICE_SYSCTLS = ("rp_filter", "disable_xfrm", "disable_policy")
TOOLS: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("netperf", ("netperf", "-V")),
    ("netserver", ("netserver", "-V")),
    ("netlabelctl", ("netlabelctl", "-V")),
    ("iproute2", ("ip", "-V")),
    ("ethtool", ("ethtool", "--version")),
    ("nft", ("nft", "--version")),
    ("tcpdump", ("tcpdump", "--version")),
    ("libreswan", ("ipsec", "--version")),
    ("strongswan", ("swanctl", "--version")),
    ("iperf3", ("iperf3", "--version")),
)
UNITS = ("irqbalance.service", "netperf.service", "tuned.service", "chrony.service",
         "chronyd.service", "systemd-timesyncd.service", "auditd.service",
         "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer",
         "dpkg-db-backup.timer", "man-db.timer", "logrotate.timer",
         "systemd-tmpfiles-clean.timer")  # fmt: skip
# Paths within a reading that differ between any two readings of an unchanged host.
VOLATILE = (
    "clock",
    "cpu.frequency_khz",
    "cpu.steal_ticks",
    "cpu.throttles",
    "netfilter.conntrack_count",
)
_NUMBER = re.compile(r"[vV]?(\d+(?:\.\d+)+\S*)")


def sha256(data: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(data).hexdigest()


def kernel() -> Dict[str, Any]:
    """Release, build, command line, configuration by its hash, security modules."""
    system = os.uname()
    path = config_file()
    return {
        "release": system.release,
        "build": system.version,
        "machine": system.machine,
        "cmdline": line_of(Path("/proc/cmdline")),
        "config_file": None if path is None else str(path),
        "config_sha256": config_sha256(),
        "lsm": line_of(Path("/sys/kernel/security/lsm")),
        "tainted": _number(line_of(Path("/proc/sys/kernel/tainted"))),
        "clocksource": line_of(
            Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        ),
    }


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isdecimal() else None


def parse_cpuinfo(text: str) -> Dict[str, Optional[str]]:
    """Model and microcode of the first CPU; other architectures than x86 say less."""
    values: Dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            values.setdefault(name.strip(), value.strip())
    model = values.get("model name") or values.get("cpu model") or values.get("CPU part")
    return {"model": model, "microcode": values.get("microcode")}


def cpu() -> Dict[str, Any]:
    """Model, sockets, cores, mitigations, clock policies, idle states, what disturbed it so far."""
    weak = CPU / "vulnerabilities"
    cores = sorted(CPU.glob("cpu[0-9]*"), key=lambda path: int(path.name[3:]))
    frequency = CPU / "cpufreq"
    steal = Path("/proc/stat").read_text().split("\n", 1)[0].split()[8:9]
    throttles = [
        int(path.read_text()) for core in cores for path in core.glob("thermal_throttle/*_count")
    ]
    return {
        **parse_cpuinfo(Path("/proc/cpuinfo").read_text()),
        "online": line_of(CPU / "online"),
        "count": os.cpu_count(),
        **topology.cpus(),
        "smt": line_of(CPU / "smt" / "control"),
        "memory_kib": _memory_kib(Path("/proc/meminfo").read_text()),
        "numa_nodes": line_of(Path("/sys/devices/system/node/online")),
        "hypervisor": _hypervisor(),
        "mitigations": {path.name: line_of(path) for path in sorted(weak.glob("*"))},
        "governors": {name: cpufreq.governor(name) for name in cpufreq.policies()},
        "frequency_khz": {
            name: _number(line_of(frequency / name / "scaling_cur_freq"))
            for name in cpufreq.policies()
        },
        "boost": cpufreq.boost(),
        "idle_driver": line_of(CPU / "cpuidle" / "current_driver"),
        "steal_ticks": int(steal[0]) if steal else None,
        "throttles": sum(throttles) if throttles else None,
    }


def _memory_kib(text: str) -> Optional[int]:
    match = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def _hypervisor() -> Optional[str]:
    names = (line_of(DMI / "sys_vendor"), line_of(DMI / "product_name"))
    return " ".join(name for name in names if name) or None


def device(name: str, run: Run) -> Dict[str, Any]:
    """Driver, firmware, bus, speed, offloads, queues and how packets are spread over them, rings,
    interrupts of a network device."""
    folder = irq.NET / name
    if not folder.exists():
        raise HostError(f"device {name}: not on this host")
    queues = folder / "queues"
    numa = line_of(folder / "device" / "numa_node") or line_of(folder / "device/../numa_node")
    return {
        **_driver(name, run),
        **topology.bus(name),
        "address": line_of(folder / "address"),
        "mtu": _number(line_of(folder / "mtu")),
        # The kernel says -1, or nothing, where the link has no speed.
        "speed_mbps": _number(line_of(folder / "speed")),
        "duplex": line_of(folder / "duplex"),
        "state": line_of(folder / "operstate"),
        "numa_node": _number(numa),
        **{kind: _settings(kind, name, run) for kind in ethtool.OPTIONS},
        "rss": _rss(name, run),
        "rx_queues": len(list(queues.glob("rx-*"))),
        "tx_queues": len(list(queues.glob("tx-*"))),
        "rps": {path.parent.name: line_of(path) for path in sorted(queues.glob("rx-*/rps_cpus"))},
        "xps": {path.parent.name: line_of(path) for path in sorted(queues.glob("tx-*/xps_cpus"))},
        "interrupts": {
            str(number): {
                "handlers": irq.actions(number),
                "affinity": irq.affinity(number),
                "effective": irq.effective(number),
            }
            for number in irq.of_device(name)
        },
    }


def _driver(name: str, run: Run) -> Dict[str, Optional[str]]:
    try:
        found = ethtool.driver(name, run)
    except NotInstalledError:
        found = {}
    return {
        "driver": found.get("driver"),
        "driver_version": found.get("version"),
        "firmware": found.get("firmware-version"),
        "bus": found.get("bus-info"),
    }


def _rss(name: str, run: Run) -> Optional[Dict[str, Any]]:
    try:
        return rss.read(name, run)
    except NotInstalledError:
        return None


def _settings(kind: str, name: str, run: Run) -> Optional[Dict[str, str]]:
    try:
        return ethtool.read(kind, name, run)
    except NotInstalledError:
        return None


def parameters(devices: Sequence[str]) -> Dict[str, Optional[str]]:
    """Kernel parameters that matter here; None for those that this kernel does not have."""
    keys = list(SYSCTLS)
    for name in ("all", *devices):
        keys += [f"net/ipv4/conf/{name}/{key}" for key in DEVICE_SYSCTLS]
    return {key.replace("/", ".") if "/" in key else key: sysctl.read(key) for key in keys}


def security() -> Dict[str, Any]:
    """SELinux: mode, configured mode and type, policy by its hash, context of this process."""
    config = selinux.config()
    return {
        "mode": selinux.mode(),
        "configured_mode": config.get("SELINUX"),
        "policy_type": config.get("SELINUXTYPE"),
        "policy_version": selinux.policy_version(),
        "policy_sha256": selinux.policy_digest(),
        "context": process.label(os.getpid()),
    }


def netfilter(run: Run) -> Dict[str, Any]:
    """Connection tracking, and the packet filter's rules by their hash.

    Counters and handles in the rules are left out: they say nothing about what is filtered.
    """
    folder = sysctl.ROOT / "net" / "netfilter"
    rules = _ruleset(run)
    return {
        "conntrack_loaded": kmod.state("nf_conntrack") != kmod.UNLOADED,
        "conntrack_max": _number(line_of(folder / "nf_conntrack_max")),
        "conntrack_count": _number(line_of(folder / "nf_conntrack_count")),
        "ruleset_lines": None if rules is None else len(rules),
        "ruleset_sha256": None if rules is None else sha256("\n".join(rules).encode()),
    }


def _ruleset(run: Run) -> Optional[List[str]]:
    try:
        code, out, _err = run(["nft", "--stateless", "list", "ruleset"])
    except NotInstalledError:
        return None
    return out.splitlines() if code == 0 else None


def tools(run: Run) -> Dict[str, Optional[str]]:
    """Versions of the tools; None for one that is not installed."""
    return {name: _version(argv, run) for name, argv in TOOLS}


def _version(argv: Sequence[str], run: Run) -> Optional[str]:
    try:
        _code, out, err = run(argv)
    except NotInstalledError:
        return None
    return version_in(out + "\n" + err)


def version_in(text: str) -> Optional[str]:
    """The first version number of a tool's own words; else its first line."""
    match = _NUMBER.search(text)
    if match:
        return match.group(1).rstrip(",;)")
    lines = text.split("\n")
    return next((line.strip() for line in lines if line.strip()), None)


def services(run: Run) -> Dict[str, str]:
    """Units that disturb a measurement or keep the clock, where installed."""
    found = units.states(UNITS, run)
    return {name: state for name, state in found.items() if state != units.MISSING}


def clock() -> Dict[str, Any]:
    """This host's clocks at one moment, in nanoseconds."""
    return {"realtime_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}


PARTS = ("kernel", "cpu", "devices", "sysctls", "selinux", "netfilter", "tools", "services")


def take(parts: Sequence[str], devices: Sequence[str], run: Run) -> Dict[str, Any]:
    """A reading with these parts of :data:`PARTS`. HostError for a device that is not there."""
    readers: Dict[str, Callable[[], Any]] = {
        "kernel": kernel,
        "cpu": cpu,
        "devices": lambda: {name: device(name, run) for name in devices},
        "sysctls": lambda: parameters(devices),
        "selinux": security,
        "netfilter": lambda: netfilter(run),
        "tools": lambda: tools(run),
        "services": lambda: services(run),
    }
    return {
        "schema": SCHEMA,
        "hostname": os.uname().nodename,
        "boot_id": record.boot_id(),
        "clock": clock(),
        **{name: readers[name]() for name in parts},
    }

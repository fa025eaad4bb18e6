"""The kernel's pktgen as files in a folder: takes what is written, and reports it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansible_collections.crossover.lab.plugins.module_utils.pktgen_begin import Begun, Seen, begun
from ansible_collections.crossover.lab.plugins.module_utils.pktgen_run import Generator

THREAD = "kpktgend_"


class Kernel(Generator):
    """A generator whose writes go here. ``refuses``: settings that it ignores.

    ``sends``: frames of each device once it is started, by default its count.
    """

    # When the first frame is sent, by the monotonic clock.
    FIRST_S = 100.0

    def __init__(self, folder: Path, cpus: int = 1) -> None:
        self.folder = folder / "pktgen"
        super().__init__(self.folder, folder / "pktgen.json")
        self.folder.mkdir()
        self.writes: list[tuple[str, str]] = []
        self.told: dict[str, dict[str, str]] = {}
        self.flags: dict[str, list[str]] = {}
        self.cpu_of: dict[str, int] = {}
        self.running: set[str] = set()
        self.refuses: set[str] = set()
        self.sends: dict[str, int] = {}
        self.runs: list[tuple[float, bool]] = []
        self.waits: list[float] = []
        self.cpus = cpus
        self._show()

    def write(self, name: str, line: str) -> None:
        self.writes.append((name, line))
        word, _blank, value = line.partition(" ")
        if word == "add_device":
            self.told[value], self.flags[value] = {}, []
            self.cpu_of[value] = int(name[len(THREAD) :])
        elif word == "rem_device_all":
            for device in [d for d, cpu in self.cpu_of.items() if name == f"{THREAD}{cpu}"]:
                del self.told[device], self.flags[device], self.cpu_of[device]
                self.running.discard(device)
                (self.folder / device).unlink()
        elif word == "stop":
            self.running.clear()
        elif word == "flag":
            self.flags[name].append(value)
        elif word not in self.refuses:
            self.told[name][word] = value
        self._show()

    def run(
        self,
        duration_s: float,
        bounded: bool,
        wait: Callable[[], Seen | None] = lambda: None,
        wait_s: float = 0.0,
    ) -> Begun | None:
        self.runs.append((duration_s, bounded))
        self.waits.append(wait_s)
        seen = wait()
        for device in self.told:
            self.sends.setdefault(device, int(self.told[device]["count"]) or 1000)
        self._show()
        return None if seen is None else begun(seen, self.FIRST_S)

    def _show(self) -> None:
        (self.folder / "pgctrl").write_text("Packet Generator\n")
        for cpu in range(self.cpus):
            mine = [device for device, at in self.cpu_of.items() if at == cpu]
            running = " ".join(device for device in mine if device in self.running)
            stopped = " ".join(device for device in mine if device not in self.running)
            text = f"Running: {running}\nStopped: {stopped}\nResult: NA\n"
            (self.folder / f"{THREAD}{cpu}").write_text(text)
        for device, told in self.told.items():
            (self.folder / device).write_text(
                report(told, self.flags[device], self.sends.get(device))
            )


def report(told: dict[str, str], flags: list[str], sent: int | None) -> str:
    """A device's report: what it was told, and what it sent in one second if it was started."""
    get = told.get
    lines = [
        f"Params: count {get('count', 1000)}  min_pkt_size: {get('pkt_size', 0)}  "
        f"max_pkt_size: {get('pkt_size', 0)}",
        f"     frags: 0  delay: {get('delay', 0)}  clone_skb: {get('clone_skb', 0)}  ifname: x",
        "     flows: 0 flowlen: 0",
        f"     queue_map_min: {get('queue_map_min', 0)}  queue_map_max: {get('queue_map_max', 0)}",
        f"     dst_min: {get('dst_min', '')}  dst_max: {get('dst_max', '')}",
        f"     src_min: {get('src_min', '')}  src_max: {get('src_max', '')}",
        f"     src_mac: 02:00:00:00:00:01 dst_mac: {get('dst_mac', '')}",
        f"     udp_src_min: {get('udp_src_min', 9)}  udp_src_max: {get('udp_src_max', 9)}  "
        f"udp_dst_min: {get('udp_dst_min', 9)}  udp_dst_max: {get('udp_dst_max', 9)}",
        f"     burst: {get('burst', 1)}",
        f"     Flags: {'  '.join(flags)}",
        "Current:",
    ]
    if sent is None:
        lines += ["     pkts-sofar: 0  errors: 0", "     started: 0us  stopped: 0us idle: 0us"]
        lines += ["Result: Idle"]
    else:
        lines += [f"     pkts-sofar: {sent}  errors: 0"]
        lines += ["     started: 1000000us  stopped: 2000000us idle: 400000us"]
        lines += [f"Result: OK: 1000000(c600000+d400000) usec, {sent} (60byte,0frags)"]
        lines += [f"  {sent}pps 0Mb/sec ({sent * 480}bps) errors: 0"]
    return "\n".join(lines) + "\n"

"""The lab of network namespaces on this machine: whole or not at all, its hosts apart, a matrix.

Needs root, like the lab. The test that measures needs netperf, from this machine or its archive.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml

from collector.commands.lab_netns import status_text
from collector.lab.errors import LabError
from collector.lab.netns import init, instance, state, view

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventories" / "netns"
TOPOLOGIES = ROOT / "roles" / "lab_qemu" / "files" / "topologies"
LIMIT_S = 300
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a netns lab needs root; run as root")
MATRIX = """\
schema: 1
name: plain
title: Nothing but the cable
topology: pair
baseline: plain
subjects: [tunnels]
configurations:
  - {name: plain, about: the bare cable, tunnels: {}}
  - name: vxlan
    about: Ethernet in UDP
    tunnels:
      links:
        - {name: xt0, type: vxlan, id: 42, ends: ["@client_ipv4", "@server_ipv4"],
           inner_ipv4: [198.19.0.1/24, 198.19.0.2/24]}
  - {name: labelled, about: not on namespaces, label: s0, tunnels: {}}
tests:
  - {name: tcp_rr, netperf: TCP_RR, request_bytes: 1, response_bytes: 1}
short: {duration_s: 1, blocks: 1, warm_up_s: 0.5}
full: {duration_s: 1, blocks: 1, warm_up_s: 0.5}
"""


@dataclass
class NetnsLab:
    """One lab by its name; commands on its hosts and plays against it."""

    name: str
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "CROSSOVER_LAB": self.name,
            "CROSSOVER_INVENTORY": str(INVENTORY),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **self.more,
        }

    def crossover(self, *words: str, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, "-m", "collector", *words], limit_s)

    def play(self, path: Path, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "ansible", "playbook", "-i", str(INVENTORY), str(path)]
        return self._run([*argv, *words], LIMIT_S)

    def on(self, node: str, command: str, text: str = "") -> str:
        """What a command prints on a host. Fails the test when it does."""
        done = self.try_on(node, command, text)
        assert done.returncode == 0, f"{node}: {command}: {done.stderr}"
        return done.stdout.strip()

    def try_on(self, node: str, command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        found = state.load(self.name)
        assert found is not None
        return subprocess.run(
            view.entry(found.nodes[node].pid, ["/bin/sh", "-c", command]),
            env=view.ENVIRONMENT, input=text, capture_output=True, text=True, check=False,
            timeout=LIMIT_S,
        )  # fmt: skip

    def module(self, name: str, node: str, **arguments: object) -> dict[str, object]:
        """What a module returns on a host."""
        argv = [sys.executable, "-m", "ansible", "adhoc", "-i", str(INVENTORY), node, "-o"]
        argv += ["-m", f"crossover.lab.{name}", "-a", json.dumps(arguments)]
        done = self._run(argv, LIMIT_S)
        text = done.stdout
        assert "=> " in text, text + done.stderr
        result: dict[str, object] = json.loads(text[text.index("=> ") + 3 :])
        return result

    def _run(self, argv: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=limit_s,
        )  # fmt: skip


def up(lab: NetnsLab, *words: str) -> None:
    done = lab.crossover("lab", "up", *words)
    if done.returncode and "could not be fetched" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def wish(name: str, topology: str) -> instance.Wish:
    """A lab without further programs, for starting it here: an Ansible play takes far longer."""
    text = (TOPOLOGIES / f"{topology}.yml").read_text()
    source = Path(init.__file__).read_text()
    return instance.Wish(name, yaml.safe_load(text), None, source)


def hosts_of(name: str) -> list[int]:
    """Processes of this machine that are a host of the lab, by their program's path."""
    found = []
    for item in Path("/proc").iterdir():
        if item.name.isdecimal():
            try:
                words = (item / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it ended meanwhile
            if f"/run/crossover-lab/{name}/init.py".encode() in words:
                found.append(int(item.name))
    return found


@pytest.fixture(scope="module")
def lab():
    made = NetnsLab(f"test-{os.getpid()}")
    up(made)
    yield made
    assert made.crossover("lab", "down").returncode == 0
    assert hosts_of(made.name) == []


def test_a_running_lab_is_left_as_it_is_and_said_to_run(lab):
    done = lab.play(ROOT / "playbooks" / "lab_up.yml")
    assert "changed=0" in done.stdout, done.stdout + done.stderr
    text = lab.crossover("lab", "status").stdout
    assert text.startswith(f"lab {lab.name}: running\nhosts: network namespaces of this machine")


def test_a_command_is_run_on_a_host_and_its_exit_code_is_ones_own(lab):
    done = lab.crossover("lab", "ssh", "server", "hostname; exit 7")
    assert (done.returncode, done.stdout) == (7, "server\n")


def test_the_hosts_reach_each_other_over_each_link(lab):
    for address in ("198.18.0.2", "2001:db8:18::2", "192.0.2.2", "server"):
        lab.on("client", f"ping -c 1 -W 5 {address}")


def test_run_time_files_names_and_processes_of_two_hosts_never_meet(lab):
    lab.on("client", "mkdir -p /run/crossover && echo mine >/run/crossover/lock && touch /tmp/mine")
    assert lab.on("server", "ls /run /tmp") == "/run:\ncrossover-lab-host\n\n/tmp:"
    assert not Path("/run/crossover/lock").exists() or (
        Path("/run/crossover/lock").read_text() != "mine\n"
    )
    assert (lab.on("client", "hostname"), lab.on("server", "hostname")) == ("client", "server")
    assert len(lab.on("server", "ls -d /proc/[0-9]*").split()) <= 4  # the first, and this command
    lab.on("client", "rm -r /run/crossover /tmp/mine")


def test_both_hosts_can_be_locked_by_different_runs(lab):
    first = lab.module("host_lock", "client", owner="run one")
    second = lab.module("host_lock", "server", owner="run two")
    assert (first["owner"], second["owner"]) == ("run one", "run two")
    refused = lab.module("host_lock", "client", owner="run two")
    assert "held by run one" in str(refused["msg"])
    for node, owner in (("client", "run one"), ("server", "run two")):
        assert lab.module("host_lock", node, owner=owner, state="released")["changed"]


@pytest.mark.parametrize(
    "command",
    [
        "touch /etc/crossover-test",
        "echo 1 >/proc/sys/vm/overcommit_memory",
        "echo 1 >/proc/irq/default_smp_affinity",
        "echo 0 >/sys/devices/system/cpu/cpu0/online",
    ],
)
def test_a_host_cannot_change_the_machine(lab, command):
    done = lab.try_on("client", command)
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr


def test_a_host_has_network_parameters_of_its_own(lab):
    before = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    done = lab.module("kernel_settings", "client", sysctls={"net.ipv4.ip_forward": 1})
    assert done["sysctls"] == {"net.ipv4.ip_forward": "1"}
    assert lab.on("server", "cat /proc/sys/net/ipv4/ip_forward") == "0"
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == before
    assert lab.module("kernel_settings", "client", state="restored")["changed"]
    assert lab.on("client", "cat /proc/sys/net/ipv4/ip_forward") == "0"


@pytest.mark.parametrize(
    ("module", "arguments", "what"),
    [
        ("kernel_settings", {"sysctls": {"vm.swappiness": 7}}, "vm.swappiness"),
        ("quiet_host", {"governor": "performance"}, "governor"),
        ("cipso", {"dois": [{"number": 16, "type": "pass", "tags": [1]}]}, "NetLabel's maps"),
        (
            "ike",
            {
                "keying": "libreswan",
                "connections": [{"name": "m", "ends": ["198.18.0.1", "198.18.0.2"]}],
                "seed": "c2VlZCBvZiBhIHRlc3QsIG5vdCBhIHNlY3JldCBvbmU=",
            },
            "keying libreswan",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_modules_refuse_what_is_one_for_the_whole_machine(lab, module, arguments, what):
    done = lab.module(module, "client", **arguments)
    assert str(done["msg"]).startswith(what), done
    assert f"this host ({lab.name}/client) is a set of namespaces on a machine" in str(done["msg"])


def test_two_labs_run_side_by_side_and_down_ends_its_own_only(lab):
    other = NetnsLab(f"{lab.name}-b")
    try:
        instance.up(wish(other.name, "chain"))
        assert other.on("dut", "ip -br link show dev eth2").startswith("eth2")
        lab.on("client", "ping -c 1 -W 5 198.18.0.2")
    finally:
        assert instance.down(other.name)
    assert hosts_of(other.name) == []
    assert len(hosts_of(lab.name)) > 0
    lab.on("client", "ping -c 1 -W 5 198.18.0.2")


def test_ending_a_lab_ends_what_runs_in_its_hosts():
    own = NetnsLab(f"end-{os.getpid()}")
    try:
        instance.up(wish(own.name, "pair"))
        own.on("client", "setsid sleep 4321 >/dev/null 2>&1 </dev/null &")
    finally:
        assert instance.down(own.name)
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _has(path, b"sleep\x004321")]
    assert left == []
    assert status_text(own.name) == f"lab {own.name}: does not run"


def _has(path: Path, words: bytes) -> bool:
    try:
        return words in path.read_bytes()
    except OSError:
        return False


STARTER = """\
import os, sys, signal
from pathlib import Path
from collector.lab.errors import LabError
from collector.lab.netns import init, instance
import yaml
topology = yaml.safe_load(Path(sys.argv[2]).read_text())
if sys.argv[3] == "linked":
    done = instance._connect
    def connect(*arguments):
        done(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    instance._connect = connect
else:
    def connect(*arguments):
        os.kill(os.getpid(), signal.SIGKILL)
    instance._connect = connect
instance.up(instance.Wish(sys.argv[1], topology, None, Path(init.__file__).read_text()))
"""


def test_a_host_whose_view_cannot_be_made_is_told_and_leaves_no_lab(tmp_path):
    name = f"fail-{os.getpid()}"
    broken = replace(wish(name, "pair"), tools=tmp_path / "absent")
    with pytest.raises(LabError, match=f"^lab {name}: client does not start: mount .*absent"):
        instance.up(broken)
    deadline = time.monotonic() + 30
    while hosts_of(name) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert hosts_of(name) == []
    assert [path.name for path in state.folder(name).iterdir()] == ["lock"]
    assert status_text(name) == f"lab {name}: does not run"


@pytest.mark.parametrize("moment", ["hosts", "linked"])
def test_a_start_that_is_killed_leaves_nothing_half_done(moment):
    own = NetnsLab(f"kill-{os.getpid()}")
    argv = [sys.executable, "-c", STARTER, own.name, str(TOPOLOGIES / "pair.yml"), moment]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    deadline = time.monotonic() + 30
    while hosts_of(own.name) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert hosts_of(own.name) == []
    assert status_text(own.name) == f"lab {own.name}: does not run"
    assert not instance.down(own.name)


def test_a_guard_that_nobody_disarms_undoes_the_change_without_systemd(lab):
    """No configuration can cut this connection, so the guard is armed by hand and left alone."""
    lab.on("client", "mkdir -p /tmp/own")
    for name in ("guard", "guard_script"):
        text = (ROOT / "plugins" / "module_utils" / f"{name}.py").read_text()
        lab.on("client", f"cat >/tmp/own/{name}.py", text)
    program = (
        "from own import guard\n"
        "undo = guard.Command(('ip', 'link', 'del', 'tmp0'))\n"
        "guard.arm('0123456789ab', 3, [undo])\n"
    )
    lab.on("client", "ip link add tmp0 type veth peer name tmp1")
    lab.on("client", "cd /tmp && /usr/bin/python3 -", program)
    own = "/run/crossover/guard/0123456789ab"
    deadline = time.monotonic() + 60
    while lab.try_on("client", f"ls {own}/fired").returncode and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "tmp0" not in lab.on("client", "ip -br link")
    assert lab.on("client", f"sh {own}/script collect") == "rolled back"
    lab.on("client", f"sh {own}/script forget; rm -r /tmp/own")
    assert lab.on("client", "ls /run/crossover/guard") == ""


def test_a_matrix_is_measured_at_native_speed_and_says_where(lab, tmp_path):
    (tmp_path / "plain.yml").write_text(MATRIX)
    measuring = NetnsLab(lab.name, {"CROSSOVER_RUNS": str(tmp_path / "runs")})
    done = measuring.crossover("run", str(tmp_path / "plain.yml"), "--short")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The hosts are network namespaces of one machine and share its kernel" in " ".join(
        done.stdout.split()
    )
    assert "Skipped: labelled (label s0: hosts of a netns lab share" in " ".join(
        done.stdout.replace("* ", "").split()
    )
    (folder,) = (tmp_path / "runs").iterdir()
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["lab"] == {"kind": "netns", "accelerator": "none", "name": lab.name}
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    cells = [event for event in events if event["event"] == "cell"]
    measured = {cell["cell_id"]: cell["configuration"] for cell in plan["cells"]}
    # A kernel without VXLAN is told so, which is another test's subject.
    tunnel = [] if "vxlan on client: none can be made" in done.stdout else ["vxlan"]
    assert sorted(measured[event["cell_id"]] for event in cells) == ["plain", "plain", *tunnel]
    assert {event["status"] for event in cells} == {"ok"}
    # Nothing of ours is left on the hosts.
    assert lab.on("server", "ps -e -o comm= | grep -c netserver || true") == "0"


def test_the_scenario_of_the_role_passes(tmp_path):
    own = NetnsLab(f"mol-{os.getpid()}")
    done = subprocess.run(
        [sys.executable, "-m", "molecule", "test", "--scenario-name", "lab_netns"],
        cwd=ROOT, env=own.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=LIMIT_S,
    )  # fmt: skip
    if "could not be fetched" in done.stdout:
        pytest.skip("this machine has no netperf, and its archive gives none")
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert hosts_of(own.name) == []

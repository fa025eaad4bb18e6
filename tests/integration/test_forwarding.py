"""Trials through a device under test: what is sent, what arrives, and that it stops."""

from __future__ import annotations

import difflib
import json
import time

import pytest
import yaml

from collector.run.runner import strategy_environment

# Slow: a lab of its own is booted, and trials are ended and killed half-way.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

SLOW_FPS, FRAMES = 200, 300
# A count with a generous time ends when all are sent, however busy this machine is.
SLOW = {"rate": SLOW_FPS, "frames": FRAMES, "seconds": 30}
FAST = {"rate": None, "frames": None, "seconds": 2}
TRIALS = [
    {"size": size, "both": both, **kind}
    for size in (64, 512, 1518)
    for kind in (SLOW, FAST)
    for both in (False, True)
]
PORTS = "{{ bench_links | crossover.lab.forwarding_ports(item.both) }}"
DEVICES = {"devices": ["eth1", "eth2"]}
LIMIT_S = 900
# The process that holds the lock is the one that measures.
HOLDER = """python3 -c '
import os
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        continue
    if "/run/crossover/pktgen.lock" in names:
        print(pid)
'"""
SENDING = "cat /proc/net/pktgen/kpktgend_* | sed -n 's/^Running: *//p'"


def keep(folder, name, value):
    """A task that writes a value to this machine."""
    return {
        "ansible.builtin.copy": {
            "content": "{{ " + value + " | to_json }}",
            "dest": str(folder / name),
            "mode": "0600",
        },
        "delegate_to": "localhost",
    }


def play(lab, folder, plays):
    """Run plays against the lab."""
    file = folder / "play.yml"
    file.write_text(yaml.safe_dump(plays))
    done = lab.playbook(file, limit_s=LIMIT_S, **strategy_environment())
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def role(**variables):
    return {"ansible.builtin.include_role": {"name": "crossover.lab.forwarding"}, "vars": variables}


def state_of(lab, node):
    """What the role may change on a node and must put back."""
    parts = [f"ip -oneline address show dev {name} | sort" for name in DEVICES["devices"]]
    parts += [f"ip route show dev {name}" for name in DEVICES["devices"]]
    parts += [f"ip -6 route show dev {name} | sort" for name in DEVICES["devices"]]
    parts += [f"ethtool -k {name}" for name in DEVICES["devices"]]
    parts += [
        "ip neighbour show nud permanent",
        "cat /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/disable_ipv6",
        "cat /proc/sys/net/ipv6/conf/*/forwarding",
        "nft list ruleset",
        "ls /run/crossover 2>/dev/null | grep -v lock; ls -d /proc/net/pktgen 2>/dev/null; true",
    ]
    return lab.ssh(node, "; ".join(parts))


def changed(lab, before):
    """The lines of each host's state that are not as before."""
    found = []
    for node, text in before.items():
        lines = difflib.unified_diff(
            text.splitlines(), state_of(lab, node).splitlines(), lineterm="", n=0
        )
        found += [f"{node}: {line}" for line in lines if not line.startswith(("---", "+++", "@@"))]
    return found


def await_state(lab, before):
    """Wait until both hosts are as before; the kernel checks link-local addresses for a second."""
    limit = time.monotonic() + 30
    while (left := changed(lab, before)) and time.monotonic() < limit:
        time.sleep(1)
    assert left == []


@pytest.fixture(scope="module")
def measured(dut_lab, tmp_path_factory):
    """The trials' documents and the device's evidence; the hosts are put back at the end."""
    folder = tmp_path_factory.mktemp("forwarding")
    before = {node: state_of(dut_lab, node) for node in ("tester", "dut")}
    trial = {
        "ports": PORTS,
        "frame_bytes": "{{ item.size }}",
        "rate_fps": "{{ item.rate or omit }}",
        "frames": "{{ item.frames or omit }}",
        "duration_s": "{{ item.seconds }}",
        "drain_s": 1,
        "flows": 4,
    }
    play(
        dut_lab,
        folder,
        [
            {"hosts": "measured", "tasks": [role(forwarding_rules="empty")]},
            {
                "hosts": "duts",
                "tasks": [{"crossover.lab.forwarding_evidence": DEVICES, "register": "first"}],
            },
            {
                "hosts": "testers",
                "tasks": [
                    {"crossover.lab.pktgen": trial, "loop": TRIALS, "register": "done"},
                    keep(folder, "trials.json", "done.results | map(attribute='trial') | list"),
                ],
            },
            {
                "hosts": "duts",
                "tasks": [
                    {
                        "crossover.lab.forwarding_evidence": {
                            **DEVICES,
                            "since": "{{ first.evidence }}",
                        },
                        "register": "last",
                    },
                    keep(folder, "dut.json", "{'grown': last.grown, 'state': last.state}"),
                ],
            },
        ],
    )
    trials = json.loads((folder / "trials.json").read_text())
    dut = json.loads((folder / "dut.json").read_text())
    yield list(zip(TRIALS, trials, strict=True)), dut
    play(dut_lab, folder, [{"hosts": "measured", "tasks": [role(forwarding_state="absent")]}])
    await_state(dut_lab, before)


def test_the_counters_of_every_trial_agree(measured):
    for asked, trial in measured[0]:
        assert len(trial["directions"]) == (2 if asked["both"] else 1)
        for one in trial["directions"]:
            counters = one["counters"]
            assert one["sent"] == counters["pktgen_sofar"] == counters["port_tx"], asked
            assert one["sent"] > 0, asked
            assert one["received"] == counters["far_rx_filter"] <= one["sent"], asked
            # A silent port receives nothing but the stream.
            assert counters["far_rx"] == counters["far_rx_filter"], asked
            assert counters["far_rx_other"] == 0, asked
            assert one["filter"] == "nft"
            assert one["settled"] is True
            # Ports count whole frames without FCS, as pktgen does.
            assert counters["port_tx_bytes"] == one["sent"] * (asked["size"] - 4), asked


def test_nothing_is_lost_at_a_low_rate(measured):
    slow = [(asked, trial) for asked, trial in measured[0] if asked["rate"]]
    assert len(slow) == 6
    for asked, trial in slow:
        assert trial["intended_fps"] == SLOW_FPS
        for one in trial["directions"]:
            assert one["received"] == one["sent"] == FRAMES, asked


def test_at_full_speed_both_directions_get_their_turn(measured):
    for asked, trial in measured[0]:
        if asked["rate"]:
            continue
        sent = [one["sent"] for one in trial["directions"]]
        assert max(sent) < 3 * min(sent), asked


def test_the_device_under_test_says_what_it_forwarded(measured):
    trials, dut = measured
    received = sum(one["received"] for _asked, trial in trials for one in trial["directions"])
    assert dut["grown"]["ip"]["ForwDatagrams"] >= received
    assert dut["state"]["devices"]["eth1"]["forwards"]
    assert len(dut["state"]["base_chains"]) == 5
    assert set(dut["grown"]["devices"]) == {"eth1", "eth2"}


@pytest.mark.usefixtures("measured")
def test_frames_are_counted_on_another_host(dut_lab, tmp_path):
    """The generator alone: the device's own port counts and drops what it sends."""
    stream = {"device": "eth1", "ipv4_source": "198.18.0.1", "ipv4_destination": "198.19.0.1"}
    away = "{{ [bench_links | crossover.lab.forwarding_ports | first | combine(nowhere)] }}"
    play(
        dut_lab,
        tmp_path,
        [
            {"hosts": "duts", "tasks": [{"crossover.lab.pktgen_sink": {"streams": [stream]}}]},
            {
                "hosts": "testers",
                "vars": {"nowhere": {"receive_device": None}},
                "tasks": [
                    {
                        "crossover.lab.pktgen": {"ports": away, "rate_fps": 200, "frames": 300},
                        "register": "sent",
                    },
                    keep(tmp_path, "sent.json", "sent.trial.directions[0]"),
                ],
            },
            {
                "hosts": "duts",
                "tasks": [
                    {"crossover.lab.pktgen_sink": {"state": "stopped"}, "register": "arrived"},
                    keep(tmp_path, "arrived.json", "arrived.received[0]"),
                ],
            },
        ],
    )
    sent = json.loads((tmp_path / "sent.json").read_text())
    arrived = json.loads((tmp_path / "arrived.json").read_text())
    assert sent["received"] is None
    assert arrived["received"] == sent["sent"] == 300
    assert "crossover_sink" not in dut_lab.ssh("dut", "nft list tables")


def begin(lab, folder):
    """Begin a trial without waiting for it; the process that measures."""
    task = {
        "crossover.lab.pktgen": {
            "ports": "{{ bench_links | crossover.lab.forwarding_ports }}",
            # Longer than the end of the playbook may take on a busy machine.
            "duration_s": 60,
        },
        "async": 300,
        "poll": 0,
    }
    # Mitogen cannot let a task go on in the background.
    play(lab, folder, [{"hosts": "testers", "strategy": "linear", "tasks": [task]}])
    limit = time.monotonic() + 60
    while not lab.ssh("tester", SENDING).strip():
        assert time.monotonic() < limit, "the trial does not begin"
    (pid,) = lab.ssh("tester", HOLDER).split()
    return pid


def await_silence(lab, limit_s):
    limit = time.monotonic() + limit_s
    while lab.ssh("tester", SENDING).strip():
        assert time.monotonic() < limit, "it goes on sending"


@pytest.mark.usefixtures("measured")
def test_a_trial_that_is_ended_stops_at_once_and_leaves_nothing(dut_lab, tmp_path):
    pid = begin(dut_lab, tmp_path)
    dut_lab.ssh("tester", f"kill -TERM {pid}; while test -d /proc/{pid}; do sleep 0.1; done", 60)
    assert dut_lab.ssh("tester", SENDING).strip() == ""
    assert dut_lab.ssh("tester", "nft list tables; ls /run/crossover").split() == [
        "forwarding-host.json",
        "pktgen.lock",
    ]


@pytest.mark.usefixtures("measured")
def test_a_trial_that_is_killed_stops_by_itself_and_is_cleared_away(dut_lab, tmp_path):
    pid = begin(dut_lab, tmp_path)
    dut_lab.ssh("tester", f"kill -KILL {pid}")
    await_silence(dut_lab, 180)
    assert "crossover_pktgen_0" in dut_lab.ssh("tester", "nft list tables")
    tasks = [
        {"crossover.lab.pktgen": {"state": "stopped"}, "register": "stopped"},
        keep(tmp_path, "left.json", "stopped.left"),
    ]
    play(dut_lab, tmp_path, [{"hosts": "testers", "tasks": tasks}])
    assert json.loads((tmp_path / "left.json").read_text()) is True
    assert dut_lab.ssh("tester", "nft list tables").strip() == ""
    assert "eth1@0" not in dut_lab.ssh("tester", "ls /proc/net/pktgen")

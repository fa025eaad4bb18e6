"""The second, unlabelled IKE on guests of its own: packages of the two exclude each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ipsec_lab import CLIENT4, CLIENT6, ENDS4, ENDS6, SERVER4, SERVER6, role, run_tasks
from lab_plays import START_LIMIT_S, Lab, lab_environment

from collector.lab import paths

ROOT = Path(__file__).resolve().parents[2]
NAME = "test-strongswan"
CONNECTIONS = [
    {"name": "four", "ends": ENDS4},
    {"name": "six", "ends": ENDS6, "mode": "tunnel"},
]
pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def swans():
    """A lab of guests with strongSwan in libreswan's place, forgotten afterwards."""
    made = Lab(
        NAME, paths.ssh_config(NAME), {**lab_environment(NAME), "CROSSOVER_IKE": "strongswan"}
    )
    up = made.playbook(ROOT / "playbooks" / "lab_up.yml", limit_s=START_LIMIT_S)
    assert up.returncode == 0, up.stdout + up.stderr
    yield made
    down = made.playbook(ROOT / "playbooks" / "lab_down.yml", "-e", "lab_qemu_state=absent")
    assert down.returncode == 0, down.stdout + down.stderr


def test_both_families_are_keyed_and_protected_by_strongswan(swans, tmp_path):
    ping = [
        {
            "ansible.builtin.command": {
                "argv": ["ping", "-c2", "-W5", f"{{{{ peers[inventory_hostname][{number}] }}}}"]
            },
            "register": f"ping_{number}",
            "failed_when": False,
        }
        for number in (0, 1)
    ]
    result = run_tasks(
        swans,
        tmp_path,
        [role(ipsec_keying="strongswan", ipsec_connections=CONNECTIONS), *ping],
        ipsec_level="",
        peers={"client": [SERVER4, SERVER6], "server": [CLIENT4, CLIENT6]},
    )
    for host in ("client", "server"):
        for number in (0, 1):
            assert result[host][f"ping_{number}"]["rc"] == 0, result[host]
        states = swans.ssh(host, "ip -o xfrm state | grep -c 'spi 0xc'")
        assert int(states) == 4
        assert "ipsec_t" in swans.ssh(host, "ps -eZ | grep charon-systemd")
    doctor = subprocess.run(
        [sys.executable, "-m", "collector", "doctor"],
        cwd=ROOT,
        env=swans.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "ok   client: IPsec (strongswan): nothing was dropped so far" in doctor.stdout


def test_a_label_is_refused_with_the_reason(swans, tmp_path):
    wanted = {**CONNECTIONS[0], "label": "process"}
    tasks = [
        {"crossover.lab.ipsec_keys": {}, "register": "keys_of_test", "no_log": True},
        {
            "crossover.lab.ike": {
                "keying": "strongswan",
                "connections": [wanted],
                "seed": "{{ keys_of_test.seed }}",
            },
            "register": "applied",
            "failed_when": False,
        },
    ]
    message = run_tasks(swans, tmp_path, tasks)["client"]["applied"]["msg"]
    assert "wanted keying: libreswan; strongSwan as Debian builds it has no SELinux labels" in (
        message
    )


def test_the_other_daemon_is_missed_by_name_of_what_is_there(swans, tmp_path):
    tasks = [{"crossover.lab.preflight": {"ike": ["libreswan"]}, "register": "seen"}]
    seen = run_tasks(swans, tmp_path, tasks)["client"]["seen"]
    assert "not on this host, which has strongSwan; wanted" in seen["ike_missing"]["libreswan"]

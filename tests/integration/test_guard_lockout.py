"""Changes that really cut SSH, and a controller that really dies: the host comes back by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.lab

NODE = "client"
# Labels everything, the answers to SSH included; the protection against that is switched off.
CATCH_ALL = {
    "management": [],
    "dois": [{"number": 16, "type": "pass", "tags": [1]}],
    "maps": [
        {"address": "0.0.0.0/0", "protocol": "cipso", "doi": 16},
        {"address": "::/0", "protocol": "unlbl"},
    ],
}
HARMLESS = {
    "dois": [{"number": 17, "type": "pass", "tags": [1]}],
}


def write_play(folder, tasks, timeout):
    """A play of cipso tasks, whose outcomes go into a file of the controller."""
    play = folder / "play.yml"
    steps = [
        {
            "crossover.lab.cipso": {**parameters, "guard": {"timeout": timeout}},
            "register": f"outcome_{index}",
            "ignore_errors": True,
        }
        for index, parameters in enumerate(tasks)
    ]
    outcomes = ", ".join(f"outcome_{index}" for index in range(len(tasks)))
    steps.append(
        {
            "ansible.builtin.copy": {
                "content": "{{ [" + outcomes + "] | to_json }}",
                "dest": str(folder / "outcomes.json"),
                "mode": "0600",
            },
            "delegate_to": "localhost",
        }
    )
    play.write_text(yaml.safe_dump([{"hosts": NODE, "tasks": steps}]))
    return play


def outcomes_of(lab, folder, *tasks, timeout=10):
    """What the tasks returned, and what was printed, with single blanks."""
    done = lab.playbook(write_play(folder, tasks, timeout))
    assert done.returncode == 0, done.stdout + done.stderr
    printed = " ".join((done.stdout + done.stderr).split())
    return json.loads((folder / "outcomes.json").read_text()), printed


def kill_tree(pid):
    """SIGKILL to a process and everything below it; workers have sessions of their own."""
    os.kill(pid, signal.SIGSTOP)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended meanwhile
        if parent == pid:
            kill_tree(int(stat.parent.name))
    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def unlabelled(lab):
    """The guest's configuration before; checked to be the same afterwards, without a guard."""
    command = "netlabelctl cipso list; netlabelctl map list"
    before = lab.ssh(NODE, command)
    yield
    assert lab.ssh(NODE, command) == before
    assert lab.ssh(NODE, "ls /run/crossover/guard") == ""


def test_a_change_that_cuts_ssh_is_refused_or_else_rolled_back(lab, tmp_path, unlabelled):
    protected = {key: value for key, value in CATCH_ALL.items() if key != "management"}
    (refused, cut), _ = outcomes_of(lab, tmp_path, protected, CATCH_ALL)

    assert refused["failed"]
    assert "covers the management address 10.0.2.2; map it to unlbl" in refused["msg"]
    assert "guard_rolled_back" not in refused

    assert cut["msg"] == f"cipso on {NODE} cut management access; rolled back after 10 s"
    assert (cut["failed"], cut["changed"]) == (True, False)
    assert (cut["guard_rolled_back"], cut["guard_failures"]) == (True, [])


def test_a_guard_whose_controller_is_killed_fires_by_itself(lab, tmp_path, unlabelled):
    reached = tmp_path / "reached"
    wrapper = tmp_path / "ssh"
    # Stands before the new connection that confirms, and shows that the change is applied.
    wrapper.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"script disarm"*) : >{reached}; sleep 60 ;; esac\n'
        'exec ssh "$@"\n'
    )
    wrapper.chmod(0o755)
    play = write_play(tmp_path, [HARMLESS], 10)
    with subprocess.Popen(
        lab.playbook_argv(play, "-e", f"ansible_ssh_executable={wrapper}"),
        cwd=lab.root,
        env=lab.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as controller:
        limit = time.monotonic() + 120
        while not reached.exists():
            assert controller.poll() is None, "the play ended before it confirmed"
            assert time.monotonic() < limit, "the play never came to confirm"
            time.sleep(0.05)
        applied = lab.ssh(NODE, "netlabelctl cipso list; ls /run/crossover/guard")
        kill_tree(controller.pid)
    assert "17,PASS_THROUGH" in applied
    (token,) = [line for line in applied.split() if "," not in line]
    lab.ssh(NODE, f"until test -e /run/crossover/guard/{token}/fired; do sleep 0.2; done")
    assert "17," not in lab.ssh(NODE, "netlabelctl cipso list")

    # The next change clears it away, and says what had happened.
    (after,), printed = outcomes_of(lab, tmp_path, {"state": "absent"})
    assert not after["failed"], after["msg"]
    assert "an earlier change was never confirmed and has been rolled back" in printed

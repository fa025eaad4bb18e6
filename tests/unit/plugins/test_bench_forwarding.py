"""The action that measures a forwarding group: searches here, trials there."""

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.playbook.task import Task
from forwarding_hosts import DUT_LINKS, TESTER_LINKS, Hosts

from ansible_collections.crossover.lab.plugins.action import bench_forwarding
from collector.forwarding.simulated import Device, steady

SETTINGS = {
    "forwarding": "max_load",
    "frame_bytes": 64,
    "direction": "unidirectional",
    "flows": 1,
    "trial_s": 1.0,
    "drain_s": 0.25,
    "warm_up_s": 1.0,
    "goal": None,
    "search": None,
    "repeats": None,
    "width_pct": 0.5,
    "rate_pct": 1.0,
}


def group(**changes):
    return {
        "block": 0,
        "cells": ["c1"],
        "settings": {"c1": SETTINGS},
        "tester": {"name": "tester", "links": TESTER_LINKS},
        "dut": {"name": "dut", "links": DUT_LINKS},
        **changes,
    }


def act(tmp_path, modules, made=None):
    """Run the action; ``modules`` answers each module by its name."""
    task = Task.load(
        {
            "action": "crossover.lab.bench_forwarding",
            "args": {"run_folder": str(tmp_path), "group": made or group(), "tester_cpus": 2},
        }
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _new_stdin=None)
    action = bench_forwarding.ActionModule(task, connection, SimpleNamespace(), None, None, None)
    action._execute_module = lambda module_name, module_args, task_vars: modules[module_name](
        module_args
    )
    return action.run(task_vars={})


def evidence(_arguments):
    return {"evidence": {"boot_id": "b7"}}


def test_each_trial_is_one_call_of_the_module_on_the_tester(tmp_path):
    hosts = Hosts(Device(steady(300_000), 2e6))
    modules = {
        bench_forwarding.EVIDENCE: evidence,
        bench_forwarding.PKTGEN: lambda asked: {"trial": hosts.module(asked)},
    }
    result = act(tmp_path, modules)
    assert result["boot_id"] == "b7"
    found = result["forwarding"]["results"]["c1"]
    assert found["value"] == pytest.approx(100 * 300_000 / 1_488_095, rel=1e-4)
    lines = (tmp_path / "raw" / "c1" / "0" / "trials.jsonl").read_text().splitlines()
    assert len(lines) == len(hosts.asked) == 3
    # What the generator can do is known to the next group of this boot.
    assert set(json.loads((tmp_path / "calibration.json").read_text())["boots"]) == {"b7"}
    act(tmp_path, modules)
    assert len(hosts.asked) == 5


def test_what_the_module_could_not_do_is_said_in_its_words(tmp_path):
    modules = {
        bench_forwarding.EVIDENCE: evidence,
        bench_forwarding.PKTGEN: lambda _asked: {"failed": True, "msg": "device eth1: no carrier"},
    }
    with pytest.raises(AnsibleActionFail, match=r"crossover.lab.pktgen: device eth1: no carrier"):
        act(tmp_path, modules)


def test_an_inventory_without_the_path_is_told(tmp_path):
    made = group(dut={"name": "dut", "links": DUT_LINKS[:1]})
    with pytest.raises(AnsibleActionFail, match="inventory: bench_links of tester and dut"):
        act(tmp_path, {}, made)

"""The action that measures a forwarding group: searches here, trials there."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.playbook.task import Task
from forwarding_hosts import DUT_LINKS, FAR, NEAR, TESTER_LINKS, Apart, Hosts

from ansible_collections.crossover.lab.plugins.action import bench_forwarding
from collector.forwarding.simulated import Device, steady

SETTINGS = {
    "forwarding": "max_load",
    "frame_bytes": 64,
    "direction": "unidirectional",
    "flows": 1,
    "queues": 1,
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
        "testers": [{"name": "tester", "links": TESTER_LINKS}],
        "dut": {"name": "dut", "links": DUT_LINKS},
        **changes,
    }


def act(tmp_path, modules, made=None, host="tester"):
    """Run the action on a host; ``modules`` answers each module by its name."""
    task = Task.load(
        {
            "action": "crossover.lab.bench_forwarding",
            "args": {
                "run_folder": str(tmp_path),
                "group": made or group(),
                "host": host,
                "lab_kind": "hardware",
                "processors": {"tester": 2, "near": 2, "far": 2, "dut": 2},
            },
        }
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _new_stdin=None)
    action = bench_forwarding.ActionModule(task, connection, SimpleNamespace(), None, None, None)
    action._execute_module = lambda module_name, module_args, task_vars: modules[
        module_name.removeprefix(bench_forwarding.COLLECTION)
    ](module_args)
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
    assert result["boot_ids"] == {"tester": "b7"}
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
    with pytest.raises(AnsibleActionFail, match=r"^tester: crossover.lab.pktgen: device eth1: no"):
        act(tmp_path, modules)


def test_an_inventory_without_the_path_is_told(tmp_path):
    made = group(dut={"name": "dut", "links": DUT_LINKS[:1]})
    with pytest.raises(AnsibleActionFail, match="inventory: bench_links of tester, dut"):
        act(tmp_path, {}, made)


@pytest.fixture
def meeting_place(tmp_path, monkeypatch):
    """Ansible's own folder, at a path that a socket may have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench_forwarding.constants, "DEFAULT_LOCAL_TMP", ".")


def modules_of(testers, host):
    """The modules of one of the two hosts."""

    def answer(name):
        return lambda asked: testers.together({host: (name, asked)})[host]

    return {name: answer(name) for name in ("pktgen", "pktgen_sink", "forwarding_evidence")}


@pytest.mark.usefixtures("meeting_place")
def test_a_tester_in_two_parts_measures_with_both(tmp_path):
    testers = Apart(Device(steady(300_000), 2e6))
    made = group(testers=[NEAR, FAR])
    with ThreadPoolExecutor(1) as others:
        follower = others.submit(act, tmp_path, modules_of(testers, "far"), made, "far")
        result = act(tmp_path, modules_of(testers, "near"), made, "near")
        followed = follower.result(60)
    assert result["boot_ids"] == {"near": "boot of near", "far": "boot of far"}
    found = result["forwarding"]
    assert found["results"]["c1"]["value"] == pytest.approx(100 * 300_000 / 1_488_095, rel=1e-4)
    assert set(found["warm_up"]["arrived"]) == {"near eth1", "far eth1"}
    # The far one had no search of its own: it was asked.
    assert "forwarding" not in followed
    assert followed["calls"] > 3


@pytest.mark.usefixtures("meeting_place")
def test_what_the_far_host_could_not_do_is_said_with_its_name(tmp_path):
    testers = Apart(Device(steady(300_000), 2e6))
    far = {
        **modules_of(testers, "far"),
        "pktgen_sink": lambda _asked: {"failed": True, "msg": "device eth1: no carrier"},
    }
    made = group(testers=[NEAR, FAR])
    with ThreadPoolExecutor(1) as others:
        follower = others.submit(act, tmp_path, far, made, "far")
        with pytest.raises(AnsibleActionFail, match=r"^far: crossover.lab.pktgen_sink: device"):
            act(tmp_path, modules_of(testers, "near"), made, "near")
        assert follower.result(60)["calls"] == 2


def test_a_tester_that_is_not_on_the_path_has_nothing_to_do(tmp_path):
    made = group(testers=[*group()["testers"], {"name": "other", "links": []}])
    assert "forwarding" not in act(tmp_path, {}, made, "other")

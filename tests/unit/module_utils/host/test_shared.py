"""Hosts that are namespaces of a machine refuse what is one for the whole machine."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    kernel_settings,
    quiet,
    settings,
    shared,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

QUIET = {
    "units_stopped": [], "units_masked": [], "modules_absent": [], "devices": [],
    "governor": None, "boost": None,
}  # fmt: skip


@pytest.fixture
def marked(tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    mark.write_text("mine/client\n")
    found = shared.refusal
    monkeypatch.setattr(shared, "refusal", lambda what: found(what, mark))


def test_a_host_of_its_own_may_have_everything(tmp_path):
    assert shared.lab_host(tmp_path / "none") is None
    assert shared.refusal("governor", tmp_path / "none") is None


def test_the_refusal_names_setting_host_and_way_out(tmp_path):
    (tmp_path / "mark").write_text("mine/client\n")
    assert shared.refusal("governor", tmp_path / "mark") == (
        "governor: this host (mine/client) is a set of namespaces on a machine, and that is one "
        "for the whole machine; wanted it set on the machine itself, or a lab of guests or real "
        "hosts"
    )


@pytest.mark.parametrize(
    "wish",
    [
        {"governor": "performance"},
        {"boost": False},
        {"units_stopped": ["cron.service"]},
        {"modules_absent": ["nf_conntrack"]},
        {"devices": [{"name": "eth1", "irq_cpus": [0]}]},
    ],
    ids=lambda wish: next(iter(wish)),
)
def test_quiet_settings_of_the_whole_machine_are_refused(marked, wish):
    with pytest.raises(HostError, match="is a set of namespaces on a machine"):
        quiet.declare({**QUIET, **wish})


def test_what_is_not_asked_for_is_not_refused(marked):
    assert quiet.declare(QUIET) == {}


@pytest.mark.parametrize("key", ["kernel.printk", "vm.swappiness", "module sctp"])
def test_kernel_settings_of_the_whole_machine_are_refused(marked, key):
    wanted = settings.plan({key: "a"}, {key: "b"}, {})
    with pytest.raises(HostError, match=f"^{key}: this host"):
        kernel_settings.require_own(wanted)


@pytest.mark.parametrize("key", ["net.ipv4.ip_forward", "net/ipv4/conf/eth1.7/rp_filter"])
def test_parameters_of_the_network_are_a_namespaces_own(marked, key):
    kernel_settings.require_own(settings.plan({key: "0"}, {key: "1"}, {}))


def test_what_is_so_already_is_no_change_to_refuse(marked):
    kernel_settings.require_own(settings.plan({"module sctp": "x"}, {"module sctp": "x"}, {}))

"""Kernel parameters and modules: names, values, reading back."""

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    kernel_settings,
    kmod,
    record,
    settings,
    sysctl,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """A /proc/sys whose files keep what is written."""
    root = tmp_path / "sys"
    for key, value in {
        "net/ipv4/cipso_cache_enable": "1\n",
        "net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "net/ipv4/conf/eth0.7/rp_filter": "2\n",
    }.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value)
    for function in (sysctl.read, sysctl.write, sysctl.key_path):
        monkeypatch.setattr(function, "__defaults__", (root,))
    return root


@pytest.fixture
def remembered(tmp_path, monkeypatch):
    boot = tmp_path / "boot_id"
    boot.write_text("one\n")
    monkeypatch.setattr(record, "BOOT_ID", boot)
    return tmp_path / "record.json"


def no_command(argv):
    raise AssertionError(f"ran {argv}")


@pytest.mark.parametrize(
    "key", ["net.ipv4.conf.eth0/7.rp_filter", "net/ipv4/conf/eth0.7/rp_filter"]
)
def test_a_device_with_a_dot_has_two_spellings(proc, key):
    assert sysctl.read(key) == "2"


@pytest.mark.parametrize(
    "key", ["", "net", "net..ipv4", "../../etc/passwd", "/etc/passwd", "a/../b"]
)
def test_a_key_stays_below_proc_sys(proc, key):
    with pytest.raises(HostError, match=r"wanted a name such as net\.ipv4\.ip_forward"):
        sysctl.key_path(key)


def test_tabs_between_numbers_are_blanks(proc):
    assert sysctl.read("net.ipv4.tcp_rmem") == "4096 131072 6291456"
    assert sysctl.wanted_values({"net.ipv4.tcp_rmem": "4096  131072\t6291456"}) == {
        "net.ipv4.tcp_rmem": "4096 131072 6291456"
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, "found True"),
        (None, "found None"),
        ([1], r"found \[1\]"),
        ("  ", "found an empty value"),
    ],
)
def test_a_value_is_a_number_or_text(value, said):
    with pytest.raises(HostError, match=rf"sysctl net\.x: {said}.*; wanted a number or a string"):
        sysctl.wanted_values({"net.x": value})


def test_a_value_that_does_not_take_effect_is_an_error(proc, monkeypatch):
    monkeypatch.setattr(sysctl, "read", lambda _key, _root=None: "1")
    with pytest.raises(HostError, match=r"net\.ipv4\.cipso_cache_enable wanted 0, is 1"):
        sysctl.write("net.ipv4.cipso_cache_enable", "0")


def test_a_missing_key_is_an_error_unless_a_module_is_to_come(proc):
    present = {"net.ipv4.nonsense": None}
    with pytest.raises(HostError, match=r"net\.ipv4\.nonsense: this kernel has no such key"):
        kernel_settings.require(present, {"net.ipv4.nonsense": "1"})
    kernel_settings.require(
        {**present, "module x": kmod.UNLOADED}, {"module x": kmod.LOADED, "net.ipv4.nonsense": "1"}
    )


def test_modules_come_before_the_parameters_that_they_bring():
    declared = kernel_settings.declaration({"net.a": 1}, ["ip-gre"], ["nf_conntrack"])
    assert list(declared) == ["module nf_conntrack", "module ip_gre", "net.a"]


def test_a_module_cannot_be_declared_both_ways():
    with pytest.raises(HostError, match="module ip_gre: declared loaded and absent"):
        kernel_settings.declaration({}, ["ip-gre"], ["ip_gre"])


def test_one_bad_setting_takes_the_others_of_the_task_back(proc, remembered):
    declared = {"net.ipv4.cipso_cache_enable": "0", "net.ipv4.nonsense": "1"}
    plan = settings.plan(kernel_settings.current(declared), declared, {})
    with pytest.raises(HostError, match="nonsense"):
        kernel_settings.apply(plan, {}, remembered, no_command)
    assert sysctl.read("net.ipv4.cipso_cache_enable") == "1"
    assert not remembered.exists()


def test_apply_and_restore(proc, remembered):
    declared = {"net.ipv4.cipso_cache_enable": "0", "net.ipv4.tcp_rmem": "1 2 3"}
    plan = settings.plan(kernel_settings.current(declared), declared, {})
    kernel_settings.apply(plan, {}, remembered, no_command)
    assert sysctl.read("net.ipv4.tcp_rmem") == "1 2 3"
    recorded = record.recorded_values(remembered)
    back = settings.plan(kernel_settings.current(recorded), {}, recorded)
    kernel_settings.apply(back, recorded, remembered, no_command)
    assert sysctl.read("net.ipv4.tcp_rmem") == "4096 131072 6291456"
    assert sysctl.read("net.ipv4.cipso_cache_enable") == "1"
    assert not remembered.exists()


def test_the_state_of_a_module(tmp_path, monkeypatch):
    loaded = tmp_path / "module"
    (loaded / "ip_gre").mkdir(parents=True)
    (loaded / "ip_gre" / "initstate").write_text("live\n")
    (loaded / "tcp_cubic").mkdir()
    release = tmp_path / "lib" / kmod.os.uname().release
    release.mkdir(parents=True)
    (release / "modules.builtin").write_text("kernel/net/ipv4/ip-tunnel.ko\n")
    found = {
        name: kmod.state(name, loaded, tmp_path / "lib")
        for name in ("ip-gre", "tcp_cubic", "ip_tunnel", "vxlan")
    }
    assert found == {
        "ip-gre": kmod.LOADED,
        "tcp_cubic": kmod.BUILT_IN,
        "ip_tunnel": kmod.BUILT_IN,
        "vxlan": kmod.UNLOADED,
    }


def test_an_alias_is_not_a_module(monkeypatch):
    with pytest.raises(HostError, match="wanted the module's own name, not an alias"):
        kmod.load("crossover_no_such_module", lambda _argv: (0, "", ""))


def test_modprobes_own_words_are_passed_on():
    with pytest.raises(HostError, match="kernel module x: cannot be loaded: Module x not found"):
        kmod.load("x", lambda _argv: (1, "", "Module x not found\n"))

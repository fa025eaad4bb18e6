"""What a host is, read from this very machine, and what differs between two readings."""

import json

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host import lock, provenance
from ansible_collections.crossover.lab.plugins.module_utils.host.differences import differences
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import (
    BusyError,
    HostError,
    NotInstalledError,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.run import run


def test_a_reading_of_this_machine_goes_into_a_file():
    reading = provenance.take(provenance.PARTS, ["lo"], run)
    again = json.loads(json.dumps(reading))
    assert set(again) == {"schema", "hostname", "boot_id", "clock", *provenance.PARTS}
    assert again["cpu"]["count"] >= 1
    assert again["devices"]["lo"]["mtu"] >= 1280
    assert again["devices"]["lo"]["interrupts"] == {}
    assert again["sysctls"]["net.ipv4.ip_forward"] in ("0", "1")


def test_two_readings_of_a_quiet_machine_do_not_differ_in_the_kernel():
    parts = ["kernel", "sysctls"]
    first, second = provenance.take(parts, [], run), provenance.take(parts, [], run)
    assert differences(first, second, provenance.VOLATILE) == []


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(HostError, match="device crossover9: not on this host"):
        provenance.take(["devices"], ["crossover9"], run)


def test_differences_name_the_path_and_both_values():
    before = {"cpu": {"governors": {"policy0": "powersave"}, "steal_ticks": 1}, "boot_id": "a"}
    after = {"cpu": {"governors": {"policy0": "performance"}, "steal_ticks": 2}, "boot_id": "b"}
    assert differences(before, after, provenance.VOLATILE) == [
        {"path": "boot_id", "before": "a", "after": "b"},
        {"path": "cpu.governors.policy0", "before": "powersave", "after": "performance"},
    ]


def test_a_part_that_only_one_reading_has_is_no_difference():
    assert differences({"tools": {"netperf": "2.7.0"}}, {"cpu": {"count": 1}}) == []
    assert differences({"cpu": {"a": 1}}, {"cpu": {"b": 1}}) == [
        {"path": "cpu.a", "before": 1, "after": None},
        {"path": "cpu.b", "before": None, "after": 1},
    ]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Netperf version 2.7.1\n", "2.7.1"),
        ("ip utility, iproute2-6.15.0, libbpf 1.5.0\n", "6.15.0"),
        ("NetLabel Control Utility, version 0.30.0\n", "0.30.0"),
        ("nftables v1.1.3 (Commodore Bullmoose #4)\n", "1.1.3"),
        ("Libreswan 5.2\n", "5.2"),
        ("\nsome tool\n", "some tool"),
        ("\n", None),
    ],
)
def test_versions_in_the_tools_own_words(text, version):
    assert provenance.version_in(text) == version


def test_a_tool_that_is_not_there_has_no_version():
    def nothing(argv):
        raise NotInstalledError(f"{argv[0]}: not installed on this host")

    assert set(provenance.tools(nothing).values()) == {None}
    assert provenance.netfilter(nothing)["ruleset_sha256"] is None
    device = provenance.device("lo", nothing)
    assert device["driver"] is None
    assert device["offload"] is None


def test_processors_of_other_architectures_say_less():
    x86 = "processor\t: 0\nmodel name\t: Some CPU\nmicrocode\t: 0x1\n\nprocessor\t: 1\n"
    assert provenance.parse_cpuinfo(x86) == {"model": "Some CPU", "microcode": "0x1"}
    assert provenance.parse_cpuinfo("CPU part\t: 0xd0c\n") == {"model": "0xd0c", "microcode": None}


def test_a_host_is_held_by_one_at_a_time(tmp_path):
    folder = tmp_path / "lock"
    assert lock.hold("a", 0, dry=True, folder=folder) is True
    assert lock.holder(folder) is None
    assert lock.hold("a", 0, folder=folder) is True
    assert lock.hold("a", 1, folder=folder) is False
    with pytest.raises(BusyError, match="held by a since 1970-01-01 00:00:00 UTC"):
        lock.hold("b", 2, folder=folder)
    assert lock.release("b", folder=folder) is False
    assert lock.hold("b", 3, force=True, folder=folder) is True
    assert lock.release("a", folder=folder) is False
    assert lock.release("b", folder=folder) is True
    assert lock.holder(folder) is None


def test_a_lock_that_is_just_being_taken_is_held(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(BusyError, match="held by a run that is just starting;"):
        lock.hold("b", 2, folder=tmp_path / "lock")

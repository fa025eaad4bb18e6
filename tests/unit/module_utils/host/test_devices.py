"""Offloads, interrupts, clocks and units as settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.host import (
    cpufreq,
    ethtool,
    irq,
    quiet,
    units,
)
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.host.settings import Change

FEATURES = """\
Features for eth1:
rx-checksumming: on [fixed]
tcp-segmentation-offload: off
	tx-tcp-segmentation: off [fixed]
generic-segmentation-offload: off [requested on]
generic-receive-offload: on
"""
RINGS = """\
Ring parameters for eth1:
Pre-set maximums:
RX:			4096
TX:			n/a
Current hardware settings:
RX:			256
RX Mini:		n/a
TX push buff len:	n/a
TX Push:		off
"""
COALESCING = """\
Coalesce parameters for eth1:
Adaptive RX: off  TX: n/a
stats-block-usecs:	n/a

rx-usecs:	0
rx-frames:	1
CQE mode RX: n/a  TX: n/a
"""
DRIVER = "driver: virtio_net\nversion: 1.0.0\nfirmware-version: \nbus-info: 0000:00:06.0\n"


class Ethtool:
    """Answers as ethtool for one device; ``fixed`` features do not move."""

    def __init__(self, features, fixed=()):
        self.features, self.fixed, self.calls = dict(features), fixed, []

    def __call__(self, argv):
        self.calls.append(list(argv))
        if argv[1] == "-k":
            lines = [f"{name}: {value}" for name, value in self.features.items()]
            return 0, "Features for eth1:\n" + "\n".join(lines) + "\n", ""
        for name, value in zip(argv[3::2], argv[4::2], strict=True):
            if name in self.fixed:
                return 1, "", "Could not change any device features\n"
            self.features[name] = value
        return 0, "", ""


def test_features_say_what_is_fixed_and_what_was_asked_for():
    found = ethtool.parse_features(FEATURES)
    assert found["rx-checksumming"] == ethtool.Feature("rx-checksumming", True, True)
    assert found["generic-segmentation-offload"].requested is True
    assert not found["generic-segmentation-offload"].on
    assert list(found)[2] == "tx-tcp-segmentation"


def test_of_rings_only_the_present_ones_are_read():
    assert ethtool.parse_values(RINGS, "Current hardware settings") == {
        "rx": "256",
        "tx-push": "off",
    }


def test_two_settings_in_one_line_of_coalescing():
    assert ethtool.parse_values(COALESCING) == {
        "adaptive-rx": "off",
        "rx-usecs": "0",
        "rx-frames": "1",
    }


def test_a_driver_without_firmware_does_not_have_an_empty_one():
    assert ethtool.parse_driver(DRIVER) == {
        "driver": "virtio_net",
        "version": "1.0.0",
        "bus-info": "0000:00:06.0",
    }


def test_features_of_a_device_are_one_command():
    tool = Ethtool({"generic-receive-offload": "on", "large-receive-offload": "on"})
    changes = [
        Change("offload eth1 generic-receive-offload", "on", "off"),
        Change("offload eth1 large-receive-offload", "on", "off"),
    ]
    quiet.apply(changes, tool)
    assert [call for call in tool.calls if call[1] == "-K"] == [
        ["ethtool", "-K", "eth1", "generic-receive-offload", "off", "large-receive-offload", "off"]
    ]


def test_a_feature_that_does_not_move_is_an_error_in_ethtools_words():
    tool = Ethtool({"tcp-segmentation-offload": "off"}, fixed=["tcp-segmentation-offload"])
    with pytest.raises(
        HostError,
        match="offload tcp-segmentation-offload of eth1 wanted on, is off: Could not change",
    ):
        quiet.apply([Change("offload eth1 tcp-segmentation-offload", "off", "on")], tool)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(HostError, match="device eth9: not on this host"):
        ethtool.read("offload", "eth9", lambda _argv: (1, "", "netlink error: No such device\n"))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5)), min_size=1))
def test_a_list_of_cpus_is_all_numbers_of_all_its_ranges(ranges):
    text = ",".join(f"{low}-{low + more}" if more else str(low) for low, more in ranges)
    wanted = {number for low, more in ranges for number in range(low, low + more + 1)}
    assert set(irq.parse_cpu_list(text)) == wanted


def test_a_list_of_cpus_as_the_kernel_prints_it():
    assert irq.parse_cpu_list("0-3,8\n") == (0, 1, 2, 3, 8)
    with pytest.raises(HostError, match="CPU list 'all'; wanted numbers such as 0-3,8"):
        irq.parse_cpu_list("all")


@pytest.fixture
def interrupts(tmp_path):
    """IRQ 330, which CPU 0 goes on taking whatever is set."""
    folder = tmp_path / "330"
    folder.mkdir()
    (folder / "smp_affinity_list").write_text("0-15\n")
    (folder / "effective_affinity_list").write_text("0\n")
    return tmp_path


def test_an_interrupt_that_is_taken_elsewhere_is_named(interrupts):
    irq.pin(330, "4", interrupts)
    assert irq.affinity(330, interrupts) == "4"
    assert irq.elsewhere(330, "4", interrupts) == ("IRQ 330: affinity 4 is set, but CPU 0 takes it")
    assert irq.elsewhere(330, "0-3", interrupts) is None


def test_an_interrupt_that_cannot_be_moved_is_an_error(interrupts):
    with pytest.raises(HostError, match="IRQ 331: affinity 1 refused"):
        irq.pin(331, "1", interrupts)


def test_interrupts_of_a_virtio_device_are_those_of_its_bus_device(tmp_path):
    bus = tmp_path / "pci" / "virtio4"
    bus.mkdir(parents=True)
    (tmp_path / "pci" / "msi_irqs").mkdir()
    for number in ("33", "32", "99"):
        (tmp_path / "pci" / "msi_irqs" / number).touch()
    for number in ("32", "33"):
        (tmp_path / "irq" / number).mkdir(parents=True)
    (tmp_path / "net" / "eth1").mkdir(parents=True)
    (tmp_path / "net" / "eth1" / "device").symlink_to(bus)
    assert irq.of_device("eth1", tmp_path / "net", tmp_path / "irq") == (32, 33)
    assert irq.of_device("lo", tmp_path / "net", tmp_path / "irq") == ()
    assert irq.spread((32, 33, 34), (2, 3)) == {32: "2", 33: "3", 34: "2"}


@pytest.fixture
def clocks(tmp_path):
    policy = tmp_path / "cpufreq" / "policy10"
    policy.mkdir(parents=True)
    (tmp_path / "cpufreq" / "policy2").mkdir()
    (policy / "scaling_governor").write_text("powersave\n")
    (policy / "scaling_available_governors").write_text("performance powersave\n")
    return tmp_path


def test_policies_are_in_the_order_of_their_numbers(clocks):
    assert cpufreq.policies(clocks) == ("policy2", "policy10")
    assert cpufreq.governor("policy10", clocks) == "powersave"
    cpufreq.set_governor("policy10", "performance", clocks)
    assert cpufreq.governor("policy10", clocks) == "performance"


@pytest.mark.parametrize(
    ("file", "on", "off"), [("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")]
)
def test_boost_is_switched_in_the_file_that_there_is(tmp_path, file, on, off):
    assert cpufreq.boost(tmp_path) is None
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(on)
    assert cpufreq.boost(tmp_path) == "on"
    cpufreq.set_boost("off", tmp_path)
    assert path.read_text() == off
    assert cpufreq.boost(tmp_path) == "off"


def test_units_running_stopped_and_not_there():
    text = (
        "Id=irqbalance.service\nLoadState=loaded\nActiveState=active\n\n"
        "Id=apt-daily.timer\nLoadState=masked\nActiveState=inactive\n\n"
        "Id=tuned.service\nLoadState=not-found\nActiveState=inactive\n"
    )
    assert units.parse_show(text) == {
        "irqbalance.service": units.ACTIVE,
        "apt-daily.timer": units.INACTIVE,
        "tuned.service": units.MISSING,
    }


def test_a_unit_is_masked_by_a_link_to_nothing(tmp_path):
    etc, run = tmp_path / "etc", tmp_path / "run"
    etc.mkdir()
    run.mkdir()
    (run / "netperf.service").symlink_to("/dev/null")
    assert units.masked("netperf.service", (etc, run))
    assert not units.masked("auditd.service", (etc, run))


def declare(**given):
    empty = {
        "devices": [],
        "governor": None,
        "boost": None,
        "units_stopped": [],
        "units_masked": [],
        "modules_absent": [],
    }
    return quiet.declare({**empty, **given})


def test_nothing_is_declared_by_default():
    assert declare() == {}


def test_a_masked_unit_is_stopped_too():
    assert declare(units_masked=["netperf.service"]) == {
        "mask netperf.service": "masked",
        "unit netperf.service": "inactive",
    }


def test_short_names_of_offloads_are_those_of_the_listing():
    device = {"name": "lo", "offloads": {"gro": False, "tx-nocache-copy": True}}
    rest = {"channels": None, "rings": {"rx": 512}, "coalescing": {"adaptive-rx": False}}
    assert declare(devices=[{**device, **rest, "irq_cpus": None}]) == {
        "offload lo generic-receive-offload": "off",
        "offload lo tx-nocache-copy": "on",
        "ring lo rx": "512",
        "coalescing lo adaptive-rx": "off",
    }


def test_what_the_device_does_not_have_is_an_error():
    with pytest.raises(HostError, match="ring eth1 rx: wanted 512, but this device has no such"):
        quiet.require({"ring eth1 rx": None}, {"ring eth1 rx": "512"})

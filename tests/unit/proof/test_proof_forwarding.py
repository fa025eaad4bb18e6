"""The state of a device under test against its declaration."""

import pytest

from collector.proof.forwarding import check_held, check_mtu, check_state

PORTS = (
    {"dut_device": "eth1", "ipv4": "198.18.0.1"},
    {"dut_device": "eth2", "ipv4": "198.19.0.1"},
)


def state(**changes):
    made = {
        "devices": {
            "eth1": {"forwards": True, "neighbours": {"198.18.0.1": "02"}, "irq": {"24": "0"}},
            "eth2": {"forwards": True, "neighbours": {"198.19.0.1": "02"}, "irq": {"25": "1"}},
        },
        "base_chains": [],
        "iptables": None,
    }
    for key, value in changes.items():
        if key in made:
            made[key] = value
        else:
            made["devices"]["eth2"][key] = value
    return made


def failures(declared, found):
    return [str(finding) for finding in check_state(declared, PORTS, found) if not finding.ok]


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        ({}, {}),
        ({"irq": "pinned", "rules": "none"}, {}),
        ({"irq": "default"}, {"irq": {"25": "0-3"}}),
        ({"rules": "empty"}, {"base_chains": ["ip crossover forward"]}),
        ({"rules": "empty", "rules_by": ["iptables"]}, {"iptables": ["filter"]}),
    ],
)
def test_a_device_as_declared(declared, changes):
    assert failures(declared, state(**changes)) == []


@pytest.mark.parametrize(
    ("declared", "changes", "text"),
    [
        ({}, {"forwards": False}, "IPv4 forwarding from eth2: wanted True, found False"),
        (
            {},
            {"neighbours": {}},
            "neighbour 198.19.0.1 of eth2: wanted permanent, found not permanent",
        ),
        (
            {"irq": "pinned"},
            {"irq": {"25": "0-3"}},
            "interrupts of eth2: wanted one CPU each, found 25 on 0-3",
        ),
        (
            {"irq": "pinned"},
            {"irq": {}},
            "interrupts of eth2: wanted one CPU each, found 0 interrupts on one each",
        ),
        ({"rules": "empty"}, {}, "packet filter by nft: wanted without rules, found none"),
        (
            {"rules": "none"},
            {"base_chains": ["ip x y"]},
            "packet filter by nft: wanted none, found without rules",
        ),
        ({}, {"iptables": ["filter"]}, "packet filter by iptables: wanted none, found without"),
    ],
)
def test_a_device_that_is_not_as_declared(declared, changes, text):
    (failure,) = failures(declared, state(**changes))
    assert failure.startswith(text)


@pytest.mark.parametrize(
    ("frame_bytes", "failed"),
    [(64, []), (1518, []), (1519, ["MTU of eth2: wanted 1501 or more, found 1500"])],
)
def test_a_device_has_room_for_the_largest_frame(frame_bytes, failed):
    devices = {"eth1": {"mtu": 9000}, "eth2": {"mtu": 1500}}
    found = check_mtu(frame_bytes, PORTS, {"state": {"devices": devices}})
    assert [str(finding) for finding in found if not finding.ok] == failed


def test_what_the_role_has_set_is_so_after_the_traffic_too():
    settings = {
        "up eth1": "up",
        "offload eth1 generic-receive-offload": "off",
        "channels eth1 combined": "2",
        "channels eth7 combined": "1",  # no device of the path
    }
    found = {"offloads": {"generic-receive-offload": "on"}, "channels": {"combined": "2"}}
    held = check_held(settings, {"state": {"devices": {"eth1": found}}})
    assert [(finding.ok, str(finding)) for finding in held] == [
        (False, "offload generic-receive-offload of eth1: wanted off, found on"),
        (True, str(held[1])),
    ]
    gone = check_held(settings, {"state": {"devices": {"eth1": {}}}})
    assert [finding.found for finding in gone] == ["not there", "not there"]

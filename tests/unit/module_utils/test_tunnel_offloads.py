"""Offloads: what is switched, what is left, and what is put back."""

from __future__ import annotations

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_offloads import (
    apply,
    by_hand,
    changes,
    look,
    read,
    shown,
    wanted,
)

LISTING = """Features for eth1:
rx-checksumming: on [fixed]
tx-checksumming: on
\ttx-checksum-ip-generic: on
scatter-gather: on
tcp-segmentation-offload: on
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
tx-udp_tnl-segmentation: off [fixed]
"""


class Device:
    """Answers as ethtool; notes what was asked of it."""

    def __init__(self, refuse: str = "") -> None:
        self.listing = LISTING
        self.refuse = refuse
        self.asked: list[list[str]] = []

    def run(self, argv):
        self.asked.append(list(argv))
        if argv[1] == "-k":
            return (0, self.listing, "") if argv[2] == "eth1" else (71, "", "No such device")
        for name, value in zip(argv[3::2], argv[4::2], strict=True):
            if name != self.refuse:
                self.listing = "\n".join(
                    f"{name}: {value}" if line.startswith(f"{name}:") else line
                    for line in self.listing.splitlines()
                )
        return (1, "", "Cannot change") if self.refuse else (0, "", "")


def test_the_preset_leaves_out_what_is_fixed_and_a_link_has_the_last_word():
    features = read("eth1", Device().run)
    off = wanted(features, "off", [("gro", True)])
    assert off == {
        "tx-checksumming": "off",
        "scatter-gather": "off",
        "tcp-segmentation-offload": "off",
        "generic-segmentation-offload": "off",
        "generic-receive-offload": "on",
    }
    assert wanted(features, "unchanged", []) == {}


def test_what_is_switched_is_put_back_whatever_it_took_with_it():
    device = Device()
    features = {"eth1": read("eth1", device.run)}
    off = changes(features, {"eth1": wanted(features["eth1"], "off", [])}, {})
    assert apply(off.changes, device.run) == []
    assert shown(read("eth1", device.run))["tcp-segmentation-offload"] == "off"
    # Another one that went off with them comes back as well.
    now = {"eth1": read("eth1", device.run)}
    back = changes(now, {}, off.record)
    assert {change.after for change in back.changes} == {"on"}
    apply(back.changes, device.run)
    assert shown(read("eth1", device.run)) == shown(features["eth1"])


def test_a_second_run_changes_nothing_and_remembers_the_first_state():
    device = Device()
    features = {"eth1": read("eth1", device.run)}
    declared = {"eth1": wanted(features["eth1"], "off", [])}
    first = changes(features, declared, {})
    apply(first.changes, device.run)
    again = changes({"eth1": read("eth1", device.run)}, declared, first.record)
    assert again.changes == ()
    assert again.record == first.record


def test_by_hand_is_switched_what_was_and_what_the_device_took():
    device = Device(refuse="generic-receive-offload")
    before = {"eth1": read("eth1", device.run)}
    declared = {"eth1": wanted(before["eth1"], "off", []), "xt0": {"scatter-gather": "off"}}
    steps = changes(before, {"eth1": declared["eth1"]}, {})
    with pytest.raises(HostError):
        apply(steps.changes, device.run)
    now = {"eth1": read("eth1", device.run), "xt0": {}}
    assert by_hand(now, declared, steps.record) == [
        "ethtool -K eth1 tx-checksumming off scatter-gather off tcp-segmentation-offload off"
        " generic-segmentation-offload off"
    ]
    assert by_hand(now, declared, dict.fromkeys(steps.record, "off")) == []


def test_a_device_that_refuses_is_named():
    device = Device(refuse="tcp-segmentation-offload")
    features = {"eth1": read("eth1", device.run)}
    steps = changes(features, {"eth1": {"tcp-segmentation-offload": "off"}}, {})
    with pytest.raises(HostError, match="tcp-segmentation-offload of eth1 wanted off, is on"):
        apply(steps.changes, device.run)


def test_a_device_that_is_not_there_has_none():
    assert read("eth9", Device().run) == {}
    assert look("eth9", Device().run) == {}
    assert look("eth1", Device().run)["rx-checksumming"] == "on (fixed)"

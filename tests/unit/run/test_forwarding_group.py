"""A forwarding run as the playbooks see it: planned, measured, proven, recorded, read back."""

import json

import pytest
import yaml
from forwarding_hosts import DUT, DUT_LINKS, KERNEL, TESTER, TESTER_LINKS, Hosts
from forwarding_matrix import document, with_test

from collector.errors import InputError
from collector.forwarding.bench import Bench
from collector.forwarding.path import NOBODY, find_path
from collector.forwarding.simulated import Device, steady
from collector.run.campaign import finish, open_campaign
from collector.run.campaign import record as record_event
from collector.run.forwarding_group import Raw, known_capacity, remember_capacity
from collector.runfolder.runfolder import load_run
from collector.runfolder.samples import SampleStatus
from collector.runfolder.store import read_samples


def opened(tmp_path, tops=None, **changes):
    file = tmp_path / "m.yml"
    file.write_text(yaml.safe_dump(tops or document()))
    wanted = {
        "matrix": str(file),
        "form": "short",
        "runs": tmp_path / "runs",
        "resume": None,
        "run_id": "r1",
        "blocks": 1,
        "seed": 3,
        "lab": {"kind": "guests", "accelerator": "tcg", "name": "default"},
        "client": TESTER,
        "server": DUT,
        **changes,
    }
    return open_campaign(**wanted)


def path():
    return find_path(TESTER, DUT, {}, {})


def measured(tmp_path, campaign, group, hosts, **dut):
    """Measure a group and record it; the statuses by cell."""
    folder = tmp_path / "runs" / "r1"
    record_event(run_folder=str(folder), group=group, event="begin", hosts={})
    raw = Raw(folder, group["block"], group["cells"])
    found = Bench(path(), hosts.module, raw.keep).measure(group)
    tester = {
        "measured": {"forwarding": found, "boot_id": "b1"},
        "kernel": {**KERNEL, "kernel": {"release": "6.1.0"}},
    }
    return record_event(
        run_folder=campaign["run_folder"],
        group=group,
        event="measured",
        hosts={"tester": tester, "dut": {**hosts.dut(), **dut}},
    )


def test_a_whole_run_from_plan_to_samples(tmp_path):
    campaign = opened(tmp_path)
    for group in campaign["groups"]:
        hosts = Hosts(Device(steady(300_000), 2e6))
        assert set(measured(tmp_path, campaign, group, hosts).values()) == {"ok"}
    finish(tmp_path / "runs" / "r1")
    run = load_run(campaign["run_folder"])
    samples = [s for s in read_samples(run.path) if s.status is SampleStatus.OK]
    assert len(samples) == 6
    by_test = {sample.test: sample for sample in samples}
    assert by_test["size_64"].value == pytest.approx(100 * 300_000 / 1_488_095, rel=1e-4)
    assert by_test["size_64"].bounded_by == "device"
    assert by_test["size_64"].unit == "%"
    assert by_test["size_64"].kernel == "6.12.0"  # the device's; the tester's is another
    # The generator sends more than line rate of such frames, and all of it is forwarded.
    assert by_test["size_1518"].bounded_by in ("line rate", "device")
    assert run.journal[-1].event == "end"


def test_the_device_is_asked_over_both_links_and_the_generator_alone_first(tmp_path):
    campaign = opened(tmp_path)
    hosts = Hosts(Device(steady(300_000), 2e6))
    measured(tmp_path, campaign, campaign["groups"][0], hosts)
    warm_up, calibration, search = hosts.asked[:3]
    assert warm_up["rate_fps"] is None
    assert {port["mac_destination"] for port in calibration["ports"]} == {NOBODY}
    assert search["ports"] == [
        {
            "device": "eth1",
            "mac_destination": "02:00:00:00:00:01",
            "ipv4_source": "198.18.0.1",
            "ipv4_destination": "198.19.0.1",
            "receive_device": "eth2",
        },
        {
            "device": "eth2",
            "mac_destination": "02:00:00:00:00:02",
            "ipv4_source": "198.19.0.1",
            "ipv4_destination": "198.18.0.1",
            "receive_device": "eth1",
        },
    ]


def test_every_trial_is_kept_untouched_in_its_cell(tmp_path):
    campaign = opened(tmp_path)
    group = campaign["groups"][0]
    hosts = Hosts(Device(steady(300_000), 2e6))
    measured(tmp_path, campaign, group, hosts)
    for cell in group["cells"]:
        raw = tmp_path / "runs" / "r1" / "raw" / cell / "0"
        lines = [json.loads(line) for line in (raw / "trials.jsonl").read_text().splitlines()]
        assert [line["purpose"] for line in lines] == ["warm_up", "calibration", "search"]
        assert lines[-1]["trial"]["directions"][0]["senders"] == [{"cpu": 0}]


def test_a_generator_that_is_the_bottleneck_is_told_in_the_sample(tmp_path):
    campaign = opened(tmp_path)
    measured(tmp_path, campaign, campaign["groups"][0], Hosts(Device(steady(1e6), 50_000)))
    finish(tmp_path / "runs" / "r1")
    found = {s.bounded_by for s in read_samples(tmp_path / "runs" / "r1") if s.value is not None}
    assert found == {"generator"}


def test_a_path_that_forwards_nothing_is_not_measured(tmp_path):
    campaign = opened(tmp_path)
    group = campaign["groups"][0]
    hosts = Hosts(Device(steady(0.0), 2e6))
    assert set(measured(tmp_path, campaign, group, hosts).values()) == {"invalid"}
    assert len(hosts.asked) == 1
    reason = load_run(campaign["run_folder"]).journal[-1].details["reason"]
    assert "while warming up: wanted some, found 0" in reason


@pytest.mark.parametrize(
    ("dut", "text"),
    [
        (
            {"kernel": {**KERNEL, "boot_id": "b2"}},
            "boot of the device under test after the traffic: wanted b1, found b2",
        ),
        (
            {"after": Hosts(Device(steady(1))).dut()["after"]},
            "frames sent by the device's eth1: wanted about the ",
        ),
    ],
)
def test_without_the_devices_own_word_there_is_no_number(tmp_path, dut, text):
    campaign = opened(tmp_path)
    group = campaign["groups"][0]
    statuses = measured(tmp_path, campaign, group, Hosts(Device(steady(3e5), 2e6)), **dut)
    assert set(statuses.values()) == {"invalid"}
    assert text in load_run(campaign["run_folder"]).journal[-1].details["reason"]


def test_a_bridge_that_passes_frames_on_is_no_forwarding_device(tmp_path):
    campaign = opened(tmp_path)
    group = campaign["groups"][0]
    hosts = Hosts(Device(steady(3e5), 2e6))
    hosts.ip_layer = False
    assert set(measured(tmp_path, campaign, group, hosts).values()) == {"invalid"}
    reason = load_run(campaign["run_folder"]).journal[-1].details["reason"]
    assert reason.startswith("datagrams that the device's IP layer forwarded: wanted at least")


def test_a_trial_that_does_not_count_makes_the_cell_invalid(tmp_path):
    def spoil(counts):
        counts["port_tx"] //= 2

    campaign = opened(tmp_path)
    hosts = Hosts(Device(steady(3e5), 2e6, spoil=spoil))
    assert set(measured(tmp_path, campaign, campaign["groups"][0], hosts).values()) == {"invalid"}
    reason = load_run(campaign["run_folder"]).journal[-1].details["reason"]
    assert "counters disagree" in reason


def test_ndr_and_pdr_come_from_one_search(tmp_path):
    tops = with_test(forwarding="ndr_pdr", name="ndr_64")
    tops["tests"].append({**tops["tests"][0], "name": "pdr_64", "goal": "pdr"})
    campaign = opened(tmp_path, tops)
    group = campaign["groups"][0]
    hosts = Hosts(Device(steady(300_000), 2e6))
    assert set(measured(tmp_path, campaign, group, hosts).values()) == {"ok"}
    assert sum(asked["rate_fps"] is not None for asked in hosts.asked) < 50
    finish(tmp_path / "runs" / "r1")
    values = {s.test: s.value for s in read_samples(tmp_path / "runs" / "r1") if s.value}
    assert values["ndr_64"] < values["pdr_64"] <= 100 * 300_002 / 1_488_095


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ({"forwarding": "throughput", "width_pct": 2}, 100 * 300_000 / 1_488_095),
        ({"forwarding": "loss_curve"}, 20.0),
        ({"forwarding": "back_to_back", "repeats": 1}, None),
        ({"forwarding": "ndr_pdr", "search": "rfc2544"}, 100 * 300_000 / 1_488_095),
    ],
)
def test_every_measure_has_a_value_in_its_unit(tmp_path, test, value):
    campaign = opened(tmp_path, with_test(**test))
    # A buffer of 10,000 frames makes short bursts pass.
    device = Device(lambda offered, seconds: min(offered, 300_000 + 10_000 / seconds), 2e6)
    if test["forwarding"] == "loss_curve":
        device = Device(steady(300_000), 2e6)
    measured(tmp_path, campaign, campaign["groups"][0], Hosts(device))
    finish(tmp_path / "runs" / "r1")
    (sample,) = [s for s in read_samples(tmp_path / "runs" / "r1") if s.value is not None]
    assert sample.unit == ("frames" if test["forwarding"] == "back_to_back" else "%")
    if value is None:
        longest = 2 * 1_488_095 * 10_000 / (1_488_095 - 300_000)
        assert 0.85 * longest <= sample.value <= longest + 2
    else:
        assert sample.value == pytest.approx(value, rel=0.06)


def test_what_the_generator_can_do_is_known_for_a_boot(tmp_path):
    remember_capacity(tmp_path, "b1", {"64 bidirectional 1": 5e5})
    assert known_capacity(tmp_path, "b1") == {"64 bidirectional 1": 5e5}
    assert known_capacity(tmp_path, "b2") == {}
    remember_capacity(tmp_path, "b2", {"64 bidirectional 1": 4e5})
    assert known_capacity(tmp_path, "b1") == {"64 bidirectional 1": 5e5}
    assert known_capacity(tmp_path / "absent", "b1") == {}


def link(**changes):
    return [{**TESTER_LINKS[0], **changes}, TESTER_LINKS[1]]


@pytest.mark.parametrize(
    ("tester", "dut", "text"),
    [
        (
            TESTER_LINKS[:1],
            DUT_LINKS,
            "inventory: bench_links of tester and dut: found links of the same name: left; wanted",
        ),
        (
            link(speed_mbps=-1),
            DUT_LINKS,
            r"inventory: tester.bench_links\[left\].speed_mbps: found -1; wanted Mbit/s, above 0",
        ),
        (
            link(speed_mbps=None),
            DUT_LINKS,
            "speed_mbps: found nothing; wanted Mbit/s: the devices do not say their speed",
        ),
        (
            TESTER_LINKS,
            [{**DUT_LINKS[0], "mac": None}, DUT_LINKS[1]],
            "peer_mac: found nothing; wanted the MAC address of eth1",
        ),
    ],
)
def test_an_inventory_that_does_not_tell_the_path(tester, dut, text):
    with pytest.raises(InputError, match=f"^.*{text}"):
        find_path({"name": "tester", "links": tester}, {"name": "dut", "links": dut}, {}, {})


def test_what_the_inventory_leaves_open_the_devices_say():
    found = find_path(
        {"name": "tester", "links": link(speed_mbps=None)},
        {"name": "dut", "links": [{**DUT_LINKS[0], "mac": None}, DUT_LINKS[1]]},
        {"eth1": {"speed_mbps": 10_000}},
        {"eth1": {"speed_mbps": 2500, "address": "02:00:00:00:00:09"}},
    )
    assert (found.first.speed_mbps, found.first.dut_mac) == (2500, "02:00:00:00:00:09")
    assert found.speed_mbps == 1000

"""A forwarding run as the playbooks see it: planned, measured, proven, recorded, read back."""

import json
from pathlib import Path

import pytest
import yaml
from forwarding_hosts import (
    DUT,
    DUT_LINKS,
    FAR,
    KERNEL,
    NEAR,
    TESTER,
    TESTER_LINKS,
    Apart,
    Hosts,
)
from forwarding_matrix import document, with_test

from collector.errors import InputError
from collector.forwarding import apart
from collector.forwarding.bench import Bench
from collector.forwarding.path import NOBODY, find_path
from collector.forwarding.simulated import Device, steady
from collector.report.loading import load_report
from collector.report.loss_curves import curves_section
from collector.report.writing import render_run
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
        "client": {},
        "server": {},
        "testers": {"tester": TESTER_LINKS},
        "duts": {"dut": DUT_LINKS},
        **changes,
    }
    return open_campaign(**wanted)


def path():
    return find_path([TESTER], DUT, {})


def measured(tmp_path, campaign, group, hosts, **dut):
    """Measure a group and record it; the statuses by cell."""
    folder = tmp_path / "runs" / "r1"
    record_event(run_folder=str(folder), group=group, event="begin", hosts={})
    raw = Raw(folder, group["block"], group["cells"])
    found = Bench(path(), hosts.module, raw.keep).measure(group)
    tester = {
        "measured": {"forwarding": found, "boot_ids": {"tester": "b1"}},
        "kernels": {"tester": {**KERNEL, "kernel": {"release": "6.1.0"}}},
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
    # The generator could send more than line rate of such frames.
    assert by_test["size_1518"].bounded_by == "line rate"
    assert by_test["size_1518"].value == pytest.approx(100, rel=1e-3)
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


def test_a_device_that_forwards_nothing_at_maximum_load_has_no_share(tmp_path):
    campaign = opened(tmp_path)
    group = campaign["groups"][0]

    class Stalling(Hosts):
        """Forwards while it is warmed up, and then no more."""

        def module(self, asked):
            found = super().module(asked)
            self.device = Device(steady(0.0), 2e6)
            return found

    hosts = Stalling(Device(steady(3e5), 2e6))
    assert set(measured(tmp_path, campaign, group, hosts).values()) == {"failed"}
    reason = load_run(campaign["run_folder"]).journal[-1].details["reason"]
    assert reason == "not one frame came through at maximum load"


def test_what_bounds_one_rate_of_a_search_need_not_bound_the_other(tmp_path):
    tops = with_test(forwarding="ndr_pdr", name="ndr_64")
    tops["tests"].append({**tops["tests"][0], "name": "pdr_64", "goal": "pdr"})
    campaign = opened(tmp_path, tops)
    # Always loses a little, and else could do more than the generator.
    device = Device(lambda offered, _seconds: 0.999 * offered, 400_000)
    measured(tmp_path, campaign, campaign["groups"][0], Hosts(device))
    finish(tmp_path / "runs" / "r1")
    samples = read_samples(tmp_path / "runs" / "r1")
    found = {s.test: (s.status, s.bounded_by) for s in samples if s.value is not None}
    assert found["pdr_64"] == (SampleStatus.OK, "generator")
    assert found["ndr_64"] == (SampleStatus.OK, "device")


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
    remember_capacity(tmp_path, ["b1"], {"64 bidirectional 1": 5e5})
    assert known_capacity(tmp_path, ["b1"]) == {"64 bidirectional 1": 5e5}
    assert known_capacity(tmp_path, ["b2"]) == {}
    assert known_capacity(tmp_path, ["b1", "b2"]) == {}
    remember_capacity(tmp_path, ["b2"], {"64 bidirectional 1": 4e5})
    assert known_capacity(tmp_path, ["b1"]) == {"64 bidirectional 1": 5e5}
    assert known_capacity(tmp_path / "absent", ["b1"]) == {}


def link(**changes):
    return [{**TESTER_LINKS[0], **changes}, TESTER_LINKS[1]]


@pytest.mark.parametrize(
    ("tester", "dut", "text"),
    [
        (
            TESTER_LINKS[:1],
            DUT_LINKS,
            r"inventory: bench_links of tester, dut: found links of a tester and the device with"
            r" one name: left \(tester\); wanted two",
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
        find_path([{"name": "tester", "links": tester}], {"name": "dut", "links": dut}, {})


def test_what_the_inventory_leaves_open_the_devices_say():
    found = find_path(
        [{"name": "tester", "links": link(speed_mbps=None)}],
        {"name": "dut", "links": [{**DUT_LINKS[0], "mac": None}, DUT_LINKS[1]]},
        {
            "tester": {"eth1": {"speed_mbps": 10_000}},
            "dut": {"eth1": {"speed_mbps": 2500, "address": "02:00:00:00:00:09"}},
        },
    )
    assert (found.first.speed_mbps, found.first.dut_mac) == (2500, "02:00:00:00:00:09")
    assert found.speed_mbps == 1000


IN_A_ROW = {"near": NEAR["links"], "far": FAR["links"]}


def measured_apart(campaign, group, hosts):
    """The same as ``measured`` with the tester in two parts."""
    folder = campaign["run_folder"]
    record_event(run_folder=folder, group=group, event="begin", hosts={})
    raw = Raw(Path(folder), group["block"], group["cells"])
    in_a_row = find_path(group["testers"], group["dut"], {})
    found = Bench(in_a_row, lambda asked: apart.measure(asked, hosts.together), raw.keep)
    boots = {"near": "b1", "far": "b3"}
    kernels = {name: {"kernel": {"release": name}, "boot_id": boots[name]} for name in boots}
    tester = {"measured": {"forwarding": found.measure(group), "boot_ids": boots}}
    return record_event(
        run_folder=folder,
        group=group,
        event="measured",
        hosts={"tester": {**tester, "kernels": kernels}, "dut": hosts.total.dut()},
    )


def test_a_tester_in_two_parts_is_measured_with_and_proven_the_same(tmp_path):
    campaign = opened(tmp_path, document(topology="chain"), testers=IN_A_ROW)
    for group in campaign["groups"]:
        hosts = Apart(Device(steady(300_000), 2e6))
        assert set(measured_apart(campaign, group, hosts).values()) == {"ok"}
    finish(Path(campaign["run_folder"]))
    run = load_run(campaign["run_folder"])
    assert run.plan.lab.topology == "chain"
    samples = [s for s in read_samples(run.path) if s.status is SampleStatus.OK]
    assert len(samples) == 6
    sample = next(one for one in samples if one.test == "size_64")
    assert sample.value == pytest.approx(100 * 300_000 / 1_488_095, rel=1e-4)
    assert sample.bounded_by == "device"
    assert sample.kernel == "6.12.0"  # the device's
    raw = run.path / "raw" / sample.cell_id / "0"
    assert set(json.loads((raw / "result.json").read_text())["hosts"]) == {
        "dut",
        "tester",
        "far tester",
    }
    proof = json.loads((run.path / "evidence" / sample.cell_id / "0" / "proof.json").read_text())
    whats = [finding["what"] for finding in proof["findings"]]
    assert "boot of the tester far after the traffic" in whats
    assert "frames forwarded to the tester's far eth1 while warming up" in whats
    assert any("far eth1 received" in finding["wanted"] for finding in proof["findings"])


def test_a_run_is_gone_on_with_on_hosts_joined_in_the_same_way_only(tmp_path):
    opened(tmp_path, testers=IN_A_ROW)
    with pytest.raises(InputError, match="found a run in topology chain; wanted one in dut, to go"):
        opened(tmp_path, resume="r1", run_id=None)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"testers": {}}, "inventory: group testers: found no host; wanted one, or two for three"),
        ({"duts": {}}, "inventory: group duts: found no host; wanted one host"),
        (
            {"duts": {"a": DUT_LINKS, "b": DUT_LINKS}},
            "inventory: group duts: found a, b; wanted one host",
        ),
    ],
)
def test_an_inventory_without_the_hosts_of_a_forwarding_test_is_told_first(tmp_path, changes, text):
    with pytest.raises(InputError, match=f"^{text}"):
        opened(tmp_path, **changes)
    assert not (tmp_path / "runs").exists()


def test_two_testers_on_the_same_link_are_no_path():
    with pytest.raises(InputError, match=r"one name: left \(near\), left \(other\); wanted two"):
        find_path([NEAR, {**NEAR, "name": "other"}], DUT, {})


def test_a_loss_curve_is_printed_point_by_point(tmp_path):
    campaign = opened(tmp_path, with_test(forwarding="loss_curve", name="curve"))
    for group in campaign["groups"]:
        measured(tmp_path, campaign, group, Hosts(Device(steady(300_000), 2e6)))
    finish(Path(campaign["run_folder"]))
    section = curves_section(load_run(campaign["run_folder"]))
    assert [table.caption for table in section.tables] == [
        "old, curve, block 1",
        "new, curve, block 1",
    ]
    rows = section.tables[0].rows
    assert rows[0] == ("100", "1488095", "300000", "79.840")
    # Two loads in a row are without loss.
    assert [row[3] for row in rows[-3:]] == ["32.800", "0.000", "0.000"]
    text = render_run(load_report(campaign["run_folder"]), "text", None)
    assert "Frame loss by offered load" in text


def test_without_a_loss_curve_there_is_no_section(tmp_path):
    campaign = opened(tmp_path)
    assert curves_section(load_run(campaign["run_folder"])) is None

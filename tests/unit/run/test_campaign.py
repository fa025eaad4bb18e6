"""A run as the playbooks see it: planned, taken up again, recorded, closed."""

import json
from pathlib import Path

import pytest
import yaml
from evidence_factory import measured, peer, result
from matrix_factory import document

from collector.errors import InputError, UsageError
from collector.kernel_state.netlabel_check import review
from collector.kernel_state.netlabel_map import describe
from collector.matrix.labels import netlabel_state
from collector.matrix.matrix import load_matrix
from collector.run.campaign import (
    find_matrix,
    finish,
    give_up_group,
    new_run_id,
    open_campaign,
    record,
    unfinished,
)
from collector.runfolder import journal
from collector.runfolder.runfolder import load_run
from collector.runfolder.samples import SampleStatus
from collector.runfolder.store import read_samples

LINK = {
    "name": "test",
    "device": "eth1",
    "ipv4": "198.18.0.1/24",
    "ipv6": "2001:db8:18::1/64",
    "peer": "server",
    "peer_ipv4": "198.18.0.2/24",
    "peer_ipv6": "2001:db8:18::2/64",
}
TURNED = {
    **LINK,
    "ipv4": LINK["peer_ipv4"],
    "peer_ipv4": LINK["ipv4"],
    "ipv6": LINK["peer_ipv6"],
    "peer_ipv6": LINK["ipv6"],
}


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "small.yml"
    path.write_text(yaml.safe_dump(document()))
    return path


def opened(matrix, tmp_path, **changes):
    wanted = {
        "matrix": str(matrix),
        "form": "short",
        "runs": tmp_path / "runs",
        "resume": None,
        "run_id": "small-1",
        "blocks": 2,
        "seed": 3,
        "lab": {"kind": "guests", "accelerator": "tcg", "name": "default"},
        "client": {"name": "client", "control_address": "192.0.2.1", "link": LINK},
        "server": {"name": "server", "control_address": "192.0.2.2", "link": TURNED},
        **changes,
    }
    return open_campaign(**wanted)


def hosts_of(group):
    """What the hosts bring home of a group where all is well."""
    cipso = group["subjects"]["cipso"]
    state = {
        "dois": cipso.get("dois", []),
        "maps": [describe(entry) for entry in review(netlabel_state(cipso)).state.maps],
        "sysctls": {},
    }
    from evidence_factory import netperf_output

    results = []
    for command in group["commands"]:
        udp = "UDP_STREAM" in command["argv"]
        text = netperf_output("udp_stream" if udp else "tcp_rr")
        if not udp:
            text = text.replace("TRANSPORT_MSS=1448", f"TRANSPORT_MSS={group['expected_mss']}")
        results.append(result(command["cell_id"], argv=command["argv"], stdout=text))
    return {
        "client": measured(group["subjects"], results),
        "server": peer(),
        "cipso": {key: {"state": state, "netlabel": True} for key in ("client", "server")},
    }


def measure(campaign, groups):
    for group in groups:
        folder = campaign["run_folder"]
        record(run_folder=folder, group=group, event="begin", hosts={})
        record(run_folder=folder, group=group, event="measured", hosts=hosts_of(group))


def test_a_group_has_all_that_the_modules_need(matrix, tmp_path):
    campaign = opened(matrix, tmp_path)
    group = next(item for item in campaign["groups"] if item["configuration"] == "C_FlCat")
    assert (group["device"], group["label"]) == ("eth1", "s0:c0.c239")
    assert (group["client_address"], group["server_address"]) == ("198.18.0.1", "198.18.0.2")
    assert (group["payload_bytes"], group["expected_mss"], group["mtu"]) == (1432, 1408, 1500)
    assert group["subjects"]["cipso"]["maps"][1]["address"] == "198.18.0.0/24"
    commands = {command["cell_id"]: command["argv"] for command in group["commands"]}
    assert list(commands) == group["cells"] == list(group["settings"])
    stream = next(words for words in commands.values() if "UDP_STREAM" in words)
    assert stream[stream.index("-m") + 1] == "1432"
    assert stream[1:3] == ["-H", "192.0.2.2"]


def test_titles_tell_block_configuration_and_the_aa_twin(matrix, tmp_path):
    titles = {group["title"] for group in opened(matrix, tmp_path)["groups"]}
    assert titles == {
        f"block {block}/2, {name}"
        for block in (1, 2)
        for name in ("Unlabel", "Unlabel (A/A)", "C_FlCat")
    }


def test_a_link_of_another_mtu_changes_what_fits(matrix, tmp_path):
    client = {"name": "client", "control_address": None, "link": {**LINK, "mtu": 9000}}
    group = opened(matrix, tmp_path, client=client)["groups"][0]
    plain = group["label"] == "s0"
    assert group["payload_bytes"] == (8972 if plain else 8932)


def test_a_server_without_a_control_address_is_told_by_its_key(matrix, tmp_path):
    server = {"name": "b", "control_address": "", "link": TURNED}
    with pytest.raises(InputError) as caught:
        opened(matrix, tmp_path, server=server)
    assert str(caught.value).startswith("inventory: b.bench_control_address: found nothing; wanted")


def test_a_whole_run_from_plan_to_samples(matrix, tmp_path):
    campaign = opened(matrix, tmp_path)
    measure(campaign, campaign["groups"])
    record(
        run_folder=campaign["run_folder"],
        group={},
        event="provenance",
        hosts={"client": {"provenance": {"schema": 1}}},
    )
    record(run_folder=campaign["run_folder"], group={}, event="end", hosts={})
    run = load_run(campaign["run_folder"])
    assert run.journal[-1].event == "end"
    assert run.provenance == {"client": {"schema": 1}}
    samples = read_samples(run.path)
    statuses = [sample.status for sample in samples]
    assert statuses.count(SampleStatus.OK) == 12
    assert statuses.count(SampleStatus.SKIPPED) == 2
    assert unfinished(tmp_path / "runs", "small") is None


def test_a_run_that_was_cut_off_goes_on_with_what_is_left(matrix, tmp_path):
    first = opened(matrix, tmp_path)
    measure(first, first["groups"][:2])
    record(run_folder=first["run_folder"], group=first["groups"][2], event="begin", hosts={})
    left = unfinished(tmp_path / "runs", "small")
    assert left.name == "small-1"
    again = opened(matrix, tmp_path, resume=left.name, run_id=None, seed=None, blocks=None)
    assert again["run_folder"] == first["run_folder"]
    assert [group["title"] for group in again["groups"]] == [
        group["title"] for group in first["groups"][2:]
    ]
    measure(again, again["groups"])
    finish(left)
    cells = [(e.cell_id, e.block) for e in load_run(left).journal if e.event == "cell"]
    assert len(cells) == len(set(cells)) == 12


def test_the_newest_cut_off_run_of_this_very_matrix_is_found(matrix, tmp_path):
    for name in ("small-1", "small-2"):
        opened(matrix, tmp_path, run_id=name)
    other = tmp_path / "other.yml"
    other.write_text(yaml.safe_dump({**document(), "name": "small-more"}))
    opened(other, tmp_path, run_id="small-more-1")
    (tmp_path / "runs" / "small-9").mkdir()  # made, and killed before its plan was written
    assert unfinished(tmp_path / "runs", "small").name == "small-2"
    assert unfinished(tmp_path / "runs", "absent") is None


def test_a_run_is_not_gone_on_with_on_another_kind_of_lab(matrix, tmp_path):
    opened(matrix, tmp_path)
    lab = {"kind": "guests", "accelerator": "kvm", "name": "default"}
    with pytest.raises(InputError, match="found a run on guests under tcg; wanted one on guests"):
        opened(matrix, tmp_path, resume="small-1", lab=lab)


def test_a_run_of_another_matrix_is_not_gone_on_with(matrix, tmp_path):
    opened(matrix, tmp_path)
    other = tmp_path / "other.yml"
    other.write_text(yaml.safe_dump({**document(), "name": "other"}))
    with pytest.raises(InputError, match="found a run of small; wanted one of other"):
        opened(other, tmp_path, resume="small-1")
    events = [event.event for event in load_run(tmp_path / "runs" / "small-1").journal]
    assert events == ["run"]


def test_a_group_that_was_given_up_is_failed_once(matrix, tmp_path):
    campaign = opened(matrix, tmp_path)
    folder = tmp_path / "runs" / "small-1"
    assert not give_up_group(folder, "x")
    group = campaign["groups"][0]
    record(run_folder=str(folder), group=group, event="begin", hosts={})
    assert give_up_group(folder, "client, Apply: it broke")
    assert not give_up_group(folder, "client, Apply: it broke")
    run = load_run(folder)
    failed = {(e.cell_id, e.details["reason"]) for e in run.journal if e.event == "cell"}
    assert failed == {(cell, "client, Apply: it broke") for cell in group["cells"]}
    finish(folder)
    assert [s.status for s in read_samples(folder)].count(SampleStatus.FAILED) == 2
    assert load_run(folder).journal[-1].event == "cell"  # not ended: the rest is left to do


def test_what_changed_on_a_host_is_in_its_document_and_the_journal(matrix, tmp_path):
    folder = opened(matrix, tmp_path)["run_folder"]
    hosts = {"server": {"provenance": {"schema": 1}}}
    record(run_folder=folder, group={}, event="provenance", hosts=hosts)
    changed = {"server": {"differences": ["net.ipv4.tcp_sack: 1, then 0"]}}
    record(run_folder=folder, group={}, event="changed", hosts=changed)
    run = load_run(folder)
    assert run.provenance["server"]["changed_during_run"] == ["net.ipv4.tcp_sack: 1, then 0"]
    assert run.journal[-1].details["host"] == "server"


def test_a_matrix_is_found_by_name_or_taken_as_a_path():
    assert find_matrix("netlabel_cipso").is_file()
    assert str(find_matrix("elsewhere/my.yml")) == "elsewhere/my.yml"
    with pytest.raises(UsageError, match=r"^matrix 'nope': no such matrix; wanted one of .*netlab"):
        find_matrix("nope")


def test_a_run_is_named_after_its_matrix_and_the_time(matrix):
    made = new_run_id(load_matrix(matrix))
    assert made.startswith("small-20")
    assert len(made) == len("small-20261130-100000")


def test_the_plan_is_on_disk_before_anything_starts(matrix, tmp_path):
    campaign = opened(matrix, tmp_path, seed=None)
    plan = json.loads((tmp_path / "runs" / "small-1" / "plan.json").read_text())
    assert plan["run_id"] == campaign["run_id"] == "small-1"
    assert isinstance(plan["seed"], int)
    assert [event.event for event in load_run(campaign["run_folder"]).journal] == ["run"]
    assert journal.finished(load_run(campaign["run_folder"]).journal) == set()


def test_how_long_the_sas_took_is_in_the_journal_where_any_were_changed(matrix, tmp_path):
    campaign = opened(matrix, tmp_path)
    group, folder = campaign["groups"][0], campaign["run_folder"]
    done = {"applied": {"operations": 40, "seconds": 1.5}, "state": {"sas_total": 20}}
    unchanged = {"state": {"sas_total": 20}}
    for keyed in ({"client": done, "server": unchanged}, {"client": unchanged, "server": {}}):
        hosts = {**hosts_of(group), "keyed": keyed}
        record(run_folder=folder, group=group, event="measured", hosts=hosts)
    events = [e for e in load_run(folder).journal if e.event == "applied"]
    assert [e.details for e in events] == [
        {
            "configuration": group["configuration"],
            "hosts": {"client": {"operations": 40, "seconds": 1.5, "sas": 20}},
        }
    ]


def test_the_commands_by_hand_are_kept_in_the_order_of_applying(matrix, tmp_path):
    campaign = opened(matrix, tmp_path)
    seen = set()
    for group in campaign["groups"]:
        labelled = group["label"] == "s0:c0.c239"
        lines = {part: [f"{part} …"] if labelled else [] for part in ("cipso", "keyed", "tunnels")}
        hosts = hosts_of(group)
        hosts["tunnels"] = {"client": {"by_hand": lines["tunnels"]}, "server": {}}
        hosts["keyed"] = {"client": {}, "server": {"by_hand": lines["keyed"]}}
        for result_ in hosts["cipso"].values():
            result_["by_hand"] = lines["cipso"]
        record(run_folder=campaign["run_folder"], group=group, event="measured", hosts=hosts)
        files = [
            path
            for cell in group["cells"]
            for path in Path(campaign["run_folder"]).glob(f"evidence/{cell}/*/setup.json")
        ]
        assert bool(files) == labelled
        seen.add(labelled)
        note = "# netserver and netperf run under: runcon -l s0:c0.c239"
        for path in files:
            assert json.loads(path.read_text()) == {
                "schema": 1,
                "hosts": {
                    "client": ["cipso …", "tunnels …", note],
                    "server": ["cipso …", "keyed …", note],
                },
            }
    assert seen == {True, False}

"""Provenance, commands and proofs out of a run folder."""

from __future__ import annotations

import json
from pathlib import Path

import build_run
import pytest

from collector.errors import InputError
from collector.report.evidence import (
    differences,
    flatten,
    hide_passphrase,
    hosts_of,
    proofs_of,
    raw_files_of,
    read_argvs,
    shared_and_own,
)
from collector.report.loading import load_report
from collector.runfolder.runfolder import load_run


def test_nested_facts_become_dotted_keys() -> None:
    facts = {
        "schema": 1,
        "nic": {"tso": True, "gro": None, "queues": [1, 2], "list": []},
        "links": [{"name": "eth0"}],
    }
    assert list(flatten(facts)) == [
        ("nic.tso", "yes"),
        ("nic.gro", "not recorded"),
        ("nic.queues", "1, 2"),
        ("nic.list", "none"),
        ("links[0].name", "eth0"),
    ]


def test_differences_leave_out_what_is_a_hosts_own() -> None:
    hosts = hosts_of(
        {
            "a": {"hostname": "a", "boot_id": "1", "kernel": "6.1", "cpu": {"count": 2}},
            "b": {"hostname": "b", "boot_id": "2", "kernel": "6.12", "cpu": {}},
        }
    )
    found = differences(hosts)
    assert [(d.key, d.values) for d in found] == [
        ("kernel", (("a", "6.1"), ("b", "6.12"))),
        ("cpu.count", (("a", "2"), ("b", None))),
    ]


def test_a_device_that_some_hosts_have_is_one_difference() -> None:
    right = {"eth2": {"driver": "virtio_net", "mtu": 1500, "rings": 256}}
    hosts = hosts_of(
        {
            "a": {"devices": right},
            "b": {"devices": {"eth2": {**right["eth2"], "mtu": 9000}}},
            "c": {"devices": {}},
        }
    )
    assert [(d.key, d.values) for d in differences(hosts)] == [
        ("devices.eth2", (("a", "there"), ("b", "there"), ("c", "not there"))),
        ("devices.eth2.mtu", (("a", "1500"), ("b", "9000"))),
    ]


def test_shared_facts_stand_once_and_large_groups_are_counted() -> None:
    sysctls = {f"s{i}": i for i in range(13)}
    hosts = hosts_of(
        {
            "a": {"hostname": "a", "mtu": 1500, "sysctls": sysctls},
            "b": {"hostname": "b", "mtu": 1500, "sysctls": sysctls},
        }
    )
    assert shared_and_own(hosts) == (
        ("a and b", (("mtu", "1500"), ("sysctls", "13 values recorded"))),
        ("a", (("hostname", "a"),)),
        ("b", (("hostname", "b"),)),
    )


def test_one_host_shows_all_its_facts() -> None:
    hosts = hosts_of({"a": {"mtu": 1500}})
    assert shared_and_own(hosts) == (("a", (("mtu", "1500"),)),)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (["netperf", "-l", "1"], (("netperf", "-l", "1"),)),
        ([["a"], ["b", "c"]], (("a",), ("b", "c"))),
        ({"argv": ["a"]}, (("a",),)),
        ({"commands": [{"host": "client", "argv": ["a"]}]}, (("a",),)),
    ],
)
def test_argument_lists(
    tmp_path: Path, document: object, expected: tuple[tuple[str, ...], ...]
) -> None:
    file = tmp_path / "argv.json"
    file.write_text(json.dumps(document))
    assert read_argvs(file) == expected


@pytest.mark.parametrize("document", [[], {}, "netperf", [["a", 1]], [{"host": "x"}], [1]])
def test_what_is_no_argument_list_is_refused(tmp_path: Path, document: object) -> None:
    file = tmp_path / "argv.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"argv\.json: found .*; wanted a list of texts"):
        read_argvs(file)


def test_a_passphrase_is_never_shown(tmp_path: Path) -> None:
    assert hide_passphrase(["netperf", "-Z", "secret", "-l"]) == (
        "netperf",
        "-Z",
        "PASSPHRASE",
        "-l",
    )
    report = build_run.report_of(tmp_path / "run", build_run.netlabel(2))
    assert "secret" not in repr(report)


def test_equal_commands_stand_once(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.netlabel(2))
    titles = [group.title for group in report.commands]
    assert "tcp_rr (C_FlCat, C_F_LxV, C_F_NoC)" in titles
    assert len(titles) == 12


def test_proofs_name_what_was_not_proven(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.netlabel(2))
    proofs = {proof.configuration: dict(proof.findings) for proof in report.proofs}
    assert "NoPatch" not in proofs
    assert proofs["C_FlCat"]["IP option 134"] == "DOI 16, level 0, s0:c0.c239"
    assert proofs["C_F_NoC"]["udp_stream, IP option 134"] == (
        "NOT PROVEN: none (wanted DOI 16, level 0, s0:c0.c239)"
    )
    assert proofs["C_F_NoC"]["tcp_stream, TCP MSS"] == "1408"


def test_findings_that_differ_between_repeats_are_counted(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    for block, (found, ok) in enumerate([("a", True), ("a", True), ("b", False)]):
        path = folder / "evidence" / "c10" / str(block)
        path.mkdir(exist_ok=True)
        findings = [
            {"what": "option", "found": found, "wanted": "a", "ok": ok},
            {"what": "port", "found": str(block), "ok": True},
        ]
        (path / "proof.json").write_text(json.dumps({"schema": 1, "findings": findings}))
    proofs = {
        proof.configuration: dict(proof.findings)
        for proof in proofs_of(folder, load_run(folder).plan)
    }
    assert proofs["labelled"] == {
        "option": "NOT PROVEN: b (wanted a) (in 1 of 3); a (in 2 of 3)",
        "port": "0 (in 1 of 3); 1 (in 1 of 3); 2 (in 1 of 3)",
    }


def test_broken_evidence_is_an_error(tmp_path: Path) -> None:
    made = build_run.tiny()
    build_run.build_run(tmp_path / "run", made)
    file = tmp_path / "run" / "evidence" / "c00" / "0" / "proof.json"
    file.write_text('{"findings": [1]}')
    with pytest.raises(InputError, match=r"proof\.json: findings: found 1; wanted an object with"):
        load_report(tmp_path / "run")


def test_raw_files_are_in_natural_order(tmp_path: Path) -> None:
    folder = build_run.build_run(tmp_path / "run", build_run.tiny())
    for repeat in ("2", "10"):
        (folder / "raw" / "c00" / repeat).mkdir()
        (folder / "raw" / "c00" / repeat / "stdout").write_text("x")
    own = [name for name in raw_files_of(folder) if name.startswith("raw/c00/")]
    assert own.index("raw/c00/2/stdout") < own.index("raw/c00/10/stdout")


def test_clocks_and_counters_of_two_hosts_are_no_difference() -> None:
    def facts(number: int) -> dict[str, object]:
        return {
            "clock": {"realtime_ns": number, "monotonic_ns": number},
            "cpu": {"frequency_khz": {"policy0": number}, "count": 2},
        }

    hosts = hosts_of({"client": facts(1), "server": facts(2)})
    assert differences(hosts) == ()

"""ip xfrm as records: cases 40, 41, 43 and 44."""

import json

from kernel_documents import DATA, case, document, real

from collector.parsers import xfrm
from collector.parsers.base import Status, as_json


def test_case_40_two_states_and_two_policies_in_one_text():
    text = (DATA / "cases" / "40-a.txt").read_text() + (DATA / "cases" / "40-b.txt").read_text()
    reading = xfrm.parse(document(text))
    assert reading.problems == []
    out, into, policy_in, policy_out = reading.records
    for record in (out, into):
        assert record.kind == "state"
        assert record.context == "system_u:system_r:ping_t:s0:c1.c256"
        assert record.esn
        assert record.state.mode == "transport"
        assert record.state.algorithms[0].name == "rfc4106(gcm(aes))"
        assert record.state.algorithms[0].bits == 128
        assert record.state.spi is None
        assert "spi is blanked out in the text" in record.warnings
    assert (out.direction, into.direction) == ("out", "in")
    assert (policy_in.direction, policy_out.direction) == ("in", "out")
    assert policy_in.context == policy_out.context == "system_u:object_r:ipsec_spd_t:s0"
    assert "KEY" not in json.dumps(as_json(reading.records))


def test_case_40_policies_without_states_are_no_error():
    reading = xfrm.parse(case("40-b.txt"))
    assert [record.kind for record in reading.records] == ["policy", "policy"]
    assert reading.problems == []


def test_case_41_ike_refusals():
    reading = xfrm.parse(case("41-a.txt"))
    assert [record.failure.error_class for record in reading.records] == ["no_child_sa"] * 2
    assert all("no child SA (label mismatch?)" in record.failure.hint for record in reading.records)


def test_case_43_each_failure_has_its_class():
    reading = xfrm.parse(case("43-a.txt"))
    assert [record.failure.error_class for record in reading.records] == [
        "algorithm_not_allowed",
        "iproute_without_ctx",
        "no_terminal",
        "kernel_without_xfrm",
    ]
    assert all(record.failure.hint for record in reading.records)
    assert reading.problems == []


def test_case_44_the_planner_says_why_the_file_exists():
    reading = xfrm.parse(case("44-a.txt"))
    record = reading.records[0]
    assert record.failure.error_class == "sa_exists"
    assert record.warnings[0].startswith("SPI 0x3 used twice for 192.0.2.250 esp")


def test_a_script_with_the_conflict_alone_is_doubtful():
    lines = (DATA / "cases" / "44-a.txt").read_text().splitlines()
    reading = xfrm.parse(document("\n".join(line for line in lines if "RTNETLINK" not in line)))
    assert [(record.kind, record.status) for record in reading.records] == [
        ("script", Status.SUSPECT)
    ]


def test_real_texts_with_statistics():
    reading = xfrm.parse(document(real("ip-s-xfrm-state.txt") + real("ip-s-xfrm-policy.txt")))
    assert [record.kind for record in reading.records] == ["state", "state", "policy", "policy"]
    assert reading.records[0].state.spi == 0x1001
    assert "attribute not known here: pcpu-num 3" in reading.records[1].warnings
    assert "000102030405" not in json.dumps(as_json(reading.records))


def test_a_larval_sa_is_incomplete():
    text = "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00000000 reqid 1 mode transport\n"
    record = xfrm.parse(document(text + "\treplay-window 0 \n")).records[0]
    assert record.status is Status.INCOMPLETE


def test_one_line_output_and_lost_indentation_are_read():
    text = real("ip-s-xfrm-policy.txt")
    flat = "\n".join(line.strip() for line in text.splitlines() if "mask" not in line)
    assert len(xfrm.parse(document(text)).records) == 2
    reading = xfrm.parse(document(flat))
    assert len(reading.records) + len(reading.problems) >= 2
    one_line = "src 192.0.2.1/32 dst 192.0.2.2/32 \\\tdir out priority 1 ptype main \\"
    assert xfrm.parse(document(one_line + "\n")).records[0].policy.priority == 1


def test_a_block_without_its_start_is_a_problem_not_silence():
    text = real("ip-s-xfrm-state.txt")
    reading = xfrm.parse(document(text + "\nprose\n\tproto esp spi 0x1 reqid 1 mode transport\n"))
    assert len(reading.records) == 2
    assert "its src … dst … line" in str(reading.problems[0])


def test_errors_of_other_programs_are_not_ip():
    assert not xfrm.recognise(document("Error: cannot open file\nsrc and dst differ\n"))

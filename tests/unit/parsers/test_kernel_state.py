"""AVC lines, xfrm_stat, ip link, /proc/stat and /proc/interrupts as records."""

import json

from kernel_documents import case, document, real

from collector.parsers import avc, interrupts, ip_link, proc_stat, xfrm_stat
from collector.parsers.base import Status, as_json


def test_case_41_denials_with_the_rule_they_imply():
    reading = avc.parse(case("41-a.txt"))
    polmatch, sendto = reading.records
    assert polmatch.allow_rule == "allow unlabeled_t ipsec_spd_t:association polmatch;"
    assert polmatch.status is Status.SUSPECT
    assert "never loaded" in polmatch.warnings[0]
    assert (sendto.permissions, sendto.pid, sendto.extra["daddr"]) == (
        ("sendto",),
        None,
        "198.51.100.8",
    )
    assert reading.claimed == {3, 4}


def test_an_enforced_denial_is_a_failure():
    text = case("41-a.txt").lines[2].text.replace("permissive=1", "permissive=0")
    assert avc.parse(document(text)).records[0].status is Status.FAILED
    assert avc.parse(document(text.replace("denied", "granted"))).records[0].status is Status.OK
    cut = avc.parse(document(text.split(" tclass")[0]))
    assert cut.records == []
    assert "wanted an object class" in str(cut.problems[0])


def test_xfrm_stat_says_why_a_counter_counts():
    text = real("xfrm_stat.txt").replace("XfrmOutNoStates         \t0", "XfrmOutNoStates \t21")
    reading = xfrm_stat.parse(document(text + text))
    assert [record.counters["XfrmOutNoStates"] for record in reading.records] == [21, 21]
    assert list(reading.records[0].reasons) == ["XfrmOutNoStates"]
    assert reading.records[0].status is Status.OK
    part = xfrm_stat.parse(document("XfrmOutNoStates 21\n"))
    assert part.records[0].status is Status.INCOMPLETE
    doubled = xfrm_stat.parse(document(text.replace("XfrmInHdrError ", "XfrmInBufferError ")))
    assert "each counter once" in str(doubled.problems[0])


def test_two_snapshots_give_the_window_between_them():
    first = "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\nbtime 5\n"
    second = first.replace("10 0 10 100", "30 0 20 170")
    reading = proc_stat.parse(document(first + "some words\n" + second))
    assert [record.kind for record in reading.records] == ["snapshot", "snapshot", "cpu_use"]
    assert reading.records[2].cpu_busy_pct == 30.0
    assert reading.records[2].cpu_pct["user"] == 20.0
    backwards = proc_stat.parse(document(second + first))
    assert "go back" in str(backwards.problems[0])


def test_interrupts_and_links_of_a_real_machine():
    table = interrupts.parse(document(real("proc-interrupts.txt")))
    assert table.records[0].cpus == (0, 1)
    assert table.problems == []
    links = ip_link.parse(document(real("ip-s-s-d-link.txt")))
    as_text = {record.name: record.mtu_bytes for record in links.records}
    found = ip_link.parse(document(real("ip-s-s-d-j-link.json")))
    assert {record.name: record.mtu_bytes for record in found.records} == as_text
    json.dumps(as_json(table.records + links.records + found.records))


def test_losses_are_pointed_at_and_strays_are_problems():
    text = (
        "2: eth1: <BROADCAST,UP> mtu 1500 qdisc mq state UP \n    link/ether 02:00:00:00:00:01\n"
        "    RX: bytes packets errors dropped overrun mcast\n    9 8 0 7 0 0\n"
    )
    assert ip_link.parse(document(text)).records[0].losses == {"rx_dropped": 7}
    stray = ip_link.parse(document(text + "prose\n    TX: bytes packets\n"))
    assert "counters without an interface" in str(stray.problems[0])
    bad = ip_link.parse(document('[{"ifindex":1,"ifname":"a","mtu":1,"flags":[1],"stats":7}]'))
    assert bad.problems

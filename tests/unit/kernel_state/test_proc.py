"""/proc/stat, /proc/interrupts, /proc/net/xfrm_stat and ip -s link, from a real machine."""

from pathlib import Path

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.interrupts import parse_interrupts, taken_between
from collector.kernel_state.ip_link import grown_between, parse_links, parse_links_json
from collector.kernel_state.proc_stat import parse_proc_stat, use_between
from collector.kernel_state.xfrm_stat import MEANING, growth, parse_xfrm_stat

DATA = Path(__file__).parents[2] / "data" / "kernel_state"
INTERRUPTS = (DATA / "proc-interrupts.txt").read_text()
XFRM_STAT = (DATA / "xfrm_stat.txt").read_text()
LINKS = (DATA / "ip-s-s-d-link.txt").read_text()

FIRST = """cpu  100 0 50 800 20 0 10 0 30 0
cpu0 60 0 20 400 10 0 5 0 30 0
cpu2 40 0 30 400 10 0 5 0 0 0
intr 500 1 2 3
ctxt 900
btime 1700000000
processes 50
procs_running 2
procs_blocked 0
softirq 9 1 2
"""
SECOND = """cpu  150 0 60 825 25 0 20 0 60 0
cpu0 90 0 25 410 12 0 10 0 60 0
cpu2 60 0 35 415 13 0 10 0 0 0
intr 900 1 2 3
btime 1700000001
"""


def test_a_snapshot_keeps_ticks_by_kind_and_cpu():
    found = parse_proc_stat(FIRST)
    assert found.total["guest"] == 30
    assert sorted(found.cpus) == [0, 2]
    assert (found.interrupts, found.context_switches, found.boot_time_s) == (500, 900, 1700000000)
    assert parse_proc_stat(SECOND).context_switches is None
    real = parse_proc_stat((DATA / "proc-stat.txt").read_text())
    assert sorted(real.cpus) == [0, 1]


def test_shares_between_two_snapshots_do_not_count_guests_twice():
    total, each = use_between(parse_proc_stat(FIRST), parse_proc_stat(SECOND))
    assert total.ticks == 100
    assert total.percent["user"] == pytest.approx(50.0)
    assert total.percent["guest"] == pytest.approx(30.0)
    assert total.busy == pytest.approx(70.0)
    assert each[2].percent["idle"] == pytest.approx(100 * 15 / 48)


def test_old_kernels_print_fewer_kinds():
    old = "cpu 1 2 3 4\ncpu0 1 2 3 4\n"
    assert parse_proc_stat(old).total == {"user": 1, "nice": 2, "system": 3, "idle": 4}


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (FIRST, FIRST, "a later second one"),
        (SECOND, FIRST, "counters that do not go back"),
        (FIRST, SECOND.replace("1700000001", "1700009999"), "one boot"),
    ],
)
def test_two_snapshots_that_do_not_belong_together(before, after, wanted):
    with pytest.raises(StateError, match=wanted):
        use_between(parse_proc_stat(before), parse_proc_stat(after))


def test_iowait_may_go_back_and_counts_as_nothing():
    after = SECOND.replace("cpu  150 0 60 825 25", "cpu  150 0 60 845 15")
    assert use_between(parse_proc_stat(FIRST), parse_proc_stat(after))[0].percent["iowait"] == 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "one line a CPU"),
        (FIRST.replace("cpu2", "cpu0"), "each CPU once"),
        (FIRST + "cpu 1 2 3 4\n", "one line for all CPUs"),
        (FIRST.replace("cpu0 60", "cpu0 6o"), "a decimal number for user"),
        (FIRST.replace("cpu0 60 0 20", "cpu0 60 0 2000"), "at most the 50 of cpu"),
        (FIRST.replace("ctxt 900", "ctxt 900\nctxt 901"), "it once"),
        (FIRST.replace("ctxt 900", "context 900"), "a line of /proc/stat"),
    ],
)
def test_other_text_is_no_snapshot(text, wanted):
    with pytest.raises(StateError, match=wanted):
        parse_proc_stat(text)


def test_a_real_interrupt_table():
    found = parse_interrupts(INTERRUPTS)
    rows = {row.name: row for row in found.rows}
    assert found.cpus == (0, 1)
    assert rows["ERR"].counts == {}
    assert rows["24"].description == "IO-APIC   5-edge      ACPI:Ged"
    assert rows["RES"].total == sum(rows["RES"].counts.values()) > 0


def test_offline_cpus_queues_and_differences():
    before = parse_interrupts(
        "           CPU0       CPU2\n 30:   4294967290          5   PCI-MSI 1-edge   eth0-TxRx-0\n"
        " 31:  0  7  PCI-MSI 2-edge  virtio3-eth01\nERR: 3\n"
    )
    after = parse_interrupts("CPU0 CPU2\n30: 4 9 PCI-MSI 1-edge eth0-TxRx-0\n")
    assert before.cpus == (0, 2)
    assert [row.name for row in before.of_device("eth0")] == ["30"]
    assert taken_between(before, after) == {"30": {0: 10, 2: 4}}
    with pytest.raises(StateError, match="two readings of one boot"):
        taken_between(before, parse_interrupts("CPU0 CPU2\n30: 4294967290 2 x\n"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "CPU0 CPU1"),
        (" 24: 1 2 x\n", "CPU0 CPU1"),
        ("CPU0 CPU1\n 24: 1 x\n", "2, one a CPU of the heading"),
        ("CPU0 CPU1\n 24: 1 2 x\n 24: 1 2 x\n", "each once"),
        ("CPU0 CPU0\n 24: 1 2 x\n", "CPU0 CPU1"),
    ],
)
def test_damaged_interrupt_tables(text, wanted):
    with pytest.raises(StateError, match=wanted):
        parse_interrupts(text)


def test_every_counter_of_a_current_kernel_has_a_meaning_and_a_hint():
    found = parse_xfrm_stat(XFRM_STAT)
    assert set(found) == set(MEANING)
    assert all(meaning and hint for meaning, hint in MEANING.values())


def test_growth_explains_itself():
    before = parse_xfrm_stat(XFRM_STAT)
    after = {**before, "XfrmOutNoStates": before["XfrmOutNoStates"] + 21, "XfrmNew": 2}
    first, second = growth(before, after)
    assert (first.name, first.count) == ("XfrmOutNoStates", 21)
    assert "label equals the sending process's" in first.hint
    assert second.meaning == "a counter newer than this reader"
    with pytest.raises(StateError, match="one namespace and boot"):
        growth(after, before)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "all of /proc/net/xfrm_stat"),
        (XFRM_STAT.replace("XfrmInHdrError ", "XfrmInError "), "each counter once"),
        (XFRM_STAT.replace("\t0", "\t-1", 1), "XfrmName COUNT"),
        (XFRM_STAT[: len(XFRM_STAT) // 2], "all of /proc/net/xfrm_stat"),
    ],
)
def test_damaged_xfrm_stat(text, wanted):
    with pytest.raises(StateError, match=wanted):
        parse_xfrm_stat(text)


def test_text_and_json_of_ip_link_agree():
    text = parse_links(LINKS)
    document = parse_links_json((DATA / "ip-s-s-d-j-link.json").read_text())
    assert [link.name for link in text] == [link.name for link in document]
    assert [link.mtu for link in text] == [link.mtu for link in document]
    for one, other in zip(text, document, strict=True):
        assert set(one.rx) == set(other.rx)
        assert set(one.tx) == set(other.tx)
        assert one.state == other.state


def test_columns_of_older_versions():
    old = (
        "7: veth0@if8: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP \n"
        "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff link-netns b\n"
        "    RX: bytes  packets  errors  dropped overrun mcast   \n"
        "    906        11       1       2       3       0       \n"
        "    TX: bytes  packets  errors  dropped carrier collsns \n"
        "    1006       12       0       0       0       0       \n"
    )
    link = parse_links(old)[0]
    assert (link.name, link.parent, link.state, link.mtu) == ("veth0", "if8", "UP", 1500)
    assert link.rx["over_errors"] == 3
    assert "missed_errors" not in link.rx
    later = parse_links(old.replace("906  ", "1906 "))[0]
    assert grown_between(link, later)["rx"]["bytes"] == 1000
    with pytest.raises(StateError, match="two readings of one interface"):
        grown_between(later, link)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("RX: bytes\n", "'1: lo: <FLAGS> mtu N …'"),
        ("1: lo: <UP> mtu 9 qdisc x\n RX: bytes packets\n 1\n", "2"),
        ("1: lo: <UP> mtu 9 qdisc x\n RX: bytes parcels\n 1 2\n", "one of bytes"),
        ("1: lo: <UP> mtu 9 qdisc x\n RX: bytes\n", "numbers"),
        ("1: lo: <UP> mtu 9 qdisc x\n 1 2\n", "RX: bytes packets"),
        ("1: lo: <UP> mtu 9\n1: lo: <UP> mtu 9\n", "each once"),
        ("1: lo: <UP> mtu 9\n RX: bytes\n 1\n RX: bytes\n 1\n", "it once"),
    ],
)
def test_damaged_ip_link(text, wanted):
    with pytest.raises(StateError) as caught:
        parse_links(text)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[{"ifindex": 1}]',
     '[{"ifindex":1,"ifname":"a","mtu":"x","flags":[]}]',
     '[{"ifindex":1,"ifname":"a","mtu":1,"flags":[],"stats64":{"rx":{"bytes":-1}}}]',
     '[{"ifindex":1,"ifname":"a","mtu":1,"flags":[],"stats64":{"rx":{"bytes":1.5}}}]'],
)  # fmt: skip
def test_damaged_ip_link_json(text):
    with pytest.raises(StateError):
        parse_links_json(text)

"""From raw output to samples: a number only where there is one."""

import json

import pytest
from evidence_factory import PLAIN, measured, netperf_output, peer, result
from matrix_factory import plan, plan_document

from collector.errors import InputError
from collector.results.harvest import check_result, read_samples_from_raw
from collector.run.record import new_run_folder, record_group
from collector.runfolder.runfolder import complete, load_run
from collector.runfolder.samples import SampleStatus

SETTINGS = plan().tests[0].settings


def damaged(**changes):
    return result("a", stdout=netperf_output(**changes))


@pytest.mark.parametrize(
    ("brought", "reason"),
    [
        (damaged(THROUGHPUT=None), "THROUGHPUT"),
        (damaged(TRANSPORT_MSS=None), "TRANSPORT_MSS"),
        (result("a", stdout=netperf_output() + "THROUGHPUT=1\n"), "THROUGHPUT"),
        (damaged(THROUGHPUT="0.00"), "netperf TCP_RR THROUGHPUT: found 0.0; wanted more than 0"),
        (damaged(THROUGHPUT="-1.00"), "wanted more than 0"),
        (damaged(THROUGHPUT="nan"), "THROUGHPUT"),
        (damaged(THROUGHPUT="fast"), "THROUGHPUT"),
        (damaged(THROUGHPUT_UNITS="Furlongs"), "THROUGHPUT_UNITS"),
        (result("a", stdout=""), ""),
        (result("a", stdout="netperf: something\n"), ""),
        (result("a", rc=1, stderr="no\nreason\n"), "netperf ended with 1: reason"),
        (result("a", rc=-9, stdout=""), "netperf ended with -9: silently"),
        (
            result("a", timed_out=True, rc=-9, elapsed_s=31.2),
            "netperf hung and was ended after 31 s",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_an_output_without_a_number_is_a_failure_in_words(brought, reason):
    findings, failure = check_result(brought, SETTINGS, 1448)
    assert findings == []
    assert failure is not None
    assert reason in failure


def test_a_whole_output_is_no_failure_and_its_segment_size_is_looked_at():
    findings, failure = check_result(result("a"), SETTINGS, 1448)
    assert failure is None
    assert [finding.ok for finding in findings] == [True]
    findings, _ = check_result(result("a"), SETTINGS, 1408)
    assert [finding.ok for finding in findings] == [False]


def test_nothing_is_said_of_segments_where_there_are_none():
    assert check_result(damaged(PROTOCOL="UDP"), SETTINGS, 1448) == ([], None)
    assert check_result(result("a"), SETTINGS, None) == ([], None)


def test_an_unknown_segment_size_is_not_taken_for_the_wanted_one():
    findings, failure = check_result(damaged(TRANSPORT_MSS="-1"), SETTINGS, 1448)
    assert failure is None
    assert str(findings[0]) == "TCP segment size of the test: wanted 1448, found None"


class Recorded:
    """A run whose groups are recorded one after another, every command answering."""

    def __init__(self, folder, form="short"):
        self.document = plan_document(form)
        self.folder = new_run_folder(folder, "small-1", self.document)
        self.run = load_run(self.folder)
        self.slots = self.run.plan.order

    def add(self, slot, boots=("boot-c", "boot-s"), kernel="6.12.0", **changes):
        tests = {test.name: test for test in self.run.plan.tests}
        cell = next(c for c in self.run.plan.cells if c.cell_id == slot.cell_id)
        own = tests[cell.test]
        text = netperf_output(cell.test, **changes)
        brought = measured(PLAIN, [result(slot.cell_id, stdout=text)])
        names = ("client", "server")
        who = {
            name: {**peer()["identity"], "boot_id": boot, "kernel": kernel}
            for name, boot in zip(names, boots, strict=True)
        }
        settings = {slot.cell_id: own.settings}
        record_group(self.folder, slot.block, [slot.cell_id], settings, [], brought, who, None)

    def samples(self):
        return read_samples_from_raw(load_run(self.folder))


@pytest.fixture
def recorded(tmp_path):
    return Recorded(tmp_path)


def test_samples_have_units_and_come_in_the_order_executed(recorded):
    for slot in recorded.slots:
        recorded.add(slot)
    samples = recorded.samples()
    assert [sample.sequence for sample in samples] == list(range(len(recorded.slots)))
    assert {(s.test, s.unit, s.value) for s in samples} == {
        ("tcp_rr", "1/s", 990.41),
        ("udp_stream", "bit/s", 57.44e6),
    }
    assert {(s.cpu_local_pct, s.cpu_remote_pct, s.kernel) for s in samples} == {
        (48.89, 46.15, "6.12.0"),
        (84.88, 12.63, "6.12.0"),
    }
    assert all(s.confidence_met is None for s in samples)


def test_what_was_not_run_is_no_sample_until_completed_and_then_missing(recorded):
    recorded.add(recorded.slots[0])
    assert len(recorded.samples()) == 1
    whole = complete(recorded.run.plan, recorded.samples())
    statuses = [sample.status for sample in whole]
    assert statuses.count(SampleStatus.OK) == 1
    assert statuses.count(SampleStatus.MISSING) == len(recorded.slots) - 1
    assert statuses.count(SampleStatus.SKIPPED) == 2
    assert all(sample.value is None for sample in whole if sample.status is not SampleStatus.OK)


@pytest.mark.parametrize("changed", [{"boots": ("boot-c", "other")}, {"kernel": "6.13.0"}])
def test_a_reboot_within_a_block_makes_the_repeat_invalid(recorded, changed):
    first, second = recorded.slots[0], recorded.slots[1]
    recorded.add(first)
    recorded.add(second, **changed)
    good, bad = recorded.samples()
    assert good.status is SampleStatus.OK
    assert (bad.status, bad.value) == (SampleStatus.INVALID, None)
    assert bad.reason == "a host was rebooted within the block"


def test_another_boot_in_the_next_block_is_no_fault(recorded):
    for slot in recorded.slots:
        recorded.add(slot, boots=(f"c{slot.block}", f"s{slot.block}"))
    assert {sample.status for sample in recorded.samples()} == {SampleStatus.OK}


@pytest.mark.parametrize(
    ("got", "met", "value"),
    [("4.990", True, 4.99), ("5.000", True, 5.0), ("5.001", False, 5.001), ("-1.000", None, None)],
)
def test_the_achieved_interval_is_compared_by_us(tmp_path, got, met, value):
    recorded = Recorded(tmp_path, "full")
    recorded.add(recorded.slots[0], THROUGHPUT_CONFID=got)
    sample = recorded.samples()[0]
    assert (sample.confidence_level_pct, sample.confidence_wanted_pct) == (99.0, 5.0)
    assert (sample.confidence_got_pct, sample.confidence_met) == (value, met)
    assert sample.status is SampleStatus.OK


def test_what_netperf_does_not_say_is_none_not_minus_one(recorded):
    recorded.add(recorded.slots[0], LOCAL_CPU_UTIL="-1.00", ELAPSED_TIME="-1.00")
    sample = recorded.samples()[0]
    assert (sample.cpu_local_pct, sample.elapsed_s) == (None, None)


def test_a_raw_output_that_was_changed_afterwards_is_refused(recorded):
    recorded.add(recorded.slots[0])
    raw = recorded.folder / "raw" / recorded.slots[0].cell_id / "0"
    (raw / "netperf.out").write_text("THROUGHPUT=9\n")
    with pytest.raises(InputError):
        recorded.samples()


def test_a_result_of_a_newer_version_is_refused(recorded):
    recorded.add(recorded.slots[0])
    file = recorded.folder / "raw" / recorded.slots[0].cell_id / "0" / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": 2}))
    with pytest.raises(InputError, match="written by a newer version of Crossover"):
        recorded.samples()

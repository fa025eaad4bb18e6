"""Sessions from the hosts' answer to files, and from the files to one sample."""

import json

import pytest
from evidence_factory import PLAIN, measured, peer
from matrix_factory import DOCUMENT
from session_factory import STARTED, cpu, rr, sessions_result, udp

from collector.errors import InputError
from collector.matrix.matrix import read_matrix
from collector.results.harvest import read_samples_from_raw
from collector.results.session_files import read_sessions
from collector.run.plan import make_plan
from collector.run.record import new_run_folder, record_group
from collector.runfolder.runfolder import load_run
from collector.runfolder.samples import SampleStatus
from collector.runfolder.store import read_samples, write_samples

TESTS = [
    {"name": "tcp_rr_2", "netperf": "TCP_RR", "sessions": 2},
    {"name": "udp_2", "netperf": "UDP_STREAM", "sessions": 2, "message_bytes": 64},
]
OFFSET = {"clock_offset_s": 0.25, "clock_uncertainty_s": 0.001}


class Recorded:
    """A run of one test with two sessions."""

    def __init__(self, tmp_path, test):
        matrix = read_matrix({**DOCUMENT, "tests": [test]}, "m.yml")
        document = make_plan(
            matrix,
            matrix.forms["short"],
            run_id="small-1",
            created_at="2026-11-30T10:00:00Z",
            lab={"kind": "guests", "accelerator": "tcg", "name": "default"},
            seed=1,
            blocks=1,
        )
        self.folder = new_run_folder(tmp_path, "small-1", document)
        self.run = load_run(self.folder)
        self.cell = self.run.plan.order[0].cell_id
        self.raw = self.folder / "raw" / self.cell / "0"

    def record(self, sessions, far=None, **changes):
        brought = measured(PLAIN, [sessions_result(self.cell, sessions, **changes)], **OFFSET)
        settings = {self.cell: self.run.plan.tests[0].settings}
        who = {"client": brought["identity"], "server": peer()["identity"]}
        answered = peer(cpu={self.cell: cpu(25.0)} if far is None else far, listen_drops=3)
        statuses = record_group(
            self.folder, 0, [self.cell], settings, [], brought, who, None, answered
        )
        return statuses[self.cell]

    def sample(self):
        return next(s for s in read_samples_from_raw(load_run(self.folder)))


@pytest.fixture
def requests(tmp_path):
    return Recorded(tmp_path, TESTS[0])


def test_every_sessions_own_output_is_kept_apart(requests):
    first, second = rr(1), rr(2, stderr="a word\n")
    assert requests.record([first, second]) == "ok"
    names = sorted(path.name for path in (requests.raw / "sessions").iterdir())
    assert names == ["001.out", "002.err", "002.out"]
    assert (requests.raw / "sessions" / "001.out").read_text() == first.stdout
    window = json.loads((requests.raw / "window.json").read_text())
    assert (window["start"], window["end"]) == (STARTED + 1, STARTED + 3)
    assert (window["clock_offset_s"], window["error"]) == (0.25, None)
    assert json.loads((requests.raw / "argv.json").read_text())["sessions"] == 2
    sessions, _ = read_sessions(requests.raw)
    assert sessions == [first, second]


def test_a_sample_has_the_sum_and_the_cpu_of_both_ends(requests, tmp_path):
    requests.record([rr(1, 100.0), rr(2, 60.0, 0.5)])
    found = requests.sample()
    assert (found.status, found.unit) == (SampleStatus.OK, "1/s")
    assert found.value == pytest.approx(160.0)
    assert (found.sessions, found.window_s, found.elapsed_s) == (2, 2.0, 2.0)
    assert found.start_skew_s == pytest.approx(0.5)
    assert (found.session_low, found.session_high) == pytest.approx((60.0, 100.0))
    assert (found.cpu_local_pct, found.cpu_remote_pct) == pytest.approx((50.0, 25.0))
    assert found.cpu_local_kinds is not None
    assert found.cpu_local_kinds["user"] == 50.0
    assert found.cpu_remote_each == {"0": 25.0}
    # Half a CPU: 500,000 us a second for 160 transactions.
    assert found.sd_local_us == pytest.approx(3125.0)
    assert found.sd_remote_us == pytest.approx(1562.5)
    assert found.latency_p99_low_us == found.latency_p99_high_us == 3233.0
    assert (found.confidence_level_pct, found.confidence_met) == (None, None)
    write_samples(tmp_path, [found])
    assert read_samples(tmp_path) == [found]


def test_demand_of_lost_datagrams_is_of_what_each_end_did(tmp_path):
    run = Recorded(tmp_path, TESTS[1])
    run.record([udp(1, 8192e3, 0.5), udp(2, 8192e3, 0.5)])
    found = run.sample()
    assert found.value == pytest.approx(8192e3, rel=1e-3)
    # 2000 KB/s sent for half a CPU, 1000 KB/s received for a quarter.
    assert found.sd_local_us == pytest.approx(250.0, rel=1e-3)
    assert found.sd_remote_us == pytest.approx(250.0, rel=1e-3)
    assert found.latency_mean_us is None


def test_a_killed_session_makes_the_cell_invalid_not_smaller(requests):
    killed = rr(2, rc=-9, stdout="NETPERF_INTERIM_RESULT[0]=1.00\n")
    status = requests.record(
        [rr(1), killed], window=None, window_error="a session failed", cpu=None
    )
    assert status == "invalid"
    found = requests.sample()
    assert (found.status, found.value) == (SampleStatus.INVALID, None)
    assert found.reason is not None
    assert found.reason.startswith("session 2 of 2: wanted a result, found netperf ended with -9")
    assert found.reason.endswith("the server's listening sockets dropped 3 connections")
    assert (requests.raw / "sessions" / "002.out").read_text() == killed.stdout


def test_a_host_whose_cpu_was_not_sampled_has_none_and_the_number_stands(requests):
    requests.record([rr(1), rr(2)], far={})
    found = requests.sample()
    assert found.status is SampleStatus.OK
    assert found.cpu_local_pct == pytest.approx(50.0)
    assert (found.cpu_remote_pct, found.cpu_remote_kinds, found.sd_remote_us) == (None, None, None)
    kept = json.loads((requests.raw / "cpu.json").read_text())
    assert kept["server"] == {"error": "the CPU was not sampled"}


def test_raw_output_that_lost_a_session_is_refused(requests):
    requests.record([rr(1), rr(2)])
    (requests.raw / "sessions" / "002.out").unlink()
    with pytest.raises(InputError, match=r"002\.out: found no file; wanted the output of session"):
        requests.sample()


def test_readings_in_another_form_are_refused(requests):
    requests.record([rr(1), rr(2)])
    (requests.raw / "cpu.json").write_text('{"schema": 1, "client": {}}')
    with pytest.raises(InputError, match=r"cpu\.json: client: found other fields"):
        requests.sample()

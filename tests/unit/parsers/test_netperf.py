"""netperf: what is read, what is refused, and what is said about it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import data

from collector.errors import InputError
from collector.parsers import netperf, read
from collector.parsers.base import Reading, Status, as_json
from collector.parsers.document import from_text
from collector.parsers.netperf import NetperfResult, read_omni_keyval

BANNER = (
    "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET"
    " to {host} () port 0 AF_INET : demo\n"
)
HEADER = """\
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    {unit}/sec

"""
ROW = " 87380  16384  16384    10.00     941.28\n"
WARNING = """\
!!! WARNING
!!! Desired confidence was not achieved within the specified iterations.
!!! This implies that there was variability in the test environment that
!!! must be investigated before going further.
!!! Confidence intervals: Throughput      : {0}%
!!!                       Local CPU util  : {1}%
!!!                       Remote CPU util : {2}%

"""
CPU_HEADER = """\
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % S      % {0}      us/KB   us/KB

"""


def block(host: str = "192.0.2.2", unit: str = "10^6bits", row: str = ROW) -> str:
    return BANNER.format(host=host) + HEADER.format(unit=unit) + row


def parsed(text: str) -> Reading:
    return netperf.parse(from_text(text, "log"))


def only(text: str) -> NetperfResult:
    reading = parsed(text)
    assert reading.problems == []
    (record,) = reading.records
    assert isinstance(record, NetperfResult)
    return record


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("KBytes", 8 * 2**10), ("MBytes", 8 * 2**20), ("GBytes", 8 * 2**30), ("Bytes", 8),
        ("10^3bits", 1e3), ("10^6bits", 1e6), ("10^9bits", 1e9),
    ],
)  # fmt: skip
def test_the_unit_in_the_header_decides(unit: str, factor: float) -> None:
    record = only(block(unit=unit))
    assert record.throughput_bps == pytest.approx(941.28 * factor, rel=1e-12)
    assert record.printed["unit"] == unit


def test_unknown_unit_is_a_problem_and_no_number() -> None:
    reading = parsed(block(unit="MBits"))
    assert [record.status for record in reading.records] == [Status.INCOMPLETE]
    assert reading.problems


@pytest.mark.parametrize(
    "figure",
    ["941,28", "1.941,28", "1,941.28", "1 941.28", "1'941.28", "941.2", "941", "941.", "9 41.28",
     "９４１.28", "941.28.1", "+941.28", "-941.28"],
)  # fmt: skip
def test_a_figure_in_any_other_form_is_a_problem(figure: str) -> None:
    reading = parsed(block(row=f" 87380  16384  16384    10.00     {figure}\n"))
    assert reading.problems
    assert all(record.throughput_bps is None for record in reading.records)  # type: ignore[attr-defined]


@pytest.mark.parametrize("figure", ["nan", "-nan", "inf"])
def test_what_is_not_a_number_is_null_and_the_run_failed(figure: str) -> None:
    record = only(block(row=f" 87380  16384  16384    10.00     {figure}\n"))
    assert (record.status, record.throughput_bps) == (Status.FAILED, None)
    assert "NaN" not in str(as_json(record))


def test_side_without_cpu_measurement_is_null() -> None:
    row = " 87380  16384  16384    10.00       941.28   3.25     -1.00    1.131   -1.000\n"
    record = only(BANNER.format(host="a") + CPU_HEADER.format("U") + row)
    assert (record.cpu_local_pct, record.cpu_remote_pct) == (3.25, None)
    assert record.service_demand_local_us_per_kb == 1.131
    assert record.service_demand_remote_us_per_kb is None
    assert (record.cpu_method_local, record.cpu_method_remote) == ("S", None)


def test_columns_that_do_not_belong_together_are_suspect() -> None:
    row = " 87380  16384  16384    10.00       941.28   80.25    80.25    0.131   0.131\n"
    record = only(BANNER.format(host="a") + CPU_HEADER.format("S") + row)
    assert record.status is Status.SUSPECT
    assert "do not belong together" in record.warnings[0]


def test_the_warning_prints_full_widths() -> None:
    banner = BANNER.format(host="a").replace(" : demo", " : +/-2.500% @ 99% conf.  : demo")
    text = banner + WARNING.format("5.200", "0.000", "0.000") + HEADER.format(unit="10^6bits") + ROW
    confidence = only(text).confidence
    assert confidence is not None
    assert (confidence.level_pct, confidence.wanted_half_width_pct) == (99, 2.5)
    assert confidence.got_half_width_pct.throughput == 2.6
    assert confidence.got_half_width_pct.cpu_local is None
    assert (confidence.met.throughput, confidence.met.cpu_local) == (False, None)


def test_the_warning_also_appears_when_only_cpu_missed() -> None:
    banner = BANNER.format(host="a").replace(" : demo", " : +/-2.5% @ 95% conf. ")
    row = " 87380  16384  16384    10.00       941.28   3.25     3.05     1.131   1.061\n"
    warning = WARNING.format(" 0.7", " 12.4", " 4.1")
    confidence = only(banner + warning + CPU_HEADER.format("S") + row).confidence
    assert confidence is not None
    met = confidence.met
    assert (met.throughput, met.cpu_local, met.cpu_remote) == (True, False, True)
    assert confidence.got_half_width_pct.cpu_local == 6.2


def test_no_warning_in_the_classic_form_means_met() -> None:
    banner = BANNER.format(host="a").replace(" : demo", " : +/-2.5% @ 99% conf. ")
    confidence = only(banner + HEADER.format(unit="10^6bits") + ROW).confidence
    assert confidence is not None
    assert (confidence.met.throughput, confidence.met.cpu_local) == (True, None)


def test_a_warning_without_its_heading_has_lost_nothing() -> None:
    (record,) = parsed(data("cases/netperf-old-warning.txt")).records
    assert (record.test, record.host, record.throughput_bps) == ("TCP_STREAM", None, 58.08e6)
    assert record.confidence.wanted_half_width_pct == 2.5
    assert record.confidence.got_half_width_pct.throughput == pytest.approx(19.85)
    assert record.confidence.met.throughput is False


def test_a_transaction_rate_is_a_result_without_a_throughput() -> None:
    (record,) = parsed(data("cases/netperf-omni-latencies.txt")).records
    assert record.status is Status.OK, record.warnings
    assert record.transactions_per_second == 17730.719
    assert (record.latency_min_us, record.latency_mean_us, record.latency_max_us) == (
        41, 56.63, 848,
    )  # fmt: skip


def test_an_address_that_netperf_cut_is_not_taken() -> None:
    (record,) = parsed(data("cases/netperf-omni-latencies.txt")).records
    assert (record.host, record.address) == ("10.244.0.10", "10.244.0.10")


def test_a_banner_behind_the_words_of_a_log() -> None:
    text = (
        "ERROR Failed to parse stdout. STDOUT: MIGRATED TCP Connect/Request/Response TEST from "
        "0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.153 () port 20001 AF_INET : demo\n"
        "recv_response_timed_n: no response received. errno 4 counter 0\n"
    )
    (record,) = parsed(text).records
    assert (record.test, record.host) == ("TCP_CRR", "192.0.2.153")
    assert record.failure.error_class == "control_timeout"


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        (
            "Unable to start netserver with  'IN(6)ADDR_ANY' port '12865' and family AF_UNSPEC",
            "netserver_start",
        ),
        ("Stdout: get_sockaddr_family_addr_port family mismatch 10 vs 2", "address_family"),
        (
            "Stderr: netperf: send_omni: connect_data_socket failed: Invalid argument",
            "data_connect",
        ),
    ],
)
def test_errors_as_they_stand_in_logs(text: str, error_class: str) -> None:
    (record,) = parsed(text).records
    assert record.failure.error_class == error_class


@pytest.mark.parametrize("dropped", range(1, 7))
def test_a_warning_with_a_line_missing_is_a_problem_and_nothing_is_met(dropped: int) -> None:
    banner = BANNER.format(host="a").replace(" : demo", " : +/-2.5% @ 99% conf. ")
    lines = WARNING.format("8.2", "0.0", "0.0").splitlines(keepends=True)
    text = banner + "".join(lines[:dropped] + lines[dropped + 1 :])
    reading = parsed(text + HEADER.format(unit="10^6bits") + ROW)
    assert reading.problems
    (record,) = reading.records
    assert isinstance(record, NetperfResult)
    assert record.confidence is None or record.confidence.met.throughput is not True


@pytest.mark.parametrize(
    "row",
    [
        " 87380  16384  16384    10.00     941.28\n",
        "16384  87380  1        1       10.00    9412.80\n16384  87380\n",
        "212992   65507   10.00      159913      0    8379.58\n"
        "212992           10.00      123744           6484.29\n",
        " 87380  16384  16384    10.00       941.28   3.25     3.05     1.131   1.061\n",
    ],
)
def test_bare_rows_are_not_guessed(row: str) -> None:
    reading = read(from_text(row, "log"))
    assert reading.records == []
    assert "wanted its header, or the command line with -t, -f, -c and -C" in str(
        reading.problems[0]
    )


@pytest.mark.parametrize(
    ("options", "test", "bps"),
    [
        ("", "TCP_STREAM", 941.28e6),
        ("-t TCP_MAERTS", "TCP_MAERTS", 941.28e6),
        ("-tTCP_SENDFILE -fM", "TCP_SENDFILE", 941.28 * 8 * 2**20),
        ("-f k -t SCTP_STREAM", "SCTP_STREAM", 941.28e3),
    ],
)
def test_bare_rows_below_their_command_line_are_read(options: str, test: str, bps: float) -> None:
    record = only(f"# netperf -H 192.0.2.2 -P 0 {options}\n{ROW}")
    assert (record.test, record.host) == (test, "192.0.2.2")
    assert record.throughput_bps == pytest.approx(bps, rel=1e-12)


def test_a_command_line_covers_one_result_only() -> None:
    reading = parsed(f"# netperf -H 192.0.2.2 -P 0\n{ROW}{ROW}")
    assert len(reading.records) == 1
    assert len(reading.problems) == 1


def test_a_row_of_another_shape_than_the_command_makes_is_a_problem() -> None:
    reading = parsed(f"# netperf -H 192.0.2.2 -P 0 -t UDP_STREAM\n{ROW}")
    assert reading.problems
    assert all(record.throughput_bps is None for record in reading.records)  # type: ignore[attr-defined]


def test_the_pass_phrase_is_not_kept() -> None:
    record = only(f"# netperf -H 192.0.2.2 -Z secret -P 0\n{ROW}")
    assert record.command == "netperf -H 192.0.2.2 -Z *** -P 0"
    assert "secret" not in str(as_json(record))


def test_the_one_number_of_v0_with_and_without_its_command() -> None:
    rr = only("TCP REQUEST/RESPONSE TEST to server\n 8780.90\n")
    assert rr.transactions_per_second == 8780.90
    assert "no unit" in rr.warnings[0]
    stream = only("TCP STREAM TEST to server\n 941.28\n")
    assert (stream.status, stream.throughput_bps) == (Status.SUSPECT, None)
    known = only("$ netperf -H server -v 0 -f M\nTCP STREAM TEST to server\n 112.21\n")
    assert known.throughput_bps == pytest.approx(112.21 * 8 * 2**20)


def test_numbers_in_prose_are_let_by() -> None:
    text = "We saw 941.28 Mbit/s, and in 3 of 10 runs 87380 bytes were enough.\n" + block()
    assert only(text).throughput_bps == 941.28e6


def test_a_second_row_below_a_whole_table_is_a_problem() -> None:
    reading = parsed(block() + ROW)
    assert [record.status for record in reading.records] == [Status.OK]
    assert [problem.line for problem in reading.problems] == [8]


def test_a_table_broken_by_another_ones_line_gives_no_number() -> None:
    lines = block().splitlines(keepends=True)
    broken = "".join(lines[:3]) + "Socket  Message  Elapsed      Messages\n" + "".join(lines[3:])
    reading = parsed(broken)
    assert reading.problems
    assert all(record.throughput_bps is None for record in reading.records)  # type: ignore[attr-defined]


def test_two_runs_at_once_with_one_text_are_both_read() -> None:
    banner, table = BANNER.format(host="a"), HEADER.format(unit="10^6bits")
    other = ROW.replace("941.28", "939.10")
    reading = parsed(banner + banner + table + ROW + table + other)
    found = [(r.status, r.host, r.throughput_bps) for r in reading.records]  # type: ignore[attr-defined]
    assert found == [(Status.OK, "a", 941.28e6), (Status.OK, "a", 939.10e6)]


def test_two_runs_at_once_to_two_hosts_do_not_say_whose_is_whose() -> None:
    table = HEADER.format(unit="10^6bits")
    reading = parsed(BANNER.format(host="a") + BANNER.format(host="b") + table + ROW + table + ROW)
    for record in reading.records:
        assert isinstance(record, NetperfResult)
        assert (record.test, record.host) == ("TCP_STREAM", None)
        assert any("several runs" in warning for warning in record.warnings)


def test_a_run_that_was_stopped_does_not_lend_its_banner() -> None:
    reading = parsed(BANNER.format(host="a") + "^C\n" + block(host="b"))
    found = [(r.status, r.host) for r in reading.records]  # type: ignore[attr-defined]
    assert found == [(Status.INCOMPLETE, "a"), (Status.OK, "b")]


def test_an_error_on_stderr_above_the_banner_is_of_that_run() -> None:
    text = "netperf: send_omni: connect_data_socket failed: Connection refused\n" + BANNER.format(
        host="a"
    )
    record = only(text)
    assert (record.status, record.host) == (Status.FAILED, "a")
    assert record.failure is not None
    assert record.failure.errno_name == "ECONNREFUSED"


def test_interim_results_with_and_without_their_end() -> None:
    old = "Interim result:  941.20 10^6bits/s over 1.01 seconds\n"
    new = "Interim result:  941.30 10^6bits/s over 1.010 seconds\nending at 1377579676.901\n"
    record = only(block().replace(HEADER[:4], old + new + HEADER[:4]))
    assert [(one.end_s, one.throughput_bps) for one in record.interim] == [
        (None, 941.20e6),
        (1377579676.901, 941.30e6),
    ]


KEYED = """NETPERF_INTERIM_RESULT[0]=77967.69
NETPERF_UNITS[0]=Trans/s
NETPERF_INTERVAL[0]=0.250
NETPERF_ENDING[0]=1796054646.271
"""


def test_interim_results_of_key_value_output_belong_to_the_result_behind_them() -> None:
    end = "PROTOCOL=TCP\nDIRECTION=Send|Recv\nTHROUGHPUT=77967.69\nTHROUGHPUT_UNITS=Trans/s\n"
    record = only(KEYED + KEYED.replace("[0]", "[1]").replace("646.", "647.") + end)
    assert record.transactions_per_second == 77967.69
    found = [(i.end_s, i.interval_s, i.transactions_per_second) for i in record.interim]
    assert found == [(1796054646.271, 0.25, 77967.69), (1796054647.271, 0.25, 77967.69)]


def test_a_cut_interim_result_of_key_value_output_is_a_problem() -> None:
    cut = "".join(KEYED.splitlines(keepends=True)[:2])
    reading = netperf.parse(from_text(cut, "input"))
    assert any("_INTERVAL and _ENDING" in problem.wanted for problem in reading.problems)


def test_interim_results_out_of_order_are_flagged() -> None:
    line = "Interim result:  941.20 10^6bits/s over 1.010 seconds ending at 1377579676.901\n"
    record = only(block().replace(HEADER[:4], line + line + HEADER[:4]))
    assert "not in the order of time" in record.warnings[0]


@pytest.mark.parametrize(
    ("text", "error_class", "errno_name"),
    [
        ("netperf: remote error 11: Resource temporarily unavailable", "remote_error", "EAGAIN"),
        ("shutdown_control: no response received  errno 0", "control_timeout", None),
        ("recv_response: no response received. errno 110 counter 0", "control_timeout",
         "ETIMEDOUT"),
        ("netperf: data send error: Connection reset by peer", "data_send", "ECONNRESET"),
        ("udp_send: data send error: Message too long", "data_send", "EMSGSIZE"),
        ("netperf: create_data_socket: data socket bind failed: Address already in use (errno 98)",
         "data_socket", "EADDRINUSE"),
        ("Netperf could not resolve nosuch as a host name", "host_unknown", None),
        ("The test you requested (SCTP_RR) is unknown to this netperf.", "unknown_test", None),
        ("netperf: send_tcp_stream: data socket connect failed: No route to host", "data_connect",
         "EHOSTUNREACH"),
        ("get_sockaddr_family_addr_port family mismatch 10 vs 2", "address_family", None),
        ("start_itimer: error installing alarm handler errno 22", "timer", "EINVAL"),
    ],
)  # fmt: skip
def test_error_texts(text: str, error_class: str, errno_name: str | None) -> None:
    record = only(BANNER.format(host="a") + text + "\n") if "send" in text else only(text + "\n")
    assert record.status is Status.FAILED
    assert record.throughput_bps is None
    assert record.failure is not None
    assert (record.failure.error_class, record.failure.errno_name) == (error_class, errno_name)


def test_a_key_twice_in_one_result_is_reported() -> None:
    reading = parsed("THROUGHPUT=9.41\nTHROUGHPUT_UNITS=10^6bits/s\nELAPSED_TIME=1.00\n" * 2)
    assert len(reading.records) == 2
    assert reading.problems == []
    text = "THROUGHPUT_UNITS=10^6bits/s\nTHROUGHPUT=9.41\nTHROUGHPUT=9.99\n"
    reading = parsed(text)
    (record,) = reading.records
    assert isinstance(record, NetperfResult)
    assert (record.status, record.throughput_bps) == (Status.SUSPECT, None)
    assert "log:3: found THROUGHPUT a second time" in str(reading.problems[0])


def test_a_result_that_lacks_a_key_of_its_neighbours_is_reported() -> None:
    whole = "THROUGHPUT=9.41\nTHROUGHPUT_UNITS=10^6bits/s\nP99_LATENCY=41\n"
    reading = parsed(whole + "THROUGHPUT=9.42\nP99_LATENCY=42\n")
    assert "without THROUGHPUT_UNITS" in str(reading.problems[0])
    assert [r.throughput_bps for r in reading.records] == [9.41e6, None]  # type: ignore[attr-defined]


def test_omni_confidence_counts_full_widths_and_cpu_only_where_measured() -> None:
    record = only(
        "THROUGHPUT=9.41\nTHROUGHPUT_UNITS=10^6bits/s\nCONFIDENCE_LEVEL=95\n"
        "CONFIDENCE_INTERVAL=5.000000\nCONFIDENCE_ITERATION=10\nTHROUGHPUT_CONFID=5.002\n"
        "LOCAL_CPU_UTIL=3.21\nLOCAL_CPU_CONFID=4.998\nREMOTE_CPU_UTIL=-1.00\n"
        "REMOTE_CPU_CONFID=0.000\nP99_LATENCY=12\n"
    )
    confidence = record.confidence
    assert confidence is not None
    assert confidence.wanted_half_width_pct == 2.5
    met = confidence.met
    assert (met.throughput, met.cpu_local, met.cpu_remote) == (False, True, None)
    assert record.last_iteration_only == ("P99_LATENCY",)


def test_strict_reading_of_a_live_run() -> None:
    wanted = ("THROUGHPUT", "THROUGHPUT_UNITS", "P99_LATENCY", "THROUGHPUT_CONFID")
    text = "THROUGHPUT=9.41\nTHROUGHPUT_UNITS=Trans/s\nP99_LATENCY=41\nTHROUGHPUT_CONFID=-nan\n"
    assert read_omni_keyval(text, wanted) == {
        "THROUGHPUT": 9.41,
        "THROUGHPUT_UNITS": "Trans/s",
        "P99_LATENCY": 41,
        "THROUGHPUT_CONFID": None,
    }
    for damaged, said in (
        (text.replace("P99_LATENCY=41\n", ""), "wanted also P99_LATENCY"),
        (text + "THROUGHPUT=9.41\n", "THROUGHPUT a second time"),
        (text.replace("9.41", "9,41"), "THROUGHPUT: '9,41'"),
        (text + "UUID=1\n", "found UUID"),
        ("", "no NAME=VALUE line"),
    ):
        with pytest.raises(InputError, match=said.replace("(", r"\(")):
            read_omni_keyval(damaged, wanted)


@settings(max_examples=60, deadline=None)
@given(
    rate=st.decimals("0.01", "99999.99", places=2),
    seconds=st.decimals("1.00", "999.99", places=2),
    sizes=st.lists(st.integers(1, 99_999_999), min_size=3, max_size=3),
    quote=st.sampled_from(["", "> ", ">> ", "> > ", "| "]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_figures_come_out_as_they_went_in(
    rate: object, seconds: object, sizes: list[int], quote: str, end: str
) -> None:
    row = f"{sizes[0]:6d} {sizes[1]:6d} {sizes[2]:6d}    {seconds!s:<6}   {rate!s:>7}   \n"
    text = end.join(f"{quote}{line}" for line in block(row=row).splitlines()) + end
    record = only(text)
    assert record.throughput_bps == pytest.approx(float(str(rate)) * 1e6, rel=1e-12)
    assert record.elapsed_s == float(str(seconds))
    assert [record.recv_socket_bytes, record.send_socket_bytes, record.message_bytes] == sizes


def test_lines_of_two_outputs_mixed_at_random_are_right_or_flagged() -> None:
    """Two runs that print into one file: any mixture of their lines."""
    chance = random.Random(1)
    other = block(host="b", unit="MBytes", row=ROW.replace("941.28", "112.21"))
    right = {("a", 941.28e6), ("b", 112.21 * 8 * 2**20), (None, 941.28e6)}
    right.add((None, 112.21 * 8 * 2**20))
    for _ in range(300):
        queues = [block(host="a").splitlines(), other.splitlines()]
        mixed = []
        while any(queues):
            queue = chance.choice([q for q in queues if q])
            mixed.extend(queue[: (count := chance.randint(1, 7))])
            del queue[:count]
        reading = parsed("\n".join(mixed) + "\n")
        for record in reading.records:
            assert isinstance(record, NetperfResult)
            if record.status is Status.OK and not reading.problems:
                assert (record.host, record.throughput_bps) in right


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_no_text_makes_a_traceback(text: str) -> None:
    as_json(read(from_text(text + "\n" + block()[:120] + text)).records)

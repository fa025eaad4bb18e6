"""netperf's command lines, by the tests of a matrix."""

import pytest
from matrix_factory import plan

from collector.results import netperf_command
from collector.results.netperf_command import SELECTORS, Path, argv, timeout_s
from collector.results.netperf_result import keys

PATH = Path(control="192.0.2.2", port=12865, server="198.18.0.2", client="198.18.0.1")
SETTINGS = {test.name: test.settings for test in plan().tests}
FULL = {test.name: test.settings for test in plan("full").tests}


def split(words):
    """The words before and after netperf's own ``--``."""
    at = words.index("--")
    return words[:at], words[at + 1 :]


def test_control_goes_over_one_network_and_data_over_the_other():
    before, after = split(argv(SETTINGS["tcp_rr"], PATH, 1472))
    assert before == ["netperf", "-H", "192.0.2.2", "-p", "12865", "-t", "TCP_RR", "-l", "1",
                      "-c", "-C", "-j", "-P", "0"]  # fmt: skip
    assert after[:4] == ["-H", "198.18.0.2", "-L", "198.18.0.1"]
    assert after[after.index("-r") + 1] == "1,1"


def test_a_stream_of_datagrams_is_cut_to_what_the_label_leaves_room_for():
    _, after = split(argv(SETTINGS["udp_stream"], PATH, 1432))
    assert after[after.index("-m") + 1] == "1432"
    assert after[after.index("-R") + 1] == "1"
    _, after = split(argv({**SETTINGS["udp_stream"], "message_bytes": 64}, PATH, 1432))
    assert after[after.index("-m") + 1] == "64"


def test_sizes_that_are_not_asked_for_are_netperfs_own():
    plain = {**SETTINGS["tcp_rr"], "request_bytes": None, "response_bytes": None}
    words = argv(plain, PATH, 1472)
    assert not {"-r", "-m", "-s", "-S", "-i", "-I"} & set(words)
    one = {**plain, "response_bytes": 1024, "local_socket_bytes": 1, "remote_socket_bytes": 2}
    words = argv(one, PATH, 1472)
    assert words[words.index("-r") + 1] == "1,1024"
    assert (words[words.index("-s") + 1], words[words.index("-S") + 1]) == ("1", "2")


def test_confidence_is_asked_for_as_published():
    before, _ = split(argv(FULL["tcp_rr"], PATH, 1472))
    assert before[before.index("-i") + 1] == "10,3"
    assert before[before.index("-I") + 1] == "99,5"


def test_the_data_connection_has_the_measured_family():
    six = Path("192.0.2.2", 12865, "2001:db8:18::2", "2001:db8:18::1")
    _, four_after = split(argv(SETTINGS["tcp_rr"], PATH, 1))
    before, six_after = split(argv(SETTINGS["tcp_rr"], six, 1))
    assert "-4" in four_after
    assert "-6" in six_after
    assert "-6" not in before


def test_every_selector_is_asked_for_once_and_must_come_back():
    words = argv(SETTINGS["tcp_rr"], PATH, 1)
    assert words[-2:] == ["-k", SELECTORS]
    assert len(set(keys())) == len(keys()) == SELECTORS.count(",") + 1


@pytest.mark.parametrize(("settings", "least"), [(SETTINGS["tcp_rr"], 1), (FULL["tcp_rr"], 600)])
def test_a_run_counts_as_hanging_only_well_after_its_longest_time(settings, least):
    assert timeout_s(settings) >= least + 30


SESSIONS = {
    "netperf": "TCP_RR",
    "duration_s": 2,
    "confidence": None,
    "message_bytes": None,
    "request_bytes": 1,
    "response_bytes": 1,
    "local_socket_bytes": None,
    "remote_socket_bytes": None,
    "sessions": 200,
    "start_s": 21,
}


def test_sessions_ask_for_interim_results_and_wait_for_each_other():
    words = netperf_command.argv(SESSIONS, PATH, 1472)
    assert words[7:13] == ["-s", "@wait", "-l", "@length", "-c", "-C"]
    assert words[words.index("-D") + 1] == "-1"
    assert "-f" not in words
    made = netperf_command.command("a1", SESSIONS, PATH, 1472)
    assert made["sessions"] == 200
    # A second of rounding, 4 s of waking up, half a second before and after 5 s.
    assert made["window"] == {
        "settle_s": 0.5,
        "wanted_s": 5.0,
        "start_s": 21,
        "run_s": 11,
        "interrupt": True,
    }
    maerts = {**SESSIONS, "netperf": "TCP_MAERTS", "request_bytes": None, "response_bytes": None}
    assert not netperf_command.command("a1", maerts, PATH, 1472)["window"]["interrupt"]
    assert made["timeout"] > 2 * 21 + 11


def test_one_session_waits_for_nobody_and_streams_have_a_finer_unit():
    one = {**SESSIONS, "netperf": "TCP_STREAM", "sessions": 1, "start_s": 0}
    one |= {"request_bytes": None, "response_bytes": None}
    words = netperf_command.argv(one, PATH, 1472)
    assert words[7:9] == ["-l", "3"]
    assert words[words.index("-f") + 1] == "k"


def test_the_length_of_an_interim_result_follows_the_window_and_the_sessions():
    def found(sessions, *durations):
        return [
            netperf_command.interim_s({"duration_s": s, "sessions": sessions}) for s in durations
        ]

    assert found(5, 1, 2, 10, 60, 3600) == [0.1, 0.1, 0.5, 2.0, 2.0]
    # Two hundred print no more than some hundred a second, and still several in a window.
    assert found(200, 1, 2, 10, 60) == [1.0, 1.0, 1.0, 2.0]


def test_hosts_sample_their_cpus_only_where_a_test_wants_it():
    plain = {**SESSIONS, "sessions": None, "start_s": None}
    assert netperf_command.sampling([plain]) is None
    wanted = netperf_command.sampling([plain, SESSIONS])
    assert wanted is not None
    assert wanted["period_s"] == 0.25
    assert wanted["lifetime_s"] > netperf_command.timeout_s(SESSIONS)


def test_a_request_may_fit_the_datagram():
    fit = {**SESSIONS, "netperf": "UDP_RR", "request_bytes": "fit"}
    words = netperf_command.argv(fit, PATH, 1422)
    assert words[words.index("-r") + 1] == "1422,1"

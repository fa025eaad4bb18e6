"""netperf's command lines, by the tests of a matrix."""

import pytest
from matrix_factory import plan

from collector.netperf_command import SELECTORS, Path, argv, timeout_s
from collector.netperf_result import keys

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

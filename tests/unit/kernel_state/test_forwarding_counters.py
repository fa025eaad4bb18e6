"""/proc/net/softnet_stat and /proc/net/snmp."""

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.snmp import parse_snmp, snmp_between
from collector.kernel_state.softnet import Softnet, parse_softnet, softnet_between

SOFTNET = """00001b58 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000
"""  # noqa: E501 - as the kernel prints it
OLD = "ffffffff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n"
SNMP = """Ip: Forwarding DefaultTTL InReceives ForwDatagrams
Ip: 1 64 120 100
Udp: InDatagrams NoPorts MemErrors
Udp: 5 0 -1
"""


def test_softnet_is_by_the_number_of_the_cpu():
    assert parse_softnet(SOFTNET) == {0: Softnet(7000, 1, 2), 2: Softnet(10, 0, 0)}


def test_an_old_kernel_does_not_print_the_number():
    assert parse_softnet(OLD + OLD) == {0: Softnet(2**32 - 1, 0, 0), 1: Softnet(2**32 - 1, 0, 0)}


def test_softnet_grows_over_its_32_bits():
    before = {0: Softnet(2**32 - 10, 0, 0), 1: Softnet(0, 0, 0)}
    after = {0: Softnet(5, 3, 1), 9: Softnet(1, 1, 1)}
    assert softnet_between(before, after) == {0: Softnet(15, 3, 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no line; wanted one line a CPU"),
        ("00000001 xyz 00000000\n", "wanted hexadecimal columns of softnet_stat"),
        (
            SOFTNET.replace("00000002 00000000 00000000\n", "00000000 00000000 00000000\n"),
            "twice|second",
        ),
    ],
)
def test_another_text_is_no_softnet_stat(text, message):
    with pytest.raises(StateError, match=message):
        parse_softnet(text)


def test_snmp_is_by_protocol_and_name():
    found = parse_snmp(SNMP)
    assert found["Ip"]["ForwDatagrams"] == 100
    assert found["Udp"]["MemErrors"] == -1


def test_only_what_moved_has_grown():
    before = parse_snmp(SNMP)
    after = parse_snmp(SNMP.replace("1 64 120 100", "1 64 150 130"))
    assert snmp_between(before, after, "Ip") == {"InReceives": 30, "ForwDatagrams": 30}
    with pytest.raises(StateError, match="found Ip InReceives 150 and then 120; wanted one boot"):
        snmp_between(after, before, "Ip")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found nothing; wanted two lines each"),
        ("Ip: A B\n", "found names without numbers; wanted two lines each"),
        ("Ip: A B\nIp: 1\n", "found 1 columns of Ip; wanted those of Ip"),
        ("Ip: A\nUdp: 1\n", "found 1 columns of Udp; wanted those of Ip"),
        ("Ip: A\nIp: x\n", "wanted numbers"),
        ("nothing\n", "wanted PROTOCOL: NAMES or NUMBERS"),
    ],
)
def test_another_text_is_no_snmp(text, message):
    with pytest.raises(StateError, match=message):
        parse_snmp(text)

"""SAs and policies as ip xfrm prints them."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.xfrm import (
    Algorithm,
    Encap,
    Limits,
    Mark,
    Offload,
    Replay,
    ReplayErrors,
    Secret,
    Selector,
    State,
    Usage,
    Vault,
    direction_of,
    state_id,
)
from collector.kernel_state.xfrm_command import parse_state_add
from collector.kernel_state.xfrm_policy import parse_policies
from collector.kernel_state.xfrm_state import parse_states, without_times

DATA = Path(__file__).parents[2] / "data"
STATES = (DATA / "kernel_state" / "ip-s-xfrm-state.txt").read_text()
POLICIES = (DATA / "kernel_state" / "ip-s-xfrm-policy.txt").read_text()
LABELLED = (DATA / "cases" / "40-a.txt").read_text()
BLANK = " "  # ip ends some lines with one
KEY = "0x0102030405060708090a0b0c0d0e0f1011121314"
PLAIN = f"""src 192.0.2.1 dst 192.0.2.2
\tproto esp spi 0x00001000 reqid 1 mode transport
\treplay-window 32{BLANK}
\taead rfc4106(gcm(aes)) {KEY} 128
\tanti-replay context: seq 0x0, oseq 0x7, bitmap 0x00000000
\tsel src 192.0.2.1/32 dst 192.0.2.2/32 proto tcp{BLANK}
"""


def test_every_attribute_of_a_state():
    state = parse_states(STATES)[0]
    assert state.algorithms == (
        Algorithm("auth-trunc", "hmac(sha256)", 256, 128),
        Algorithm("enc", "cbc(aes)", 128, None),
    )
    assert (state.spi, state.reqid, state.mode) == (0x1001, 7, "tunnel")
    assert state.flags == ("af-unspec", "esn")
    assert state.extra_flags == ("dont-encap-dscp",)
    assert (state.mark, state.output_mark) == (Mark(5, 0xFF), Mark(3))
    assert state.encap == Encap("espinudp", 4500, 4500, "::")
    assert state.care_of == "2001:db8::9"
    assert state.replay == Replay(True, 288, (1 << 32) + 2, 0x40)
    assert (state.replay_window, state.window, state.esn) == (0, 288, True)
    assert state.offload == Offload("eth1", "out", "packet")
    assert (state.if_id, state.tfc_pad, state.direction) == (7, 1400, "out")
    assert state.selector == Selector(
        "2001:db8:a::/64", "2001:db8:b::/64", "ipv6-icmp", 128, 0, None, "eth1"
    )
    assert state.limits == Limits(1000, 2000, None, 5000, 3000, 3600, None, None)
    assert state.usage == Usage(84, 1, "2026-11-30 11:44:33", "2026-11-30 11:44:40")
    assert state.replay_errors == ReplayErrors(1, 2, 3)
    assert state.context == "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023"
    assert state.unknown == ()


def test_null_algorithms_and_attributes_of_newer_kernels():
    state = parse_states(STATES)[1]
    assert state.algorithms == (
        Algorithm("auth-trunc", "digest_null", 0, 0),
        Algorithm("enc", "ecb(cipher_null)", 0, None),
    )
    assert state.replay == Replay(False, None, 0x10, 0)
    assert state.unknown == ("pcpu-num 3",)
    assert state.flags == ()


def test_labelled_states_of_an_ike_daemon_with_values_blanked_out():
    out, into = parse_states(LABELLED)
    for state in (out, into):
        assert state.context == "system_u:system_r:ping_t:s0:c1.c256"
        assert state.esn
        assert state.mode == "transport"
        assert state.algorithms == (Algorithm("aead", "rfc4106(gcm(aes))", None, 128),)
        assert state.spi is None
        assert state.reqid is None
        assert "spi" in state.blanked
    assert (out.direction, into.direction) == ("out", "in")
    assert into.window == 128


def test_the_direction_of_older_kernels_comes_from_the_local_address():
    state = parse_states(PLAIN)[0]
    assert state.direction is None
    assert direction_of(state, ("192.0.2.1",)) == "out"
    assert direction_of(state, ("192.0.2.2",)) == "in"
    assert direction_of(state, ("192.0.2.1", "192.0.2.2")) is None
    assert direction_of(replace(state, offload=Offload("eth0", "in")), ()) == "in"


def test_hidden_keys_and_one_line_output():
    hidden = PLAIN.replace(KEY, "<<Keys hidden>>")
    assert parse_states(hidden)[0].algorithms == (
        Algorithm("aead", "rfc4106(gcm(aes))", None, 128),
    )
    one_line = PLAIN.replace("\n", "\\").rstrip("\\") + "\n"
    assert parse_states(one_line) == parse_states(PLAIN)
    assert parse_states("") == ()


def test_no_key_survives_but_in_a_vault():
    vault = Vault()
    state = parse_states(PLAIN, vault)[0]
    assert KEY[2:] not in repr(state) + repr(vault) + str(vault.get(state_id(state), "aead"))
    assert vault.get(state_id(state), "aead").reveal() == KEY
    assert state.algorithms[0].key_bits == 160
    with pytest.raises(TypeError, match="not pickled"):
        Secret(KEY).__reduce__()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (KEY, f"{KEY[:20]}\n{KEY[20:]}"),
        (KEY, KEY[2:]),
        (f"{KEY} 128", KEY),
        (KEY, f"{KEY[:20]}\nabcdef0011 128"),
        ("aead", "aed"),
        (f" {KEY}", f" {KEY} {KEY}"),
    ],
)
def test_a_key_in_a_damaged_text_is_not_repeated_in_the_error(old, new):
    try:
        found = repr(parse_states(PLAIN.replace(old, new)))
    except StateError as error:
        found = str(error)
    for start in range(2, len(KEY) - 16):
        assert KEY[start : start + 16] not in found


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("src 192.0.2.1 dst 192.0.2.2\n", "", "'src A dst B'"),
        ("dst 192.0.2.2\n", "dst 2001:db8::1\n", "two addresses of one family"),
        ("\treplay-window 32 \n", "", "proto and replay-window lines"),
        ("spi 0x00001000", "spi 0x0000100g", "a number for spi"),
        ("spi 0x00001000", "spi 0x00001000(4097)", "the same number twice for spi"),
        ("reqid 1", "reqid 99999999999", "a 32-bit number for reqid"),
        ("mode transport", "mode transpor", "one of transport"),
        ("proto esp", "proto exp", "esp, ah, comp"),
        ("proto tcp ", "proto tcp sport 99999 ", "at most 65535 for sport"),
        ("proto tcp ", "portal tcp ", "a part of a selector"),
        ("seq 0x0, oseq", "sec 0x0, oseq", "an anti-replay context"),
        ("\treplay-window 32 \n", "\treplay-window 32 \n\treplay-window 32 \n", "it once"),
    ],
)
def test_damaged_states_are_refused(old, new, wanted):
    assert old in PLAIN
    with pytest.raises(StateError) as caught:
        parse_states(PLAIN.replace(old, new))
    assert wanted in str(caught.value)


def test_a_lost_heading_does_not_join_two_states():
    two = PLAIN + PLAIN.split("\n", 1)[1]
    with pytest.raises(StateError, match="a second time"):
        parse_states(two)


def test_the_bitmap_of_a_long_window_must_be_whole():
    with pytest.raises(StateError, match="the 9 announced"):
        parse_states(STATES.replace("\t ffffffff \n", ""))
    with pytest.raises(StateError, match="a part of the anti-replay esn context"):
        parse_states(STATES.replace("\t seq-hi 0x1, seq 0x2, oseq-hi 0x0, oseq 0x40\n", ""))


def test_limits_must_be_whole():
    with pytest.raises(StateError, match="all four lines"):
        parse_states(STATES.replace("\t  expire use: soft 0(sec), hard 0(sec)\n", "", 1))


def test_counters_can_be_left_out_of_a_comparison():
    state = parse_states(STATES)[0]
    later = replace(state, usage=Usage(99, 2, None, None), last_used="2027-01-01 00:00:00")
    assert state != later
    assert without_times(state) == without_times(later)


def test_policies_with_everything_that_s_shows():
    forward, out = parse_policies(POLICIES)
    assert (forward.direction, forward.action, forward.index) == ("fwd", "block", 10)
    assert (forward.mark, forward.if_id, forward.templates) == (Mark(1), 9, ())
    assert forward.limits == Limits()
    assert out.selector == Selector("192.0.2.1/32", "192.0.2.2/32", "tcp", None, 80)
    template = out.templates[0]
    assert (template.proto, template.reqid, template.mode) == ("esp", 1, "transport")
    assert (template.level, template.spi) == ("required", None)


def test_labelled_policies_of_case_40():
    into, out = parse_policies((DATA / "cases" / "40-b.txt").read_text())
    assert (into.direction, out.direction) == ("in", "out")
    assert into.context == out.context == "system_u:object_r:ipsec_spd_t:s0"
    assert into.priority is None


def test_socket_policies_and_optional_templates():
    text = (
        "src ::/0 dst ::/0 \n\tsocket in priority 0 ptype main \n"
        "src 192.0.2.1/32 dst 192.0.2.2/32 proto gre key 5 dev eth0 \n"
        "\tdir out priority 3 ptype main \n"
        "\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto comp reqid 0 mode tunnel\n"
        "\t\tlevel use \n"
        "\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto ah spi 0x00000200 reqid 0 mode transport\n"
        "\tcrypto offload parameters: dev eth0 mode packet\n"
    )
    socket, policy = parse_policies(text)
    assert socket.socket
    assert (policy.selector.key, policy.selector.dev) == (5, "eth0")
    assert [template.level for template in policy.templates] == ["use", "required"]
    assert policy.templates[1].spi == 0x200
    assert policy.offload == Offload("eth0", None, "packet")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("dir fwd action", "fwd action", "its dir line"),
        ("dir fwd", "dir fw", "in, out or fwd"),
        ("action block", "action blok", "allow or block"),
        ("priority 5", "priority five", "a number for priority"),
        ("\t\tproto esp spi 0x00000000(0) reqid 1(0x00000001) mode transport\n", "",
         "the template's proto line"),
        ("2001:db8::/64 dst", "2001:db8::/640 dst", "prefix length"),
    ],
)  # fmt: skip
def test_damaged_policies_are_refused(old, new, wanted):
    assert old in POLICIES
    with pytest.raises(StateError) as caught:
        parse_policies(POLICIES.replace(old, new))
    assert wanted in str(caught.value)


def test_commands_of_a_script_declare_states():
    line = '> ip x s add src 192.0.2.99 dst 192.0.2.250 proto esp spi 3 mark 0x155f3e00 aead "rfc4106(gcm(aes))" 0xKEY 128'  # noqa: E501 - a line of a transcript
    state = parse_state_add(line)
    assert state == State(
        "192.0.2.99", "192.0.2.250", "esp", 3, 0, "transport", mark=Mark(0x155F3E00)
    )
    assert parse_state_add("ip xfrm policy add src 192.0.2.1 dst 192.0.2.2 dir out") is None
    with pytest.raises(StateError, match="without dst or spi"):
        parse_state_add("ip xfrm state add src 192.0.2.1 proto esp")


def test_flags_that_iproute2_runs_together_are_read():
    (state,) = parse_states(
        "src 2001:db8::1 dst 2001:db8::2\n"
        "\tproto esp spi 0x1000 reqid 16389 mode tunnel\n"
        "\treplay-window 0 flag af-unspecextra_flag dont-encap-dscp\n"
    )
    assert (state.flags, state.extra_flags) == (("af-unspec",), ("dont-encap-dscp",))

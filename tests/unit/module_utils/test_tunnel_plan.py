"""Plans: what is made, kept, changed and taken back, in which order, with which way back."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.crossover.lab.plugins.module_utils.shell_step import ASK_SECRET
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_commands import (
    Place,
    by_hand,
    create,
    remove,
)
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_keys import key_lines
from ansible_collections.crossover.lab.plugins.module_utils.tunnel_plan import (
    plan,
    show,
    wanted_facts,
)
from tests.unit.tunnel_factory import ENDS6, INNER6, NEEDED, link


def place(sort: str, end: int = 0, underlay: str = "eth1", mtu: int = 1400, **keys: Any) -> Place:
    return Place(link(sort, **keys), end, underlay, mtu)


def facts(one: Place, **changes: Any) -> dict[str, dict[str, Any]]:
    return {one.link.name: {**wanted_facts(one), **changes}}


def verbs(steps: Any) -> list[tuple[str, str]]:
    return [(action.verb, action.name) for action in steps.actions]


@pytest.mark.parametrize("sort", NEEDED)
def test_a_link_is_made_once_and_then_stays(sort):
    one = place(sort)
    assert verbs(plan([one], [], {})) == [("add", "xt0")]
    assert plan([one], [one], facts(one)).actions == ()


@pytest.mark.parametrize("sort", NEEDED)
def test_what_is_declared_no_more_is_taken_back_and_can_be_made_again(sort):
    one = place(sort)
    steps = plan([], [one], facts(one))
    assert verbs(steps) == [("delete", "xt0")]
    assert steps.steps()[0].undo == tuple(create(one))
    assert [step.argv for step in steps.steps()] == [step.argv for step in remove(one)]


def test_a_device_that_is_gone_already_is_not_deleted():
    one = place("vxlan")
    assert plan([], [one], {}).actions == ()
    assert verbs(plan([one], [one], {})) == [("add", "xt0")]


@pytest.mark.parametrize(
    ("sort", "line"),
    [
        ("fou", "ip fou del port 5555"),
        ("gue", "ip fou del port 6080"),
        ("l2tp", "ip l2tp del tunnel tunnel_id 42"),
        ("ovs", "ovs-vsctl --if-exists del-br xt0"),
    ],
)
def test_the_rest_of_a_link_whose_device_is_gone_goes_before_it_is_made_again(sort, line):
    one = place(sort)
    for declared in ([], [one]):
        steps = plan(declared, [one], {}, remains=["xt0"])
        assert verbs(steps) == [("delete", "xt0"), *[("add", "xt0") for _ in declared]]
        assert steps.actions[0].why == ("its device is gone",)
        assert steps.steps()[0].shell() == line


def test_a_lasting_property_makes_the_device_anew():
    one = place("vxlan")
    steps = plan([one], [one], facts(one, id=43))
    assert verbs(steps) == [("delete", "xt0"), ("add", "xt0")]
    assert steps.actions[1].why == ("id",)


def test_another_declaration_makes_it_anew_even_where_the_kernel_does_not_show_it():
    before, after = place("vxlan"), place("vxlan", device="eth1")
    steps = plan([after], [before], facts(before))
    assert steps.actions[1].why == ("declared otherwise",)


def test_addresses_mtu_and_state_change_in_place():
    one = place("vxlan", inner_ipv6=INNER6)
    found = facts(one, addresses=["198.19.9.1/24"], mtu=1300, up=False)
    steps = plan([one], [one], found)
    assert verbs(steps) == [("change", "xt0")]
    assert [" ".join(step.argv) for step in steps.steps()] == [
        "ip address del 198.19.9.1/24 dev xt0",
        "ip address add 198.19.0.1/24 dev xt0",
        "ip address add 2001:db8:19::1/64 dev xt0 nodad",
        "ip link set dev xt0 mtu 1400",
        "ip link set dev xt0 up",
    ]
    undone = [" ".join(back.argv) for step in reversed(steps.steps()) for back in step.undo]
    assert undone == [
        "ip link set dev xt0 down",
        "ip link set dev xt0 mtu 1300",
        "ip address del 2001:db8:19::1/64 dev xt0",
        "ip address del 198.19.0.1/24 dev xt0",
        "ip address add 198.19.9.1/24 dev xt0",
    ]


def test_a_stack_comes_down_from_the_top_and_up_from_the_bottom():
    low = place("vxlan", name="low")
    top = place("vxlan", name="top", underlay="low", mtu=1350, id=7,
                ends=["198.19.0.1", "198.19.0.2"],
                inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])  # fmt: skip
    found = {**facts(low, port=1), **facts(top)}
    steps = plan([low, top], [low, top], found)
    assert verbs(steps) == [("delete", "top"), ("delete", "low"), ("add", "low"), ("add", "top")]
    assert steps.actions[3].why == ("device low below is made anew",)


def test_keys_are_new_only_for_a_device_that_is_made():
    one = place("wireguard")
    assert plan([one], [], {}).renewed == ("xt0",)
    assert plan([one], [one], facts(one)).renewed == ()
    again = plan([one], [one], facts(one), renew=["xt0"])
    assert again.renewed == ("xt0",)
    assert verbs(again) == [("delete", "xt0"), ("add", "xt0")]


@pytest.mark.parametrize(
    ("one", "lines"),
    [
        (place("vxlan", ttl="64", df="set", csum=False, source_ports=[1000, 2000]), [
            "ip link add name xt0 type vxlan id 42 local 198.18.0.1 remote 198.18.0.2 dstport 4789"
            " srcport 1000 2000 ttl 64 df set noudpcsum",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("vxlan-gpe", end=1, ttl="9"), [
            "ip link add name xt0 type vxlan dstport 4790 nolearning gpe external",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.2/24 dev xt0",
            "ip link set dev xt0 up",
            "ip route add 198.19.0.1/32 encap ip id 42 src 198.18.0.2 dst 198.18.0.1 ttl 9 dev xt0",
        ]),
        (place("ip6gre", key=5, seq=True), [
            "ip link add name xt0 type ip6gre local 2001:db8:18::1 remote 2001:db8:18::2 key 5 seq"
            " encaplimit none",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("fou", ends=ENDS6, csum=True), [
            "modprobe fou6",
            "ip fou add port 5555 ipproto 4 -6",
            "ip link add name xt0 type ip6tnl mode ipip6 local 2001:db8:18::1 remote"
            " 2001:db8:18::2 encaplimit none encap fou encap-sport auto encap-dport 5555"
            " encap-udp6-csum",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("l2tp"), [
            "ip l2tp add tunnel tunnel_id 42 peer_tunnel_id 42 encap udp local 198.18.0.1 remote"
            " 198.18.0.2 udp_sport 1701 udp_dport 1701",
            "ip l2tp add session name xt0 tunnel_id 42 session_id 42 peer_session_id 42",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("wireguard", ends=ENDS6), [
            "ip link add name xt0 type wireguard",
            'printf \'%s\\n\' "$KEY_XT0_PRIVATE" | wg set xt0 listen-port 51820 private-key'
            " /dev/stdin peer $KEY_XT0_PEER endpoint '[2001:db8:18::2]:51820' allowed-ips"
            " 0.0.0.0/0,::/0",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("macsec"), [
            "ip link add link eth1 name xt0 type macsec sci 0278743000000001 cipher gcm-aes-128"
            " encrypt on",
            "ip macsec add xt0 tx sa 0 pn 1 on key 00 $KEY_XT0_TX",
            "ip macsec add xt0 rx sci 0278743000000002 on",
            "ip macsec add xt0 rx sci 0278743000000002 sa 0 pn 1 on key 01 $KEY_XT0_RX",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("ovs", csum=True), [
            "ovs-vsctl add-br xt0 -- add-port xt0 xt0p -- set interface xt0p type=vxlan"
            " options:local_ip=198.18.0.1 options:remote_ip=198.18.0.2 options:key=42"
            " options:dst_port=4789 options:csum=true",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
        (place("stt", key=1, ttl="64"), [
            "ip link add name xt0 type stt key 1 local 198.18.0.1 remote 198.18.0.2 port 7471"
            " ttl 64",
            "ip link set dev xt0 mtu 1400",
            "ip address add 198.19.0.1/24 dev xt0",
            "ip link set dev xt0 up",
        ]),
    ],
    ids=lambda value: value.link.type if isinstance(value, Place) else "",
)  # fmt: skip
def test_the_commands_by_hand_are_the_ones_that_are_run(one, lines):
    keys = key_lines(one.link, one.end)
    assert by_hand([one]) == [*([ASK_SECRET] if keys else []), *keys, *lines]
    assert [step.shell() for step in plan([one], [], {}).steps()] == lines


def test_a_diff_shows_properties_and_no_key():
    one = place("wireguard")
    text = show([one], {"xt0": {**wanted_facts(one), "public": None}})
    assert "xt0 port = 51820\n" in text
    assert "xt0 addresses = 198.19.0.1/24\n" in text
    assert "KEY" not in text

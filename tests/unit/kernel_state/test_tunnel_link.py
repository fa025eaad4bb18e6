"""A declaration of tunnel links is read strictly, and every fault is named with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kernel_state.declared import DeclarationError
from collector.kernel_state.tunnel_link import from_dict, read_links
from collector.kernel_state.tunnel_types import NAMES, TYPES
from tests.unit.tunnel_factory import ENDS4, ENDS6, INNER4, INNER6, NEEDED, declared, link


def test_every_type_can_be_declared():
    assert set(NEEDED) == set(NAMES)
    for sort in NAMES:
        assert link(sort).type == sort


@pytest.mark.parametrize("sort", NAMES)
def test_a_link_survives_the_record_on_the_host(sort):
    one = link(sort, offloads={"tso": False})
    assert from_dict(json.loads(json.dumps(one.as_dict()))) == one


def test_an_option_that_is_none_is_named_once():
    with pytest.raises(DeclarationError) as seen:
        read_links([declared("vxlan", vni=4)])
    assert str(seen.value) == (
        "links[0] (xt0).vni: 4, wanted nothing: vxlan takes csum, df, id, port, source_ports, tos, "
        "ttl, udp6_zero_csum"
    )


def test_the_usual_port_is_filled_in():
    assert link("vxlan").port == 4789
    assert link("vxlan", port=8472).port == 8472
    assert link("l2tp", encap="ip").port is None
    assert link("ovs", protocol="geneve").port == 6081
    assert link("ovs", protocol="gre").port is None


def test_defaults_that_a_module_fills_in_are_no_wish():
    filled = {"carries": None, "encap": None, "csum": None, "offloads": None, "seq": False}
    assert read_links([declared("ipip", **filled)])[0] == link("ipip")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "fifteen-letters"}, "links[0] (fifteen-letters).name: 'fifteen-letters', wanted "
         "a letter, then letters, digits, '_' or '-', at most 14"),
        ({"ends": ["198.18.0.1", "2001:db8::1"]}, "links[0] (xt0).ends: ['198.18.0.1', "
         "'2001:db8::1'], wanted two different addresses of one family"),
        ({"ends": ENDS4[:1]}, "wanted two different addresses of one family"),
        ({"inner_ipv4": ["198.19.0.1", "198.19.0.2"]}, "inner_ipv4: ['198.19.0.1', '198.19.0.2'],"
         " wanted two IPv4 addresses with length in one network"),
        ({"inner_ipv4": ["198.19.0.1/24", "198.20.0.2/24"]}, "in one network"),
        ({"inner_ipv6": INNER4}, "wanted two IPv6 addresses with length in one network"),
        ({"id": None}, "links[0] (xt0).id: None, wanted a number: vxlan has no other way to tell "
         "its links apart"),
        ({"id": 1 << 24}, "links[0] (xt0).id: 16777216, wanted 0 to 16777215"),
        ({"port": 0}, "links[0] (xt0).port: 0, wanted 1 to 65535"),
        ({"ttl": "0"}, "links[0] (xt0).ttl: 0, wanted 1 to 255 or inherit"),
        ({"ttl": "some"}, "links[0] (xt0).ttl: 'some', wanted 1 to 255 or inherit"),
        ({"df": "yes"}, "links[0] (xt0).df: 'yes', wanted one of set, unset, inherit"),
        ({"csum": "yes"}, "links[0] (xt0).csum: 'yes', wanted true or false"),
        ({"source_ports": [5, 5]}, "source_ports: [5, 5], wanted the lowest port and one above"),
        ({"key": 7}, "links[0] (xt0).key: 7, wanted nothing: vxlan takes csum, df, id, port, "
         "source_ports, tos, ttl, udp6_zero_csum"),
        ({"offloads": {"tso": "off"}}, "wanted features of ethtool -K, each true or false"),
        ({"mtu": 60}, "links[0] (xt0).mtu: 60, wanted 68 to 65535"),
        ({"mtu": 1200, "inner_ipv6": INNER6}, "links[0] (xt0).mtu: 1200, wanted at least 1280 for"
         " what it carries"),
        ({"inner_ipv4": ["198.18.0.5/28", "198.18.0.6/28"]}, "links[0] (xt0).inner_ipv4: "
         "['198.18.0.5/28', '198.18.0.6/28'], wanted a network without 198.18.0.1 and 198.18.0.2 of"
         " ends"),
        ({"type": "carrier-pigeon"}, "links[0] (xt0).type: 'carrier-pigeon', wanted one of vxlan,"),
    ],
)  # fmt: skip
def test_a_fault_is_named(change, text):
    with pytest.raises(DeclarationError) as seen:
        read_links([{**declared("vxlan"), **change}])
    assert text in str(seen.value)


@pytest.mark.parametrize(
    ("sort", "change", "text"),
    [
        ("gre", {"ends": ENDS6}, "wanted IPv4 addresses: gre is carried by no other"),
        ("ip6tnl", {"ends": ENDS4}, "wanted IPv6 addresses: ip6tnl is carried by no other"),
        ("ipip", {"inner_ipv6": INNER6}, "wanted none: ipip does not carry it"),
        ("sit", {"inner_ipv4": INNER4}, "wanted none: sit does not carry it"),
        ("fou", {"inner_ipv6": INNER6}, "wanted none: fou does not carry it"),
        ("gue", {"key": 1}, "links[0] (xt0).key: 1, wanted carries: gre with it"),
        ("l2tp", {"encap": "ip", "port": 1701}, "wanted encap: udp with a port or a checksum"),
        ("l2tp", {"id": 0}, "links[0] (xt0).id: 0, wanted 1 to 4294967295"),
        ("ipip", {"df": "unset", "ttl": 5}, "wanted no ttl of its own with it (found 5)"),
        ("ipip", {"df": "inherit"}, "wanted set or unset: ipip knows no other"),
        ("stt", {"ttl": "inherit"}, "wanted a number: stt does not look into packets for it"),
        ("macsec", {"cipher": "des"}, "wanted one of gcm-aes-128, gcm-aes-256"),
    ],
)  # fmt: skip
def test_what_a_type_cannot_do_is_named(sort, change, text):
    with pytest.raises(DeclarationError) as seen:
        read_links([declared(sort, **change)])
    assert text in str(seen.value)


def test_what_only_another_type_takes_is_refused_for_each():
    for sort in NAMES:
        for key, value in (("id", 5), ("encap_limit", 4), ("cipher", "gcm-aes-256")):
            if key not in TYPES[sort].options:
                with pytest.raises(DeclarationError, match=f"{sort} takes"):
                    read_links([declared(sort, **{key: value})])


def test_all_faults_are_told_together():
    with pytest.raises(DeclarationError) as seen:
        read_links([declared("vxlan", port=0, df="x"), declared("gre", name="g", ttl=999)])
    assert str(seen.value).count(", wanted ") == 3


def test_links_do_not_share_names_or_networks():
    with pytest.raises(DeclarationError) as seen:
        read_links([declared("vxlan"), declared("vxlan", id=43)])
    text = str(seen.value)
    assert "links[1].name: 'xt0', the same as [0]" in text
    assert "198.19.0.0/24 overlaps 198.19.0.0/24 of xt0; wanted a network of its own" in text


def test_udp_ports_that_a_host_opens_once_are_not_shared():
    second = declared("gue", name="xt1", port=5555, inner_ipv4=["198.19.1.1/24", "198.19.1.2/24"])
    with pytest.raises(DeclarationError, match="port 5555 of xt0; wanted a port of its own"):
        read_links([declared("fou"), second])


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["name", "type", "ends", "id", "ttl"]),
                                      inner, max_size=3)))  # fmt: skip
def test_whatever_comes_is_links_or_a_named_fault(value):
    try:
        text = str(read_links(value))
    except DeclarationError as error:
        text = str(error)
    assert text == "()" or text.startswith("(Link(") or "wanted" in text

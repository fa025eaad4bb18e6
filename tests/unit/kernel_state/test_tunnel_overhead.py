"""What each type takes of the MTU, against figures counted by hand from the formats."""

from __future__ import annotations

import pytest

from collector.kernel_state.tunnel_overhead import (
    computed_mtu,
    explain_mtu,
    largest_mtu,
    mtu_of,
    overhead,
    parts,
)
from collector.kernel_state.tunnel_types import NAMES
from tests.unit.tunnel_factory import ENDS4, ENDS6, INNER6, link

# Type, what is declared beside it, and the bytes over IPv4 and over IPv6 (None: cannot be).
BYTES = [
    ("vxlan", {}, 50, 70),
    ("vxlan-gpe", {}, 36, 56),
    ("geneve", {}, 50, 70),
    ("gre", {}, 24, None),
    ("gre", {"key": 1}, 28, None),
    ("gre", {"key": 1, "csum": True, "seq": True}, 36, None),
    ("gretap", {}, 38, None),
    ("ip6gre", {"key": 1}, None, 48),
    ("ip6gre", {"encap_limit": 4}, None, 52),
    ("ip6gretap", {}, None, 58),
    ("ipip", {}, 20, None),
    ("sit", {}, 20, None),
    ("ip6tnl", {}, None, 40),
    ("ip6tnl", {"encap_limit": 4}, None, 48),
    ("fou", {}, 28, 48),
    ("fou", {"carries": "gre", "csum": True}, 32, 52),
    ("gue", {}, 32, 52),
    ("gue", {"carries": "gre", "key": 9}, 40, 60),
    ("l2tp", {}, 54, 74),
    ("l2tp", {"encap": "ip"}, 42, 62),
    ("wireguard", {}, 60, 80),
    ("macsec", {}, 32, 32),
    ("ovs", {}, 50, 70),
    ("ovs", {"protocol": "gre"}, 42, 62),
    ("stt", {}, 72, 92),
]


def test_every_type_is_counted():
    assert {row[0] for row in BYTES} == set(NAMES)


@pytest.mark.parametrize(("sort", "keys", "four", "six"), BYTES)
def test_the_overhead_is_that_of_the_headers(sort, keys, four, six):
    for ends, wanted in ((ENDS4, four), (ENDS6, six)):
        if wanted is not None:
            one = link(sort, ends=ends, **keys)
            assert overhead(one) == wanted
            assert computed_mtu(one, 1500) == 1500 - wanted
            assert sum(size for _what, size in parts(one)) == wanted


def test_a_given_mtu_is_kept_when_it_works():
    assert mtu_of(link("vxlan"), 9000) == 8950
    assert mtu_of(link("vxlan", mtu=1400), 1500) == 1400
    assert explain_mtu(link("vxlan", mtu=1400), 1500) is None


def test_a_wrong_mtu_is_explained_with_the_reckoning():
    assert explain_mtu(link("vxlan", mtu=1500), 1500) == (
        "1500, wanted at most 1450: 1500 of the path less 50 (IPv4 20, UDP 8, VXLAN 8, Ethernet 14)"
    )
    assert explain_mtu(link("ip6tnl", inner_ipv6=INNER6), 1300) == (
        "1260, wanted at least 1280; computed 1260: 1300 of the path less 40 (IPv6 40)"
    )


def test_only_stt_takes_more_than_a_packet():
    assert largest_mtu(link("stt"), 1500) == 65463
    assert explain_mtu(link("stt", mtu=9000), 1500) is None
    assert largest_mtu(link("geneve"), 1500) == 1450

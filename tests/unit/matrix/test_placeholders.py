"""Names that stand for a lab's addresses."""

import pytest

from collector.errors import InputError
from collector.matrix.placeholders import EXAMPLE, addresses, resolve

LINK = {
    "device": "eth1",
    "ipv4": "203.0.113.9/28",
    "ipv6": "2001:db8:5::9/64",
    "peer_ipv4": "203.0.113.10/28",
    "peer_ipv6": "2001:db8:5::a/64",
}


def test_a_link_gives_every_name_a_matrix_may_use():
    assert addresses(LINK) == {
        "@test_ipv4": "203.0.113.0/28",
        "@test_ipv6": "2001:db8:5::/64",
        "@client_ipv4": "203.0.113.9",
        "@server_ipv4": "203.0.113.10",
        "@client_ipv6": "2001:db8:5::9",
        "@server_ipv6": "2001:db8:5::a",
    }
    assert set(addresses(LINK)) == set(EXAMPLE)


def test_names_are_replaced_wherever_they_stand_and_nothing_else_is():
    value = {"a": ["@test_ipv4", {"b": "@client_ipv6"}], "n": 5, "t": "x@test_ipv4", "none": None}
    assert resolve(value, addresses(LINK), "m") == {
        "a": ["203.0.113.0/28", {"b": "2001:db8:5::9"}],
        "n": 5,
        "t": "x@test_ipv4",
        "none": None,
    }
    assert value["a"][0] == "@test_ipv4"


def test_an_unknown_name_is_refused_with_its_place():
    with pytest.raises(InputError) as caught:
        resolve({"maps": [{"address": "@lan"}]}, EXAMPLE, "m.cipso")
    assert str(caught.value) == (
        f"m.cipso.maps[0].address: found '@lan'; wanted one of {', '.join(EXAMPLE)}"
    )

"""netlabelctl's listings as values."""

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.netlabel import (
    DoiDetail,
    MapEntry,
    StaticLabel,
    Unlabelled,
    parse_doi,
    parse_doi_list,
    parse_unlabelled,
)
from collector.kernel_state.netlabel_map import describe, parse_map

PRETTY_DOI = """Configured CIPSO mapping (DOI = 16)
 tags (1):
   RESTRICTED BITMAP
 levels (2):
   0 = 0
   1 = 5
 categories (1):
   3 = 9
"""


def test_doi_listings_plain_and_pretty_say_the_same():
    plain = parse_doi_list("16,TRANSLATED 100,LOCAL 7,PASS_THROUGH\n")
    pretty = parse_doi_list(
        "Configured CIPSO mappings (3)\n"
        " DOI value : 16\n   mapping type : TRANSLATED\n"
        " DOI value : 100\n   mapping type : LOCAL\n"
        " DOI value : 7\n   mapping type : PASS_THROUGH\n"
    )
    assert plain == pretty == {16: "trans", 100: "local", 7: "pass"}
    assert parse_doi_list("\n") == {}


def test_a_doi_in_detail():
    assert parse_doi("tags:1 levels:0=0,1=5 categories:3=9\n") == DoiDetail(
        None, "trans", (1,), {0: 0, 1: 5}, {3: 9}
    )
    assert parse_doi(PRETTY_DOI) == DoiDetail(16, "trans", (1,), {0: 0, 1: 5}, {3: 9})
    assert parse_doi("tags:128").kind == "local"
    assert parse_doi("tags:1,2,5") == DoiDetail(None, "pass", (1, 2, 5), {}, {})
    assert parse_doi("type:PASS_THROUGH").kind == "pass"
    calipso = "Configured CALIPSO mapping (DOI = 7)\n type: PASS_THROUGH\n"
    assert parse_doi(calipso).number == 7


def test_map_forms_of_0_17_to_0_30():
    old = (
        "Configured NetLabel domain mappings (1, not including DEFAULT)\n"
        ' domain: "netperf_t"\n   protocol: CIPSOv4, DOI = 16\n'
        " domain: DEFAULT\n   protocol: UNLABELED\n"
    )
    assert parse_map(old) == (
        MapEntry("netperf_t", None, 4, "cipso", 16),
        MapEntry(None, None, None, "unlbl"),
    )
    mixed = "domain:DEFAULT,CIPSOv4,16 domain:DEFAULT,UNLABELED,6\n"
    assert parse_map(mixed) == (
        MapEntry(None, None, 4, "cipso", 16),
        MapEntry(None, None, 6, "unlbl"),
    )
    pretty = (
        "Configured NetLabel domain mappings (2)\n"
        " domain: DEFAULT (IPv4)\n   protocol: CIPSO, DOI = 16\n"
        " domain: DEFAULT (IPv6)\n   protocol: UNLABELED\n"
    )
    assert parse_map(pretty) == parse_map(mixed)
    whole = "Configured NetLabel domain mappings (1)\n domain: DEFAULT (IPv4/IPv6)\n"
    assert parse_map(whole + "   protocol: UNLABELED\n") == (MapEntry(None, None, None, "unlbl"),)


def test_entries_are_described_for_people():
    assert describe(MapEntry(None, "192.0.2.0/24", 4, "cipso", 16)) == (
        "default 192.0.2.0/24 cipso,16"
    )
    assert describe(MapEntry("a_t", None, 6, "unlbl")) == "domain a_t unlbl,6"


def test_unlabelled_listings():
    label = "system_u:object_r:unlabeled_t:s0:c1,c3"
    expected = Unlabelled(
        True, (StaticLabel("lo", "192.0.2.0/24", label), StaticLabel(None, "::1/128", label))
    )
    plain = (
        f'accept:on interface:lo,address:192.0.2.0/24,label:"{label}" '
        f'interface:DEFAULT,address:::1/128,label:"{label}"\n'
    )
    assert parse_unlabelled(plain) == expected
    pretty = (
        "Accept unlabeled packets : on\nConfigured NetLabel address mappings (2)\n"
        f' interface: lo\n   address: 192.0.2.0/24\n    label: "{label}"\n'
        f' interface: DEFAULT\n   address: ::1/128\n    label: "{label}"\n'
    )
    assert parse_unlabelled(pretty) == expected
    assert parse_unlabelled("off") == Unlabelled(False)


@pytest.mark.parametrize(
    ("reader", "text", "wanted"),
    [
        (parse_map, "domain:DEFAULT,UNLA", "address:A/LEN,protocol:P[,DOI]"),
        (parse_map, "domain:DEFAULT,CIPSOv4", "CIPSOv4 and a DOI"),
        (parse_map, "domain:DEFAULT,UNLABELED,5", "UNLABELED,4"),
        (parse_map, "domain:DEFAULT,address:192.0.2.4/24,protocol:UNLABELED", "host bits"),
        (parse_map, "domain:DEFAULT,address:192.0.2.4,protocol:UNLABELED", "mask length"),
        (parse_map, "domain:DEFAULT,address:::/0,protocol:CIPSOv4,1", "an IPv4 address"),
        (parse_map, "domain:DEFAULT,UNLABELED domain:DEFAULT,UNLABELED", "each entry once"),
        (parse_map, "Configured NetLabel domain mappings (2)\n domain: DEFAULT (IPv4)\n"
         "   protocol: CIPSO, DOI = 1\n", "the 2 of the heading"),
        (parse_map, "Configured NetLabel domain mappings (1)\n domain: DEFAULT (IPv4)\n",
         "a protocol for the last domain"),
        (parse_doi_list, "16,PASS", "one of LOCAL"),
        (parse_doi_list, "16,LOCAL 16,LOCAL", "each DOI once"),
        (parse_doi_list, "Configured CIPSO mappings (2)\n DOI value : 1\n"
         "   mapping type : LOCAL", "the 2 of the heading"),
        (parse_doi, "tags:1 levels:0 categories:", "LOCAL=WIRE for a level"),
        (parse_doi, PRETTY_DOI.replace("   1 = 5\n", ""), "the 2 announced"),
        (parse_unlabelled, "accept:maybe", "accept:on or accept:off"),
        (parse_unlabelled, "", "accept:on or accept:off"),
    ],
)  # fmt: skip
def test_other_text_is_refused_with_what_was_wanted(reader, text, wanted):
    with pytest.raises(StateError, match="wanted") as caught:
        reader(text)
    assert wanted in str(caught.value)

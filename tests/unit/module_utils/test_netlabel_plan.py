"""NetLabel: what is refused, and plans that arrive, rest and go back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.netlabel_plan import (
    Doi,
    MapEntry,
    NetlabelState,
    StaticLabel,
    Unlabelled,
    diff,
    plan,
    review,
    validate,
)

from .netlabel_kernel import Kernel

FRESH = NetlabelState((), (MapEntry(None, None, None, "unlbl"),), Unlabelled(True))
TEST_NET = MapEntry(None, "192.0.2.0/24", 4, "cipso", 16)
REST = (MapEntry(None, "0.0.0.0/0", 4, "unlbl"), MapEntry(None, "::/0", 6, "unlbl"))
STD = Doi(16, "trans", (1,), {0: 0, 1: 1}, {0: 0, 5: 7})
CIPSO = NetlabelState((STD,), (*REST, TEST_NET))
LABEL = "system_u:object_r:unlabeled_t:s0"


def shown(state):
    return diff(state, state)["after"]


def test_the_published_configuration_labels_the_test_network_only():
    assert validate(CIPSO, ("198.51.100.1", "2001:db8::1"), "6.12.0") == []
    steps = plan(FRESH, CIPSO)
    assert steps.commands == (
        ("netlabelctl", "cipso", "add", "trans", "doi:16", "tags:1", "levels:0=0,1=1",
         "categories:0=0,5=7"),
        ("netlabelctl", "map", "del", "default"),
        ("netlabelctl", "map", "add", "default", "address:0.0.0.0/0", "protocol:unlbl"),
        ("netlabelctl", "map", "add", "default", "address:::/0", "protocol:unlbl"),
        ("netlabelctl", "map", "add", "default", "address:192.0.2.0/24", "protocol:cipso,16"),
    )  # fmt: skip
    assert steps.gap
    assert steps.inverse == (
        ("netlabelctl", "map", "del", "default"),
        ("netlabelctl", "map", "add", "default", "protocol:unlbl"),
        ("netlabelctl", "cipso", "del", "doi:16"),
    )


def test_adding_a_network_to_a_map_leaves_no_gap():
    more = NetlabelState(CIPSO.dois, (*CIPSO.maps, MapEntry(None, "198.51.100.9", 4, "cipso", 16)))
    steps = plan(CIPSO, more)
    assert steps.commands == (
        ("netlabelctl", "map", "add", "default", "address:198.51.100.9/32", "protocol:cipso,16"),
    )
    assert not steps.gap


def test_a_changed_doi_is_out_of_use_while_it_changes():
    other = NetlabelState((Doi(16, "pass", (2,)),), CIPSO.maps)
    words = [" ".join(argv[1:4]) for argv in plan(CIPSO, other).commands]
    assert words == [
        "map del default", "cipso del doi:16", "cipso add pass", "map add default",
        "map add default", "map add default",
    ]  # fmt: skip


def test_accepting_goes_on_first_and_off_last():
    off = NetlabelState(CIPSO.dois, CIPSO.maps, Unlabelled(False))
    commands = plan(FRESH, off).commands
    assert commands[-1] == ("netlabelctl", "unlbl", "accept", "off")
    assert plan(off, FRESH).commands[0] == ("netlabelctl", "unlbl", "accept", "on")


def test_undeclared_unlabelled_handling_is_left_alone():
    labelled = NetlabelState((), FRESH.maps, Unlabelled(True, (StaticLabel(None, "::1", LABEL),)))
    assert plan(labelled, CIPSO).commands == plan(FRESH, CIPSO).commands
    assert "unlabelled" not in diff(labelled, CIPSO)["after"]


def test_the_diff_reads_well():
    assert diff(FRESH, CIPSO) == {
        "before": {"dois": {}, "maps": ["default unlbl"]},
        "after": {
            "dois": {
                "cipso 16": {
                    "kind": "trans",
                    "tags": [1],
                    "levels": "0=0,1=1",
                    "categories": "0=0,5=7",
                }
            },
            "maps": [
                "default 0.0.0.0/0 unlbl",
                "default 192.0.2.0/24 cipso,16",
                "default ::/0 unlbl",
            ],
        },
    }


def with_dois(*dois):
    return NetlabelState(dois, FRESH.maps)


def with_maps(*maps):
    return NetlabelState((STD, Doi(7, "pass", (), protocol="calipso")), maps)


@pytest.mark.parametrize(
    ("declared", "error"),
    [
        (with_dois(Doi(102, "pass", (1, 2, 5), {1: 2})),
         "dois[0] (DOI 102).levels: pass takes no translation"),
        (with_dois(Doi(102, "pass", (1,), {}, {1: 2})),
         "dois[0] (DOI 102).categories: pass takes no translation"),
        (with_dois(Doi(1, "trans", (1, 5), {0: 0})),
         "dois[0] (DOI 1).tags: tag 5, trans takes tag 1 only"),
        (with_dois(Doi(1, "trans", (1,))), "dois[0] (DOI 1).levels: empty"),
        (with_dois(Doi(1, "trans", (1,), {0: 256})), "levels: 0=256, wanted 0 to 255 on the wire"),
        (with_dois(Doi(1, "trans", (1,), {0: 0}, {0: 65535})), "categories: 0=65535, wanted"),
        (with_dois(Doi(1, "local", (1,))), "tags: [1], local is tag 128 only"),
        (with_dois(Doi(1, "pass", (128,))), "tag 128, wanted 1 (bitmap)"),
        (with_dois(Doi(1, "pass", ())), "tags: empty, wanted 1 to 5"),
        (with_dois(Doi(1, "pass", (1, 2, 5, 1, 2, 5))), "6 tags, wanted at most 5"),
        (with_dois(Doi(0, "pass", (1,))), "number: 0, wanted 1 to 4294967295"),
        (with_dois(STD, STD), "dois[1] (DOI 16).number: declared a second time"),
        (with_dois(Doi(1, "std", (1,))), "kind: 'std', wanted one of trans, pass, local"),
        (with_dois(Doi(1, "trans", (), {0: 0}, protocol="calipso")), "CALIPSO knows pass only"),
        (with_maps(*REST, MapEntry(None, "192.0.2.0/24", 4, "cipso", 17)),
         "maps[2].doi: default 192.0.2.0/24 cipso,17 refers to cipso DOI 17, which is not"),
        (with_maps(TEST_NET, MapEntry(None, "2001:db8::1/32", 6, "calipso", 7)),
         "default has no 0.0.0.0/0 and ::/0 mapping"),
        (with_maps(REST[0], TEST_NET), "default has no ::/0 mapping"),
        (with_maps(), "default has no 0.0.0.0/0 and ::/0 mapping"),
        (with_maps(*REST, MapEntry(None, "2001:db8::/32", None, "cipso", 16)),
         "maps[2].selector: 2001:db8::/32 for cipso, wanted an IPv4 network"),
        (with_maps(*REST, MapEntry(None, "192.0.2.0/24", 6, "unlbl")), "wanted an IPv6 network"),
        (with_maps(*REST, TEST_NET, TEST_NET), "maps[3].selector: 192.0.2.0/24 is mapped a second"),
        (with_maps(*REST, MapEntry(None, None, 4, "unlbl")), "both a mapping for all of IPv4 and"),
        (with_maps(*FRESH.maps, *FRESH.maps), "maps IPv4 of the same domain already"),
        (with_maps(*REST, MapEntry(None, "192.0.2.300", 4, "unlbl")), "wanted an address or"),
        (with_maps(*REST, MapEntry("a b", None, None, "unlbl")), "wanted an LSM domain"),
        (with_maps(*REST, MapEntry("a_t", None, None, "cipso")), "doi: None, wanted one for cipso"),
        (with_maps(*REST, MapEntry("a_t", None, None, "unlbl", 3)), "doi: 3, unlbl takes none"),
        (with_maps(*REST, MapEntry("a_t", None, None, "ripso")), "protocol: 'ripso', wanted one"),
        (with_maps(*REST, MapEntry("a_t", None, 6, "cipso", 16)), "family: 6, cipso is IPv4"),
        (NetlabelState((), FRESH.maps, Unlabelled(True, (StaticLabel("e/0", "::1", LABEL),))),
         "unlabelled.static[0].interface: 'e/0'"),
        (NetlabelState((), FRESH.maps, Unlabelled(True, (StaticLabel(None, "::1", "s0"),))),
         "unlabelled.static[0].label: context 's0'"),
    ],
)  # fmt: skip
def test_errors_name_item_and_key(declared, error):
    found = validate(declared)
    assert any(error in text for text in found), found


def test_host_bits_are_taken_off_with_a_warning():
    declared = with_maps(*REST, MapEntry(None, "2001:db8::1/32", 6, "calipso", 7))
    found = review(declared)
    assert found.errors == ()
    assert found.state.maps[2].selector == "2001:db8::/32"
    assert "maps[2].selector: 2001:db8::1/32 has host bits set; taken as 2001:db8::/32" in (
        found.warnings
    )


def test_calipso_on_kernels_that_it_can_crash():
    declared = with_maps(*REST, MapEntry(None, "2001:db8::/32", 6, "calipso", 7))
    for kernel, warned in ((None, True), ("6.12.117", True), ("6.15.2", False), ("7.0", False)):
        texts = review(declared, (), kernel).warnings
        assert any("CALIPSO" in text for text in texts) is warned


@pytest.mark.parametrize(
    ("maps", "address", "error"),
    [
        ((*REST, TEST_NET), "192.0.2.7", "maps[2]: default 192.0.2.0/24 cipso,16 covers the "
         "management address 192.0.2.7"),
        ((*REST, TEST_NET, MapEntry(None, "192.0.2.7/32", 4, "unlbl")), "192.0.2.7", None),
        ((MapEntry(None, None, 4, "cipso", 16), MapEntry(None, None, 6, "unlbl")), "192.0.2.7",
         "maps[0]: default cipso,16 covers"),
        ((*REST, MapEntry("sshd_t", None, None, "cipso", 16)), "192.0.2.7", "domain sshd_t"),
        ((*REST,), "management", "management: 'management', wanted an address"),
    ],
)  # fmt: skip
def test_the_management_address_stays_unlabelled(maps, address, error):
    found = validate(NetlabelState((STD,), maps), (address,))
    assert (found == []) if error is None else any(error in text for text in found)


def test_refusing_unlabelled_packets_would_cut_management():
    declared = NetlabelState((), FRESH.maps, Unlabelled(False))
    assert validate(declared) == []
    assert "management connection" in validate(declared, ("192.0.2.1",))[0]


def test_doubtful_things_are_warnings():
    found = review(
        NetlabelState(
            (Doi(16, "trans", (1,), {0: 0, 1: 0}),),
            (*FRESH.maps, MapEntry("a_t", "192.0.2.0/24", 4, "unlbl")),
        )
    )
    assert found.errors == ()
    assert any("both become 0" in text for text in found.warnings)
    assert any("domain a_t has no 0.0.0.0/0 mapping" in text for text in found.warnings)


# --- plans on a model of the kernel -------------------------------------------------------------

TABLES = st.dictionaries(st.integers(0, 5), st.integers(0, 255), min_size=1, max_size=3)
NETWORKS = ("192.0.2.0/24", "198.51.100.0/25", "203.0.113.7/32")


@st.composite
def configurations(draw):
    """Configurations that validate() accepts."""
    kinds = draw(st.dictionaries(st.integers(1, 4), st.sampled_from(["trans", "pass", "local"])))
    dois = []
    for number, kind in kinds.items():
        tags = {"trans": (1,), "local": (128,)}.get(kind) or tuple(
            draw(st.permutations([1, 2, 5]))[: draw(st.integers(1, 3))]
        )
        tables = (draw(TABLES), draw(TABLES)) if kind == "trans" else ({}, {})
        dois.append(Doi(number, kind, tags, *tables))
    if draw(st.booleans()):
        dois.append(Doi(9, "pass", (), protocol="calipso"))
    cipso = [doi.number for doi in dois if doi.protocol == "cipso"]
    maps = []
    for domain in draw(st.sets(st.sampled_from(["a_t", "b_t"]))) | {None}:
        if draw(st.booleans()):
            maps.append(MapEntry(domain, None, None, "unlbl"))
            continue
        maps += [MapEntry(domain, "0.0.0.0/0", 4, "unlbl"), MapEntry(domain, "::/0", 6, "unlbl")]
        for network in draw(st.sets(st.sampled_from(NETWORKS))):
            doi = draw(st.sampled_from([None, *cipso]))
            maps.append(MapEntry(domain, network, 4, "unlbl" if doi is None else "cipso", doi))
    static = draw(st.sets(st.sampled_from(["192.0.2.0/24", "2001:db8::/64"])))
    labels = tuple(StaticLabel("eth1", address, LABEL) for address in sorted(static))
    unlabelled = Unlabelled(draw(st.booleans()), labels)
    return NetlabelState(tuple(dois), tuple(maps), unlabelled)


@settings(deadline=None)
@given(configurations(), configurations())
def test_a_plan_arrives_rests_and_goes_back(present, declared):
    assert validate(declared) == []
    kernel = Kernel(present)
    steps = plan(present, declared)
    kernel.run(steps.commands)
    assert shown(kernel.state()) == shown(declared)
    assert plan(kernel.state(), declared).commands == ()
    assert plan(kernel.state(), declared).inverse == ()
    if not steps.gap:
        assert kernel.without_default == 0
    kernel.run(steps.inverse)
    assert shown(kernel.state()) == shown(present)


@settings(deadline=None)
@given(configurations(), configurations(), st.data())
def test_a_plan_from_halfway_arrives_too(present, declared, data):
    """What a rollback does after a command in the middle was refused."""
    kernel = Kernel(present)
    commands = plan(present, declared).commands
    kernel.run(commands[: data.draw(st.integers(0, len(commands)))])
    kernel.run(plan(kernel.state(), present).commands)
    assert shown(kernel.state()) == shown(present)


@settings(deadline=None)
@given(configurations(), configurations())
def test_the_default_mapping_comes_back_with_the_next_command(present, declared):
    """Unless a DOI that it uses changes: then after that DOI's commands."""
    kernel = Kernel(present)
    steps = plan(present, declared)
    kernel.run(steps.commands)
    deleted = {argv[3] for argv in steps.commands if argv[1] == "cipso" and argv[2] == "del"}
    added = {argv[4] for argv in steps.commands if argv[1] == "cipso" and argv[2] == "add"}
    if not deleted & added:
        assert kernel.without_default <= 1

"""The bytes of IP option 134, and the sizes that follow from them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.kernel_state.cipso_option import (
    decode_option,
    label_fits,
    label_option,
    mss_for,
    option_bytes,
    tcp_mss,
    to_local,
    udp_payload_for,
)
from collector.kernel_state.context import LabelError, format_level, parse_level
from collector.kernel_state.netlabel import Doi

ONE_TO_ONE = Doi(16, "trans", (1,), {n: n for n in range(17)}, {n: n for n in range(257)})


def passing(*tags: int) -> Doi:
    return Doi(16, "pass", tags)


def test_the_full_label_is_the_option_seen_on_the_wire():
    assert (
        label_option("s0:c0.c239", ONE_TO_ONE).hex()
        == "8628000000100122 0000".replace(" ", "") + "ff" * 30
    )


def test_a_level_without_categories_is_a_tag_of_four_bytes():
    assert label_option("s0", ONE_TO_ONE).hex() == "860a0000001001040000"
    assert label_option("s3-s15:c0.c255", ONE_TO_ONE).hex() == "860a0000001001040003"


def test_translation_changes_level_and_categories():
    doi = Doi(7, "trans", (1,), {0: 200}, {0: 9, 3: 0})
    option = label_option("s0:c0,c3", doi)
    assert option.hex() == "860c0000000701060 0c88040".replace(" ", "")
    decoded = decode_option(option)
    assert (decoded.doi, decoded.tag, decoded.level, decoded.categories) == (7, 1, 200, (0, 9))
    assert to_local(decoded, doi) == (0, frozenset({0, 3}))


def test_short_bitmaps_take_ten_bytes_only_with_rbm_optfmt():
    assert len(option_bytes(0, [0], 1, passing(1))) == 6 + 4 + 1
    assert len(option_bytes(0, [0], 1, passing(1), rbm_optfmt=True)) == 6 + 4 + 10
    assert len(option_bytes(0, [80], 1, passing(1), rbm_optfmt=True)) == 6 + 4 + 11
    assert len(option_bytes(0, [], 1, passing(1), rbm_optfmt=True)) == 6 + 4


def test_ranges_go_down_and_the_last_zero_is_left_out():
    option = option_bytes(0, [0, 1, 2, 3, 20, 21], 5, passing(5))
    assert option[10:].hex() == "001500140003"
    assert decode_option(option).categories == (0, 1, 2, 3, 20, 21)


@pytest.mark.parametrize(
    ("tags", "level", "reason"),
    [
        ((1,), "s0:c0.c239", None),
        ((1,), "s0:c0.c240", "tag 1 carries 0 to 239"),
        ((2,), "s0:c0.c14", None),
        ((2,), "s0:c0.c15", "tag 2 carries at most 15"),
        ((2,), "s0:c0.c16", "tag 2 carries at most 15"),
        ((5,), "s0:c0.c3,c20.c25,c30.c36,c40.c45,c50.c55,c60.c66,c70.c78,c80.c88", None),
        (
            (5,),
            "s0:c20.c25,c30.c36,c40.c45,c50.c55,c60.c66,c70.c78,c80.c88,c90.c99",
            "at most 7, or 8 if the lowest category is 0",
        ),
        ((5,), "s0:c20.c25,c30.c36,c40.c45,c50.c55,c60.c66,c70.c78,c80.c88", None),
        ((2, 5, 1), "s0:c0.c239", None),
        ((128,), "s0", "only the sending host knows"),
    ],
)
def test_limits_of_the_tags(tags, level, reason):
    found = label_fits(level, passing(*tags))
    if reason is None:
        assert found is None
    else:
        assert reason in found
        assert level in found or "local" in found or "sending host" in found
        assert "ENOSPC" in found or reason.startswith("only")


def test_a_label_without_translation_says_eperm_and_names_the_level():
    assert label_fits("s99", ONE_TO_ONE) == (
        "level s99 does not fit DOI 16: tag 1: level s99 has no entry in the levels of DOI 16 "
        '(connect() would fail with EPERM, "Operation not permitted")'
    )
    assert "category c300 has no entry in the categories of DOI 16" in label_fits(
        "s0:c300", ONE_TO_ONE
    )


def test_any_label_fits_a_local_doi_and_nonsense_fits_none():
    local = Doi(100, "local", (128,))
    assert label_fits("s0-s15:c0.c1023", local) is None
    assert "wanted sN" in label_fits("SystemLow", local)
    assert "must go up" in label_fits("s0:c9.c1", passing(1))


def test_sizes_that_prove_a_label():
    assert mss_for(None) == 1448
    assert mss_for("s0", ONE_TO_ONE) == 1436
    assert mss_for("s0:c0.c239", ONE_TO_ONE) == 1408
    assert mss_for("s0", Doi(100, "local", (128,))) == 1436
    assert tcp_mss(0, timestamps=False) == 1460
    assert tcp_mss(10, mtu=9000) == 8936
    assert udp_payload_for(None) == 1472
    assert udp_payload_for("s0:c0.c239", ONE_TO_ONE) == 1432


@settings(deadline=None)
@given(
    st.sampled_from([1, 2, 5]),
    st.integers(0, 255),
    st.sets(st.integers(0, 300), max_size=40),
    st.booleans(),
)
def test_what_is_encoded_decodes_to_the_same(tag, level, categories, optfmt):
    doi = passing(tag)
    try:
        option = option_bytes(level, categories, tag, doi, optfmt)
    except LabelError:
        assert label_fits(format_level(level, frozenset(categories)), doi) is not None
        return
    assert label_fits(format_level(level, frozenset(categories)), doi) is None
    assert option[1] == len(option) <= 40
    decoded = decode_option(option + b"\0\0")
    assert (decoded.doi, decoded.tag, decoded.level) == (16, tag, level)
    assert to_local(decoded, doi) == (level, frozenset(categories))


@settings(deadline=None)
@given(st.binary(max_size=44))
def test_any_bytes_decode_or_are_refused(data):
    try:
        decoded = decode_option(b"\x86" + data)
    except LabelError:
        return
    assert decoded.length <= len(data) + 1


@settings(deadline=None)
@given(st.integers(0, 20), st.frozensets(st.integers(0, 1023)))
def test_levels_are_spelled_and_read_back(level, categories):
    assert parse_level(format_level(level, categories)) == (level, categories)

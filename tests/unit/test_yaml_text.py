"""YAML whose keys stand once."""

import pytest
import yaml

from collector.yaml_text import fault, load


def test_a_key_that_is_said_twice_is_an_error_with_its_line():
    with pytest.raises(yaml.YAMLError) as caught:
        load("kernels:\n  mine: 1\n  other: 2\n  mine: 3\n")
    assert str(fault("k.yml", caught.value, "kernels")) == (
        "k.yml:4: found text that is not YAML (found the key 'mine' twice); wanted kernels"
    )


def test_what_is_merged_may_be_said_anew():
    text = "a: &a {k: 1, l: 1}\nb: {inner: &b {<<: *a, k: 2}}\nc: [*b, {<<: *a, l: 3}]\n"
    assert load(text)["b"] == {"inner": {"k": 2, "l": 1}}
    assert load(text)["c"] == [{"k": 2, "l": 1}, {"k": 1, "l": 3}]


def test_a_text_that_is_none_is_told():
    with pytest.raises(yaml.YAMLError) as caught:
        load("a: [")
    assert str(fault("a.yml", caught.value, "one")).startswith(
        "a.yml:1: found text that is not YAML (expected"
    )

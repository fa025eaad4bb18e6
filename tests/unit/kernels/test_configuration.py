"""Fragments and what Kconfig makes of them."""

from __future__ import annotations

import pytest
import small_source
from hypothesis import given
from hypothesis import strategies as st

from collector.kernels.configuration import Wanted, as_text, lost, merged, parse
from collector.kernels.errors import KernelError
from collector.kernels.kconfig import Definitions, evaluate, explain

NAMES = st.sampled_from([f"CONFIG_{name}" for name in ("A", "B", "C", "NET_X")])
VALUES = st.sampled_from(["y", "m", "n", "64", '"text"'])
OPTIONS = st.dictionaries(NAMES, VALUES.map(lambda value: Wanted(value, "f:1")))


def values(options):
    return {name: wanted.value for name, wanted in options.items()}


@given(OPTIONS)
def test_what_is_written_is_read_back(options):
    assert values(parse(as_text(options), "f")) == values(options)


@given(st.lists(OPTIONS, max_size=4))
def test_the_last_fragment_that_names_an_option_wins(parts):
    result = values(merged(parts))
    for name in {name for part in parts for name in part}:
        assert result[name] == [part[name].value for part in parts if name in part][-1]


@given(OPTIONS)
def test_nothing_is_lost_of_what_survived(options):
    assert lost(options, options) == {}


@given(OPTIONS)
def test_what_is_gone_counts_as_off(options):
    assert lost(options, {}) == {
        name: "n" for name, wanted in options.items() if wanted.value != "n"
    }


@pytest.mark.parametrize("line", ["NET=y", "CONFIG_NET", "CONFIG_NET: y", "config_net=y"])
def test_another_line_is_refused_with_its_number(line):
    with pytest.raises(KernelError) as refused:
        parse(f"# comment\n\nCONFIG_A=y\n{line}\n", "lab.config")
    assert str(refused.value) == (
        f"lab.config:4: found {line!r}; wanted CONFIG_NAME=VALUE or a comment"
    )


FINAL = {f"CONFIG_{name}": Wanted(value, "") for name, value in
         (("ON", "y"), ("MODULE", "m"), ("COUNT", "64"), ("TEXT", '"gzip"'))}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("ON", 2), ("MODULE", 1), ("OFF", 0), ("!OFF", 2), ("!MODULE", 1),
        ("ON && MODULE", 1), ("OFF || MODULE", 1), ("OFF || ON && MODULE", 1),
        ("(OFF || ON) && ON", 2), ("!(ON && OFF)", 2), ("COUNT = 64", 2), ("COUNT != 64", 0),
        ('TEXT = "gzip"', 2), ("TEXT='xz'", 0), ("m", 1), ("y && n", 0),
        ("COUNT >= 64", 2), ("COUNT > 64", 0), ("COUNT < 100 && ON", 2), ("COUNT <= 9", 0),
    ],
)  # fmt: skip
def test_conditions_have_the_kernels_three_values(condition, value):
    assert evaluate(condition, FINAL) == value


def test_a_reason_names_every_condition_that_does_not_hold(tmp_path):
    definitions = Definitions(small_source.write(tmp_path / "linux"))
    on = {"CONFIG_NET": Wanted("y", ""), "CONFIG_SECURITY": Wanted("y", "")}
    assert explain("CONFIG_NETLABEL", "y", definitions, {}) == (
        "it depends on NET && SECURITY, and here NET=n, SECURITY=n"
    )
    assert explain("CONFIG_NETLABEL", "y", definitions, {"CONFIG_NET": on["CONFIG_NET"]}) == (
        "it depends on SECURITY, and here SECURITY=n"
    )
    assert explain("CONFIG_NETLABEL", "n", definitions, on) == (
        "another option selects it, or its type does not allow the value"
    )


KCONFIG = """\
config POLICY
\ttristate 'IPsec "policy" match'
\tdepends on XTABLES
config FILTER
\tbool "On where its parent is a module"
\tdepends on MODULE && OFF
choice
\tprompt "Ticks"
config HZ_250
\tbool "250"
config HZ_1000
\tbool "1000"
endchoice
config AFTER
\tbool "No part of the choice"
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("POLICY", "it depends on XTABLES, and here XTABLES=n"),
        ("HZ_1000", "it is one of a choice, of which HZ_250 is taken"),
        ("AFTER", "another option selects it, or its type does not allow the value"),
        ("FILTER", "it depends on MODULE && OFF, and here MODULE=m, OFF=n"),
    ],
)
def test_prompts_in_other_quotes_and_choices_are_understood(tmp_path, name, why):
    (tmp_path / "Kconfig").write_text(KCONFIG)
    final = {**FINAL, "CONFIG_HZ_250": Wanted("y", "")}
    assert explain(f"CONFIG_{name}", "y", Definitions(tmp_path), final) == why


def test_a_switch_may_be_on_where_what_it_depends_on_is_a_module(tmp_path):
    (tmp_path / "Kconfig").write_text(KCONFIG.replace("MODULE && OFF", "MODULE"))
    assert "depends" not in explain("CONFIG_FILTER", "y", Definitions(tmp_path), FINAL)

"""Which configuration runs on which kernel, and the order in which they are booted."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_factory import disable_matrix, document, planned_over

from collector.compare.neighbours import neighbouring
from collector.errors import InputError, UsageError
from collector.matrix.choice import read_choice
from collector.matrix.kernels import (
    Missing,
    across,
    kernels_of,
    parse_kernels,
    settle,
    why_skipped,
)
from collector.matrix.matrix import read_matrix
from collector.run.plan import groups_of


def kernel_by_name(matrix):
    return {item.name: item.kernel for item in matrix.configurations}


def test_where_all_kernels_are_there_only_what_is_compared_differs():
    made = settle(disable_matrix(), {})
    assert kernel_by_name(made) == {
        "Unlabel": "with", "C_FlCat": "with", "NoPatch": "with", "Disable": "without",
    }  # fmt: skip
    assert kernels_of(disable_matrix()) == ["without", "with"]


@pytest.mark.parametrize("missing", ["with", "without"])
def test_where_one_is_missing_its_row_is_skipped_and_the_rest_runs_on_what_runs(missing):
    made = settle(disable_matrix(), {missing: Missing("never built", 600.0)})
    assert set(kernel_by_name(made).values()) == {None, "without"}
    skipped = {item.name: item.skip for item in made.configurations if item.skip}
    assert skipped == {
        "NoPatch": "needs another kernel",
        "Disable": f"kernel {missing}: never built; about 10 min 00 s: crossover kernel build"
        f" {missing}",
    }


def test_one_command_makes_all_that_is_missing():
    missing = {"without": Missing("never built", 60.0), "with": Missing("changed", 30.0)}
    assert why_skipped(["without", "with"], missing) == (
        "kernel without: never built; kernel with: changed; about 1 min 00 s: crossover kernel"
        " build without with"
    )
    assert why_skipped(["with"], {"with": Missing("no kernels here", None)}) == (
        "kernel with: no kernels here"
    )


def test_a_matrix_whose_rows_name_no_kernel_boots_none():
    made = document()
    made["kernel"] = "with"
    matrix = read_matrix(made, "m.yml")
    assert kernels_of(matrix) == []
    assert set(kernel_by_name(settle(matrix, {})).values()) == {None}
    assert all(
        group.kernel is None and group.boot == 0 for group in groups_of(planned_over(matrix))
    )


def test_a_matrix_over_two_kernels_holds_each_row_against_itself_on_the_first():
    made = across(read_matrix(document(), "m.yml"), {"base": "debian-6.1", "new": "debian-6.12"})
    assert made.baseline == "Unlabel/base"
    rows = {item.name: item for item in made.configurations}
    assert rows["Unlabel/base"].baseline is None
    assert rows["C_FlCat/base"].baseline is None
    assert rows["C_FlCat/new"].baseline == "C_FlCat/base"
    assert rows["C_FlCat/new"].factors == {"configuration": "C_FlCat", "kernel": "new"}
    assert rows["C_FlCat/new"].kernel == "debian-6.12"
    assert rows["NoPatch/new"].skip == "needs another kernel"


def test_a_row_with_a_kernel_of_its_own_is_skipped_where_kernels_are_given():
    made = across(disable_matrix(), {"a": "x", "b": "y"})
    rows = {item.name: item for item in made.configurations}
    assert rows["Disable/a"].skip == "needs the kernel without; here the kernels are given"
    assert kernels_of(made) == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("base=a,new=b", {"base": "a", "new": "b"}),
        ("debian-6.1,debian-6.12", {"debian-6.1": "debian-6.1", "debian-6.12": "debian-6.12"}),
        ("a, b = c ,d", {"a": "a", "b": "c", "d": "d"}),
    ],
)
def test_kernels_are_named_with_or_without_a_label(text, wanted):
    assert parse_kernels(text) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "--kernels 'a': wanted at least two kernels, the base first"),
        ("a,a", "--kernels 'a,a': 'a' twice; wanted each label once"),
        ("a,=b", "--kernels 'a,=b': wanted LABEL=NAME,LABEL=NAME or NAME,NAME"),
        ("a=,b", "--kernels 'a=,b': wanted LABEL=NAME,LABEL=NAME or NAME,NAME"),
        ("", "--kernels '': wanted LABEL=NAME,LABEL=NAME or NAME,NAME"),
        ("a/1=b,c", "--kernels 'a/1=b,c': found the label 'a/1'; wanted letters, digits, '.', '_',"
                    " '+' and '-'"),
    ],
)  # fmt: skip
def test_other_kernels_are_refused(text, message):
    with pytest.raises(UsageError) as refused:
        parse_kernels(text)
    assert str(refused.value) == message


@given(blocks=st.integers(1, 12), seed=st.integers(0, 2**31 - 1), boots=st.integers(1, 4))
def test_each_kernel_is_booted_once_a_block_and_its_blocks_are_spread_over_its_boots(
    blocks, seed, boots
):
    matrix = settle(disable_matrix(), {})
    short = replace(matrix.forms["short"], boots=boots)
    groups = groups_of(planned_over(replace(matrix, forms={"short": short}), blocks, seed))
    for block in range(blocks):
        row = [group.kernel for group in groups if group.block == block]
        changes = sum(1 for one, other in itertools.pairwise(row) if one != other)
        assert changes == 1
        assert row.count("with") == 3  # Unlabel, its A/A twin, C_FlCat
        assert row.count("without") == 1
    assert all(group.boot == group.block % boots for group in groups)


def test_kernels_come_in_another_order_in_some_blocks():
    groups = groups_of(planned_over(settle(disable_matrix(), {}), 10))
    first = {next(g.kernel for g in groups if g.block == block) for block in range(10)}
    assert first == {"with", "without"}


def test_a_plan_whose_row_boots_a_kernel_that_it_does_not_know_is_refused():
    with pytest.raises(InputError, match=r"configurations\[0\]\.kernel: found 'with'"):
        planned_over(settle(disable_matrix(), {}), kernels=("without",))


@pytest.mark.parametrize("value", [{"netlabel": "present"}, {"netlabel": "absent", "dois": []}])
def test_netlabel_can_only_be_declared_absent_and_then_nothing_else(value):
    made = document(("configurations", 0, "cipso"), value)
    with pytest.raises(InputError, match="wanted netlabel: absent, and nothing beside it"):
        read_matrix(made, "m.yml")


def test_a_first_look_boots_each_kernel_twice_and_a_full_run_for_each_block():
    matrix = settle(disable_matrix(), {})
    full = {"short": matrix.forms["full"]}
    for forms, boots in ((matrix.forms, 2), (full, 7)):
        plan = planned_over(replace(matrix, forms=forms), 7)
        assert plan.boots == boots
        assert {group.boot for group in groups_of(plan)} == set(range(boots))


@pytest.mark.parametrize("value", [0, 101])
def test_boots_are_counted_from_one(value):
    with pytest.raises(InputError, match=r"short\.boots: found"):
        read_matrix(document(("short", "boots"), value), "m.yml")


def test_configurations_over_kernels_are_neighbours_of_themselves_alone():
    made = across(read_matrix(document(), "m.yml"), {"base": "x", "new": "y"})
    pairs = neighbouring({item.name: item.factors for item in made.configurations})
    assert pairs == [
        ("Unlabel/base", "Unlabel/new"),
        ("C_FlCat/base", "C_FlCat/new"),
        ("NoPatch/base", "NoPatch/new"),
    ]


def test_a_choice_names_configurations_without_their_kernels():
    made = across(read_matrix(document(), "m.yml"), {"base": "x", "new": "y"})
    choice = read_choice("C_FlCat", None)
    choice.check(made)
    left = [item.name for item in made.configurations if not choice.leaves_out(made, item.name, "")]
    assert left == ["Unlabel/base", "C_FlCat/base", "C_FlCat/new"]

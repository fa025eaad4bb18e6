"""Plans: every cell once a block, in an order that the seed alone decides."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_factory import matrix, plan, plan_document

from collector.errors import UsageError
from collector.run.plan import blocks_of, cell_id, estimate_block_s, groups_of
from collector.runfolder.runfolder import parse_plan


@given(blocks=st.integers(1, 12), seed=st.integers(0, 2**31 - 1))
def test_every_running_cell_comes_once_in_every_block(blocks, seed):
    made = plan(blocks=blocks, seed=seed)
    running = {cell.cell_id for cell in made.cells if cell.skip is None}
    counted = Counter((slot.block, slot.cell_id) for slot in made.order)
    assert set(counted) == {(block, cell) for block in range(blocks) for cell in running}
    assert set(counted.values()) == {1}
    assert [slot.sequence for slot in made.order] == list(range(len(made.order)))
    assert [slot.block for slot in made.order] == sorted(slot.block for slot in made.order)


@given(blocks=st.integers(1, 12), seed=st.integers(0, 2**31 - 1))
def test_a_group_applies_its_configuration_once_a_block(blocks, seed):
    made = plan(blocks=blocks, seed=seed)
    groups = groups_of(made)
    counted = Counter((group.block, group.configuration, group.arm) for group in groups)
    assert set(counted.values()) == {1}
    assert len(groups) == blocks * 3  # Unlabel, its A/A twin, C_FlCat
    assert [cell for group in groups for cell in group.cells] == [
        slot.cell_id for slot in made.order
    ]


def test_the_baseline_runs_twice_as_an_aa_pair_and_nothing_else_does():
    arms = Counter((cell.configuration, cell.arm) for cell in plan().cells)
    assert arms == {
        ("Unlabel", ""): 2,
        ("Unlabel", "aa"): 2,
        ("C_FlCat", ""): 2,
        ("NoPatch", ""): 2,
    }


def test_a_skipped_configuration_stands_in_the_plan_with_its_reason_and_never_runs():
    made = plan()
    skipped = {cell.cell_id: cell.skip for cell in made.cells if cell.configuration == "NoPatch"}
    assert set(skipped.values()) == {"needs another kernel"}
    assert not skipped.keys() & {slot.cell_id for slot in made.order}


def test_the_same_seed_gives_the_same_order_and_another_one_another():
    assert plan_document(seed=5, blocks=8) == plan_document(seed=5, blocks=8)
    assert plan_document(seed=5, blocks=8)["order"] != plan_document(seed=6, blocks=8)["order"]


def test_the_order_differs_between_blocks():
    made = plan(blocks=10)
    orders = {
        tuple(slot.cell_id for slot in made.order if slot.block == block) for block in range(10)
    }
    assert len(orders) > 1


def test_tests_are_shuffled_within_a_configuration():
    orders = {
        group.cells for group in groups_of(plan(blocks=20)) if group.configuration == "C_FlCat"
    }
    assert len(orders) == 2


def test_a_cell_is_the_same_in_every_run_and_differs_in_every_part():
    base = ("m", "c", "t", "", {"mode": "x"})
    assert cell_id(*base) == cell_id(*base)
    others = [
        ("n", *base[1:]),
        ("m", "d", *base[2:]),
        ("m", "c", "u", *base[3:]),
        ("m", "c", "t", "aa", base[4]),
        ("m", "c", "t", "", {"mode": "y"}),
    ]
    assert len({cell_id(*base), *(cell_id(*other) for other in others)}) == 6


def test_the_budget_decides_the_number_of_blocks_between_one_and_the_forms_own():
    made = matrix()
    form = made.forms["short"]
    one = estimate_block_s(made, form)
    for budget, wanted in ((1, 1), (one * 2.5, 2), (one * 1000, form.blocks)):
        assert blocks_of(made, replace(form, budget_s=int(budget) + 1)) == wanted
    assert blocks_of(made, replace(form, budget_s=None)) == form.blocks


def test_confidence_iterations_count_in_the_estimate():
    made = matrix()
    full = made.forms["full"]
    single = replace(full, confidence=None)
    assert estimate_block_s(made, full) > 2.5 * estimate_block_s(made, single)


@pytest.mark.parametrize("blocks", [0, -1])
def test_a_plan_without_a_block_is_refused(blocks):
    with pytest.raises(UsageError, match=rf"^blocks: found {blocks}; wanted at least 1$"):
        plan(blocks=blocks)


@given(data=st.data())
def test_taking_a_run_up_again_leaves_out_exactly_what_is_done(data):
    made = plan(blocks=3)
    slots = [(slot.cell_id, slot.block) for slot in made.order]
    done = data.draw(st.sets(st.sampled_from(slots)))
    left = [(cell, group.block) for group in groups_of(made, done) for cell in group.cells]
    assert left == [slot for slot in slots if slot not in done]
    assert all(group.cells for group in groups_of(made, done))


def test_the_plan_records_settings_seed_and_delta():
    document = plan_document("full", seed=42)
    settings = document["tests"][1]["settings"]
    assert settings["confidence"] == {
        "level_pct": 99,
        "width_pct": 5.0,
        "max_iterations": 10,
        "min_iterations": 3,
    }
    assert (settings["message_bytes"], settings["duration_s"]) == ("fit", 60)
    assert document["seed"] == 42
    assert "delta" not in document
    made = replace(matrix(), delta=0.005)
    from collector.run.plan import make_plan

    again = make_plan(
        made, made.forms["short"], run_id="r", created_at="t", seed=1,
        lab={"kind": "guests", "accelerator": "tcg", "name": "x"},
    )  # fmt: skip
    assert parse_plan(again, "plan.json").delta == 0.005

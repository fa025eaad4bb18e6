"""Part of a matrix in one run: what is chosen is run, the rest says that it was not."""

import pytest
from matrix_factory import DOCUMENT, plan_document

from collector.errors import UsageError
from collector.matrix.choice import Choice, read_choice
from collector.matrix.matrix import read_matrix
from collector.run.plan import estimate_block_s, make_plan
from collector.run.progress import planned_text
from collector.runfolder.runfolder import parse_plan

MATRIX = read_matrix(
    {
        **DOCUMENT,
        "configurations": [
            *DOCUMENT["configurations"],
            {"name": "C_other", "about": "one more", "label": "s0", "cipso": {}},
        ],
    },
    "m.yml",
)


def plan(choice):
    document = make_plan(
        MATRIX,
        MATRIX.forms["short"],
        run_id="r",
        created_at="2026-11-30T10:00:00Z",
        lab={"kind": "guests", "accelerator": "tcg", "name": "default"},
        seed=1,
        blocks=1,
        choice=choice,
    )
    return parse_plan(document, "plan.json")


def run_cells(made):
    return {(cell.configuration, cell.test) for cell in made.cells if cell.skip is None}


def test_nothing_chosen_is_everything():
    assert not read_choice(None, "")
    assert plan_document()["order"]


def test_a_test_is_chosen_by_name_or_pattern_and_the_rest_stays_in_the_plan():
    made = plan(read_choice(None, "tcp_*"))
    assert {test for _, test in run_cells(made)} == {"tcp_rr"}
    left = {cell.skip for cell in made.cells if cell.test == "udp_stream"}
    assert "not chosen (--tests tcp_*)" in left
    assert "needs another kernel" in left
    assert len(made.tests) == 2


def test_the_baseline_of_what_is_chosen_is_run_too():
    made = plan(read_choice("C_FlCat", None))
    assert {name for name, _ in run_cells(made)} == {"Unlabel", "C_FlCat"}
    text = planned_text(made, 1)
    assert "skipped: C_other: not chosen (--configurations C_FlCat)" in text
    assert "skipped: NoPatch: needs another kernel" in text
    assert "left out" not in text


def test_a_plan_says_how_much_of_what_is_run_was_left_out():
    assert "left out: 4 cells of the other configurations" in planned_text(
        plan(read_choice(None, "tcp_rr")), 1
    )


def test_less_takes_less_time():
    form = MATRIX.forms["short"]
    part = estimate_block_s(MATRIX, form, Choice(tests=("tcp_rr",)))
    assert part < estimate_block_s(MATRIX, form)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            Choice(tests=("tcp_crr",)),
            "--tests: found 'tcp_crr'; wanted one of tcp_rr, udp_stream, or a pattern of them",
        ),
        (Choice(configurations=("C_FlCat", "x*")), "--configurations: found 'x*'; wanted one of"),
    ],
)
def test_a_choice_of_nothing_is_an_error(choice, message):
    with pytest.raises(UsageError) as caught:
        plan(choice)
    assert str(caught.value).startswith(message)

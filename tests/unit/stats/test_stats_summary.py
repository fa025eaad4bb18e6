"""A matrix, judged: verdicts, reasons and notes."""

from __future__ import annotations

import numpy as np
import pytest
from run_factory import campaign, lost, sample

from collector.errors import UsageError
from collector.runfolder.samples import SampleStatus
from collector.stats import MatrixSummary, default_delta, summarise
from collector.verdict import Verdict

EFFECTS = {"C_NoCat": 0.95, "C_FlCat": 1.3}


def judged(samples: list, **options: object) -> MatrixSummary:
    return summarise(samples, "Unlabel", **{"resamples": 1000, **options})  # type: ignore[arg-type]


def verdicts(summary: MatrixSummary, test: str = "tcp_rr") -> dict[tuple[str, str], Verdict]:
    return {(c.configuration, c.arm): c.verdict for c in summary.cells if c.test == test}


def test_the_four_verdicts_and_the_baseline() -> None:
    summary = judged(campaign(10, effects=EFFECTS))
    assert verdicts(summary) == {
        ("Unlabel", ""): Verdict.BASELINE,
        ("C_NoCat", ""): Verdict.SLOWER,
        ("C_FlCat", ""): Verdict.FASTER,
        ("Unlabel", "aa"): Verdict.NO_DIFFERENCE,
    }
    noisy = judged(campaign(10, noise=0.2))
    assert verdicts(noisy)["C_NoCat", ""] is Verdict.INCONCLUSIVE


def test_lower_is_better_turns_faster_around() -> None:
    summary = judged(campaign(10, effects=EFFECTS, higher_is_better=False))
    assert verdicts(summary)["C_NoCat", ""] is Verdict.FASTER
    assert verdicts(summary)["C_FlCat", ""] is Verdict.SLOWER


def test_ratios_are_medians_of_within_block_ratios() -> None:
    samples = campaign(7, effects=EFFECTS, noise=0.05)
    cell = judged(samples).cell("C_NoCat", "tcp_rr")
    value = {(s.configuration, s.arm, s.block): s.value for s in samples if s.test == "tcp_rr"}
    logs = [np.log(value["C_NoCat", "", b] / value["Unlabel", "", b]) for b in range(7)]
    assert cell is not None
    assert cell.ratio == pytest.approx(np.exp(np.median(logs)))
    assert cell.values == tuple(value["C_NoCat", "", block] for block in range(7))
    assert cell.cv == pytest.approx(np.std(cell.values, ddof=1) / np.mean(cell.values))


def test_drift_common_to_a_block_does_not_reach_the_ratios() -> None:
    steady = campaign(10, effects=EFFECTS)
    drifted = [
        sample(**{f: getattr(s, f) for f in s.__slots__} | {"value": s.value * 0.9**s.block})
        for s in steady
        if s.value is not None
    ]
    a, b = judged(steady).cell("C_FlCat", "tcp_rr"), judged(drifted).cell("C_FlCat", "tcp_rr")
    assert a is not None
    assert b is not None
    assert a.ratio == pytest.approx(b.ratio)
    assert judged(steady).drift is None
    drift = judged(drifted).drift
    assert drift == pytest.approx(0.9**-9 - 1, rel=0.02)
    assert any(note.startswith("the machines drifted") for note in judged(drifted).notes)


def test_too_few_blocks_say_so() -> None:
    summary = judged(campaign(3, effects=EFFECTS))
    assert verdicts(summary)["C_FlCat", ""] is Verdict.NOT_ENOUGH_DATA
    cell = summary.cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.reason == "too few blocks for a verdict: 3 of at least 6"
    assert cell.p_smallest == 0.25
    assert cell.p_holm is None
    assert "too few blocks for a verdict: 3 of at least 6 (6 of 8 cells)" in summary.notes


def test_six_blocks_of_a_matrix_are_decided_by_max_t_and_say_why() -> None:
    summary = judged(campaign(6, effects=EFFECTS))
    assert summary.procedure == "max-t"
    assert verdicts(summary)["C_FlCat", ""] is Verdict.FASTER
    assert (
        "Wilcoxon with Holm over 4 comparisons cannot reach 0.05 at 6 blocks (smallest p 0.031,"
        " after Holm 0.12): the sign-flip max-t decides"
    ) in summary.notes


def test_ten_blocks_of_few_cells_are_decided_by_wilcoxon_with_holm() -> None:
    summary = judged(campaign(10, effects=EFFECTS))
    assert (summary.procedure, summary.comparisons) == ("wilcoxon-holm", 4)
    cell = summary.cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.p_holm == pytest.approx(4 * 2 / 1024)


def test_an_effect_inside_the_noise_floor_is_no_difference() -> None:
    samples = campaign(10, effects={"C_NoCat": 0.95})
    shifted = [
        sample(**{f: getattr(s, f) for f in s.__slots__} | {"value": (s.value or 0) * 0.92})
        if s.arm == "aa"
        else s
        for s in samples
    ]
    summary = judged(shifted)
    cell = summary.cell("C_NoCat", "tcp_rr")
    assert cell is not None
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert cell.reason == (
        f"significant, but not beyond the A/A noise floor of {summary.noise['tcp_rr'].floor:.1%}"
    )
    assert summary.noise["tcp_rr"].floor == pytest.approx(1 / 0.92 - 1, abs=0.01)
    assert any(note.startswith("the A/A pair of tcp_rr differs") for note in summary.notes)


def test_a_matrix_without_an_aa_pair_says_so() -> None:
    summary = judged(campaign(10, aa=False))
    assert summary.noise == {}
    assert "no A/A pair, so no noise floor: tcp_rr, tcp_stream" in summary.notes


def test_a_cell_that_was_not_proven_is_invalid_not_slow() -> None:
    samples = [
        lost(s, SampleStatus.INVALID) if s.configuration == "C_FlCat" else s
        for s in campaign(10, effects=EFFECTS)
    ]
    cell = judged(samples).cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert (cell.verdict, cell.n, cell.n_invalid) == (Verdict.INVALID, 0, 10)
    assert (cell.median, cell.ratio, cell.p_wilcoxon) == (None, None, None)
    assert cell.reason == "10 × invalid: no option 134"


def test_invalid_repeats_count_in_no_number() -> None:
    samples = [
        lost(s, SampleStatus.INVALID) if s.configuration == "C_FlCat" and s.block < 3 else s
        for s in campaign(10, effects=EFFECTS)
    ]
    summary = judged(samples)
    cell = summary.cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert (cell.verdict, cell.n, cell.n_invalid, cell.n_pairs) == (Verdict.FASTER, 7, 3, 7)
    assert cell.values[:3] == (None, None, None)
    assert "6 samples are invalid, failed or missing and count in no number" in summary.notes


def test_a_cell_with_too_few_valid_repeats_left_is_invalid() -> None:
    samples = [
        lost(s, SampleStatus.INVALID) if s.configuration == "C_FlCat" and s.block < 5 else s
        for s in campaign(10)
    ]
    cell = judged(samples).cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.verdict is Verdict.INVALID
    assert cell.reason == (
        "too few blocks for a verdict: 5 of at least 6; 5 × invalid: no option 134"
    )


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (SampleStatus.SKIPPED, Verdict.SKIPPED),
        (SampleStatus.MISSING, Verdict.NOT_ENOUGH_DATA),
        (SampleStatus.FAILED, Verdict.INVALID),
    ],
)
def test_cells_without_a_value(status: SampleStatus, verdict: Verdict) -> None:
    samples = [
        lost(s, status, "because") if s.configuration == "C_FlCat" else s for s in campaign(10)
    ]
    cell = judged(samples).cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.verdict is verdict
    assert "because" in (cell.reason or "")


def test_a_cell_without_its_baseline_in_the_block_has_no_ratio() -> None:
    samples = [
        lost(s, SampleStatus.FAILED) if s.configuration == "Unlabel" and s.arm == "" else s
        for s in campaign(10)
    ]
    cell = judged(samples).cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.ratio is None
    assert cell.reason == (
        "too few blocks for a verdict: 0 of at least 6 shared with Unlabel (10 measured)"
    )


def test_unmet_netperf_confidence_is_carried_through() -> None:
    samples = [
        sample(
            **{f: getattr(s, f) for f in s.__slots__}
            | {
                "confidence_met": s.block != 4,
                "confidence_got_pct": 57.4 if s.block == 4 else 3.0,
                "confidence_wanted_pct": 5.0,
            }
        )
        for s in campaign(10)
    ]
    summary = judged(samples)
    cell = summary.cell("C_NoCat", "tcp_rr")
    assert cell is not None
    assert (cell.confidence_unmet, cell.confidence_worst_pct) == (1, 57.4)
    assert cell.confidence_wanted_pct == 5.0
    assert (
        "netperf's own confidence was not reached in 8 repeats of 8 cells,"
        " widest 57.4 % of the mean"
    ) in summary.notes


def test_two_bands_are_flagged_in_cell_and_notes() -> None:
    samples = [
        sample(**{f: getattr(s, f) for f in s.__slots__} | {"value": (s.value or 0) * 0.1})
        if s.configuration == "C_NoCat" and s.test == "tcp_rr" and s.block % 2
        else s
        for s in campaign(10, noise=0.001)
    ]
    summary = judged(samples)
    assert [(c.configuration, c.test) for c in summary.cells if c.bimodal] == [
        ("C_NoCat", "tcp_rr")
    ]
    assert "two bands of values, look at the samples: C_NoCat tcp_rr" in summary.notes


def test_a_configuration_can_have_a_baseline_of_its_own() -> None:
    samples = campaign(10, effects=EFFECTS)
    cell = judged(samples, baselines={"C_FlCat": "C_NoCat"}).cell("C_FlCat", "tcp_rr")
    assert cell is not None
    assert cell.baseline == "C_NoCat"
    assert cell.ratio == pytest.approx(1.3 / 0.95, rel=0.01)


def test_cells_come_in_the_order_asked_for() -> None:
    order = ["C_FlCat/tcp_rr/", "Unlabel/tcp_rr/"]
    summary = judged(campaign(6), cell_order=order)
    assert [cell.cell_id for cell in summary.cells][:2] == order


def test_the_margin_depends_on_the_kind_of_lab() -> None:
    assert (default_delta("exact"), default_delta("guests")) == (0.005, 0.02)
    assert judged(campaign(6, lab_kind="exact")).delta == 0.005


def test_identical_samples_of_an_exact_lab_are_no_difference() -> None:
    summary = judged(campaign(6, noise=0.0))
    assert verdicts(summary)["C_NoCat", ""] is Verdict.NO_DIFFERENCE


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no samples to judge: found none; wanted at least one"),
        (
            [sample(), sample(run_id="r2")],
            "samples of several runs: found r1, r2; wanted one run"
            " (blocks of different runs cannot be paired)",
        ),
        (
            [sample(), sample()],
            "run r1, cell Unlabel/tcp_rr/, block 0: found two samples; wanted one"
            " (a block runs every cell once)",
        ),
        (
            [sample(configuration="Other")],
            "baseline: found 'Unlabel'; wanted one of 'Other'",
        ),
        (
            [sample(), sample(cell_id="x", factors={"family": "ipv6"})],
            "configuration 'Unlabel', test 'tcp_rr', arm '': found 2 cell ids; wanted one"
            " (factors that differ need configurations of their own)",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused(samples: list, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        judged(samples)
    assert str(caught.value) == message

"""Paired statistics: exact values for small cases, and what the procedures promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from collector.stats import paired


def test_wilcoxon_of_ten_equal_signs_is_the_smallest_possible() -> None:
    ratios = np.arange(1, 11) / 100
    assert paired.wilcoxon_p(ratios) == pytest.approx(2 / 2**10)
    assert paired.smallest_wilcoxon_p(10) == pytest.approx(2 / 2**10)


def test_wilcoxon_matches_the_published_table() -> None:
    # Wilcoxon (1945): for n = 10 the two-sided probability of a rank sum of 3 or less is 10/1024.
    ratios = np.array([-1, -2, 3, 4, 5, 6, 7, 8, 9, 10]) / 100
    assert paired.wilcoxon_p(ratios) == pytest.approx(10 / 1024)


def test_wilcoxon_with_ties_counts_every_sign_pattern() -> None:
    ratios = np.array([0.01, 0.01, 0.02, 0.02, 0.03, 0.03])
    assert paired.wilcoxon_p(ratios) == pytest.approx(2 / 2**6)


def test_wilcoxon_of_identical_samples_is_one() -> None:
    assert paired.wilcoxon_p(np.zeros(8)) == 1.0


def test_wilcoxon_of_many_differences_uses_the_approximation() -> None:
    ratios = np.random.default_rng(1).normal(0.01, 0.02, 60)
    expected = stats.wilcoxon(ratios, method="asymptotic", correction=True).pvalue
    assert paired.wilcoxon_p(ratios) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "smallest"), [(0, 1.0), (1, 1.0), (5, 0.0625), (6, 0.03125)])
def test_six_blocks_are_the_fewest_that_can_reach_five_per_cent(n: int, smallest: float) -> None:
    assert paired.smallest_wilcoxon_p(n) == smallest


def test_holm_on_a_worked_example() -> None:
    # Sorted: .005*4, .01*3, .03*2, .04*1 -> .02, .03, .06, .06 (never falling).
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert paired.holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_holm_only_raises_p_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = paired.holm(p_values)
    assert all(a >= p and a <= 1 for a, p in zip(adjusted, p_values, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)
    assert max(adjusted) <= min(1, len(p_values) * max(p_values)) or max(adjusted) == max(p_values)


def test_bootstrap_is_reproducible_by_its_seed_and_holds_the_median() -> None:
    ratios = np.random.default_rng(2).normal(-0.05, 0.01, 12)
    first = paired.bootstrap_median(ratios, resamples=10_000, seed=7)
    assert first == paired.bootstrap_median(ratios, resamples=10_000, seed=7)
    assert first[0] < np.median(ratios) < first[1]
    assert ratios.min() <= first[0]
    assert first[1] <= ratios.max()


def test_bootstrap_of_identical_blocks_has_no_width() -> None:
    assert paired.bootstrap_median(np.full(6, 0.1), resamples=100, seed=1) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("blocks", "comparisons", "room"),
    [(6, 1, False), (8, 3, True), (10, 12, True), (10, 13, False), (10, 16, False), (12, 51, True)],
)
def test_holm_needs_room_for_one_dissenting_block(
    blocks: int, comparisons: int, room: bool
) -> None:
    assert paired.wilcoxon_has_room(blocks, comparisons, 0.05) is room


def test_max_t_reaches_the_level_for_a_whole_matrix_where_holm_cannot() -> None:
    family = np.random.default_rng(3).normal(0, 0.01, (20, 6))
    family[4] -= 0.2
    single = [paired.wilcoxon_p(row) for row in family]
    outcome = paired.adjust(family, single, level=0.05, seed=1)
    assert outcome.procedure == paired.MAX_T
    assert outcome.p_holm[4] == pytest.approx(20 * 2 / 64)
    assert outcome.p_maxt[4] == pytest.approx(2 / 64)


def test_max_t_of_one_cell_is_the_sign_flip_test_of_its_mean() -> None:
    ratios = np.array([[0.03, 0.01, 0.04, -0.01, 0.05, 0.09, 0.02]])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 7)).reshape(7, -1).T
    means = np.abs((signs * ratios).mean(axis=1))
    expected = float(np.mean(means >= abs(ratios.mean()) - 1e-12))
    assert paired.max_t_p(ratios, seed=1) == pytest.approx([expected])


def test_max_t_takes_missing_blocks() -> None:
    family = np.random.default_rng(4).normal(0, 0.01, (5, 10))
    family[2, :3] = np.nan
    assert all(0 < p <= 1 for p in paired.max_t_p(family, seed=1))


def test_max_t_of_identical_samples_is_one() -> None:
    assert paired.max_t_p(np.zeros((4, 8)), seed=1) == [1.0] * 4


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 8), st.integers(6, 14), st.integers(0, 2**32 - 1))
def test_max_t_orders_cells_by_their_statistic(cells: int, blocks: int, seed: int) -> None:
    family = np.random.default_rng(seed).normal(0, 0.02, (cells, blocks))
    family[0] += 0.5
    p_values = paired.max_t_p(family, seed=1)
    assert p_values[0] == min(p_values)
    assert min(p_values) >= 2 / 2**blocks


def test_moderation_needs_three_variances() -> None:
    assert paired.moderation(np.array([1.0, 2.0]), np.array([9.0, 9.0])) == (0.0, 0.0)


def test_moderation_recovers_the_prior_of_simulated_variances() -> None:
    # Smyth (2004): variances drawn around s0^2 = 4 with d0 = 10 prior degrees of freedom.
    rng = np.random.default_rng(5)
    sigma2 = 10 * 4 / rng.chisquare(10, 20_000)
    variances = sigma2 * rng.chisquare(9, 20_000) / 9
    degrees, variance = paired.moderation(variances, np.full(20_000, 9.0))
    assert degrees == pytest.approx(10, rel=0.1)
    assert variance == pytest.approx(4, rel=0.05)


def test_false_alarms_over_a_matrix_stay_at_the_level() -> None:
    """A small version of benchmarks/verdict_power: 200 A/A families of 16 cells, 8 blocks."""
    rng = np.random.default_rng(6)
    alarms = sum(
        min(paired.max_t_p(rng.normal(0, 0.03, (16, 8)) - rng.normal(0, 0.02, 8), seed=1)) <= 0.05
        for _ in range(200)
    )
    assert alarms <= 20  # 5 % of 200 is 10; 20 or more come up once in 500

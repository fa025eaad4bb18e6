"""Mann–Whitney, bimodality and drift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from collector.stats import unpaired
from collector.stats.bimodal import critical_gap, is_bimodal
from collector.stats.drift import drift


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.10), (4, 0.029), (5, 0.008)])
def test_smallest_p_of_small_samples(n: int, smallest: float) -> None:
    assert unpaired.smallest_mann_whitney_p(n, n) == pytest.approx(smallest, abs=5e-4)
    base, new = np.arange(n, dtype=float), np.arange(n, dtype=float) + 100
    assert unpaired.mann_whitney_p(base, new) == pytest.approx(
        unpaired.smallest_mann_whitney_p(n, n)
    )


def test_an_empty_side_can_reach_nothing() -> None:
    assert unpaired.smallest_mann_whitney_p(0, 5) == 1.0


def test_mann_whitney_is_exact_without_ties_and_corrected_with_them() -> None:
    base, new = np.array([1.0, 2, 3, 4]), np.array([2.5, 5, 6, 7])
    exact = stats.mannwhitneyu(new, base, method="exact").pvalue
    assert unpaired.mann_whitney_p(base, new) == pytest.approx(exact)
    tied = np.array([2.0, 5, 6, 7])
    approximate = stats.mannwhitneyu(tied, base, method="asymptotic").pvalue
    assert unpaired.mann_whitney_p(base, tied) == pytest.approx(approximate)


def test_mann_whitney_of_equal_values_is_one() -> None:
    assert unpaired.mann_whitney_p(np.full(4, 2.0), np.full(5, 2.0)) == 1.0


def test_shift_of_medians() -> None:
    base, new = np.log(np.array([100.0, 101, 102])), np.log(np.array([90.0, 91, 92]))
    shift, low, high = unpaired.shift_of_medians(base, new, resamples=2000, seed=1)
    assert np.exp(shift) == pytest.approx(91 / 101)
    assert low < shift < high


def test_two_bands_are_flagged() -> None:
    rng = np.random.default_rng(1)
    bands = np.where(np.arange(10) % 2, 250.0, 2200.0) * rng.normal(1, 0.02, 10)
    assert is_bimodal(bands, 0.02)


@pytest.mark.parametrize("outliers", [1, 2])
def test_one_band_with_outliers_is_not_two_bands(outliers: int) -> None:
    values = np.random.default_rng(2).normal(1000, 10, 10)
    values[:outliers] = 700
    assert not is_bimodal(values, 0.02)


def test_bands_closer_than_what_matters_are_left_alone() -> None:
    values = np.array([100.0, 100.001, 100.002, 100.5, 100.501, 100.502, 100.503, 100.003])
    assert is_bimodal(values, 0.001)
    assert not is_bimodal(values, 0.02)


def test_too_few_values_are_never_two_bands() -> None:
    assert not is_bimodal(np.array([1.0, 1.0, 1.0, 9.0, 9.0]), 0.02)


def test_identical_values_are_one_band() -> None:
    assert not is_bimodal(np.full(10, 5.0), 0.02)


@pytest.mark.parametrize("n", [6, 10, 20])
def test_one_normal_sample_in_two_hundred_is_flagged(n: int) -> None:
    samples = np.random.default_rng(3).normal(1000, 50, (2000, n))
    assert np.mean([is_bimodal(values, 0.0) for values in samples]) == pytest.approx(
        0.005, abs=0.005
    )
    assert critical_gap(n) > 0


def test_a_wandering_machine_is_found_and_measured() -> None:
    rng = np.random.default_rng(4)
    levels = np.linspace(0, np.log(1.1), 10)
    logs = levels + rng.normal(0, 0.005, (24, 10)) + rng.normal(5, 1, (24, 1))
    assert drift(logs) == pytest.approx(0.1, abs=0.01)


def test_a_steady_machine_does_not_drift() -> None:
    rng = np.random.default_rng(5)
    found = [drift(rng.normal(0, 0.02, (24, 10))) is not None for _ in range(300)]
    assert sum(found) <= 10  # one in a hundred is expected


@pytest.mark.parametrize(
    "logs", [np.zeros((24, 10)), np.ones((2, 10)), np.ones((24, 2)), np.full((24, 10), np.nan)]
)
def test_drift_is_unknown_where_nothing_can_be_said(logs: np.ndarray) -> None:
    assert drift(logs) is None

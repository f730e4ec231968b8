"""What an evaluation can detect: textbook sample sizes, simulated power, and the laws of both."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.programs.detection import Comparison, detection_power, samples_needed, seeds_needed, smallest_difference

SHARES = Comparison(baseline=0.61, target=0.70, deviation=None, seed_deviation=0.0, significance=0.05)
MEANS = Comparison(baseline=3.0, target=3.5, deviation=1.0, seed_deviation=0.0, significance=0.05)

shares = st.floats(0.02, 0.98)
counts = st.integers(1, 100_000)


def test_samples_for_two_means_are_the_textbook_s() -> None:
    """Cohen 1988, table 2.4.1: d = 0.5 at 5 % and 80 % takes 63 a group by the normal approximation (64 by Student's t)."""
    assert samples_needed(MEANS, 1, 0.8) == 63


def test_samples_for_two_shares_are_fleiss_s() -> None:
    """Fleiss, Levin and Paik 2003, table A.4 without correction: 0.6 against 0.7 at 5 % and 80 % takes 356 a group."""
    assert samples_needed(replace(SHARES, baseline=0.6, target=0.7), 1, 0.8) == 356


def test_power_is_that_of_simulated_comparisons() -> None:
    """A z-test with a pooled variance, 40,000 times."""
    rng, samples = np.random.default_rng(7), 300
    first, second = (rng.binomial(samples, share, 40_000) / samples for share in (0.61, 0.70))
    pooled = (first + second) / 2
    found = np.abs(second - first) / np.sqrt(2 * pooled * (1 - pooled) / samples) > NormalDist().inv_cdf(0.975)
    assert detection_power(SHARES, samples, 1) == pytest.approx(found.mean(), abs=0.015)


def test_no_number_of_samples_makes_up_for_seeds() -> None:
    """Where trainings differ by more than the difference, samples do not help and seeds do."""
    noisy = replace(SHARES, seed_deviation=0.06)
    assert samples_needed(noisy, 1, 0.8) is None
    needed = seeds_needed(noisy, 2000, 0.8)
    assert needed is not None
    assert needed > 1
    assert detection_power(noisy, 2000, needed) >= 0.8 > detection_power(noisy, 2000, needed - 1)
    assert seeds_needed(SHARES, 50, 0.8) is None


@given(baseline=shares, target=shares, samples=counts, more=counts, noise=st.floats(0, 0.1), seeds=st.integers(1, 20))
def test_power_rises_with_samples_and_seeds(baseline: float, target: float, samples: int, more: int, noise: float, seeds: int) -> None:
    """Once it is above one half: below that, noise alone may help."""
    known = replace(SHARES, baseline=baseline, target=target, seed_deviation=noise)
    power = detection_power(known, samples, seeds)
    if power >= 0.5:
        assert detection_power(known, samples + more, seeds) >= power - 1e-12
        assert detection_power(known, samples, seeds + 1) >= power - 1e-12


@given(baseline=shares, target=shares, power=st.floats(0.5, 0.99))
def test_the_samples_needed_are_the_fewest(baseline: float, target: float, power: float) -> None:
    """They reach the power, and one less does not; a larger difference needs no more."""
    known = replace(SHARES, baseline=baseline, target=target)
    needed = samples_needed(known, 1, power)
    if needed is not None:
        assert detection_power(known, needed, 1) >= power
        assert needed == 1 or detection_power(known, needed - 1, 1) < power


@given(baseline=shares, samples=st.integers(20, 50_000), power=st.floats(0.5, 0.99))
def test_the_smallest_difference_is_just_seen(baseline: float, samples: int, power: float) -> None:
    """It has the power asked for, and the samples it needs are those there are."""
    known = replace(SHARES, baseline=baseline, target=1.0)
    smallest = smallest_difference(known, samples, 1, power)
    if smallest is not None:
        assert detection_power(replace(known, target=baseline + smallest), samples, 1) == pytest.approx(power, abs=1e-6)

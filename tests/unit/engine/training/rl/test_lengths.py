"""Lengths of answers: percentiles, the mean after the cut, the longest of many."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.reinforcement import ResponseLengths
from service.engine.training.rl.lengths import lengths_from_mean, lengths_from_quantiles, longest_tokens, mean_tokens, share_longer

spreads = st.floats(0.05, 1.5)
limits = st.floats(64, 100_000)


def test_percentiles_are_met() -> None:
    """Half of the answers are longer than p50, a tenth longer than p90, none longer than the limit."""
    lengths = lengths_from_quantiles(1000, 2500, 8000)
    assert share_longer(lengths, 1000) == pytest.approx(0.5)
    assert share_longer(lengths, 2500) == pytest.approx(0.1)
    assert share_longer(lengths, 8000) == 0


def test_the_mean_and_the_longest_are_those_of_drawn_answers() -> None:
    """100,000 answers drawn by another way have the mean, and 2,000 sets of 64 the median of their longest."""
    lengths, draw = ResponseLengths(600, 0.6, 1500), random.Random(7)
    drawn = [min(draw.lognormvariate(math.log(600), 0.6), 1500) for _ in range(128_000)]
    assert mean_tokens(lengths) == pytest.approx(sum(drawn) / len(drawn), rel=0.01)
    far = ResponseLengths(600, 0.6, 1e9)
    longest = sorted(max(draw.lognormvariate(math.log(600), 0.6) for _ in range(64)) for _ in range(2000))
    assert longest_tokens(far, 64) == pytest.approx(longest[1000], rel=0.03)


@given(st.floats(0.02, 0.98), spreads, limits)
def test_a_stated_mean_is_the_mean_after_the_cut(share: float, spread: float, limit: float) -> None:
    """However near the limit."""
    assert mean_tokens(lengths_from_mean(share * limit, spread, limit)) == pytest.approx(share * limit, rel=1e-6)


@given(spreads, limits, st.integers(1, 10**6))
def test_more_answers_have_no_shorter_longest(spread: float, limit: float, answers: int) -> None:
    """And it is never beyond the limit."""
    lengths = ResponseLengths(limit / 4, spread, limit)
    assert longest_tokens(lengths, answers) <= longest_tokens(lengths, 2 * answers) <= limit


def test_answers_of_one_length_are_all_that_long() -> None:
    """Without a spread there is nothing to wait for."""
    lengths = lengths_from_mean(512, 0.0, 4096)
    assert (mean_tokens(lengths), longest_tokens(lengths, 10_000)) == (512, 512)
    assert (share_longer(lengths, 511), share_longer(lengths, 513)) == (1, 0)

"""What a scaling law predicts: losses, the tokens a loss takes, what repeats are worth, and laws drawn from its uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import AllocationLaw, DataLimit, MixtureLaw, ParametricLaw, RepetitionDecay
from service.engine.scaling.laws import (
    draw_allocation_laws,
    draw_laws,
    effective_params,
    effective_tokens,
    laws_from_rows,
    loss,
    optimal_params,
    optimal_params_for_tokens,
    optimal_tokens_for_params,
    range_around,
    tokens_for_loss,
)

LAW = ParametricLaw(1.8172, 482.01, 2085.43, 0.3478, 0.3658)
ALLOCATION = AllocationLaw(1e20, 1e9, 0.5)
MIXTURE = MixtureLaw(0.47, 18.1, 30.8, 0.115, 0.147, 2.1, 0.58, 43.0)
REPETITION = RepetitionDecay(15.39, 5.31)

laws = st.builds(
    ParametricLaw,
    st.floats(0.3, 2.5),
    st.floats(20, 5_000),
    st.floats(20, 5_000),
    st.floats(0.15, 0.6),
    st.floats(0.15, 0.6),
    st.sampled_from([1.0, 1.0, 0.5]),
)
sizes = st.floats(6, 13).map(lambda exponent: 10**exponent)
budgets = st.floats(18, 27).map(lambda exponent: 10**exponent)
limits = st.builds(DataLimit, st.floats(8, 14).map(lambda exponent: 10**exponent), st.just(REPETITION))


def test_the_loss_is_the_sum_of_three_terms() -> None:
    """By hand: 1.8172 + 482.01 / N^0.3478 + 2085.43 / D^0.3658."""
    expected = 1.8172 + 482.01 / 70e9**0.3478 + 2085.43 / 1.4e12**0.3658
    assert loss(LAW, 70e9, 1.4e12) == pytest.approx(expected, rel=1e-12)


def test_kaplans_law_is_a_parametric_one() -> None:
    """((N_c / N)^(alpha_N / alpha_D) + D_c / D)^alpha_D, written out; without end of data (N_c / N)^alpha_N is left."""
    law = ParametricLaw.from_kaplan(6.4e13, 1.8e13, 0.076, 0.103)
    assert loss(law, 1e9, 2e10) == pytest.approx(((6.4e13 / 1e9) ** (0.076 / 0.103) + 1.8e13 / 2e10) ** 0.103, rel=1e-12)
    assert loss(law, 1e9, 1e40) == pytest.approx((6.4e13 / 1e9) ** 0.076, rel=1e-6)


def test_a_mixture_counts_its_active_parameters() -> None:
    """By hand for 7e9 active of 43 times as many, in 32 times smaller experts; finer experts never raise the loss."""
    law = MIXTURE.at_granularity(32)
    expected = 0.47 + (2.1 / 32**0.58 + 18.1) / (43 * 7e9) ** 0.115 + 30.8 / 137.6e9**0.147
    assert loss(law, 7e9, 137.6e9) == pytest.approx(expected, rel=1e-12)
    assert (np.diff(loss(MIXTURE.at_granularity(np.array([1.0, 4.0, 16.0, 64.0])), 7e9, 137.6e9)) < 0).all()


@given(laws, sizes, sizes, st.floats(0.01, 100))
def test_a_models_unit_does_not_matter(law: ParametricLaw, params: float, tokens: float, unit: float) -> None:
    """Parameters counted in another unit with A scaled by its alpha-th power, and tokens with B, give the same loss."""
    scaled = ParametricLaw(law.E, law.A * unit**law.alpha, law.B / unit**law.beta, law.alpha, law.beta, law.power)
    assert loss(scaled, params * unit, tokens / unit) == pytest.approx(loss(law, params, tokens), rel=1e-9)


@given(laws, sizes, st.floats(8, 14), limits)
def test_tokens_for_a_loss_turn_the_loss_round(law: ParametricLaw, params: float, decades: float, limit: DataLimit) -> None:
    """Training on the tokens that a loss takes gives that loss, with and without repeats."""
    tokens = min(10**decades, 20 * limit.unique_tokens)
    assert tokens_for_loss(law, params, loss(law, params, tokens)) == pytest.approx(tokens, rel=1e-5)
    repeated = tokens_for_loss(law, params, loss(law, params, tokens, limit), limit)
    assert repeated == pytest.approx(tokens, rel=1e-4)


def test_a_loss_below_what_a_size_can_reach_takes_infinitely_many_tokens() -> None:
    """Below E, below E + A / N^alpha, and below what endless repeats are worth."""
    size = 1e9
    floor = 1.8172 + 482.01 / size**0.3478
    limit = DataLimit(1e10, REPETITION)
    endless = float(loss(LAW, size, 1e30, limit))
    assert np.isinf(tokens_for_loss(LAW, size, np.array([1.0, 1.8172, floor - 1e-6]))).all()
    assert np.isinf(tokens_for_loss(LAW, size, endless - 1e-6, limit))
    assert np.isfinite(tokens_for_loss(LAW, size, endless - 1e-6))


def test_repeats_lose_their_worth() -> None:
    """By hand: 4 epochs of 100 tokens are worth 100 + 100 * 15.39 * (1 - e^(-3 / 15.39)) unique ones, endless ones 1,639."""
    limit = DataLimit(100, REPETITION)
    expected = 100 + 1539 * (1 - np.exp(-3 / 15.39))
    assert effective_tokens(np.array([50.0, 100.0, 400.0, 1e9]), limit) == pytest.approx([50, 100, expected, 1639])


def test_parameters_beyond_what_the_data_are_good_for_lose_theirs() -> None:
    """Up to the size that the unique tokens are optimal for every parameter counts, beyond it at most R* more such sizes do."""
    limit = DataLimit(1e11, REPETITION)
    fitting = float(optimal_params_for_tokens(LAW, 1e11))
    worth = effective_params(LAW, np.array([fitting / 2, fitting, fitting * 1e9]), limit)
    assert worth == pytest.approx([fitting / 2, fitting, fitting * 6.31])


@given(laws, budgets)
def test_the_size_for_tokens_is_the_optimum_of_those_tokens(law: ParametricLaw, flops: float) -> None:
    """Going from a budget to its optimal tokens and from these to a size gives the budget's optimal size."""
    params = optimal_params(law, flops)
    assert optimal_params_for_tokens(law, flops / (6 * params)) == pytest.approx(params, rel=1e-9)


@given(laws, sizes, sizes, st.floats(1.001, 1e6))
def test_data_that_are_enough_are_no_limit(law: ParametricLaw, params: float, tokens: float, times: float) -> None:
    """With more unique tokens than are trained on, and than the size is the optimum of, the data-constrained law is the plain one."""
    optimal_tokens = (params / float(optimal_params_for_tokens(law, 1.0))) ** (law.alpha / law.beta)
    enough = DataLimit(times * max(tokens, optimal_tokens), REPETITION)
    assert loss(law, params, tokens, enough) == pytest.approx(loss(law, params, tokens), rel=1e-12)


@given(laws, sizes, sizes, limits)
def test_repeated_data_are_never_better_than_new(law: ParametricLaw, params: float, tokens: float, limit: DataLimit) -> None:
    """A limit of unique tokens never lowers the loss."""
    assert loss(law, params, tokens, limit) >= loss(law, params, tokens) * (1 - 1e-12)


def test_an_allocation_goes_through_its_anchor() -> None:
    """A hundred times the FLOPs at an exponent of 0.5 take ten times the size."""
    assert optimal_params(ALLOCATION, np.array([1e20, 1e22])) == pytest.approx([1e9, 1e10])


def test_a_law_of_optima_says_nothing_of_other_sizes() -> None:
    """Asking it for a loss is refused, and the refusal says what to choose."""
    with pytest.raises(InvalidRequest, match="E, A, B, alpha and beta") as refused:
        loss(ALLOCATION, 1e9, 2e10)
    assert refused.value.pointer == "/law"


@pytest.mark.parametrize("wrong", [{"E": -0.1}, {"A": 0.0}, {"B": float("nan")}, {"alpha": -0.3}, {"beta": float("inf")}])
def test_figures_that_make_no_law_are_refused(wrong: dict[str, float]) -> None:
    """The message names the parameter."""
    figures = {"E": 1.8, "A": 480.0, "B": 2_000.0, "alpha": 0.35, "beta": 0.36} | wrong
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ParametricLaw(**figures)


def test_drawn_laws_follow_the_covariance_and_the_seed() -> None:
    """Log-normal in E, A and B, normal in the exponents, with the stated correlation; the same seed gives the same laws."""
    covariance = np.diag([1e-4, 0.04, 0.09, 1e-4, 1e-4])
    covariance[1, 3] = covariance[3, 1] = 0.0018
    first, again = (draw_laws(LAW, covariance, np.random.default_rng(7), 20_000) for _ in range(2))
    moved = np.array([np.log(first.E), np.log(first.A), np.log(first.B), first.alpha, first.beta])
    assert np.cov(moved) == pytest.approx(covariance, rel=0.05, abs=2e-4)
    assert np.median(first.A) == pytest.approx(LAW.A, rel=0.01)
    assert np.array_equal(first.A, again.A)


def test_a_fits_draws_are_laws() -> None:
    """Rows of E, A, B, alpha and beta, one law each; a row that is none is refused."""
    rows = np.array([[1.8, 480.0, 2_000.0, 0.35, 0.36], [1.7, 406.0, 410.0, 0.34, 0.28]])
    both = laws_from_rows(rows)
    assert loss(both, 1e9, 2e10) == pytest.approx([float(loss(ParametricLaw(*row), 1e9, 2e10)) for row in rows])
    with pytest.raises(ValueError, match="alpha"):
        laws_from_rows(rows * [1, 1, 1, -1, 1])


def test_drawn_allocations_agree_at_the_anchor_and_part_from_there() -> None:
    """The optimum is sure where the law was measured; the exponents' percentiles are those published."""
    many = draw_allocation_laws(ALLOCATION, Range(0.46, 0.5, 0.53), np.random.default_rng(3), 20_000)
    assert np.ptp(optimal_params(many, 1e20)) == 0
    assert np.quantile(many.exponent, [0.1, 0.5, 0.9]) == pytest.approx([0.46, 0.5, 0.53], abs=1e-3)
    assert np.ptp(optimal_params(many, 1e25)) > np.ptp(optimal_params(many, 1e22))


def test_a_range_has_the_laws_own_figure_in_its_middle() -> None:
    """Percentiles are of the draws, which may be infinite; the figure is never outside them."""
    draws = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, np.inf, np.inf])
    assert range_around(4.5, draws) == Range(1.0, 4.5, np.inf)
    assert range_around(0.5, np.ones(10)) == Range(0.5, 0.5, 1.0)


@given(laws, sizes)
def test_the_best_tokens_of_a_size_are_those_whose_flops_it_is_best_for(law: ParametricLaw, params: float) -> None:
    """6 N D is the budget with that size, and the size is the best for those tokens."""
    tokens = float(optimal_tokens_for_params(law, params))
    assert optimal_params(law, 6 * params * tokens) == pytest.approx(params, rel=1e-9)
    assert optimal_params_for_tokens(law, tokens) == pytest.approx(params, rel=1e-6)


def test_a_law_of_optima_has_the_best_tokens_of_a_size_too() -> None:
    """At the anchor C / 6 N."""
    assert optimal_tokens_for_params(ALLOCATION, 1e9) == pytest.approx(1e20 / 6e9)

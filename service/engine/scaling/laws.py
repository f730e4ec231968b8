"""What scaling laws predict: the loss of a model, the tokens a loss takes, the optimal size for a budget, and laws drawn at random.

All functions take figures, or arrays of them. A loss that cannot be reached takes infinitely many tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import (
    FLOPS_PER_PARAM_AND_TOKEN,
    PARAMETERS,
    AllocationLaw,
    DataLimit,
    MixtureLaw,
    ParametricLaw,
    ScalingLaw,
)
from service.engine.numerics.ranges import P90_DEVIATIONS

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount

Floats = NDArray[np.float64]


def loss(law: ScalingLaw, params: Amount, tokens: Amount, limit: DataLimit | None = None) -> Floats:
    """Loss [nats a token] of so many parameters trained on so many tokens, repeated ones being worth less (`limit`).

    Raises InvalidRequest for a law that knows optima only.
    """
    known = require_parametric(law)
    terms = known.A / effective_params(known, params, limit) ** known.alpha + known.B / effective_tokens(tokens, limit) ** known.beta
    return np.asarray(known.E + terms**known.power)


def tokens_for_loss(law: ScalingLaw, params: Amount, target: Amount, limit: DataLimit | None = None) -> Floats:
    """Tokens with which so many parameters reach the target loss, infinite where none suffice. InvalidRequest as for `loss`."""
    known = require_parametric(law)
    left = np.maximum(target - known.E, 0.0) ** (1 / known.power) - known.A / effective_params(known, params, limit) ** known.alpha
    reachable = left > 0
    worth = (known.B / np.where(reachable, left, 1.0)) ** (1 / known.beta)
    return np.where(reachable, _tokens_worth(worth, limit), np.inf)


def effective_tokens(tokens: Amount, limit: DataLimit | None) -> Floats:
    """What the tokens are worth in unique ones: U + U R* (1 - e^(-R / R*)) with R = D / U - 1 repeats.

    Muennighoff et al. 2023 (arXiv 2305.16264), equation 5.
    """
    seen = np.asarray(tokens, dtype=np.float64)
    return seen if limit is None else _saturated(seen, limit.unique_tokens, limit.repetition.tokens)


def effective_params(law: ParametricLaw, params: Amount, limit: DataLimit | None) -> Floats:
    """What the parameters are worth: those beyond the size that the unique tokens are optimal for decay as repeats do.

    Muennighoff et al. 2023, equation 6; the size is taken from all unique tokens there are, not from those used, so that a limit that
    is not reached changes nothing.
    """
    size = np.asarray(params, dtype=np.float64)
    return size if limit is None else _saturated(size, optimal_params_for_tokens(law, limit.unique_tokens), limit.repetition.params)


def optimal_params(law: ScalingLaw, flops: Amount) -> Floats:
    """The size that does best with so many training FLOPs: G (C / 6)^a, a = beta / (alpha + beta), G^(alpha + beta) = alpha A / (beta B).

    Hoffmann et al. 2022 (arXiv 2203.15556), equation 4. `power` leaves the optimum where it is.
    """
    if isinstance(law, AllocationLaw):
        return np.asarray(law.anchor_params * (np.asarray(flops) / law.anchor_flops) ** law.exponent)
    return np.asarray(_ratio(law) * (np.asarray(flops) / FLOPS_PER_PARAM_AND_TOKEN) ** size_exponent(law))


def optimal_params_for_tokens(law: ParametricLaw, tokens: Amount) -> Floats:
    """The size for which so many tokens are optimal: D = (C / 6)^(1 - a) / G solved for N."""
    ratio = _ratio(law)
    return np.asarray(ratio * (ratio * tokens) ** (law.beta / law.alpha))


def optimal_flops(law: ParametricLaw, target: Amount) -> Floats:
    """The fewest training FLOPs that reach a loss, infinite where none do: on the frontier both terms fall with C^(-alpha a)."""
    ratio, falls = _ratio(law), law.alpha * size_exponent(law)
    at_one = law.A / ratio**law.alpha + law.B * ratio**law.beta
    left = np.maximum(target - law.E, 0.0) ** (1 / law.power)
    scaled = (at_one / np.where(left > 0, left, 1.0)) ** (1 / falls)
    return np.where(left > 0, FLOPS_PER_PARAM_AND_TOKEN * scaled, np.inf)


def size_exponent(law: ScalingLaw) -> Amount:
    """By which power of the training FLOPs the optimal size grows."""
    return law.exponent if isinstance(law, AllocationLaw) else law.beta / (law.alpha + law.beta)


def require_parametric(law: ScalingLaw) -> ParametricLaw:
    """The law, where it predicts the loss of any size. Raises InvalidRequest where it knows optima only."""
    if isinstance(law, AllocationLaw):
        raise InvalidRequest("this law gives optimal sizes but no loss of others: choose a law with E, A, B, alpha and beta", "/law")
    return law


def of_mixture(law: MixtureLaw, granularity: Amount) -> ParametricLaw:
    """The law of mixtures of one granularity (how many times smaller an expert is than a feed-forward), in active parameters."""
    numerator = (law.g / np.asarray(granularity) ** law.gamma + law.a) / law.total_per_active**law.alpha
    return ParametricLaw(law.E, _figure(numerator), law.B, law.alpha, law.beta)


def of_kaplan(params: float, tokens: float, params_exponent: float, tokens_exponent: float) -> ParametricLaw:
    """L = ((N_c / N)^(alpha_N / alpha_D) + D_c / D)^alpha_D, Kaplan et al. 2020 (arXiv 2001.08361) equation 1.5."""
    ratio = params_exponent / tokens_exponent
    return ParametricLaw(0.0, params**ratio, tokens, ratio, 1.0, tokens_exponent)


def draw_laws(law: ParametricLaw, covariance: Floats, generator: np.random.Generator, draws: int) -> ParametricLaw:
    """Laws drawn around this one. `covariance` is of log E, log A, log B, alpha and beta, jointly normal: so A and alpha err together."""
    moved = generator.multivariate_normal(np.zeros(len(PARAMETERS)), covariance, draws)
    figures = np.array([getattr(law, name) for name in PARAMETERS], dtype=np.float64)
    return laws_from_rows(np.hstack([figures[:3] * np.exp(moved[:, :3]), figures[3:] + moved[:, 3:]]), law.power)


def laws_from_rows(sets: Floats, power: float = 1.0) -> ParametricLaw:
    """Laws from rows of E, A, B, alpha and beta, as a fit's bootstrap gives them. Raises ValueError for rows that are no laws."""
    irreducible, of_size, of_data, alpha, beta = np.asarray(sets, dtype=np.float64).T
    return ParametricLaw(irreducible, of_size, of_data, alpha, beta, power)


def draw_allocation_laws(law: AllocationLaw, exponents: Range, generator: np.random.Generator, draws: int) -> AllocationLaw:
    """Laws with exponents drawn from their interval, normal on either side of this one's; all have the same optimum at the anchor."""
    z = generator.standard_normal(draws) / P90_DEVIATIONS
    return replace(law, exponent=exponents.p50 + z * np.where(z > 0, exponents.p90 - exponents.p50, exponents.p50 - exponents.p10))


def range_around(figure: Amount, draws: Amount) -> Range:
    """The law's own figure with the 10th and 90th percentile of the draws, which may be infinite; never on one side of the figure alone."""
    low, high = np.quantile(np.asarray(draws), (0.1, 0.9), method="inverted_cdf")
    return Range(min(float(low), float(figure)), float(figure), max(float(high), float(figure)))


def _ratio(law: ParametricLaw) -> Amount:
    return cast("Amount", (law.alpha * law.A / (law.beta * law.B)) ** (1 / (law.alpha + law.beta)))


def _saturated(amount: Floats, unique: Amount, decay: float) -> Floats:
    repeats = np.maximum(amount / unique - 1, 0.0)
    return np.minimum(amount, unique) + unique * decay * -np.expm1(-repeats / decay)


def _tokens_worth(worth: Floats, limit: DataLimit | None) -> Floats:
    """Tokens that are worth so many unique ones: `effective_tokens` turned round, infinite beyond what repeats can be worth."""
    if limit is None:
        return worth
    unique, decay = limit.unique_tokens, limit.repetition.tokens
    left = 1 - np.maximum(worth / unique - 1, 0.0) / decay
    repeats = -decay * np.log(np.where(left > 0, left, 1.0))
    return np.where(left > 0, np.minimum(worth, unique) + unique * repeats, np.inf)


def _figure(value: Floats) -> Amount:
    return float(value) if np.ndim(value) == 0 else value

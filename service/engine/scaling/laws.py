"""Scaling laws: predicted loss, tokens for a loss, optimal size for a budget, and random draws of laws.

All functions take figures or arrays. A loss that cannot be reached takes infinitely many tokens.
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
    ParametricLaw,
    ScalingLaw,
)
from service.engine.numerics.ranges import P90_Z_SCORE

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount

Floats = NDArray[np.float64]


def loss(law: ScalingLaw, params: Amount, tokens: Amount, limit: DataLimit | None = None) -> Floats:
    """Loss of models trained on a number of tokens.

    Parameters
    ----------
    law : ScalingLaw
    params, tokens : float or float array
    limit : DataLimit, optional
        Unique tokens; repeated ones are worth less.

    Returns
    -------
    float array
        Loss [nats/token].

    Raises
    ------
    InvalidRequest
        For a law that gives optimal sizes only.
    """
    law = require_parametric(law)
    terms = law.A / effective_params(law, params, limit) ** law.alpha + law.B / effective_tokens(tokens, limit) ** law.beta
    return np.asarray(law.E + terms**law.power)


def tokens_for_loss(law: ScalingLaw, params: Amount, target: Amount, limit: DataLimit | None = None) -> Floats:
    """Training tokens with which each size reaches the target loss.

    Parameters
    ----------
    law : ScalingLaw
    params : float or float array
    target : float or float array
        Loss [nats/token].
    limit : DataLimit, optional

    Returns
    -------
    float array
        Tokens, infinite where none suffice.

    Raises
    ------
    InvalidRequest
        For a law that gives optimal sizes only.
    """
    law = require_parametric(law)
    remaining = np.maximum(target - law.E, 0.0) ** (1 / law.power) - law.A / effective_params(law, params, limit) ** law.alpha
    reachable = remaining > 0
    worth = (law.B / np.where(reachable, remaining, 1.0)) ** (1 / law.beta)
    return np.where(reachable, _tokens_worth(worth, limit), np.inf)


def effective_tokens(tokens: Amount, limit: DataLimit | None) -> Floats:
    """Unique tokens that the trained tokens are worth: U + U R* (1 - e^(-R / R*)) with R = D / U - 1 repeats.

    Parameters
    ----------
    tokens : float or float array
        Trained tokens D.
    limit : DataLimit or None
        Unique tokens U and the decay R*; None: all tokens are unique.

    Returns
    -------
    float array
        Tokens.

    References
    ----------
    Muennighoff et al. 2023 (arXiv 2305.16264), equation 5.
    """
    trained_tokens = np.asarray(tokens, dtype=np.float64)
    return trained_tokens if limit is None else _saturated(trained_tokens, limit.unique_tokens, limit.repetition.tokens)


def effective_params(law: ParametricLaw, params: Amount, limit: DataLimit | None) -> Floats:
    """Parameters that the size is worth: those beyond the size that the unique tokens are optimal for decay as repeats do.

    Parameters
    ----------
    law : ParametricLaw
    params : float or float array
    limit : DataLimit or None

    Returns
    -------
    float array
        Parameters. The size is taken from all unique tokens, not from those used, so that a limit that is not reached changes nothing.

    References
    ----------
    Muennighoff et al. 2023 (arXiv 2305.16264), equation 6.
    """
    size = np.asarray(params, dtype=np.float64)
    return size if limit is None else _saturated(size, optimal_params_for_tokens(law, limit.unique_tokens), limit.repetition.params)


def optimal_params(law: ScalingLaw, flops: Amount) -> Floats:
    """Size with the lowest loss for a number of training FLOPs: G (C / 6)^a with a = beta / (alpha + beta).

    Parameters
    ----------
    law : ScalingLaw
    flops : float or float array
        Training compute C [FLOP].

    Returns
    -------
    float array
        Parameters; G^(alpha + beta) = alpha A / (beta B), and `power` does not move the optimum.

    References
    ----------
    Hoffmann et al. 2022 (arXiv 2203.15556), equation 4.
    """
    if isinstance(law, AllocationLaw):
        return np.asarray(law.anchor_params * (np.asarray(flops) / law.anchor_flops) ** law.exponent)
    return np.asarray(_ratio(law) * (np.asarray(flops) / FLOPS_PER_PARAM_AND_TOKEN) ** size_exponent(law))


def optimal_params_for_tokens(law: ParametricLaw, tokens: Amount) -> Floats:
    """Size for which a number of tokens is optimal: D = (C / 6)^(1 - a) / G solved for N.

    Parameters
    ----------
    law : ParametricLaw
    tokens : float or float array

    Returns
    -------
    float array
        Parameters.
    """
    ratio = _ratio(law)
    return np.asarray(ratio * (ratio * tokens) ** (law.beta / law.alpha))


def optimal_tokens_for_params(law: ScalingLaw, params: Amount) -> Floats:
    """Tokens that a size is compute-optimal with: N = K C^a and C = 6 N D solved for D.

    Parameters
    ----------
    law : ScalingLaw
    params : float or float array

    Returns
    -------
    float array
        Tokens, all unique.
    """
    size = np.asarray(params, dtype=np.float64)
    flops = (size / optimal_params(law, 1.0)) ** (1 / size_exponent(law))
    return np.asarray(flops / (FLOPS_PER_PARAM_AND_TOKEN * size))


def optimal_flops(law: ParametricLaw, target: Amount) -> Floats:
    """Fewest training FLOPs that reach a loss; on the frontier both terms fall with C^(-alpha a).

    Parameters
    ----------
    law : ParametricLaw
    target : float or float array
        Loss [nats/token].

    Returns
    -------
    float array
        Compute [FLOP], infinite where the loss cannot be reached.
    """
    ratio, loss_exponent = _ratio(law), law.alpha * size_exponent(law)
    at_one = law.A / ratio**law.alpha + law.B * ratio**law.beta
    remaining = np.maximum(target - law.E, 0.0) ** (1 / law.power)
    scaled = (at_one / np.where(remaining > 0, remaining, 1.0)) ** (1 / loss_exponent)
    return np.where(remaining > 0, FLOPS_PER_PARAM_AND_TOKEN * scaled, np.inf)


def size_exponent(law: ScalingLaw) -> Amount:
    """Exponent of the training FLOPs with which the optimal size grows [1]."""
    return law.exponent if isinstance(law, AllocationLaw) else law.beta / (law.alpha + law.beta)


def require_parametric(law: ScalingLaw) -> ParametricLaw:
    """The law, where it predicts the loss of any size. Raises InvalidRequest for a law that gives optimal sizes only."""
    if isinstance(law, AllocationLaw):
        raise InvalidRequest("this law gives optimal sizes, but no loss of other sizes: choose a law with E, A, B, alpha and beta", "/law")
    return law


def draw_laws(law: ParametricLaw, covariance: Floats, generator: np.random.Generator, draws: int) -> ParametricLaw:
    """Laws drawn around a law.

    Parameters
    ----------
    law : ParametricLaw
    covariance : (5, 5) float array
        Of log E, log A, log B, alpha and beta, jointly normal: A and alpha err together.
    generator : numpy.random.Generator
    draws : int

    Returns
    -------
    ParametricLaw
        Arrays of shape (draws,).
    """
    deviations = generator.multivariate_normal(np.zeros(len(PARAMETERS)), covariance, draws)
    figures = np.array([getattr(law, name) for name in PARAMETERS], dtype=np.float64)
    return laws_from_rows(np.hstack([figures[:3] * np.exp(deviations[:, :3]), figures[3:] + deviations[:, 3:]]), law.power)


def laws_from_rows(sets: Floats, power: float = 1.0) -> ParametricLaw:
    """Laws from rows of parameters, as a fit's resamples give them.

    Parameters
    ----------
    sets : (laws, 5) float array
        E, A, B, alpha, beta.
    power : float
        Exponent of the sum of both terms [1].

    Returns
    -------
    ParametricLaw
        Arrays of shape (laws,).

    Raises
    ------
    ValueError
        For rows that are no laws.
    """
    irreducible, of_size, of_data, alpha, beta = np.asarray(sets, dtype=np.float64).T
    return ParametricLaw(irreducible, of_size, of_data, alpha, beta, power)


def draw_allocation_laws(law: AllocationLaw, exponents: Range, generator: np.random.Generator, draws: int) -> AllocationLaw:
    """Laws with exponents drawn from their interval, normal on either side of the median; all share the optimum at the anchor.

    Parameters
    ----------
    law : AllocationLaw
    exponents : Range
        Of the exponent [1].
    generator : numpy.random.Generator
    draws : int

    Returns
    -------
    AllocationLaw
        Exponent of shape (draws,).
    """
    z = generator.standard_normal(draws) / P90_Z_SCORE
    return replace(law, exponent=exponents.p50 + z * np.where(z > 0, exponents.p90 - exponents.p50, exponents.p50 - exponents.p10))


def range_around(figure: Amount, draws: Amount) -> Range:
    """A law's own figure with the 10th and 90th percentile of its draws, widened to hold the figure.

    Parameters
    ----------
    figure : float
    draws : float array
        In the figure's unit; may be infinite.

    Returns
    -------
    Range
        In the figure's unit.
    """
    low, high = np.quantile(np.asarray(draws), (0.1, 0.9), method="inverted_cdf")
    return Range(min(float(low), float(figure)), float(figure), max(float(high), float(figure)))


def _ratio(law: ParametricLaw) -> Amount:
    return cast("Amount", (law.alpha * law.A / (law.beta * law.B)) ** (1 / (law.alpha + law.beta)))


def _saturated(amount: Floats, unique: Amount, decay: float) -> Floats:
    repeats = np.maximum(amount / unique - 1, 0.0)
    return np.minimum(amount, unique) + unique * decay * -np.expm1(-repeats / decay)


def _tokens_worth(worth: Floats, limit: DataLimit | None) -> Floats:
    """Trained tokens worth that many unique ones: the inverse of `effective_tokens`, infinite beyond what repeats can be worth."""
    if limit is None:
        return worth
    unique, decay = limit.unique_tokens, limit.repetition.tokens
    remaining = 1 - np.maximum(worth / unique - 1, 0.0) / decay
    repeats = -decay * np.log(np.where(remaining > 0, remaining, 1.0))
    return np.where(remaining > 0, np.minimum(worth, unique) + unique * repeats, np.inf)

"""Scaling laws: loss of a language model as a function of its parameters N and its training tokens D, and optima.

Every parameter of a law may be an array with one law an element, so draws from a law's uncertainty are laws again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Amount = float | NDArray[np.float64]
    """A figure, or an array of them."""

    Cost = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    """What training so many parameters on so many tokens costs, in any unit; arrays of one shape. Rises with the tokens."""

# Forward and backward pass of a dense model: 2 N and 4 N FLOPs a token (Kaplan et al. 2020, arXiv 2001.08361, table 1).
FLOPS_PER_PARAM_AND_TOKEN = 6.0
INFERENCE_FLOPS_PER_PARAM_AND_TOKEN = 2.0
PARAMETERS = ("E", "A", "B", "alpha", "beta")


@dataclass(frozen=True, slots=True)
class ParametricLaw:
    """L = E + (A / N^alpha + B / D^beta)^power, in nats a token; power is 1 but for Kaplan's law.

    Raises ValueError unless E is 0 or more and every other parameter is above 0.
    """

    E: Amount
    A: Amount
    B: Amount
    alpha: Amount
    beta: Amount
    power: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = np.asarray(getattr(self, field.name))
            if not np.all(np.isfinite(value) & ((value >= 0) if field.name == "E" else (value > 0))):
                raise ValueError(f"{field.name} of a scaling law must be finite and above 0 (E may be 0), not {getattr(self, field.name)}")

    @classmethod
    def from_kaplan(cls, params: float, tokens: float, params_exponent: float, tokens_exponent: float) -> ParametricLaw:
        """L = ((N_c / N)^(alpha_N / alpha_D) + D_c / D)^alpha_D, Kaplan et al. 2020 (arXiv 2001.08361), equation 1.5."""
        ratio = params_exponent / tokens_exponent
        return cls(0.0, params**ratio, tokens, ratio, 1.0, tokens_exponent)


@dataclass(frozen=True, slots=True)
class AllocationLaw:
    """A law of optimal sizes only: N_opt = anchor_params (C / anchor_flops)^exponent for C training FLOPs, D_opt = C / (6 N_opt).

    The loss at the optimum is (loss_flops / C)^loss_exponent where the law has one.
    """

    anchor_flops: float
    anchor_params: float
    exponent: Amount
    loss_flops: float | None = None
    loss_exponent: float | None = None


ScalingLaw = ParametricLaw | AllocationLaw


@dataclass(frozen=True, slots=True)
class MixtureLaw:
    """L = E + (g / G^gamma + a) / (N total)^alpha + B / D^beta for mixtures of experts of granularity G.

    The total is `total_per_active` times the active parameters, which the FLOPs are counted by.
    """

    E: float
    a: float
    B: float
    alpha: float
    beta: float
    g: float
    gamma: float
    total_per_active: float

    def at_granularity(self, granularity: Amount) -> ParametricLaw:
        """The law in active parameters at a granularity: how many times smaller an expert is than a feed-forward layer."""
        size_term = (self.g / np.asarray(granularity) ** self.gamma + self.a) / self.total_per_active**self.alpha
        return ParametricLaw(self.E, size_term if np.ndim(size_term) else float(size_term), self.B, self.alpha, self.beta)


@dataclass(frozen=True, slots=True)
class RepetitionDecay:
    """Decay of the worth of repeated tokens (R*_D, epochs beyond the first) and of excess parameters (R*_N)."""

    tokens: float
    params: float


@dataclass(frozen=True, slots=True)
class DataLimit:
    """A number of unique tokens; longer training repeats them."""

    unique_tokens: float
    repetition: RepetitionDecay


@dataclass(frozen=True, slots=True)
class Optimum:
    """Parameters, training tokens and FLOPs (6 N D), with the loss in nats a token where the law knows it."""

    params: Amount
    tokens: Amount
    loss: Amount | None

    @property
    def flops(self) -> Amount:
        return FLOPS_PER_PARAM_AND_TOKEN * self.params * self.tokens

"""The mean price over a run where it switches between two regimes."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, Regimes


def scarce_share_moments(regimes: Regimes, hours: Floats) -> tuple[float, Floats]:
    """Mean and variance of the share of so many hours that is scarce, begun at any time.

    A two-state Markov process: its correlation falls as exp(-s t), s the sum of the two rates (Cox and Miller 1965, 4.5).
    """
    share = regimes.scarce_hours / (regimes.scarce_hours + regimes.calm_hours)
    switching = np.maximum((1 / regimes.scarce_hours + 1 / regimes.calm_hours) * hours, 1e-6)
    return share, 2 * share * (1 - share) / switching * (1 + np.expm1(-switching) / switching)


def draw_price_factor(regimes: Regimes, hours: Floats, rng: np.random.Generator) -> Floats:
    """The mean price of each run over the stated price: a beta distribution with the mean and variance of the scarce share."""
    mean, variance = scarce_share_moments(regimes, hours)
    strength = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
    scarce = rng.beta(mean * strength, (1 - mean) * strength)
    return np.asarray(regimes.calm_factor + (regimes.scarce_factor - regimes.calm_factor) * scarce)

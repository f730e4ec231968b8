"""Mean price over a run where the price switches between two regimes."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, Regimes


def scarce_share_moments(regimes: Regimes, hours: Floats) -> tuple[float, Floats]:
    """Mean and variance of the share of a period that is scarce, for a stationary two-state Markov process.

    The process's correlation falls as exp(-s t), with s the sum of the two switching rates.

    Parameters
    ----------
    regimes : Regimes
        Mean duration of both regimes [h].
    hours : (trials,) float array
        Length of the period [h].

    Returns
    -------
    float, (trials,) float array
        Mean and variance of the share [1].

    References
    ----------
    Cox and Miller 1965, section 4.5.
    """
    share = regimes.scarce_hours / (regimes.scarce_hours + regimes.calm_hours)
    switching = np.maximum((1 / regimes.scarce_hours + 1 / regimes.calm_hours) * hours, 1e-6)
    return share, 2 * share * (1 - share) / switching * (1 + np.expm1(-switching) / switching)


def draw_price_factor(regimes: Regimes, hours: Floats, rng: np.random.Generator) -> Floats:
    """Mean price of each run over the stated price; the scarce share is drawn from a beta distribution with its mean and variance.

    Parameters
    ----------
    regimes : Regimes
        Factors [1] and mean durations [h] of both regimes.
    hours : (trials,) float array
        Wall-clock hours of the run [h].
    rng : Generator
        Source of the shares.

    Returns
    -------
    (trials,) float array
        Factor on the stated price [1].
    """
    mean, variance = scarce_share_moments(regimes, hours)
    strength = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
    scarce = rng.beta(mean * strength, (1 - mean) * strength)
    return np.asarray(regimes.calm_factor + (regimes.scarce_factor - regimes.calm_factor) * scarce)

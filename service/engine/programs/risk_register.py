"""The whole risk register by simulation, with the correlations that are stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.programs.plan import RiskBlock
from service.domain.programs.program import RiskCorrelation
from service.domain.quantities import Range
from service.engine.numerics.ranges import P90_Z_SCORE

TRIALS = 20_000
SEED = 0
# Below this an eigenvalue is no rounding.
LEAST_EIGENVALUE = -1e-9
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SimulatedLosses:
    """Losses of the trials [USD], shape (trials,), and the share of the trials in which no risk happened [1]."""

    usd: Floats
    none_probability: float


def correlation_matrix(names: Sequence[str], stated: RiskCorrelation) -> Floats:
    """Correlations of the risks' causes.

    Parameters
    ----------
    names : sequence of (n,) str
        Names of the risks.
    stated : float, tuple of RiskPair, or None
        One correlation of all risks, as one common factor gives; that of some pairs, the others 0; None: 0 [1].

    Returns
    -------
    (n, n) array
        Positive semidefinite [1].

    Raises
    ------
    UnknownName
        For a pair with a name that no risk has.
    InvalidRequest
        For a pair of one risk, and for correlations that cannot hold together.
    """
    matrix = np.full((len(names), len(names)), stated if isinstance(stated, float) else 0.0)
    for index, pair in enumerate(stated if isinstance(stated, tuple) else ()):
        rows = [_find(names, name, f"/risk_correlation/{index}/risks/{place}") for place, name in enumerate(pair.risks)]
        if rows[0] == rows[1]:
            raise InvalidRequest("a pair names two risks", f"/risk_correlation/{index}/risks")
        matrix[rows[0], rows[1]] = matrix[rows[1], rows[0]] = pair.correlation
    np.fill_diagonal(matrix, 1.0)
    if names and float(np.linalg.eigvalsh(matrix)[0]) < LEAST_EIGENVALUE:
        raise InvalidRequest(
            "these correlations contradict each other: lower them, or state those of the other pairs too", "/risk_correlation"
        )
    return matrix


def mixing_matrix(correlations: Floats) -> Floats:
    """A matrix that makes scores with these correlations of independent standard normal ones, shape (n, n) [1]."""
    values, vectors = np.linalg.eigh(correlations)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def simulate_losses(blocks: Sequence[RiskBlock], stated: RiskCorrelation, trials: int = TRIALS, seed: int = SEED) -> SimulatedLosses:
    """Losses of the whole register.

    Parameters
    ----------
    blocks : sequence of (n,) RiskBlock
        Planned probability [1] and loss [USD] of each risk.
    stated : float, tuple of RiskPair, or None
        As `correlation_matrix`.
    trials, seed : int
        Number of trials, and seed of their random numbers. A further risk leaves the numbers of those before it as they are.

    Returns
    -------
    SimulatedLosses
        In the order of the trials.

    Raises
    ------
    DomainError
        As `correlation_matrix`.

    References
    ----------
    Gaussian copula of default times: Li 2000, On Default Correlation, Journal of Fixed Income 9(4); one common factor: Vasicek 1987.
    """
    names, probabilities = tuple(block.risk.name for block in blocks), tuple(block.planned_probability for block in blocks)
    occurred = _occurrences(names, probabilities, stated, trials, seed)
    losses = np.array([float(block.loss_usd) for block in blocks])
    return SimulatedLosses(losses @ occurred, float(np.mean(~occurred.any(axis=0))))


def covering_usd(losses: SimulatedLosses, spread: Range, confidence: float, seed: int = SEED) -> float:
    """Amount that covers the losses and the estimate's error together.

    Parameters
    ----------
    losses : SimulatedLosses
        Of the register [USD].
    spread : Range
        Cost of all runs with overheads [USD]; each side of its median is taken as half of a normal distribution.
    confidence : float
        Probability with which the amount is enough [1].
    seed : int
        Of the order in which errors meet losses.

    Returns
    -------
    float
        Quantile of losses plus error beyond the median [USD].
    """
    scores = np.random.default_rng(seed + 1).permutation(_normal_scores(losses.usd.size))
    sides = np.where(scores < 0, spread.p50 - spread.p10, spread.p90 - spread.p50) / P90_Z_SCORE
    return float(np.quantile(losses.usd + sides * scores, confidence))


def independent_deviation_usd(blocks: Sequence[RiskBlock]) -> float:
    """Standard deviation of the register's loss where no risk depends on another: sqrt of the sum of p (1 - p) loss^2 [USD]."""
    return math.sqrt(sum(block.planned_probability * (1 - block.planned_probability) * float(block.loss_usd) ** 2 for block in blocks))


@lru_cache(maxsize=8)
def _occurrences(
    names: tuple[str, ...], probabilities: tuple[float, ...], stated: RiskCorrelation, trials: int, seed: int
) -> NDArray[np.bool_]:
    """Which risks happen in which trials, shape (n, trials). Variants of a plan differ in losses, not in what happens: kept for them."""
    mixing = mixing_matrix(correlation_matrix(names, stated)) if stated else None
    scores = np.random.default_rng(seed).standard_normal((len(names), trials))
    scores = scores if mixing is None else mixing @ scores
    happens = scores < np.array([_threshold(probability) for probability in probabilities]).reshape(-1, 1)
    happens.flags.writeable = False
    return happens


def _threshold(probability: float) -> float:
    """Standard normal score below which an event of a probability happens."""
    return NormalDist().inv_cdf(probability) if 0 < probability < 1 else math.copysign(math.inf, probability - 0.5)


@cache
def _normal_scores(count: int) -> Floats:
    """Evenly likely standard normal scores, rising."""
    return np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)])


def _find(names: Sequence[str], name: str, pointer: str) -> int:
    if name not in names:
        raise UnknownName(f"no risk is called {name!r}; there are {', '.join(names) or 'none'}", pointer)
    return names.index(name)

"""Lengths of sampled answers: a log-normal distribution, cut off at the limit of tokens.

Answers to one set of prompts scatter by their logarithm: most are short, few are many times as long, and those that reach the limit are cut
off there. A step waits for its longest answer, which is the order statistic of all of them.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from service.domain.training.reinforcement import Reinforcement, ResponseLengths, Rollouts

NORMAL = NormalDist()
P90 = NORMAL.inv_cdf(0.9)
BISECTIONS = 60


def lengths_from_quantiles(p50: float, p90: float, max_tokens: float) -> ResponseLengths:
    """The distribution with these quantiles.

    Parameters
    ----------
    p50, p90 : float
        Tokens of the median answer and of the 90th percentile.
    max_tokens : float
        Limit [tokens].

    Returns
    -------
    ResponseLengths
    """
    return ResponseLengths(p50, math.log(p90 / p50) / P90, max_tokens)


def lengths_from_mean(mean: float, log_deviation: float, max_tokens: float) -> ResponseLengths:
    """The distribution with that mean after it is cut off.

    Parameters
    ----------
    mean : float
        Mean answer [tokens], below `max_tokens`.
    log_deviation : float
        Standard deviation of the logarithm [1].
    max_tokens : float
        Limit [tokens].

    Returns
    -------
    ResponseLengths
        Of the limit alone where the mean is the limit.
    """
    if mean >= max_tokens or not log_deviation:
        return ResponseLengths(mean, 0.0, max_tokens)
    # The mean of what is cut off grows with the median, from 0 to the limit; a median far above the limit is the limit itself.
    low, high = math.log(mean) - log_deviation**2, math.log(max_tokens) + 6 * log_deviation
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = mean_tokens(ResponseLengths(math.exp(middle), log_deviation, max_tokens)) > mean
        low, high = (low, middle) if above else (middle, high)
    return ResponseLengths(math.exp(high), log_deviation, max_tokens)


def mean_tokens(lengths: ResponseLengths) -> float:
    """Mean answer after the cut.

    Parameters
    ----------
    lengths : ResponseLengths
        Their distribution.

    Returns
    -------
    float
        E[min(X, m)] = exp(mu + s^2 / 2) Phi((ln m - mu - s^2) / s) + m (1 - Phi((ln m - mu) / s)) [tokens].
    """
    spread, limit = lengths.log_deviation, lengths.max_tokens
    if not spread:
        return min(lengths.median_tokens, limit)
    place = math.log(limit / lengths.median_tokens) / spread
    below = lengths.median_tokens * math.exp(spread**2 / 2) * NORMAL.cdf(place - spread)
    return below + limit * (1 - NORMAL.cdf(place))


def share_longer(lengths: ResponseLengths, tokens: float) -> float:
    """Share of the answers that have more tokens than these [1].

    Parameters
    ----------
    lengths : ResponseLengths
        Their distribution.
    tokens : float
        Length [tokens].

    Returns
    -------
    float
    """
    if tokens >= lengths.max_tokens:
        return 0.0
    if not lengths.log_deviation:
        return float(tokens < lengths.median_tokens)
    return 1 - NORMAL.cdf(math.log(max(tokens, 1e-9) / lengths.median_tokens) / lengths.log_deviation)


def longest_tokens(lengths: ResponseLengths, answers: float) -> float:
    """The longest of a number of answers, in the median.

    Parameters
    ----------
    lengths : ResponseLengths
        Their distribution.
    answers : float
        Answers that are waited for.

    Returns
    -------
    float
        The quantile of 0.5^(1 / answers), at most the limit [tokens].

    References
    ----------
    David and Nagaraja 2003, Order Statistics, section 2.1: the distribution of a sample's largest value is F^n.
    """
    if not lengths.log_deviation:
        return min(lengths.median_tokens, lengths.max_tokens)
    # 1 - 0.5^(1/n) is below what a float keeps of 1 for many answers: the other tail has it.
    place = -NORMAL.inv_cdf(-math.expm1(-math.log(2) / max(answers, 1.0)))
    return min(lengths.median_tokens * math.exp(lengths.log_deviation * place), lengths.max_tokens)


def mean_sequence_tokens(rollouts: Rollouts, context_ranks: int = 1) -> int:
    """Tokens of a mean prompt with its answer, in whole parts for the context ranks."""
    tokens = rollouts.prompt_tokens + mean_tokens(rollouts.lengths)
    return max(1, round(tokens / context_ranks)) * context_ranks


def packed_tokens(rl: Reinforcement) -> float:
    """Tokens of one sequence of a micro-batch: those of the longest prompt with its answer, or of several short ones packed."""
    return max(rl.rollouts.prompt_tokens + rl.rollouts.lengths.max_tokens, rl.rates.packed_tokens)

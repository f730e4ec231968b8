"""Progress of a run in phases: tokens of a slow phase are more work than those of a fast one, by the plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.events import RunBaseline

Floats = NDArray[np.float64]


def planned_work(baseline: RunBaseline, tokens: Floats) -> Floats:
    """Positions in the plan by the time that it has for them: the tokens that would be trained by then at the run's mean planned speed.

    A run on its plan gains it evenly, whatever its phase; it equals the tokens at the end of the phases, and everywhere without phases.

    Parameters
    ----------
    baseline : RunBaseline
        Plan of the run.
    tokens : (n,) float array
        Positions [tokens]; beyond the last phase, tokens are as fast as in it.

    Returns
    -------
    (n,) float array
        [tokens].
    """
    if not baseline.phases:
        return tokens
    sizes, speeds = np.array([(phase.tokens, phase.tokens_per_s) for phase in baseline.phases]).T
    mean = sizes.sum() / (sizes / speeds).sum()
    ends, work = (np.concatenate(([0.0], np.cumsum(each))) for each in (sizes, sizes / speeds * mean))
    beyond = np.maximum(tokens - ends[-1], 0.0) * (mean / speeds[-1])
    return np.asarray(np.interp(tokens, ends, work) + beyond)


def planned_work_until(baseline: RunBaseline, tokens: float) -> float:
    """As `planned_work`, of one position [tokens]."""
    return float(planned_work(baseline, np.array([tokens]))[0])


def planned_share(baseline: RunBaseline, tokens: float) -> float:
    """Share of a run's planned work that is done at a position [1]; the plan states its tokens."""
    return planned_work_until(baseline, tokens) / planned_work_until(baseline, baseline.tokens or tokens)


def trained_work(baseline: RunBaseline, trained: Floats, positions: Floats) -> Floats:
    """Running total of planned work that was trained, with what rollbacks lost.

    Parameters
    ----------
    baseline : RunBaseline
        Plan of the run.
    trained : (n,) float array
        Running total of trained tokens, lost ones included [tokens].
    positions : (n,) float array
        Position at the same times [tokens].

    Returns
    -------
    (n,) float array
        [tokens], as `trained` without phases.
    """
    if not baseline.phases or not trained.size:
        return trained
    gained = np.diff(trained, prepend=0.0)
    return np.cumsum(planned_work(baseline, positions) - planned_work(baseline, np.maximum(positions - gained, 0.0)))

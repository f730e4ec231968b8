"""Checks of training runs before a scaling law is fitted, and warnings about a doubtful fit."""

from __future__ import annotations

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.scaling.fits import Floats, HoldOutCheck, TrainingRuns

FEWEST_POINTS = 6
# Losses of one run repeated with another seed differ by about this much: less between all runs is no trend.
NO_TREND = 1e-3
# A run for each of the five parameters, and ten to tell scatter from law.
FEW_POINTS = 15
LARGE_SCATTER = 0.05
# Sizes nearer than this are one scale (a size rounded, or with and without embeddings).
ONE_SCALE = 0.05
STRAIGHT = 0.999
# Standard errors: chance alone falls by more in one of forty sets of runs.
CHANCE = 2.0
MISSED = 2.0
# Errors of runs left out are in units of what runs without them scatter: beyond this factor the fit's own scatter holds them.
MOST_WIDENED = 10.0


def validate_runs(points: TrainingRuns) -> TrainingRuns:
    """The distinct runs in a canonical order, so that a fit does not depend on the order given.

    Parameters
    ----------
    points : TrainingRuns

    Returns
    -------
    TrainingRuns

    Raises
    ------
    InvalidRequest
        For values that are not positive numbers, fewer than 6 distinct sizes, or losses that do not fall with compute.
    """
    _check_values(points)
    runs = distinct_runs(points)
    distinct = len(np.unique(np.column_stack([runs.params, runs.tokens]), axis=0))
    if distinct < FEWEST_POINTS:
        raise InvalidRequest(
            f"{distinct} distinct runs; a law of five parameters needs at least {FEWEST_POINTS} that differ in size", "/points"
        )
    _check_trend(runs)
    return runs


def distinct_runs(points: TrainingRuns) -> TrainingRuns:
    """The runs without exact copies, sorted by parameters, tokens and loss."""
    rows = np.unique(np.column_stack([points.params, points.tokens, points.loss]), axis=0)
    return TrainingRuns(rows[:, 0], rows[:, 1], rows[:, 2])


def fit_warnings(
    stated: TrainingRuns, runs: TrainingRuns, scatter: float, held_out: HoldOutCheck | None, bounds: tuple[str, ...]
) -> tuple[str, ...]:
    """Reasons to doubt a fit, each one sentence.

    Parameters
    ----------
    stated, runs : TrainingRuns
        As stated, and as validated.
    scatter : float
        Mean absolute residual of the log-loss [1].
    held_out : HoldOutCheck or None
    bounds : tuple of str
        Parameters at the edge of the search range.

    Returns
    -------
    tuple of str
    """
    warnings = [*_data_warnings(stated, runs)]
    if scatter > LARGE_SCATTER:
        warnings.append(f"runs lie {scatter:.1%} from the law on average: they may differ in more than size (data, tokenizer, recipe)")
    if bounds:
        warnings.append(f"the runs do not determine {', '.join(bounds)}: the best value is at the edge of what is searched")
    if held_out is None:
        warnings.append("too few runs to leave any out: the prediction of larger ones is not checked")
    elif held_out.miss > MISSED:
        warnings.append(
            f"a law without the {held_out.points} largest runs is {held_out.error:.1%} off on them, {held_out.miss:.1f} times what was "
            f"expected: intervals are widened by {widening_factor(held_out):.1f}"
        )
    return tuple(warnings)


def widening_factor(held_out: HoldOutCheck | None) -> float:
    """Factor, 1 to 10, by which prediction intervals are widened for the error on held-out runs [1]."""
    return 1.0 if held_out is None else min(max(1.0, held_out.miss), MOST_WIDENED)


def extrapolation_factors(points: TrainingRuns, params: float, tokens: float) -> dict[str, float]:
    """Size of a run over the largest fitted run; at most 1 is interpolation.

    Parameters
    ----------
    points : TrainingRuns
    params, tokens : float

    Returns
    -------
    dict of str to float
        Ratios of "params", "tokens" and "flops" (their product) [1].
    """
    return {
        "params": float(params / points.params.max()),
        "tokens": float(tokens / points.tokens.max()),
        "flops": float(params * tokens / (points.params * points.tokens).max()),
    }


def extrapolation_warnings(factors: dict[str, float]) -> tuple[str, ...]:
    """One sentence for a run beyond the data, none for a run within them."""
    exceeded = [f"{times:.3g} times the {name}" for name, times in factors.items() if times > 1]
    return (f"extrapolated: {', '.join(exceeded)} of the largest run fitted",) if exceeded else ()


def _check_values(points: TrainingRuns) -> None:
    for name in ("params", "tokens", "loss"):
        values = getattr(points, name)
        invalid = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if invalid.size:
            raise InvalidRequest(f"{name} is {values[invalid[0]]}; it has to be a number above 0", f"/points/{invalid[0]}/{name}")


def _check_trend(runs: TrainingRuns) -> None:
    logs = np.log(runs.loss)
    if np.ptp(logs) < NO_TREND:
        raise InvalidRequest(
            f"all losses are within {NO_TREND:.1%} of each other: they do not show how loss falls with size; add smaller or larger runs",
            "/points",
        )
    compute = np.log(runs.params) + np.log(runs.tokens)
    if np.ptp(compute) > ONE_SCALE and not _has_falling_trend(compute - compute.mean(), logs - logs.mean()):
        raise InvalidRequest(
            "loss does not fall with compute by more than the runs scatter; are losses and sizes in the right columns?", "/points"
        )


def _has_falling_trend(compute: Floats, logs: Floats) -> bool:
    """Whether a straight line through the centred values falls by more than chance."""
    slope = float(compute @ logs / (compute @ compute))
    error = float(np.sqrt(((logs - slope * compute) ** 2).sum() / (len(logs) - 2) / (compute @ compute)))
    return slope < -CHANCE * error


def _data_warnings(stated: TrainingRuns, runs: TrainingRuns) -> list[str]:
    warnings = []
    if len(runs) < len(stated):
        warnings.append(f"{len(stated) - len(runs)} exact copies of runs are counted once")
    if len(runs) < FEW_POINTS:
        warnings.append(f"{len(runs)} runs for five parameters: intervals depend on published laws")
    sizes, data = np.log(runs.params), np.log(runs.tokens)
    for name, logs in (("parameters", sizes), ("tokens", data)):
        count = 1 + int(np.sum(np.diff(np.sort(logs)) > ONE_SCALE))
        if count <= 2:
            warnings.append(f"only {'one scale' if count == 1 else 'two scales'} of {name}: the exponent is not determined")
    if min(np.ptp(sizes), np.ptp(data)) > 0 and abs(np.corrcoef(sizes, data)[0, 1]) > STRAIGHT:
        warnings.append("tokens grow in step with parameters: the two terms cannot be separated, and runs off that line are not determined")
        return warnings
    return warnings + _rising_loss_warnings(runs, sizes, data)


def _rising_loss_warnings(runs: TrainingRuns, sizes: Floats, data: Floats) -> list[str]:
    """Whether the loss rises with one size while the other is held; a single scale allows no statement."""
    design = np.column_stack([np.ones(len(runs)), sizes, data])
    slopes = np.linalg.lstsq(design, np.log(runs.loss), rcond=None)[0][1:]
    trends = zip(("parameters", "tokens"), slopes, (sizes, data), strict=True)
    return [f"loss rises with {name} in these runs" for name, slope, logs in trends if slope > 0 and np.ptp(logs) > ONE_SCALE]

"""What can be wrong with runs that a scaling law is fitted to: what no law can be found in is refused, what makes one doubtful is said."""

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
    """The distinct runs in an order of their own, so that a fit does not depend on theirs.

    Raises InvalidRequest for values that are not positive numbers, for fewer than 6 distinct sizes, and where losses don't fall with size.
    """
    _refuse_values(points)
    runs = distinct_runs(points)
    distinct = len(np.unique(np.column_stack([runs.params, runs.tokens]), axis=0))
    if distinct < FEWEST_POINTS:
        raise InvalidRequest(
            f"{distinct} distinct runs; a law of five parameters needs at least {FEWEST_POINTS} that differ in size", "/points"
        )
    _refuse_trend(runs)
    return runs


def distinct_runs(points: TrainingRuns) -> TrainingRuns:
    """The runs without exact copies, by parameters, tokens and loss."""
    rows = np.unique(np.column_stack([points.params, points.tokens, points.loss]), axis=0)
    return TrainingRuns(rows[:, 0], rows[:, 1], rows[:, 2])


def fit_warnings(
    given: TrainingRuns, runs: TrainingRuns, scatter: float, held_out: HoldOutCheck | None, bounds: tuple[str, ...]
) -> tuple[str, ...]:
    """What makes a fit doubtful, each in a sentence."""
    said = [*_data_warnings(given, runs)]
    if scatter > LARGE_SCATTER:
        said.append(f"runs lie {scatter:.1%} from the law on average: they may differ in more than size (data, tokenizer, recipe)")
    if bounds:
        said.append(f"the runs do not determine {', '.join(bounds)}: the best value is at the edge of what is searched")
    if held_out is None:
        said.append("too few runs to leave any out: how the law foretells larger ones is not checked")
    elif held_out.miss > MISSED:
        said.append(
            f"a law without the {held_out.points} largest runs is {held_out.error:.1%} off on them, {held_out.miss:.1f} times what was "
            f"expected: intervals are widened by {widening_factor(held_out):.1f}"
        )
    return tuple(said)


def widening_factor(held_out: HoldOutCheck | None) -> float:
    """The factor by which intervals of runs foretold are widened, for what was off in runs left out: 1 to 10."""
    return 1.0 if held_out is None else min(max(1.0, held_out.miss), MOST_WIDENED)


def extrapolation_factors(points: TrainingRuns, params: float, tokens: float) -> dict[str, float]:
    """How many times a run exceeds the largest of the runs in parameters, tokens and compute (their product); at most 1 is within."""
    return {
        "params": float(params / points.params.max()),
        "tokens": float(tokens / points.tokens.max()),
        "flops": float(params * tokens / (points.params * points.tokens).max()),
    }


def extrapolation_warnings(far: dict[str, float]) -> tuple[str, ...]:
    """A sentence for a run that lies beyond the data."""
    named = [f"{times:.3g} times the {name}" for name, times in far.items() if times > 1]
    return (f"extrapolated: {', '.join(named)} of the largest run fitted",) if named else ()


def _refuse_values(points: TrainingRuns) -> None:
    for name in ("params", "tokens", "loss"):
        values = getattr(points, name)
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if bad.size:
            raise InvalidRequest(f"{name} is {values[bad[0]]}; it has to be a number above 0", f"/points/{bad[0]}/{name}")


def _refuse_trend(runs: TrainingRuns) -> None:
    logs = np.log(runs.loss)
    if np.ptp(logs) < NO_TREND:
        raise InvalidRequest(f"all losses are within {NO_TREND:.1%} of each other: they say nothing of how loss falls with size", "/points")
    compute = np.log(runs.params) + np.log(runs.tokens)
    if np.ptp(compute) > ONE_SCALE and not _falls(compute - compute.mean(), logs - logs.mean()):
        raise InvalidRequest(
            "loss does not fall with compute by more than the runs scatter; are losses and sizes in the right columns?", "/points"
        )


def _falls(compute: Floats, logs: Floats) -> bool:
    """Whether a straight line through the centred values falls by more than chance."""
    slope = float(compute @ logs / (compute @ compute))
    error = float(np.sqrt(((logs - slope * compute) ** 2).sum() / (len(logs) - 2) / (compute @ compute)))
    return slope < -CHANCE * error


def _data_warnings(given: TrainingRuns, runs: TrainingRuns) -> list[str]:
    said = []
    if len(runs) < len(given):
        said.append(f"{len(given) - len(runs)} exact copies of runs are counted once")
    if len(runs) < FEW_POINTS:
        said.append(f"{len(runs)} runs for five parameters: intervals lean on what published laws have")
    sizes, data = np.log(runs.params), np.log(runs.tokens)
    for name, logs in (("parameters", sizes), ("tokens", data)):
        count = 1 + int(np.sum(np.diff(np.sort(logs)) > ONE_SCALE))
        if count <= 2:
            said.append(f"only {'one scale' if count == 1 else 'two scales'} of {name}: the exponent is not determined")
    if min(np.ptp(sizes), np.ptp(data)) > 0 and abs(np.corrcoef(sizes, data)[0, 1]) > STRAIGHT:
        said.append("tokens grow in step with parameters: the two terms cannot be told apart, a run off that line is a guess")
        return said
    return said + _rising(runs, sizes, data)


def _rising(runs: TrainingRuns, sizes: Floats, data: Floats) -> list[str]:
    """Whether loss rises with one size where the other is held; of one scale alone nothing can be said."""
    design = np.column_stack([np.ones(len(runs)), sizes, data])
    slopes = np.linalg.lstsq(design, np.log(runs.loss), rcond=None)[0][1:]
    told = zip(("parameters", "tokens"), slopes, (sizes, data), strict=True)
    return [f"loss rises with {name} in these runs" for name, slope, logs in told if slope > 0 and np.ptp(logs) > ONE_SCALE]

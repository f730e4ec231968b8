"""A scaling law from the caller's own runs: its parameters, what it foretells and how surely, and which runs to make next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.fits import HoldOutCheck, LossPrediction, ScalingFit, TrainingRuns
from service.domain.scaling.laws import PARAMETERS
from service.engine.scaling.experiment_design import default_candidates, design_runs
from service.engine.scaling.fit_diagnostics import FEWEST_POINTS
from service.engine.scaling.law_fit import exponent_ranges, fit_law, parameter_ranges, predict_runs, standard_errors
from service.presets.scaling.law_fit import fit_default, law_prior
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]

MOST_POINTS = 1000
MOST_STARTS = 1000
FEWEST_BOOTSTRAPS, MOST_BOOTSTRAPS = 20, 1000
# Points times resamples: some 15 microseconds of CPU each where no law fits, a fifth of that where one does.
MOST_WORK = 200_000
FORM = "chinchilla"
__all__ = ["FEWEST_POINTS", "FORM", "MOST_BOOTSTRAPS", "MOST_POINTS", "MOST_STARTS", "MOST_WORK", "LawFitAnswer", "fit_scaling_law"]


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """A run foretold: its interval of 80 %, the best fit's loss, and how many times it lies beyond the largest run."""

    p10: float
    p50: float
    p90: float
    params: float
    tokens: float
    best_fit: float
    beyond: Mapping[str, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NextRun:
    """A run to make; `narrowed_to` is the share of the interval's width left once it and those before it are made."""

    params: float
    tokens: float
    flops: float
    narrowed_to: float


@dataclass(frozen=True, slots=True)
class DesignAnswer:
    """Runs to make next, and the interval of the target's loss before and, as expected, after them."""

    runs: tuple[NextRun, ...]
    flops: float
    before: Range
    after: Range


@dataclass(frozen=True, slots=True)
class OptimumExponents:
    """By which power of the training compute the optimal parameters and tokens grow."""

    params: Range
    tokens: Range


@dataclass(frozen=True, slots=True)
class LawFitAnswer:
    """A fitted law. `law` is as POST /v1/optimal takes one, with the resamples its uncertainty is carried by."""

    form: str
    parameters: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    standard_errors: Mapping[str, float]
    residual: float
    points_used: int
    optimum_exponents: OptimumExponents
    predictions: tuple[PredictedRun, ...]
    held_out: HoldOutCheck | None
    design: DesignAnswer | None
    law: Mapping[str, Any]
    engine_version: str
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


def fit_scaling_law(request: Given) -> LawFitAnswer:
    """The law of a request's runs, as the schema gives it. Raises InvalidRequest, with a pointer, where no law can be found."""
    notes = AssumptionLog()
    form = notes.take(request, "form", FORM, "L = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, equation 2)")
    points = TrainingRuns(*(np.array([run[name] for run in request["points"]], dtype=np.float64) for name in ("params", "tokens", "loss")))
    starts, bootstraps, seed = (_chosen(request, name, notes) for name in ("starts", "bootstraps", "seed"))
    _check_work(len(points), bootstraps)
    typical = law_prior()
    notes.assume("prior", "published laws", f"counts as one more run, for what the runs leave open; {typical.source}")
    # A stream for each question, so that one more prediction changes nothing else.
    fitting, foretelling, designing = np.random.default_rng(seed).spawn(3)
    fit = fit_law(points, typical, fitting, starts, bootstraps)
    predictions = _predictions(fit, request.get("predict", ()), foretelling)
    exponents = exponent_ranges(fit)
    return LawFitAnswer(
        form=form,
        parameters=_by_name(fit.parameters.tolist()),
        intervals={name: (each.p10, each.p90) for name, each in parameter_ranges(fit).items()},
        standard_errors=standard_errors(fit),
        residual=fit.scatter,
        points_used=len(fit.points),
        optimum_exponents=OptimumExponents(exponents["params"], exponents["tokens"]),
        predictions=predictions,
        held_out=fit.held_out,
        design=_design(fit, request.get("design"), designing),
        law=_law(fit),
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*fit.warnings, *_beyond(predictions)),
    )


def _chosen(request: Given, name: str, notes: AssumptionLog) -> int:
    usual = fit_default(name)
    return int(notes.take(request, name, usual.value, usual.source))


def _check_work(points: int, bootstraps: int) -> None:
    if points * bootstraps > MOST_WORK:
        raise InvalidRequest(
            f"{points:,} points in {bootstraps:,} resamples are more work than the {MOST_WORK:,} of one fit: take at most"
            f" {MOST_WORK // points:,} resamples",
            "/bootstraps",
        )


def _predictions(fit: ScalingFit, asked: Sequence[Given], generator: np.random.Generator) -> tuple[PredictedRun, ...]:
    sizes, data = (np.array([run[name] for run in asked], dtype=np.float64) for name in ("params", "tokens"))
    return tuple(_prediction(each) for each in predict_runs(fit, sizes, data, generator))


def _prediction(found: LossPrediction) -> PredictedRun:
    interval = found.interval
    return PredictedRun(
        p10=interval.p10,
        p50=interval.p50,
        p90=interval.p90,
        params=found.params,
        tokens=found.tokens,
        best_fit=found.loss,
        beyond=found.beyond,
        warnings=found.warnings,
    )


def _design(fit: ScalingFit, asked: Given | None, generator: np.random.Generator) -> DesignAnswer | None:
    """The runs that sharpen the target most for a sum of FLOPs; None where nothing is asked."""
    if asked is None:
        return None
    target = asked["target"]["params"], asked["target"]["tokens"]
    found = design_runs(fit, target, default_candidates(fit), asked["flops"], generator)
    runs = tuple(NextRun(run.params, run.tokens, run.cost, run.narrowed_to) for run in found.runs)
    return DesignAnswer(runs, found.cost, found.before, found.after)


def _law(fit: ScalingFit) -> dict[str, Any]:
    """The law as a request for an optimum states the caller's own."""
    largest = {"largest_params": float(fit.points.params.max()), "largest_tokens": float(fit.points.tokens.max())}
    return {**_by_name(fit.parameters.tolist()), **largest, "draws": fit.draws.tolist()}


def _by_name(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(PARAMETERS, values, strict=True))


def _beyond(predictions: Sequence[PredictedRun]) -> tuple[str, ...]:
    far = sum(bool(each.warnings) for each in predictions)
    return (f"extrapolated: {far} of {len(predictions)} predictions lie beyond the largest runs, how far is in `beyond`",) if far else ()

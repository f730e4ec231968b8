"""Scaling laws from the caller's own runs: parameters, predictions with intervals, and runs to make next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from service.domain.answer_fields import Doc, share
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

Request = Mapping[str, Any]

MAX_POINTS = 1000
MAX_STARTS = 1000
MIN_BOOTSTRAPS, MAX_BOOTSTRAPS = 20, 1000
# Points times resamples: some 15 microseconds of CPU each where no law fits, a fifth of that where one does.
MAX_WORK = 200_000
FORM = "chinchilla"
__all__ = ["FEWEST_POINTS", "FORM", "MAX_BOOTSTRAPS", "MAX_POINTS", "MAX_STARTS", "MAX_WORK", "LawFitAnswer", "fit_scaling_law"]


@dataclass(frozen=True, slots=True)
class NextRun:
    """A run to make; `narrowed_to` is the share of the interval's width left after it and those before it."""

    params: Annotated[float, Doc("Parameters of the run", "parameters", minimum=-1e308, maximum=1e308)]
    tokens: Annotated[float, Doc("Training tokens of the run", "tokens", minimum=-1e308, maximum=1e308)]
    flops: Annotated[float, Doc("Training arithmetic", "FLOP", minimum=-1e308, maximum=1e308)]
    narrowed_to: Annotated[float, share("Part of the interval's width that is left once it and those before it are made")]


@dataclass(frozen=True, slots=True)
class DesignAnswer:
    """Runs to make next, and the interval of the target's loss before and, as expected, after them."""

    runs: Annotated[tuple[NextRun, ...], Doc("Runs to make next, in this order")]
    flops: Annotated[float, Doc("Training arithmetic of all of them", "FLOP", minimum=-1e308, maximum=1e308)]
    before: Annotated[Range, Doc("Loss of the target before them", "nats per token")]
    after: Annotated[Range, Doc("Loss of the target after them, as expected", "nats per token")]


@dataclass(frozen=True, slots=True)
class OptimumExponents:
    """Exponents of the training compute with which the optimal parameters and tokens grow."""

    params: Annotated[Range, Doc("Exponent of the optimal size over training compute", "1")]
    tokens: Annotated[Range, Doc("Exponent of the optimal tokens over training compute", "1")]


@dataclass(frozen=True, slots=True)
class LawFitAnswer:
    """A fitted law. `law` can be sent to POST /v1/optimal; its resamples carry the uncertainty."""

    form: Annotated[str, Doc("Form of the law, L = E + A / N^alpha + B / D^beta")]
    parameters: Annotated[Mapping[str, float], Doc("Fitted parameters")]
    intervals: Annotated[Mapping[str, tuple[float, float]], Doc("10th and 90th percentile of each parameter")]
    standard_errors: Annotated[Mapping[str, float], Doc("Standard error of each parameter")]
    residual: Annotated[float, Doc("Typical relative distance of a run from the law", "1", minimum=-1e308, maximum=1e308)]
    points_used: Annotated[int, Doc("Runs fitted to; exact copies count once", minimum=1)]
    optimum_exponents: Annotated[OptimumExponents, Doc("How optimal size and tokens grow with compute")]
    predictions: Annotated[tuple[LossPrediction, ...], Doc("Predicted runs, in the order of the request")]
    held_out: Annotated[HoldOutCheck | None, Doc("Check on the runs of most compute; null with too few runs")]
    design: Annotated[DesignAnswer | None, Doc("Runs to make next; null where not asked for")]
    law: Annotated[Mapping[str, Any], Doc("The law as POST /v1/optimal takes it")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=100)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


def fit_scaling_law(request: Request) -> LawFitAnswer:
    """The answer to a validated request. Raises InvalidRequest with a pointer where no law can be fitted."""
    notes = AssumptionLog()
    form = notes.take(request, "form", FORM, "L = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, equation 2)")
    points = TrainingRuns(*(np.array([run[name] for run in request["points"]], dtype=np.float64) for name in ("params", "tokens", "loss")))
    starts, bootstraps, seed = (_take_default(request, name, notes) for name in ("starts", "bootstraps", "seed"))
    _check_work(len(points), bootstraps)
    prior = law_prior()
    notes.assume("prior", "published laws", f"counts as one more run, for what the runs leave open; {prior.source}")
    # Separate random streams, so that one more prediction changes nothing else.
    fitting, predicting, designing = np.random.default_rng(seed).spawn(3)
    fit = fit_law(points, prior, fitting, starts, bootstraps)
    predictions = _predictions(fit, request.get("predict", ()), predicting)
    exponents = exponent_ranges(fit)
    return LawFitAnswer(
        form=form,
        parameters=_name_parameters(fit.parameters.tolist()),
        intervals={name: (interval.p10, interval.p90) for name, interval in parameter_ranges(fit).items()},
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
        warnings=(*fit.warnings, *_extrapolation_warnings(predictions)),
    )


def _take_default(request: Request, name: str, notes: AssumptionLog) -> int:
    default = fit_default(name)
    return int(notes.take(request, name, default.value, default.source))


def _check_work(points: int, bootstraps: int) -> None:
    if points * bootstraps > MAX_WORK:
        raise InvalidRequest(
            f"{points:,} points in {bootstraps:,} resamples are more work than the {MAX_WORK:,} of one fit: take at most"
            f" {MAX_WORK // points:,} resamples",
            "/bootstraps",
        )


def _predictions(fit: ScalingFit, runs: Sequence[Request], generator: np.random.Generator) -> tuple[LossPrediction, ...]:
    sizes, data = (np.array([run[name] for run in runs], dtype=np.float64) for name in ("params", "tokens"))
    return predict_runs(fit, sizes, data, generator)


def _design(fit: ScalingFit, section: Request | None, generator: np.random.Generator) -> DesignAnswer | None:
    """Runs that sharpen the target's loss most within the budget; None where no design is requested."""
    if section is None:
        return None
    target = section["target"]["params"], section["target"]["tokens"]
    design = design_runs(fit, target, default_candidates(fit), section["flops"], generator)
    runs = tuple(NextRun(run.params, run.tokens, run.cost, run.narrowed_to) for run in design.runs)
    return DesignAnswer(runs, design.cost, design.before, design.after)


def _law(fit: ScalingFit) -> dict[str, Any]:
    """The law as POST /v1/optimal takes it."""
    largest = {"largest_params": float(fit.points.params.max()), "largest_tokens": float(fit.points.tokens.max())}
    return {**_name_parameters(fit.parameters.tolist()), **largest, "draws": fit.draws.tolist()}


def _name_parameters(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(PARAMETERS, values, strict=True))


def _extrapolation_warnings(predictions: Sequence[LossPrediction]) -> tuple[str, ...]:
    count = sum(bool(prediction.warnings) for prediction in predictions)
    text = f"extrapolated: {count} of {len(predictions)} predictions lie beyond the largest runs, how far is in `beyond`"
    return (text,) if count else ()

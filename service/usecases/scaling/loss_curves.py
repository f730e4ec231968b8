"""Forecast of a running training run's end against its plan, and the cost of what remains.

The rest of the run is estimated as a run of its own on the remaining tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from service.context import AppContext
from service.domain.answer_fields import Doc, share
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.loss_curves import Action, Advice, EndForecast, Extrapolation, LearningRateSchedule, LossCurve, State
from service.domain.tracking.feedback import LessonsReference
from service.engine.scaling.loss_curve import extrapolate, make_schedule
from service.engine.scaling.stop_advice import action_for_end, advise
from service.presets.scaling.law_fit import curve_prior, fit_default
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import Price
from service.usecases.training.estimate import EstimateAnswer, estimate

Request = Mapping[str, Any]

# Sections of an estimate that say what the rest of the run costs; its data are the tokens that are left.
ESTIMATE_SECTIONS = (
    *("model", "training", "hardware", "price", "efficiency", "failures"),
    *("storage", "network", "personnel", "energy", "overhead"),
)
# The same request has the same answer.
SEED = 0
NO_COST = Range.exactly(0.0)


@dataclass(frozen=True, slots=True)
class CurveOption:
    """An end of the run: its loss, and its cost from now on. Savings are relative to the plan."""

    action: Annotated[Action, Doc("What to do with the run")]
    tokens: Annotated[float, Doc("Training tokens at its end", "tokens", minimum=-1e308, maximum=1e308)]
    tokens_left: Annotated[float, Doc("Tokens from now to its end", "tokens", minimum=-1e308, maximum=1e308)]
    loss: Annotated[Range, Doc("Predicted loss at its end", "nats per token")]
    above_plan: Annotated[Range, Doc("Loss above that at the plan's end", "nats per token")]
    probability_of_target: Annotated[float | None, share("Probability of ending at the planned loss or below; null without one")]
    usd: Annotated[Range | None, Doc("Cost from now on; null where nothing is priced", "USD")]
    saves_usd: Annotated[float | None, Doc("Median saving over the plan; below 0 it costs more; null where nothing is priced", "USD")]
    accelerator_hours: Annotated[Range | None, Doc("Accelerator-hours from now on; null where nothing is priced", "accelerator-hours")]
    wall_clock_hours: Annotated[Range | None, Doc("Time on the clock from now on; null where nothing is priced", "h")]


@dataclass(frozen=True, slots=True)
class LossAgainstPlan:
    """Predicted loss at the plan's end against the planned loss."""

    planned_loss: Annotated[float, Doc("Planned loss", "nats per token", minimum=-1e308, maximum=1e308)]
    above: Annotated[Range, Doc("Predicted less planned loss", "nats per token")]
    probability: Annotated[float, share("Probability of ending at the planned loss or below")]


@dataclass(frozen=True, slots=True)
class CurveAnswer:
    """Forecast of a run and advice. `residual` is the typical relative distance of the measured loss from the fitted curve."""

    final_loss: Annotated[Range, Doc("Predicted loss at the plan's end", "nats per token")]
    against_plan: Annotated[LossAgainstPlan | None, Doc("Predicted against planned loss; null without a planned loss")]
    advice: Annotated[Advice, Doc("What to do with the run")]
    options: Annotated[tuple[CurveOption, ...], Doc("Ends of the run that were weighed")]
    tokens: Annotated[float, Doc("Training tokens so far", "tokens", minimum=-1e308, maximum=1e308)]
    done: Annotated[float, share("Part of the plan's tokens that is trained")]
    loss_now: Annotated[float, Doc("Loss now, by the fitted curve", "nats per token", minimum=-1e308, maximum=1e308)]
    state: Annotated[State, Doc("How the loss moves")]
    alpha: Annotated[Range, Doc("Exponent of the fitted curve", "1")]
    annealing: Annotated[Range, Doc("Loss that decaying the learning rate to 0 takes off", "nats per token")]
    residual: Annotated[
        float, Doc("Typical relative distance of the measured loss from the fitted curve", "1", minimum=-1e308, maximum=1e308)
    ]
    price: Annotated[Price | None, Doc("Price of what is left; null where nothing is priced")]
    price_snapshot: Annotated[str | None, Doc("Name of the price snapshot the answer is made with; null where nothing is priced")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none, or nothing is priced")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]


@dataclass(frozen=True, slots=True)
class _RemainingCost:
    """Cost and time of an end from now on; None where no hardware is stated."""

    usd: Range | None = None
    accelerator_hours: Range | None = None
    wall_clock_hours: Range | None = None


def extrapolate_curve(context: AppContext, request: Request) -> CurveAnswer:
    """The answer to a validated request. Raises DomainErrors with pointers into the request."""
    notes = AssumptionLog()
    tolerance = fit_default("tolerance")
    accepted_tolerance = tolerance.value
    if "loss" not in request["plan"]:
        accepted_tolerance = notes.take(request, "tolerance", tolerance.value, tolerance.source)
    extrapolation = _extrapolate(request, notes)
    plan_estimate = _estimate_of_plan(context, request, extrapolation, notes)
    options = tuple(_end_options(context, request, extrapolation, plan_estimate))
    return CurveAnswer(
        final_loss=extrapolation.planned.loss,
        against_plan=_against_plan(extrapolation, request["plan"].get("loss")),
        advice=advise(extrapolation, request["plan"].get("loss"), accepted_tolerance),
        options=options,
        tokens=extrapolation.tokens,
        done=extrapolation.done_share,
        loss_now=extrapolation.recent_loss,
        state=extrapolation.state,
        alpha=extrapolation.alpha,
        annealing=extrapolation.annealing,
        residual=extrapolation.scatter,
        price=None if plan_estimate is None else plan_estimate.price,
        price_snapshot=None if plan_estimate is None else plan_estimate.price_snapshot,
        lessons=None if plan_estimate is None else plan_estimate.lessons,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*extrapolation.warnings, *notes.warnings),
    )


def _extrapolate(request: Request, notes: AssumptionLog) -> Extrapolation:
    section, prior = request["schedule"], curve_prior()
    plan = _plan(request, notes)
    share = prior.relaxation_share
    source = f"{share:.2%} of the plan: {prior.relaxation_source}"
    relaxation = notes.take(section, "schedule.relaxation_tokens", share * plan.end, source)
    notes.assume("prior", "measured curves", f"for what the curve leaves open; {prior.source}")
    curve = _curve(request)
    ends = _ends(request, float(curve.tokens.max()), plan.end, notes)
    return extrapolate(curve, plan, prior, np.random.default_rng(SEED), ends, request["plan"].get("loss"), relaxation)


def _curve(request: Request) -> LossCurve:
    losses = (np.nan if point["loss"] is None else point["loss"] for point in request["points"])
    return LossCurve(np.array([point["tokens"] for point in request["points"]], dtype=np.float64), np.fromiter(losses, dtype=np.float64))


def _plan(request: Request, notes: AssumptionLog) -> LearningRateSchedule:
    """Learning rate over the plan's tokens: a decay, or the caller's own rates."""
    section, end = request["schedule"], float(request["plan"]["tokens"])
    if ("decay" in section) == ("rates" in section):
        raise InvalidRequest("state exactly one of decay and rates", "/schedule")
    if "rates" in section:
        return _stated_rates(section, end)
    warmup = notes.take(section, "schedule.warmup_tokens", 0, "not stated: the rate begins at its peak")
    final = 1.0 if section["decay"] == "constant" else notes.take(section, "schedule.final_share", 0.0, "not stated: the rate decays to 0")
    return make_schedule(section["decay"], end, float(warmup), section.get("decay_tokens"), float(final))


def _stated_rates(section: Request, end: float) -> LearningRateSchedule:
    """Stated rates as shares of the highest, linear between the token counts. Raises InvalidRequest."""
    extra = sorted({"warmup_tokens", "decay_tokens", "final_share"} & set(section))
    if extra:
        raise InvalidRequest("that field belongs to a decay: leave it out with rates", f"/schedule/{extra[0]}")
    tokens, rates = (np.array([float(point[name]) for point in section["rates"]]) for name in ("tokens", "rate"))
    if tokens[0] != 0 or tokens[-1] != end or not np.all(np.diff(tokens) > 0):
        raise InvalidRequest(f"rates must have rising counts of tokens, from 0 to the plan's end at {end:g}", "/schedule/rates")
    if not rates.max() > 0:
        raise InvalidRequest("at least one of the rates must be above 0", "/schedule/rates")
    return LearningRateSchedule(tokens, rates / rates.max(), float(tokens[rates.argmax()]))


def _ends(request: Request, now: float, planned: float, notes: AssumptionLog) -> tuple[float, ...]:
    """Now, and the alternatives to the plan's end [tokens]."""
    if "alternatives" in request:
        others = [float(end) for end in request["alternatives"]]
        already_passed = [index for index, end in enumerate(others) if end < now]
        if already_passed:
            raise InvalidRequest(f"the run is at {now:g} tokens: an alternative cannot end earlier", f"/alternatives/{already_passed[0]}")
    else:
        shrink, extend = fit_default("shrink"), fit_default("extend")
        others = [now + share * (planned - now) for share in shrink.value] + [share * planned for share in extend.value]
        notes.assume("alternatives", others, f"{shrink.source}, and {extend.source}")
    return tuple(sorted({now, *others} - {planned}))


def _estimate_of_plan(context: AppContext, request: Request, extrapolation: Extrapolation, notes: AssumptionLog) -> EstimateAnswer | None:
    """Estimate of the rest of the plan, with its assumptions; None where no hardware is stated."""
    stated = [name for name in ESTIMATE_SECTIONS if name in request]
    missing = [name for name in ("model", "hardware") if name not in request]
    if not stated:
        notes.warn("the rest is not priced: state model and hardware for dollars")
        return None
    if missing:
        raise InvalidRequest("what is left is priced as an estimate: state model and hardware", f"/{missing[0]}")
    answer = _estimate(context, request, _tokens_left(extrapolation, extrapolation.planned) or 1, request.get("price", {}).get("snapshot"))
    for assumption in answer.assumptions:
        notes.assume(assumption.field, assumption.value, assumption.source)
    notes.warn(*answer.warnings)
    return answer


def _estimate(context: AppContext, request: Request, tokens: int, snapshot: str | None) -> EstimateAnswer:
    sections = {name: request[name] for name in ESTIMATE_SECTIONS if name in request}
    price = {**request.get("price", {}), **({} if snapshot is None else {"snapshot": snapshot})}
    return estimate(context, {**sections, "price": price, "data": {"tokens": tokens}})


def _end_options(
    context: AppContext, request: Request, extrapolation: Extrapolation, plan_estimate: EstimateAnswer | None
) -> Iterator[CurveOption]:
    """Every end by tokens, the plan's included."""
    planned = _cost_remaining(context, request, extrapolation, extrapolation.planned, plan_estimate)
    for end in sorted((*extrapolation.other_ends, extrapolation.planned), key=lambda end: end.tokens):
        remaining_cost = _cost_remaining(context, request, extrapolation, end, plan_estimate)
        yield CurveOption(
            action=action_for_end(extrapolation, end.tokens),
            tokens=end.tokens,
            tokens_left=end.tokens - extrapolation.tokens,
            loss=end.loss,
            above_plan=end.above_plan,
            probability_of_target=end.probability_of_target,
            usd=remaining_cost.usd,
            saves_usd=planned.usd.p50 - remaining_cost.usd.p50 if planned.usd and remaining_cost.usd else None,
            accelerator_hours=remaining_cost.accelerator_hours,
            wall_clock_hours=remaining_cost.wall_clock_hours,
        )


def _cost_remaining(
    context: AppContext, request: Request, extrapolation: Extrapolation, end: EndForecast, plan_estimate: EstimateAnswer | None
) -> _RemainingCost:
    """Cost of an end from now on, at the prices of the plan's estimate."""
    if plan_estimate is None:
        return _RemainingCost()
    tokens = _tokens_left(extrapolation, end)
    if tokens == 0:
        return _RemainingCost(NO_COST, NO_COST, NO_COST)
    end_estimate = plan_estimate if end is extrapolation.planned else _estimate(context, request, tokens, plan_estimate.price_snapshot)
    time = end_estimate.estimate.time
    return _RemainingCost(end_estimate.estimate.cost.total_usd, time.accelerator_hours, time.wall_clock_hours)


def _tokens_left(extrapolation: Extrapolation, end: EndForecast) -> int:
    return round(end.tokens - extrapolation.tokens)


def _against_plan(extrapolation: Extrapolation, target: float | None) -> LossAgainstPlan | None:
    loss, probability = extrapolation.planned.loss, extrapolation.planned.probability_of_target
    if target is None or probability is None:
        return None
    return LossAgainstPlan(target, Range(loss.p10 - target, loss.p50 - target, loss.p90 - target), probability)

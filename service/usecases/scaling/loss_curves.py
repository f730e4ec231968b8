"""Where a running training run will end, against its plan, and whether the rest is worth its money.

What the rest costs is estimated as a run of its own on the tokens that are left.
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
from service.engine.scaling.loss_curve import extrapolate, make_schedule
from service.engine.scaling.stop_advice import action_for_end, advise
from service.presets.scaling.law_fit import curve_prior, fit_default
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import Price
from service.usecases.training.estimate import EstimateAnswer, estimate

Given = Mapping[str, Any]

# Sections of an estimate that say what the rest of the run costs; its data are the tokens that are left.
ESTIMATE_SECTIONS = (
    *("model", "training", "hardware", "price", "efficiency", "failures"),
    *("storage", "network", "personnel", "energy", "overhead"),
)
# The same request has the same answer.
SEED = 0
NOTHING = Range.exactly(0.0)


@dataclass(frozen=True, slots=True)
class CurveOption:
    """An end of the run: its loss, what it is above the plan's end, and what it takes from now on; None where nothing is priced.

    `saves_usd` is over the plan; below 0 it costs more.
    """

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
    """The loss at the plan's end against the plan's own: what it is above it, and how likely it is at or under it."""

    planned_loss: Annotated[float, Doc("Planned loss", "nats per token", minimum=-1e308, maximum=1e308)]
    above: Annotated[Range, Doc("Predicted less planned loss", "nats per token")]
    probability: Annotated[float, share("Probability of ending at the planned loss or below")]


@dataclass(frozen=True, slots=True)
class CurveAnswer:
    """What is foretold of a run. `residual` is the typical relative distance of the measured loss from the fitted curve."""

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
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]


@dataclass(frozen=True, slots=True)
class _RemainingCost:
    """What an end takes from now on; None where nothing is priced."""

    usd: Range | None = None
    accelerator_hours: Range | None = None
    wall_clock_hours: Range | None = None


def extrapolate_curve(context: AppContext, request: Given) -> CurveAnswer:
    """The answer to a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes = AssumptionLog()
    tolerance = fit_default("tolerance")
    kept = notes.take(request, "tolerance", tolerance.value, tolerance.source) if "loss" not in request["plan"] else tolerance.value
    found = _extrapolated(request, notes)
    run = _estimate_of_plan(context, request, found, notes)
    options = tuple(_options(context, request, found, run))
    return CurveAnswer(
        final_loss=found.planned.loss,
        against_plan=_against_plan(found, request["plan"].get("loss")),
        advice=advise(found, request["plan"].get("loss"), kept),
        options=options,
        tokens=found.tokens,
        done=found.done,
        loss_now=found.now,
        state=found.state,
        alpha=found.alpha,
        annealing=found.annealing,
        residual=found.scatter,
        price=None if run is None else run.price,
        price_snapshot=None if run is None else run.price_snapshot,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*found.warnings, *notes.warnings),
    )


def _extrapolated(request: Given, notes: AssumptionLog) -> Extrapolation:
    given, typical = request["schedule"], curve_prior()
    plan = _plan(request, notes)
    share = typical.relaxation_share
    relaxation = notes.take(given, "schedule.relaxation_tokens", share * plan.end, f"{share:.2%} of the plan: {typical.relaxation_source}")
    notes.assume("prior", "measured curves", f"for what the curve leaves open; {typical.source}")
    curve = _curve(request)
    ends = _ends(request, float(curve.tokens.max()), plan.end, notes)
    return extrapolate(curve, plan, typical, np.random.default_rng(SEED), ends, request["plan"].get("loss"), relaxation)


def _curve(request: Given) -> LossCurve:
    losses = (np.nan if point["loss"] is None else point["loss"] for point in request["points"])
    return LossCurve(np.array([point["tokens"] for point in request["points"]], dtype=np.float64), np.fromiter(losses, dtype=np.float64))


def _plan(request: Given, notes: AssumptionLog) -> LearningRateSchedule:
    """The learning rate over the plan's tokens: by a decay, or by rates of the caller's own."""
    given, end = request["schedule"], float(request["plan"]["tokens"])
    if ("decay" in given) == ("rates" in given):
        raise InvalidRequest("state exactly one of decay and rates", "/schedule")
    if "rates" in given:
        return _stated_rates(given, end)
    warmup = notes.take(given, "schedule.warmup_tokens", 0, "not stated: the rate begins at its peak")
    final = 1.0 if given["decay"] == "constant" else notes.take(given, "schedule.final_share", 0.0, "not stated: the rate decays to 0")
    return make_schedule(given["decay"], end, float(warmup), given.get("decay_tokens"), float(final))


def _stated_rates(given: Given, end: float) -> LearningRateSchedule:
    """Rates as they are stated, as shares of the highest, straight between the counts of tokens. Raises InvalidRequest."""
    extra = sorted({"warmup_tokens", "decay_tokens", "final_share"} & set(given))
    if extra:
        raise InvalidRequest("that belongs to a decay; the rates say it themselves", f"/schedule/{extra[0]}")
    tokens, rates = (np.array([float(point[name]) for point in given["rates"]]) for name in ("tokens", "rate"))
    if tokens[0] != 0 or tokens[-1] != end or not np.all(np.diff(tokens) > 0):
        raise InvalidRequest(f"rates have to stand at rising counts of tokens, from 0 to the plan's end at {end:g}", "/schedule/rates")
    if not rates.max() > 0:
        raise InvalidRequest("one of the rates at least has to be above 0", "/schedule/rates")
    return LearningRateSchedule(tokens, rates / rates.max(), float(tokens[rates.argmax()]))


def _ends(request: Given, now: float, planned: float, notes: AssumptionLog) -> tuple[float, ...]:
    """Now, and the other ends looked at beside the plan's own."""
    if "alternatives" in request:
        others = [float(end) for end in request["alternatives"]]
        passed = [index for index, end in enumerate(others) if end < now]
        if passed:
            raise InvalidRequest(f"the run is at {now:g} tokens: no end before that", f"/alternatives/{passed[0]}")
    else:
        shrink, extend = fit_default("shrink"), fit_default("extend")
        others = [now + share * (planned - now) for share in shrink.value] + [share * planned for share in extend.value]
        notes.assume("alternatives", others, f"{shrink.source}, and {extend.source}")
    return tuple(sorted({now, *others} - {planned}))


def _estimate_of_plan(context: AppContext, request: Given, found: Extrapolation, notes: AssumptionLog) -> EstimateAnswer | None:
    """The rest of the plan as a run of its own, with all it assumes; None where no machine is stated."""
    stated = [name for name in ESTIMATE_SECTIONS if name in request]
    missing = [name for name in ("model", "hardware") if name not in request]
    if not stated:
        notes.warn("the rest is not priced: state model and hardware for dollars")
        return None
    if missing:
        raise InvalidRequest("what is left is priced as an estimate: state model and hardware", f"/{missing[0]}")
    answer = _estimate(context, request, _tokens_left(found, found.planned) or 1, request.get("price", {}).get("snapshot"))
    for assumption in answer.assumptions:
        notes.assume(assumption.field, assumption.value, assumption.source)
    notes.warn(*answer.warnings)
    return answer


def _estimate(context: AppContext, request: Given, tokens: int, snapshot: str | None) -> EstimateAnswer:
    sections = {name: request[name] for name in ESTIMATE_SECTIONS if name in request}
    price = {**request.get("price", {}), **({} if snapshot is None else {"snapshot": snapshot})}
    return estimate(context, {**sections, "price": price, "data": {"tokens": tokens}})


def _options(context: AppContext, request: Given, found: Extrapolation, run: EstimateAnswer | None) -> Iterator[CurveOption]:
    """Every end by its tokens, the plan's among them."""
    planned = _priced(context, request, found, found.planned, run)
    for end in sorted((*found.others, found.planned), key=lambda end: end.tokens):
        priced = _priced(context, request, found, end, run)
        yield CurveOption(
            action=action_for_end(found, end.tokens),
            tokens=end.tokens,
            tokens_left=end.tokens - found.tokens,
            loss=end.loss,
            above_plan=end.above_plan,
            probability_of_target=end.probability_of_target,
            usd=priced.usd,
            saves_usd=planned.usd.p50 - priced.usd.p50 if planned.usd and priced.usd else None,
            accelerator_hours=priced.accelerator_hours,
            wall_clock_hours=priced.wall_clock_hours,
        )


def _priced(context: AppContext, request: Given, found: Extrapolation, end: EndForecast, run: EstimateAnswer | None) -> _RemainingCost:
    """What an end takes from now on, at the prices that the plan's rest is estimated with."""
    if run is None:
        return _RemainingCost()
    tokens = _tokens_left(found, end)
    if tokens == 0:
        return _RemainingCost(NOTHING, NOTHING, NOTHING)
    of_end = run if end is found.planned else _estimate(context, request, tokens, run.price_snapshot)
    time = of_end.estimate.time
    return _RemainingCost(of_end.estimate.cost.total_usd, time.accelerator_hours, time.wall_clock_hours)


def _tokens_left(found: Extrapolation, end: EndForecast) -> int:
    return round(end.tokens - found.tokens)


def _against_plan(found: Extrapolation, target: float | None) -> LossAgainstPlan | None:
    loss, probability = found.planned.loss, found.planned.probability_of_target
    if target is None or probability is None:
        return None
    return LossAgainstPlan(target, Range(loss.p10 - target, loss.p50 - target, loss.p90 - target), probability)

"""A stated model trained on what the budget affords: tokens by its own estimate, and how far they are from the law's optimum."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.context import AppContext
from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN, AllocationLaw, Optimum
from service.domain.scaling.optimum import CostedModel, GivenModel, LayoutSuggestion
from service.domain.training.model import Transformer
from service.engine.scaling.affordable import tokens_within_budget
from service.engine.scaling.laws import loss as predict_loss
from service.engine.scaling.laws import optimal_tokens_for_params
from service.engine.training.parameters import count_parameters
from service.formats.headline import count, money, short_count
from service.presets.scaling.laws import MIXTURE, load_mixture_law
from service.presets.training.models import find_model
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import note_lessons
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.training import stated_ranks
from service.usecases.scaling import neighbourhood
from service.usecases.scaling.optimum_answer import OptimalAnswer
from service.usecases.scaling.optimum_layout import CENTS_USD, data_section, sections_of_run
from service.usecases.scaling.optimum_request import OptimumRequest, resolve_optimum_request, unpriced
from service.usecases.scaling.optimum_search import range_over_draws
from service.usecases.scaling.summary import summarise_given_model
from service.usecases.training.estimate import EstimateAnswer, estimate, short_run_warnings

Request = Mapping[str, Any]

LEAST_TOKENS, MOST_TOKENS = 1.0, 1e18
# Total over active parameters may be off that of the law of mixtures by this factor before it is said.
MIXTURE_FACTOR = 1.5
# Within this factor of the best tokens a size counts as trained on about as many.
ABOUT_OPTIMAL = 1.25
TOO_SMALL = "the budget is too small to train the model on any token: state a larger one"
OF_SERVING = ("lifetime_inference_tokens", "serving")


@dataclass(frozen=True, slots=True)
class StatedModel:
    """The model of a request with its parameters. `words` name it in a sentence."""

    model: Transformer
    total: float
    active: float
    words: str

    @property
    def is_mixture(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.model.experts is not None


@dataclass(frozen=True, slots=True)
class AffordedRun:
    """Tokens that the budget affords, and the estimate with the p50; None without a machine, or where the model does not fit on it."""

    tokens: Range
    estimate: EstimateAnswer | None


def resolve_given_model(request: Request) -> StatedModel:
    """The stated model. Raises DomainErrors where it is no transformer, or with what chooses a size."""
    refused = [name for name in OF_SERVING if name in request]
    if refused:
        raise InvalidRequest(
            "tokens served over a lifetime decide about the size, which model states: leave one of them out. POST /v1/serving prices the"
            " serving of a model",
            f"/{refused[0]}",
        )
    stated_model = request["model"]
    model, _ = resolve_model(stated_model, AssumptionLog(), ranks=stated_ranks(request.get("training", {})))
    if not isinstance(model, Transformer):
        raise InvalidRequest(
            "only transformers are counted by tokens here: POST /v1/estimate has the cost of a number of samples", "/model"
        )
    counts = count_parameters(model)
    size = f"{count(counts.total)} parameters"
    size += f" ({count(counts.active)} active)" if model.experts else ""
    words = f"{find_model(stated_model['preset']).name}, {size}," if "preset" in stated_model else f"a model of {size}"
    return StatedModel(model, counts.total, counts.active, words)


def plan_given_model(context: AppContext, request: Request, given: StatedModel, best: OptimalAnswer) -> OptimalAnswer:
    """The answer for a stated model beside `best`, which is that for the same budget without one. Raises DomainErrors."""
    notes = AssumptionLog()
    resolved = resolve_optimum_request(context, request, context.book(best.price_snapshot), notes)
    _check_law(resolved, given, notes)
    applies = _is_law_for(given, request, notes)
    afforded = _afford(context, request, resolved, given, notes)
    chosen = _trained(resolved, given, afforded.tokens.p50, applies=applies)
    details = neighbourhood.law_details(resolved.law, chosen)
    against = _against_optimum(resolved, given, chosen, best if applies else None)
    if applies:
        notes.warn(*neighbourhood.warnings_of_law(resolved, chosen, "the model"))
    if applies and "evaluation" in request:
        notes.warn("the model pays for evaluation, the optimum for the budget in given_model does not")
    run = afforded.estimate
    if run is not None:
        notes.warn(*short_run_warnings(run.estimate))
    if resolved.setup is not None:
        note_lessons(context, notes)
    answer = best if applies else replace(best, curve=(), iso_loss_curve=(), smaller=(), other_laws=(), published=())
    return replace(
        answer,
        summary=summarise_given_model(given.words, chosen, afforded.tokens, resolved.law.name, against.text, run),
        params=Range.exactly(float(chosen.params)),
        tokens=afforded.tokens,
        loss=None if chosen.loss is None else float(chosen.loss),
        loss_range=_loss_range(resolved, chosen),
        flops=float(chosen.flops),
        law_details=details,
        training=None if run is None else neighbourhood.estimated_training(run),
        given_model=against,
        suggestion=LayoutSuggestion(dict(request["model"]), given.total, data_section(resolved, afforded.tokens.p50)),
        estimate=run,
        assumptions=notes.assumptions,
        warnings=tuple(notes.warnings),
    )


def _check_law(resolved: OptimumRequest, given: StatedModel, notes: AssumptionLog) -> None:
    """Warn of a law for other models than the stated one. Raises InvalidRequest for a dense model and a law of mixtures."""
    law = resolved.law.name
    if not resolved.of_mixtures:
        if given.is_mixture:
            notes.warn(
                f"law {law} counts the {count(given.active)} active parameters of the mixture as those of a dense model: a mixture of"
                f" {count(given.total)} in all is usually better than its loss says"
            )
        return
    if not given.is_mixture:
        raise InvalidRequest(
            f"law {MIXTURE} is one of mixtures of experts, and the model is dense: state krajewski-dense, or another", "/law"
        )
    ratio, of_law = given.total / given.active, load_mixture_law().total_per_active
    if not 1 / MIXTURE_FACTOR < ratio / of_law < MIXTURE_FACTOR:
        notes.warn(
            f"law {MIXTURE} is for {of_law:g} times as many parameters as are active; the model has {ratio:.3g} times as many, so its loss"
            " differs"
        )


def _is_law_for(given: StatedModel, request: Request, notes: AssumptionLog) -> bool:
    """Whether laws of losses hold for the run: the pre-training of a model that predicts the next token; else a warning says why not."""
    method = request.get("training", {}).get("method", "pretrain")
    predicts_next = given.model.kind == "transformer" and not given.model.masked_share
    if method == "pretrain" and predicts_next:
        return True
    what = f"training.method {method}" if predicts_next else "such a model"
    notes.warn(f"scaling laws are of decoders that are trained from scratch: loss and optimum of {what} are not known")
    return False


def _afford(context: AppContext, request: Request, resolved: OptimumRequest, given: StatedModel, notes: AssumptionLog) -> AffordedRun:
    """Tokens within the budget: exact in FLOPs, else by estimates of the run. Raises DomainErrors."""
    run = functools.cache(functools.partial(_estimate, context, request, resolved))
    if resolved.budget.kind == "flops":
        tokens = Range.exactly(_checked(resolved.budget.amount / (FLOPS_PER_PARAM_AND_TOKEN * given.active)))
        if resolved.setup is None:
            return AffordedRun(tokens, None)
        try:
            return AffordedRun(tokens, run(tokens.p50))
        except DoesNotFit as problem:
            notes.warn(f"the model cannot be trained on this hardware: {problem.message}")
            return AffordedRun(tokens, None)
    p50 = _tokens_at(resolved, run, "p50")
    if p50 < LEAST_TOKENS:
        raise InvalidRequest(_why_no_token(resolved, run), "/budget")
    _checked(p50)
    p10, p90 = (_tokens_at(resolved, run, quantile) for quantile in ("p90", "p10"))
    return AffordedRun(Range(min(p10, p50), p50, max(p50, p90)), run(p50))


def _tokens_at(resolved: OptimumRequest, run: Callable[[float], EstimateAnswer], quantile: str) -> float:
    """Most tokens whose estimate keeps to the budget at a quantile."""
    budget = resolved.budget.amount
    resolution = min(CENTS_USD, 0.01 * budget) if resolved.budget.kind == "usd" else 0.0
    return tokens_within_budget(_spent(resolved, run, quantile), budget, resolution)


def _estimate(context: AppContext, request: Request, resolved: OptimumRequest, tokens: float) -> EstimateAnswer:
    sections = sections_of_run(context, request, context.book(request.get("price", {}).get("snapshot")).name)
    evaluation = {"evaluation": request["evaluation"]} if "evaluation" in request else {}
    return estimate(context, sections | evaluation | {"model": request["model"], "data": data_section(resolved, tokens)})


def _spent(resolved: OptimumRequest, run: Callable[[float], EstimateAnswer], quantile: str) -> Callable[[float], float]:
    """What tokens take of the budget, in its unit, at a quantile of their estimate."""

    def amount(tokens: float) -> float:
        found = run(tokens).estimate
        kinds = {
            "usd": found.cost.total_usd,
            "accelerator_hours": found.time.accelerator_hours,
            "wall_clock_hours": found.time.wall_clock_hours,
        }
        spread = kinds[resolved.budget.kind]
        if spread is None:
            raise unpriced(resolved.setup)
        return float(getattr(spread, quantile))

    return amount


def _why_no_token(resolved: OptimumRequest, run: Callable[[float], EstimateAnswer]) -> str:
    if resolved.budget.kind != "usd":
        return TOO_SMALL
    besides = money(_spent(resolved, run, "p50")(LEAST_TOKENS))
    return f"{TOO_SMALL}; storage, people and other costs besides training take {besides}"


def _checked(tokens: float) -> float:
    """The tokens. Raises InvalidRequest where they are too few or too many."""
    if tokens < LEAST_TOKENS:
        raise InvalidRequest(TOO_SMALL, "/budget")
    if tokens > MOST_TOKENS:
        raise InvalidRequest(f"the budget would train the model on {tokens:.2g} tokens: state a smaller one, or a larger model", "/budget")
    return tokens


def _trained(resolved: OptimumRequest, given: StatedModel, tokens: float, *, applies: bool) -> Optimum:
    """The model on its tokens, with its loss where the law knows one."""
    law = resolved.law.law
    if not applies or isinstance(law, AllocationLaw):
        return Optimum(given.active, tokens, None)
    return Optimum(given.active, tokens, predict_loss(law, given.active, tokens, resolved.limit))


def _loss_range(resolved: OptimumRequest, chosen: Optimum) -> Range | None:
    """The loss with the law's uncertainty."""
    if chosen.loss is None:
        return None
    draws = resolved.law_draws
    drawn = None if draws is None or isinstance(draws, AllocationLaw) else predict_loss(draws, chosen.params, chosen.tokens, resolved.limit)
    return range_over_draws(chosen.loss, drawn)


def _against_optimum(resolved: OptimumRequest, given: StatedModel, chosen: Optimum, best: OptimalAnswer | None) -> GivenModel:
    """How far the model on its tokens is from the best tokens for its size, and from the budget's optimum where the law applies."""
    per_param = float(chosen.tokens / chosen.params)
    text = f"{short_count(per_param)} tokens for each {'active ' if given.is_mixture else ''}parameter"
    if best is None:
        return GivenModel(text, given.total, given.active, per_param, None, None, None, None)
    optimal = float(optimal_tokens_for_params(resolved.law.law, chosen.params))
    ratio, optimum = float(chosen.tokens) / optimal, _as_costed(best)
    excess = None if chosen.loss is None or optimum.loss is None else max(0.0, float(chosen.loss) - optimum.loss)
    text = f"{text}, {_times_optimal(ratio)} compute-optimal {short_count(optimal)} tokens of this size. {_best_text(optimum, chosen)}"
    return GivenModel(text, given.total, given.active, per_param, optimal, ratio, optimum, excess)


def _times_optimal(ratio: float) -> str:
    """About 5 times the; about the."""
    return "about the" if 1 / ABOUT_OPTIMAL <= ratio <= ABOUT_OPTIMAL else f"about {float(f'{ratio:.2g}'):,g} times the"


def _best_text(optimum: CostedModel, chosen: Optimum) -> str:
    """The compute-optimal model of the budget, and whether its loss is lower."""
    text = f"Compute-optimal for the budget are {short_count(optimum.params)} parameters on {short_count(optimum.tokens)} tokens"
    if optimum.loss is None or chosen.loss is None:
        return text
    best, own = f"{optimum.loss:.3f}", f"{float(chosen.loss):.3f}"
    if best == own:
        return f"{text}, with about the same loss"
    return f"{text}, {f'with a loss of {best} instead of {own}' if optimum.loss < chosen.loss else 'whose loss is no lower'}"


def _as_costed(best: OptimalAnswer) -> CostedModel:
    """The budget's optimum with what its training takes."""
    training = best.training
    return CostedModel(
        params=best.params.p50,
        tokens=best.tokens.p50,
        loss=best.loss,
        flops=best.flops,
        training_usd=None if training is None or training.usd is None else training.usd.p50,
        accelerator_hours=None if training is None else training.accelerator_hours.p50,
        serving_usd=None,
        serving_flops=None,
    )

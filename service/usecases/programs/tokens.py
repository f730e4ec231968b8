"""A program's data and spend choices: its tokens, a first target for them, and the return of the next dollar."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from service.domain.errors import DomainError, InvalidRequest, UnknownName
from service.domain.programs.plan import ProgramPlan
from service.domain.programs.spending import SpendChoices, SpendCurve
from service.domain.programs.tokens import MixturePart, ProgramTokens, SuggestedTokens, TokenFlow, TokenTarget
from service.domain.scaling.laws import PARAMETERS, ParametricLaw, ScalingLaw
from service.engine.numerics.money import sum_usd
from service.engine.programs.spend_allocation import allocate, published_curve, rank_choices
from service.engine.programs.tokens import epochs_until_worth, raw_tokens_needed, suggest_token_target, token_flow
from service.presets.programs import filter_yield, find_complexity, find_generalisation, find_program_default, published_spending
from service.presets.scaling.laws import default_law, find_law, repetition_decay
from service.usecases.programs.estimates import Request
from service.usecases.programs.runs import EstimatedRun
from service.usecases.resolution.assumption_log import AssumptionLog

DEFAULT_COMPLEXITY, DEFAULT_GENERALISATION = "open_domain", "broad"
NOT_STATED = "not stated: the same as of general models"
SHORTAGE_TOLERANCE = 1.01
POINTS = "points"
"""Unit of gains that the outcome's price of a point applies to."""


def plan_tokens(request: Request, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> ProgramTokens | None:
    """The program's data; None where neither raw tokens nor a model size are stated."""
    section = request.get("data", {})
    flow = _flow(section, notes) if "raw_tokens" in section else None
    params = _params(section, runs[-1], notes)
    if flow is None and params is None:
        return None
    if flow is not None:
        _warn_of_shortage(flow, runs, notes)
    decay, source = repetition_decay()
    worth = find_program_default("retention_worth")
    notes.assume("data.retention_worth", worth.value, f"{worth.source}; {source}")
    suggested = None if params is None else _suggested(section, params, notes)
    return ProgramTokens(flow, suggested, epochs_until_worth(worth.value, decay))


def rank_spend_choices(request: Request, plan: ProgramPlan, notes: AssumptionLog) -> SpendChoices | None:
    """Spend choices by stated or published curves; None where they are not requested. Raises DomainErrors, with pointers."""
    section = request.get("spend_choices")
    if section is None:
        return None
    budget = section.get("budget_usd")
    try:
        curves = _stated_curves(section) if "curves" in section else _published_curves(section, plan, notes)
        price = _usd_per_gain(section, plan, curves[0].unit, notes)
        allocation = None if budget is None else allocate(curves, budget, price)
        choices = rank_choices(curves, allocation, price)
    except DomainError as problem:
        raise problem.below("/spend_choices") from problem
    _check_addressed_risks(request, {curve.choice for curve in curves})
    missing = tuple(_missing(request, curves, price))
    if allocation is None:
        return SpendChoices(choices, price, missing, None, None, None)
    return SpendChoices(choices, price, missing, budget, allocation.gain, allocation.loss_avoided_usd)


def suggest_tokens(params: float, complexity: str, generalisation: str, law: ParametricLaw) -> tuple[TokenTarget, str]:
    """A first target by published models of a generalisation level, and its basis. Raises UnknownName for a level there is none of."""
    domain, level = find_complexity(complexity), find_generalisation(generalisation)
    target = suggest_token_target(params, level.anchors, domain.share, law)
    share = "" if domain.share == 1 else f"{domain.share:.1%} of that, as {domain.source}; "
    return target, f"{share}trained on as many tokens for its size as {', '.join(target.anchors)} ({level.source})"


def _params(section: Request, last: EstimatedRun, notes: AssumptionLog) -> float | None:
    """Model size of the first target: the stated one, else the last run's where a complexity or generalisation is stated."""
    if "params" in section or not section.keys() & {"complexity", "generalisation"}:
        return section.get("params")
    params: float | None = last.request["model"].get("params")
    if params is None:
        notes.warn(
            f"no first target of tokens is suggested, because {last.run.name} does not state the params of its model: state data.params"
        )
    return params


def _usd_per_gain(section: Request, plan: ProgramPlan, unit: str, notes: AssumptionLog) -> float | None:
    """Price of a unit of gain [USD]: stated, by the stated worth of a loss, or the outcome's price of a point; None where none is known."""
    if "usd_per_gain" in section:
        return float(section["usd_per_gain"])
    if section.get("gain_per_usd_of_loss"):
        return 1 / float(section["gain_per_usd_of_loss"])
    outcome = None if plan.outcome is None else plan.outcome.outcome
    if unit != POINTS or outcome is None or outcome.value_usd_per_point is None:
        return None
    usd: float = notes.assume(
        "spend_choices.usd_per_gain", outcome.value_usd_per_point, "outcome.value_usd_per_point, as gains are in points"
    )
    return usd


def _missing(request: Request, curves: Sequence[SpendCurve], usd_per_gain: float | None) -> Iterator[str]:
    """What a comparison of the choices in dollars lacks."""
    if usd_per_gain is None and any(curve.gain[-1] > 0 for curve in curves):
        yield (
            f"gains in {curves[0].unit} have no price, so they can be compared with each other but not with their cost:"
            f" state spend_choices.usd_per_gain, or curves in {POINTS} with outcome.value_usd_per_point"
        )
    unaddressed = [risk["name"] for risk in request.get("risks", ()) if risk.get("addressed_by") is None]
    if "curves" not in request["spend_choices"] and unaddressed:
        yield f"no spend choice reduces the risk {', '.join(unaddressed)}: state risks[].addressed_by"


def _check_addressed_risks(request: Request, choices: Collection[str]) -> None:
    """Raises UnknownName for a risk whose `addressed_by` is no spend choice."""
    for index, risk in enumerate(request.get("risks", ())):
        name = risk.get("addressed_by")
        if name is not None and name not in choices:
            raise UnknownName(
                f"no spend choice is called {name!r}; there are {', '.join(sorted(choices))}",
                f"/risks/{index}/addressed_by",
                tuple(get_close_matches(name, choices, n=3)),
            )


def _yields(section: Request, notes: AssumptionLog) -> tuple[float, float, float]:
    """Filter yield, dedupe yield [1], and epochs."""
    published, source = filter_yield()
    filtered = notes.take(section, "data.filter_yield", published.p50, source)
    return filtered, notes.choose(section, "data.dedupe_yield"), notes.choose(section, "data.epochs")


def _flow(section: Request, notes: AssumptionLog) -> TokenFlow:
    parts = [MixturePart(**part) for part in section.get("mixture", ())]
    return token_flow(float(section["raw_tokens"]), *_yields(section, notes), parts, repetition_decay()[0])


def _suggested(section: Request, params: float, notes: AssumptionLog) -> SuggestedTokens:
    complexity = notes.take(section, "data.complexity", DEFAULT_COMPLEXITY, NOT_STATED)
    generalisation = notes.take(section, "data.generalisation", DEFAULT_GENERALISATION, NOT_STATED)
    law = default_law()
    notes.assume("data.law", law.name, law.source)
    if not isinstance(law.law, ParametricLaw):
        raise TypeError(f"the default law {law.name} knows no sizes but its optima")
    target, basis = suggest_tokens(float(params), complexity, generalisation, law.law)
    raw = raw_tokens_needed(target.tokens.p50, *_yields(section, notes))
    return SuggestedTokens(target.tokens.p10, target.tokens.p50, target.tokens.p90, target.tokens_per_param, raw, basis)


def _warn_of_shortage(flow: TokenFlow, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> None:
    needed = max(estimated.run.use.tokens for estimated in runs)
    if needed > flow.trained * SHORTAGE_TOLERANCE:
        notes.warn(
            f"the largest run trains on {needed:.3g} tokens, but the data have only {flow.trained:.3g}: get more data, or state more epochs"
        )


def _stated_curves(section: Request) -> list[SpendCurve]:
    lists = ("usd", "gain", "loss_avoided_usd")
    return [SpendCurve(**{"basis": "stated", **curve, **{name: tuple(curve[name]) for name in lists}}) for curve in section["curves"]]


def _published_curves(section: Request, plan: ProgramPlan, notes: AssumptionLog) -> list[SpendCurve]:
    blocks = [block for tier in plan.tiers for block in tier.runs]
    usd = sum(float(block.run.compute_usd) * block.run_equivalents for block in blocks)
    if not usd:
        raise InvalidRequest("the runs cost less than a cent, so spend choices cannot be compared")
    law, flops = _law(section, notes), sum(block.use.flops for block in blocks)
    return [published_curve(effect, usd, flops, _addressed_loss_usd(plan, name), law) for name, effect in published_spending().items()]


def _addressed_loss_usd(plan: ProgramPlan, choice: str) -> float:
    """Expected loss of the risks that a choice addresses [USD]."""
    return float(sum_usd(block.expected_loss_usd for block in plan.risks if block.risk.addressed_by == choice))


def _law(section: Request, notes: AssumptionLog) -> ScalingLaw:
    law = section.get("law")
    if law is None:
        default = default_law()
        notes.assume("spend_choices.law", default.name, default.source)
        return default.law
    if isinstance(law, str):
        return find_law(law).law
    try:
        return ParametricLaw(*(float(law[name]) for name in PARAMETERS))
    except ValueError as error:
        raise InvalidRequest(str(error), "/law") from error

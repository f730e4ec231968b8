"""A program's data and spend choices: what tokens come to, how many to aim for first, and where the next dollar does most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from service.domain.errors import DomainError, InvalidRequest, UnknownName
from service.domain.programs.answer import ProgramTokens, SpendChoice, SpendChoices, SuggestedTokens
from service.domain.programs.program import ProgramPlan
from service.domain.scaling.laws import PARAMETERS, ParametricLaw, ScalingLaw
from service.engine.numerics.money import sum_usd
from service.engine.programs.cost_variance import COMPUTE_LINE
from service.engine.programs.spend_allocation import SpendCurve, allocate, marginal_returns, published_curve
from service.engine.programs.tokens import MixturePart, TokenFlow, epochs_until_worth, raw_tokens_needed, token_flow
from service.presets.programs import filter_yield, find_program_default, published_spending, suggested_tokens
from service.presets.scaling.laws import default_law, find_law, repetition_decay
from service.serialization import plain
from service.usecases.programs.runs import EstimatedRun
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]

DEFAULT_COMPLEXITY, DEFAULT_GENERALISATION = "open_domain", "broad"
NOT_STATED = "not stated: as general models are"


def plan_tokens(request: Given, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> ProgramTokens | None:
    """The data that the program states; None where it states none."""
    given = request.get("data", {})
    flow = _flow(given, notes) if "raw_tokens" in given else None
    params = _params(given, runs[-1], notes)
    if flow is None and params is None:
        return None
    if flow is not None:
        _warn_of_shortage(flow, runs, notes)
    rule, source = repetition_decay()
    worth = find_program_default("retention_worth")
    notes.assume("data.retention_worth", worth.value, f"{worth.source}; {source}")
    suggested = None if params is None else _suggested(given, params, notes)
    return ProgramTokens(None if flow is None else plain(flow), suggested, epochs_until_worth(worth.value, rule))


def _params(given: Given, last: EstimatedRun, notes: AssumptionLog) -> float | None:
    """The size that a first target is suggested for: the one stated, else the last run's where a domain or its reach is stated."""
    if "params" in given or not given.keys() & {"complexity", "generalisation"}:
        return given.get("params")
    params: float | None = last.request["model"].get("params")
    if params is None:
        notes.warn(f"no first target of tokens is suggested, as {last.run.name} states no params of its model: state data.params")
    return params


def rank_spend_choices(request: Given, plan: ProgramPlan, notes: AssumptionLog) -> SpendChoices | None:
    """Spend choices by the caller's curves or published ones; None where nobody asks. Raises InvalidRequest, UnknownName with pointers."""
    given = request.get("spend_choices")
    if given is None:
        return None
    try:
        curves = _stated_curves(given) if "curves" in given else _published_curves(given, plan, notes)
        found = marginal_returns(curves, {})
        budget = given.get("budget_usd")
        divided = None if budget is None else allocate(curves, budget, given.get("gain_per_usd_of_loss", 0.0))
    except DomainError as problem:
        raise problem.below("/spend_choices") from problem
    _check_addressed_risks(request, spent_on={curve.choice for curve in curves})
    spent = None if divided is None else divided.usd
    return SpendChoices(
        tuple(
            SpendChoice(
                one.choice, one.gain_per_usd, one.loss_avoided_per_usd, one.unit, one.basis, None if spent is None else spent[one.choice]
            )
            for one in found
        ),
        budget,
        None if divided is None else divided.gain,
        None if divided is None else divided.loss_avoided_usd,
    )


def _check_addressed_risks(request: Given, spent_on: Collection[str]) -> None:
    """Raises UnknownName for a risk that is addressed by what nothing can be spent on."""
    for at, risk in enumerate(request.get("risks", ())):
        name = risk.get("addressed_by")
        if name is not None and name not in spent_on:
            raise UnknownName(
                f"no spend choice is called {name!r}; there are {', '.join(sorted(spent_on))}",
                f"/risks/{at}/addressed_by",
                tuple(get_close_matches(name, spent_on, n=3)),
            )


def _flow(given: Given, notes: AssumptionLog) -> TokenFlow:
    kept, source = filter_yield()
    yields = notes.take(given, "data.filter_yield", kept.p50, source), notes.choose(given, "data.dedupe_yield")
    parts = [MixturePart(part["name"], part["share"], part.get("unique_tokens")) for part in given.get("mixture", ())]
    return token_flow(float(given["raw_tokens"]), *yields, notes.choose(given, "data.epochs"), parts, repetition_decay()[0])


def _suggested(given: Given, params: float, notes: AssumptionLog) -> SuggestedTokens:
    domain = notes.take(given, "data.complexity", DEFAULT_COMPLEXITY, NOT_STATED)
    reach = notes.take(given, "data.generalisation", DEFAULT_GENERALISATION, NOT_STATED)
    law = default_law()
    notes.assume("data.law", law.name, law.source)
    if not isinstance(law.law, ParametricLaw):
        raise TypeError(f"the default law {law.name} knows no sizes but its optima")
    target, basis = suggested_tokens(float(params), domain, reach, law.law)
    kept, source = filter_yield()
    yields = notes.take(given, "data.filter_yield", kept.p50, source), notes.choose(given, "data.dedupe_yield")
    raw = raw_tokens_needed(target.tokens.p50, *yields, notes.choose(given, "data.epochs"))
    return SuggestedTokens(target.tokens.p10, target.tokens.p50, target.tokens.p90, target.tokens_per_param, raw, basis)


def _warn_of_shortage(flow: TokenFlow, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> None:
    needed = max(one.run.tokens for one in runs)
    if needed > flow.trained * 1.01:
        notes.warn(f"the largest run trains on {needed:.3g} tokens, the data come to {flow.trained:.3g}: gather more, or state more epochs")


def _stated_curves(given: Given) -> list[SpendCurve]:
    return [
        SpendCurve(
            curve["choice"],
            tuple(curve["usd"]),
            tuple(curve["gain"]),
            tuple(curve["loss_avoided_usd"]),
            curve["unit"],
            curve.get("basis", "stated"),
        )
        for curve in given["curves"]
    ]


def _published_curves(given: Given, plan: ProgramPlan, notes: AssumptionLog) -> list[SpendCurve]:
    blocks = [block for tier in plan.tiers for block in tier.runs]
    usd = sum(float(sum_usd(line.usd for line in block.run.lines if line.line == COMPUTE_LINE)) * block.equivalents for block in blocks)
    if not usd:
        raise InvalidRequest("the runs cost less than a cent: nothing to compare by")
    law, flops = _law(given, notes), sum(block.flops for block in blocks)
    losses = {name: _loss(plan, name) for name in published_spending()}
    return [published_curve(figures, usd, flops, losses[name], law) for name, figures in published_spending().items()]


def _loss(plan: ProgramPlan, choice: str) -> float:
    """Expected loss of the risks that a choice makes less likely [USD]."""
    return float(sum_usd(block.expected_loss_usd for block in plan.risks if block.risk.addressed_by == choice))


def _law(given: Given, notes: AssumptionLog) -> ScalingLaw:
    law = given.get("law")
    if law is None:
        usual = default_law()
        notes.assume("spend_choices.law", usual.name, usual.source)
        return usual.law
    if isinstance(law, str):
        return find_law(law).law
    try:
        return ParametricLaw(*(float(law[name]) for name in PARAMETERS))
    except ValueError as error:
        raise InvalidRequest(str(error), "/law") from error

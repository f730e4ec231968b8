"""What a program's model costs in service over its life, beside the budget, as POST /v1/serving has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Range
from service.domain.serving.answer import ServingLever
from service.engine.programs.contingency import combine_ranges
from service.engine.serving.fleet import HOURS_PER_MONTH
from service.usecases.programs.estimates import Request
from service.usecases.programs.resolve import ResolvedProgram
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.serving.options import ServingOption
from service.usecases.serving.serve import serve

TRAFFIC = ("prompt_tokens", "output_tokens", "cached_share")
SERVING_SECTIONS = ("latency", "formats", "hardware", "price", "utilisation")


@dataclass(frozen=True, slots=True)
class ProgramServing:
    """Serving of the program's model, beside its budget."""

    run: Annotated[str, Doc("Run whose model is served, as tier/name")]
    months: Annotated[float, Doc("Time in service", "months")]
    tokens: Annotated[float, Doc("Tokens served in it", "tokens", maximum=1e40)]
    usd: Annotated[Range | None, Doc("Cost of serving them; null without a price", "USD")]
    with_budget_usd: Annotated[Range | None, Doc("The program's budget and serving together; null without a price", "USD")]
    best: Annotated[ServingOption, Doc("Cheapest option that fits and keeps the latencies")]
    levers: Annotated[
        tuple[ServingLever, ...], Doc("Quantising and distilling, the most dollars first; empty without a price", max_items=100)
    ]


def plan_serving(context: AppContext, resolved: ResolvedProgram, snapshot: str, notes: AssumptionLog) -> ProgramServing | None:
    """Serving of the stated run's model, else of the last run's; None where it is not stated. Raises DomainErrors below /serving."""
    section = resolved.request.get("serving")
    if section is None:
        return None
    tier, name = _served_run(section, resolved, notes)
    tokens_per_month = section["tokens_per_day"] * HOURS_PER_MONTH / 24
    tokens = tokens_per_month * section["months"]
    request = {
        "model": resolved.runs[tier, name].request["model"],
        "traffic": {field: section[field] for field in TRAFFIC if field in section}
        | {"tokens_per_month": tokens_per_month, "lifetime_tokens": tokens},
        "levers": True,
        "limit": 1,
        **{field: section[field] for field in SERVING_SECTIONS if field in section},
    }
    request["price"] = {"snapshot": snapshot, **request.get("price", {})}
    try:
        answer = serve(context, request)
    except DomainError as problem:
        raise problem.below("/serving") from problem
    for each in answer.assumptions:
        notes.assume(f"serving.{each.field.removeprefix('serving.')}", each.value, each.source)
    notes.warn(*(f"serving: {warning}" for warning in answer.warnings))
    plan, usd = resolved.plan, None if answer.lifetime is None else answer.lifetime.serving_usd
    return ProgramServing(
        run=f"{tier}/{name}",
        months=section["months"],
        tokens=tokens,
        usd=usd,
        with_budget_usd=combine_ranges([plan.total_usd, usd], 0.0) if usd is not None and plan.priced else None,
        best=answer.best,
        levers=answer.levers or (),
    )


def _served_run(section: Request, resolved: ResolvedProgram, notes: AssumptionLog) -> Any:
    """Tier and name of the run whose model is served."""
    last = list(resolved.runs)[-1]
    stated = section.get("run")
    if stated is None:
        notes.assume("serving.run", "/".join(last), "the last run of the last tier")
        return last
    found = [key for key in resolved.runs if stated in (key[1], "/".join(key))]
    if not found:
        raise InvalidRequest(f"no run is called {stated}: name one as tier/name", "/serving/run")
    return found[-1]

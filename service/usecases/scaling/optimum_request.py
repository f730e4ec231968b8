"""Resolution of a request for an optimum: law, budget, hardware, limit of data, and serving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest, UnpricedAccelerator
from service.domain.scaling.laws import PARAMETERS, DataLimit, ParametricLaw, ScalingLaw
from service.domain.scaling.optimum import Budget
from service.engine.scaling.laws import draw_allocation_laws, draw_laws, laws_from_rows
from service.engine.serving.fleet import HOURS_PER_MONTH
from service.presets.scaling.laws import MIXTURE, PublishedLaw, default_law, find_law, repetition_decay
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.size_costs import LifetimeServing, TrainingSetup, resolve_lifetime_serving, resolve_setup

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount

Request = Mapping[str, Any]

OWN = "own"
# Laws drawn from a law's uncertainty, by a generator of this seed: the same request has the same answer.
DRAWS, SEED = 200, 20240415
TRAFFIC = ("tokens_per_day", "months")
BUDGETS = ("flops", "usd", "accelerator_hours", "days", "deadline")


@dataclass(frozen=True, slots=True)
class OptimumRequest:
    """A resolved request. `law_draws` are laws drawn from the law's uncertainty, None where none is known."""

    law: PublishedLaw
    law_draws: ScalingLaw | None
    limit: DataLimit | None
    budget: Budget
    setup: TrainingSetup | None
    serving: LifetimeServing | None
    inference_tokens: float | None

    @property
    def of_mixtures(self) -> bool:
        """Whether the law counts the active parameters of mixtures of experts."""
        return self.law.name == MIXTURE


def resolve_optimum_request(context: AppContext, request: Request, book: PriceBook, notes: AssumptionLog) -> OptimumRequest:
    """The resolved request. Raises DomainErrors with pointers into the request."""
    law, law_draws = _law(request, notes)
    budget = _budget(request, context.clock().date(), notes)
    inference = _lifetime_tokens(request)
    _check_serving(request, inference)
    setup = resolve_setup(context, request, book, notes, of_mixtures=law.name == MIXTURE)
    if budget.kind == "usd" and setup is not None and setup.price is None:
        raise unpriced(setup)
    return OptimumRequest(
        law=law,
        law_draws=law_draws,
        limit=_limit(request, notes),
        budget=budget,
        setup=setup,
        serving=None
        if setup is None or not inference
        else resolve_lifetime_serving(setup, request.get("serving", {}), inference, book, notes),
        inference_tokens=inference,
    )


def unpriced(setup: TrainingSetup | None) -> UnpricedAccelerator:
    """The error of a budget in dollars where no price is known."""
    name = "the accelerator" if setup is None else setup.cluster.accelerator.name
    return UnpricedAccelerator(
        f"no price of {name} is known, so a budget in dollars cannot be used: state"
        " price.usd_per_accelerator_hour, or a budget of accelerator_hours, days, a deadline or flops",
        "/price",
    )


def _law(request: Request, notes: AssumptionLog) -> tuple[PublishedLaw, ScalingLaw | None]:
    """The named law, the caller's own, or the default, with draws from its uncertainty."""
    section = request.get("law")
    if isinstance(section, Mapping):
        return _own_law(section)
    if section is None:
        law = default_law()
        notes.assume("law", law.name, law.source)
    else:
        law = find_law(section)
    law_draws = draw_published_laws(law, np.random.default_rng(SEED), DRAWS)
    if law_draws is None:
        notes.warn(f"the uncertainty of law {law.name} is not published: its figures are used without a range")
    if law.counts != "all":
        notes.warn(f"law {law.name} counts {law.counts} parameters; they are used as the parameters of the layout")
    return law, law_draws


def draw_published_laws(published: PublishedLaw, generator: np.random.Generator, draws: int) -> ScalingLaw | None:
    """Laws drawn from a law's published uncertainty; None where nothing is published."""
    if isinstance(published.law, ParametricLaw):
        return None if published.covariance is None else draw_laws(published.law, published.covariance, generator, draws)
    return None if published.exponents is None else draw_allocation_laws(published.law, published.exponents, generator, draws)


def _own_law(section: Request) -> tuple[PublishedLaw, ScalingLaw | None]:
    try:
        law = ParametricLaw(*(float(section[name]) for name in PARAMETERS))
        law_draws = laws_from_rows(np.array(section["draws"], dtype=np.float64)) if section.get("draws") else None
    except ValueError as error:
        raise InvalidRequest(str(error)[:1000], "/law") from error
    largest = section.get("largest_params"), section.get("largest_tokens")
    return PublishedLaw(OWN, "the caller's own", law, "all", "caller", "", {}, None, None, *largest), law_draws


def stated_limits(request: Request) -> list[str]:
    """The members of the budget. Raises InvalidRequest where there is none."""
    stated = [name for name in BUDGETS if name in request["budget"]]
    if not stated:
        raise InvalidRequest(f"state one of {', '.join(BUDGETS)}, or several: the smallest one limits", "/budget")
    return stated


def _budget(request: Request, today: date, notes: AssumptionLog) -> Budget:
    """The one stated budget. Raises InvalidRequest without hardware where it needs that."""
    section = request["budget"]
    kind = stated_limits(request)[0]
    if kind == "flops":
        return Budget("flops", section["flops"])
    if "hardware" not in request:
        raise InvalidRequest(f"a budget in {kind} needs a machine: state hardware with accelerator and count", "/hardware")
    if kind == "usd" and str(request.get("price", {}).get("pricing", "")).startswith("reserved"):
        raise InvalidRequest(
            "a reservation is paid in whole terms, not by the hour: state a budget of days, a deadline or accelerator_hours",
            "/price/pricing",
        )
    if kind == "usd":
        return Budget("usd", section[kind])
    if kind == "accelerator_hours":
        return Budget("accelerator_hours", section[kind])
    return Budget("wall_clock_hours", 24 * section["days"] if kind == "days" else hours_left(request, today, notes))


def hours_left(request: Request, today: date, notes: AssumptionLog) -> float:
    """Hours until the end of the deadline's day, without queue hours."""
    schedule, deadline = request.get("schedule", {}), request["budget"]["deadline"]
    start = schedule.get("start") or notes.assume("schedule.start", today, "no start is stated: today")
    hours: float = ((deadline - start).days + 1) * 24.0 - schedule.get("queue_hours", 0.0)
    if hours <= 0:
        raise InvalidRequest(
            f"there is no time between the start {start} and the deadline {deadline}: state a later deadline", "/budget/deadline"
        )
    return hours


def _limit(request: Request, notes: AssumptionLog) -> DataLimit | None:
    if "max_unique_tokens" not in request:
        return None
    decay, source = repetition_decay()
    notes.assume("repetition", {"tokens": decay.tokens, "params": decay.params}, source)
    return DataLimit(float(request["max_unique_tokens"]), decay)


def _lifetime_tokens(request: Request) -> float | None:
    """Tokens served over the lifetime: stated, or of a daily traffic over months. Raises InvalidRequest where both or half are."""
    stated, serving = request.get("lifetime_inference_tokens"), request.get("serving", {})
    traffic = [name for name in TRAFFIC if name in serving]
    if not traffic:
        return float(stated) if stated else None
    if stated:
        raise InvalidRequest("state lifetime_inference_tokens, or serving.tokens_per_day and months", "/serving/tokens_per_day")
    if len(traffic) < len(TRAFFIC):
        raise InvalidRequest(f"the traffic of a lifetime is {' times '.join(TRAFFIC)}: state both", "/serving")
    return float(serving["tokens_per_day"] * serving["months"] * HOURS_PER_MONTH / 24)


def _check_serving(request: Request, tokens: float | None) -> None:
    """Raises InvalidRequest where serving is stated and cannot be priced, or rules out sizes of a budget that knows no machine."""
    if "serving" not in request:
        return
    if not tokens:
        raise InvalidRequest(
            "state lifetime_inference_tokens, or serving.tokens_per_day and months, or leave serving out", "/lifetime_inference_tokens"
        )
    if "hardware" not in request:
        raise InvalidRequest("serving needs the hardware of training: state hardware", "/hardware")
    if request["serving"].get("latency") and "flops" in request["budget"]:
        raise InvalidRequest(
            "latency limits depend on a machine: state the budget in usd, accelerator_hours, days or a deadline instead of flops",
            "/budget/flops",
        )


def finite_or_none(amount: Amount) -> float | None:
    """A finite amount as a float, else None."""
    return float(amount) if np.isfinite(amount) else None

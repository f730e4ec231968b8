"""The estimate of a run on an accelerator that nobody sells: everything but its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.domain.errors import UnpricedAccelerator
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.resolve import resolve
from service.usecases.training.estimate import EstimateAnswer, estimate_run
from service.usecases.training.summary import summarise_estimate

Request = Mapping[str, Any]


def estimate_unpriced(context: AppContext, request: Request, problem: UnpricedAccelerator) -> EstimateAnswer:
    """The estimate at a price of 0, with a warning that says what to state. Its presenter leaves out what depends on the price.

    Raises as `estimate` does.
    """
    notes = AssumptionLog()
    resolved = resolve(context, {**request, "price": {**request.get("price", {}), "usd_per_accelerator_hour": 0.0}}, notes)
    answer = estimate_run(resolved, notes)
    summary = summarise_estimate(resolved.run, answer.estimate, None)
    without = "price, total cost and levers" if request.get("levers") else "price and total cost"
    warning = f"{problem.message}, a vendor's quote or what an hour of your own costs: until then {without} are not known"
    return replace(answer, summary=summary, warnings=(warning, *answer.warnings))

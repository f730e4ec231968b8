"""Buying or renting with 10,000 trials over all shipped offers of an accelerator, beside a plain numpy loop of the same present values."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.harness import offline_context, report, timed

if TYPE_CHECKING:
    from service.usecases.procurement.evaluation import Evaluation

REPEATS = 5
PROMISED_MS = 300.0
HOURS_PER_MONTH = 730.0


def procurement() -> None:
    """CPU of the whole answer and of its present values in all trials; the loop goes over offers and months."""
    from service.api.resources.procurement import FLEET
    from service.schemas.procurement.request import BuyOrRentRequestSchema
    from service.usecases.procurement import buy_or_rent as usecase

    request = BuyOrRentRequestSchema().load(FLEET)
    seen: list[tuple[tuple[Any, ...], Evaluation]] = []

    def observed(*arguments: Any) -> Evaluation:
        seen.append((arguments, evaluate(*arguments)))
        return seen[-1][1]

    evaluate, usecase.evaluate = usecase.evaluate, observed
    with offline_context() as context:
        usecase.buy_or_rent(context, request)
        answered = [timed(lambda: usecase.buy_or_rent(context, request), time.process_time)[0] for _ in range(REPEATS)]
    usecase.evaluate = evaluate
    arguments, evaluation = seen[-1]
    engine = [timed(lambda: evaluate(*arguments), time.process_time)[0] for _ in range(REPEATS)]
    loop_s, npvs = timed(lambda: plain_loop(arguments), time.process_time)
    rented = {row.name: row for row in evaluation.rows if row.choice is not None and row.kind in ("on_demand", "spot")}
    assert all(np.allclose(npvs[name], row.draws) for name, row in rented.items())
    report("buy_or_rent.cpu_ms", 1e3 * statistics.median(answered), "ms, 10,000 trials, all H100 offers", "promised", PROMISED_MS)
    report("buy_or_rent_trials.cpu_ms", 1e3 * statistics.median(engine), "ms, present values alone", "plain_numpy_loop", 1e3 * loop_s)


def plain_loop(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Present values of every offer by the hour in every trial: for each offer, month by month."""
    from service.engine.procurement.trials import draw_inputs

    inputs, choices, _, uncertain, trials = arguments
    draws = draw_inputs(uncertain, *trials)
    change, utilisation = draws["list_price_change_per_year"], draws["demand.utilisation"]
    found = {}
    for choice in choices:
        npv = np.zeros(trials[0])
        for month in range(inputs.months):
            hours = HOURS_PER_MONTH * inputs.count * utilisation
            npv += hours * choice.usd_per_hour * (1 + change) ** (month / 12) / (1 + inputs.cost_of_capital) ** ((month + 1) / 12)
        found[choice.name] = npv
    return found

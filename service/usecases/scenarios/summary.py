"""Summaries of scenario results: the sentence that a budget owner forwards, for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.quantities import Range
from service.domain.summary import Driver, Summary
from service.engine.numerics.ranges import percentile
from service.formats.headline import duration_range, money, money_range, short_name
from service.usecases.training.summary import KEPT_WITH, MAX_DRIVERS

Result = Mapping[str, Any]


def summarise_trials(result: Result) -> Summary:
    """Cost and time of a Monte Carlo result's trials, its probabilities, and the causes of the cost's variance."""
    cost, hours = result["cost_usd"], result["wall_clock_hours"]
    chances = [
        f"{result[name]:.0%} {what}"
        for name, what in (("deadline_probability", "to meet the deadline"), ("budget_probability", "to keep to the budget"))
        if result[name] is not None
    ]
    text = f"About {money_range(_range(cost))} and {duration_range(_range(hours))} over {result['trials_done']:,} trials"
    causes = sorted(result["drivers"].items(), key=lambda item: -item[1])[:MAX_DRIVERS]
    return Summary(
        text=f"{'; '.join([text, *chances])}.",
        p50_usd=cost["p50"],
        p80_usd=cost["p80"],
        p50_finish_days=hours["p50"] / 24,
        p80_finish_days=hours["p80"] / 24,
        drivers=tuple(Driver(cause, share, f"{share:.0%} of the variance of the cost") for cause, share in causes),
    )


def summarise_sensitivity(base: Result, tornado: Sequence[Result]) -> Summary:
    """The base's cost, and the inputs that move it most."""
    moving = [bar for bar in tornado if bar["swing_usd"]][:MAX_DRIVERS]
    usd, days = base["cost_usd"], base["hours_to_finish"] / 24
    most = f"; {moving[0]['input']} moves it most, {_ends(moving[0])}" if moving else "; no input moves it"
    return Summary(
        text=f"About {money(usd)}{most}.",
        p50_usd=usd,
        p50_finish_days=days,
        drivers=tuple(Driver(bar["input"], [bar["low"], bar["high"]], _ends(bar)) for bar in moving),
    )


def summarise_sweep(rows: Sequence[Result]) -> Summary:
    """The cheapest feasible cell."""
    feasible = [row for row in rows if row["feasible"]]
    if not feasible:
        return Summary(text=f"None of {len(rows):,} cells is feasible.")
    best = min(feasible, key=lambda row: row["cost_usd"]["p50"])
    inputs = ", ".join(f"{path} {value}" for path, value in best["inputs"].items())
    cost = _range(best["cost_usd"])
    return Summary(
        text=f"Cheapest of {len(feasible):,} feasible cells of {len(rows):,}: about {money_range(cost)} with {inputs}."[:1000],
        p50_usd=cost.p50,
        p80_usd=percentile(cost, KEPT_WITH),
        p50_finish_days=best["hours_to_finish"] / 24,
    )


def summarise_optimisation(best: Result | None, considered: int) -> Summary:
    """The best option found."""
    if best is None:
        return Summary(text=f"None of {considered:,} options keeps to the constraints.")
    cost, hours = _range(best["cost_usd"]), _range(best["wall_clock_hours"])
    machine = f"{best['count']:,} {short_name(best['accelerator'])} at {best['provider']}, {best['pricing'].replace('_', ' ')}"
    return Summary(
        text=f"Best of {considered:,} options: about {money_range(cost)} and {duration_range(hours)} on {machine}, from {best['start']}.",
        p50_usd=cost.p50,
        p80_usd=percentile(cost, KEPT_WITH),
        p50_finish_days=best["finish_hours"] / 24,
    )


def _range(quantity: Result) -> Range:
    return Range(quantity["p10"], quantity["p50"], quantity["p90"])


def _ends(bar: Result) -> str:
    return f"{money(bar['at_low']['cost_usd'])} at {bar['low']} to {money(bar['at_high']['cost_usd'])} at {bar['high']}"

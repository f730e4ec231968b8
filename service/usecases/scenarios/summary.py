"""Summaries of scenario results: the sentence that a budget owner forwards, for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.quantities import Range
from service.domain.summary import Driver, Summary
from service.engine.numerics.ranges import percentile
from service.formats.field_words import choice_words
from service.formats.headline import duration_range, money, money_range, short_count, short_name
from service.usecases.training.summary import KEPT_WITH, MAX_DRIVERS, STATE_PRICE

Result = Mapping[str, Any]
SHORTENED_FROM = 1e6


def summarise_trials(result: Result) -> Summary:
    """Cost and time of a Monte Carlo result's trials, its probabilities, and the causes of the variance of the cost, else of the time."""
    cost, hours = result["cost_usd"], result["wall_clock_hours"]
    chances = [
        f"{result[name]:.0%} {what}"
        for name, what in (("deadline_probability", "to meet the deadline"), ("budget_probability", "to keep to the budget"))
        if result[name] is not None
    ]
    what, causes = ("time", result["time_drivers"]) if cost is None else ("cost", result["drivers"])
    largest = sorted(causes.items(), key=lambda item: -item[1])[:MAX_DRIVERS]
    about = duration_range(_range(hours)) if cost is None else f"{money_range(_range(cost))} and {duration_range(_range(hours))}"
    sentence = [f"About {about} over {result['trials_done']:,} trials", *chances, *([] if cost else [STATE_PRICE])]
    return Summary(
        text=f"{'; '.join(sentence)}.",
        p50_usd=cost and cost["p50"],
        p80_usd=cost and cost["p80"],
        p50_finish_days=hours["p50"] / 24,
        p80_finish_days=hours["p80"] / 24,
        drivers=tuple(Driver(cause, share, f"{share:.0%} of the variance of the {what}") for cause, share in largest),
    )


def summarise_sensitivity(base: Result, tornado: Sequence[Result]) -> Summary:
    """The base's cost, or its time where no price is known, and the inputs that move it most."""
    usd, days = base["cost_usd"], base["hours_to_finish"] / 24
    output = "hours_to_finish" if usd is None else "cost_usd"
    moving = [bar for bar in tornado if _moves(bar, output)][:MAX_DRIVERS]
    most = f"; {moving[0]['input']} moves it most, {_ends(moving[0], output)}" if moving else "; no input moves it"
    unknown = f"; {STATE_PRICE}" if usd is None else ""
    return Summary(
        text=f"About {_shown(base, output)}{most}{unknown}.",
        p50_usd=usd,
        p50_finish_days=days,
        drivers=tuple(Driver(bar["input"], [bar["low"], bar["high"]], _ends(bar, output)) for bar in moving),
    )


def summarise_sweep(rows: Sequence[Result]) -> Summary:
    """The cheapest feasible cell or, where no price of any is known, the fastest."""
    feasible = [row for row in rows if row["feasible"]]
    if not feasible:
        return Summary(text=f"None of {len(rows):,} cells is feasible.")
    priced = [row for row in feasible if row["cost_usd"]]
    best = min(priced, key=lambda row: row["cost_usd"]["p50"]) if priced else min(feasible, key=lambda row: row["hours_to_finish"])
    inputs = ", ".join(f"{path} {_value(value)}" for path, value in best["inputs"].items())
    cost = _range(best["cost_usd"]) if priced else None
    about = duration_range(_range(best["wall_clock_hours"])) if cost is None else money_range(cost)
    which, unknown = ("Cheapest", "") if priced else ("Fastest", f"; {STATE_PRICE}")
    return Summary(
        text=f"{which} of {len(feasible):,} feasible cells of {len(rows):,}: about {about} with {inputs}{unknown}."[:1000],
        p50_usd=None if cost is None else cost.p50,
        p80_usd=None if cost is None else percentile(cost, KEPT_WITH),
        p50_finish_days=best["hours_to_finish"] / 24,
    )


def summarise_optimisation(best: Result | None, considered: int) -> Summary:
    """The best option found."""
    if best is None:
        return Summary(text=f"None of {considered:,} options meets the constraints.")
    cost, hours = _range(best["cost_usd"]), _range(best["wall_clock_hours"])
    machine = f"{best['count']:,} {short_name(best['accelerator'])} at {best['provider']}, {choice_words(best['pricing'])}"
    return Summary(
        text=f"Best of {considered:,} options: about {money_range(cost)} and {duration_range(hours)} on {machine}, from {best['start']}.",
        p50_usd=cost.p50,
        p80_usd=percentile(cost, KEPT_WITH),
        p50_finish_days=best["finish_hours"] / 24,
    )


def _range(quantity: Result) -> Range:
    return Range(quantity["p10"], quantity["p50"], quantity["p90"])


def _moves(bar: Result, output: str) -> bool:
    """Whether both ends of an input have an answer, and different ones."""
    low, high = bar["at_low"][output], bar["at_high"][output]
    return low is not None and high is not None and low != high


def _ends(bar: Result, output: str) -> str:
    return f"{_shown(bar['at_low'], output)} at {_value(bar['low'])} to {_shown(bar['at_high'], output)} at {_value(bar['high'])}"


def _value(value: Any) -> Any:
    """An input's value; from a million on with three figures and a suffix: 1.8T."""
    large = isinstance(value, int | float) and value >= SHORTENED_FROM
    return short_count(value) if large else value


def _shown(figures: Result, output: str) -> str:
    return money(figures[output]) if output == "cost_usd" else duration_range(Range.exactly(figures[output]))

"""The summary of a comparison: its best option, and the next provider's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.domain.comparison.options import Objective, Option, VariantSummary
from service.domain.summary import Summary
from service.engine.numerics.ranges import percentile
from service.formats.field_words import choice_words
from service.formats.headline import day, duration, duration_range, money, money_range, short_name
from service.usecases.comparison.option_table import OptionTable
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.training.summary import KEPT_WITH, comparable_run, comparable_text

SUPERLATIVES: Mapping[Objective, str] = {"cost": "Cheapest", "time": "Earliest done", "carbon": "Lowest in carbon"}


def summarise_comparison(
    objective: Objective,
    options: Sequence[Option],
    variants: Sequence[VariantSummary],
    machines: Mapping[str, Option | None],
    table: OptionTable,
    timed: Sequence[TimedConfiguration],
) -> Summary:
    """The best of the feasible options, that of each variant or machine, and what rules most others out.

    `options` are those of the table that are shown, `machines` the best of each machine that is weighed, None where none is feasible.
    """
    feasible = [option for option in options if option.feasible]
    if not feasible:
        most = _most_frequent(table.infeasible)
        why = f"; most common reason: {_reason(most)}" if most else ""
        return Summary(text=f"None of {len(table.row):,} options meets the constraints{why}.")
    best = feasible[0]
    if best.cost_usd is None or best.time is None:
        raise ValueError(f"option {best.id} is feasible but has no cost or time")
    hours = best.time.wall_clock_hours
    run = next((known.run for known in timed if known.run and known.workload.name == best.variant and _same_machine(known, best)), None)
    comparable = None if run is None else comparable_run(run)
    return Summary(
        text=" ".join(
            filter(
                None,
                (
                    _best_text(objective, best, int(table.feasible.sum())),
                    _variants_text(variants),
                    _machines_text(best, machines),
                    _next_text(best, feasible),
                    _excluded_text(table),
                    comparable_text(comparable),
                ),
            )
        ),
        p50_usd=best.cost_usd.p50,
        p80_usd=percentile(best.cost_usd, KEPT_WITH),
        p50_finish_days=hours.p50 / 24,
        p80_finish_days=percentile(hours, KEPT_WITH) / 24,
        bound=best.throughput.bound_by if best.throughput else None,
        comparable=comparable,
    )


def _same_machine(timed: TimedConfiguration, option: Option) -> bool:
    return timed.run is not None and timed.run.cluster.accelerator.name == option.offer.accelerator


def _best_text(objective: Objective, best: Option, feasible: int) -> str:
    if best.cost_usd is None or best.time is None:
        return ""
    machine = f"{best.count:,} {short_name(best.offer.accelerator)} at {_where(best)}"
    figures = f"about {money_range(best.cost_usd)} and {duration_range(best.time.wall_clock_hours)} on {machine}"
    return f"{SUPERLATIVES[objective]} of {feasible:,} feasible options: {figures}."


def _variants_text(variants: Sequence[VariantSummary]) -> str:
    """What the best option of each variant costs and takes; empty where none are compared."""
    texts = [
        f"{variant.name} not feasible"
        if variant.cost_usd is None or variant.wall_clock_hours is None
        else f"{variant.name} {money(variant.cost_usd)} and {duration(variant.wall_clock_hours)}"
        for variant in variants
    ]
    return f"Each at its best: {'; '.join(texts)}." if texts else ""


def _machines_text(best: Option, machines: Mapping[str, Option | None]) -> str:
    """The best option of each other machine; empty where no others are weighed."""
    texts = [_machine_text(name, option, best) for name, option in machines.items() if option is None or option.id != best.id]
    return f"Others at their best: {'; '.join(texts)}." if texts else ""


def _machine_text(name: str, option: Option | None, best: Option) -> str:
    if option is None or option.cost_usd is None or option.time is None:
        return f"{name} not feasible"
    count = f"{option.count:,} "
    usd, hours = option.cost_usd.p50, option.time.wall_clock_hours.p50
    change = "" if best.cost_usd is None or not best.cost_usd.p50 else f" ({usd / best.cost_usd.p50 - 1:+.0%})"
    machine = f"{count}{name.removeprefix(count)}"
    return f"{machine} {money(usd)}{change} and {duration(hours)} at {option.offer.provider}, {choice_words(option.offer.pricing)}"


def _excluded_text(table: OptionTable) -> str:
    """How many options are ruled out, and what rules most of them out; empty where none is."""
    considered, excluded = len(table.row), int((~table.feasible).sum())
    if not excluded:
        return ""
    reason, are = _reason(_most_frequent(table.infeasible)), "is" if excluded == 1 else "are"
    return f"{excluded:,} of {considered:,} considered {are} ruled out, most often: {reason}."


def _most_frequent(infeasible: Mapping[str, int]) -> str:
    return max(infeasible, key=lambda reason: infeasible[reason], default="")


def _reason(name: str) -> str:
    return name.replace("_", " ")


def _where(option: Option) -> str:
    offer = option.offer
    price = "" if offer.observed_at is None else f", price of {day(offer.observed_at)}{' (stale)' if offer.stale else ''}"
    return f"{offer.provider}, {choice_words(offer.pricing)}{price}"


def _next_text(best: Option, feasible: Sequence[Option]) -> str:
    """The first option of another provider among those shown; empty where there is none."""
    other = next((option for option in feasible if option.offer.provider != best.offer.provider), None)
    if other is None or other.cost_usd is None or best.cost_usd is None or not best.cost_usd.p50:
        return ""
    change = other.cost_usd.p50 / best.cost_usd.p50 - 1
    return f"Next is {other.offer.provider} at {money(other.cost_usd.p50)} ({change:+.0%})."

"""Model sizes that reach a loss, and options of a comparison ranked by the mean or a quantile of cost, or by time, from the best start."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Range
from service.engine.comparison.pareto import pareto_front
from service.engine.numerics.ranges import probability_below
from service.engine.procurement.ownership import HOURS_PER_YEAR
from service.engine.scaling.laws import require_parametric, tokens_for_loss
from service.engine.scenarios.optimisation import lognormal_mean, lognormal_quantile
from service.presets.scaling.laws import PublishedLaw, default_law, find_law
from service.presets.serving import default_shape
from service.prices.offer_table import Flags
from service.serialization import to_builtins
from service.usecases.comparison.compare import Comparison, compare

Body = Mapping[str, Any]
OptionRow = dict[str, Any]

MOST_OPTIONS = 1000
COARSE_SIZES = 9
OWNED = "owned"


@dataclass(frozen=True, slots=True)
class Goal:
    """What is minimised, and its constraints.

    The run starts between `earliest` and `latest`; prices of rented capacity change by `price_change_per_year`, a share. `overhead_share`:
    evaluation, debugging and reruns, as a share of the run. `queue_hours`: before it.
    """

    objective: str
    quantile: float
    earliest: date
    latest: date
    price_change_per_year: float
    deadline: date | None
    min_deadline_probability: float | None
    max_cost_usd: float | None
    overhead_share: float
    queue_hours: float

    @property
    def waits_for_prices(self) -> bool:
        """Whether a later start costs less, with cost as the objective."""
        return self.price_change_per_year < 0 and self.objective != "time" and self.latest > self.earliest


@dataclass(frozen=True, slots=True)
class SizedWorkload:
    """Changes of the workload for a model size and a checkpoint interval; None: the base request's own."""

    workload: Body
    params: float | None = None
    tokens: float | None = None
    checkpoint_interval_minutes: float | None = None


def coarse_sizes(wanted: Body, most_loss: float) -> list[tuple[float, float]]:
    """Sizes [parameters] in equal factors with their tokens, without those that miss the loss. Raises InvalidRequest where all do."""
    low, high = wanted["min_params"], wanted["max_params"]
    if low > high:
        raise InvalidRequest(f"min_params {low:,} is above max_params {high:,}", "/model_size/min_params")
    params = np.geomspace(low, high, COARSE_SIZES).tolist() if high > low else [float(low)]
    sizes = [(size, tokens) for size, tokens in sizes_with_tokens(wanted, most_loss, params) if math.isfinite(tokens)]
    if not sizes:
        raise InvalidRequest(f"no size up to {high:,} reaches a loss of {most_loss:g} by this law", "/constraints/max_loss")
    return sizes


def sizes_with_tokens(wanted: Body, most_loss: float, params: Sequence[float]) -> list[tuple[float, float]]:
    """Sizes [parameters] with the tokens that reach the loss, infinite where none do. Raises DomainErrors for an unsuitable law."""
    try:
        tokens = tokens_for_loss(require_parametric(select_law(wanted).law), np.asarray(params), most_loss)
    except DomainError as problem:
        raise problem.below("/model_size") from problem
    return list(zip(params, tokens.tolist(), strict=True))


def select_law(wanted: Body) -> PublishedLaw:
    """The named law, or the default. Raises UnknownName."""
    return find_law(wanted["law"]) if wanted.get("law") else default_law()


def sized_workload(params: float | None, tokens: float | None) -> SizedWorkload:
    """The workload changes of a size; none where it is None."""
    if params is None or tokens is None:
        return SizedWorkload({})
    model = {"params": round(params), **default_shape()}
    return SizedWorkload({"model": model, "data": {"tokens": math.ceil(tokens)}}, float(round(params)), float(math.ceil(tokens)))


def compare_options(
    context: AppContext, task: Body, goal: Goal, sizes: Sequence[SizedWorkload], candidates: Body, *, owned: bool
) -> Comparison:
    """Comparison of these workloads on these candidates. Raises DomainErrors."""
    constraints = {name: value for name, value in task["constraints"].items() if name != "max_loss"} | {"start": goal.earliest}
    if goal.deadline is not None:
        constraints["deadline"] = goal.deadline
    if goal.waits_for_prices:
        constraints.pop("max_cost_usd", None)
    first, *others = sizes
    variants = [{"name": str(index), "workload": size.workload} for index, size in enumerate(sizes)] if others else []
    request: dict[str, Any] = {
        "workload": task["workload"] if others else {**task["workload"], **first.workload},
        "candidates": candidates,
        "constraints": constraints,
        "on_prem": task["on_prem"] if owned else [],
        "objective": "time" if goal.objective == "time" else "cost",
        "limit": MOST_OPTIONS,
        "snapshot": task["snapshot"],
    }
    return compare(context, request | ({"variants": variants} if variants else {}))


def list_rows(comparison: Comparison, sizes: Sequence[SizedWorkload], goal: Goal) -> list[OptionRow]:
    """Feasible options as rows, best first."""
    return sorted(itertools.chain.from_iterable(rows_by_size(comparison, sizes, goal)), key=sort_key)


def rows_by_size(comparison: Comparison, sizes: Sequence[SizedWorkload], goal: Goal) -> list[list[OptionRow]]:
    """Feasible options of each workload as rows."""
    rows: list[list[OptionRow]] = [[] for _ in sizes]
    for option in comparison.options:
        if option.feasible:
            index = int(option.variant or 0)
            rows[index].append(_row(option, sizes[index], goal))
    most = math.inf if goal.max_cost_usd is None else goal.max_cost_usd
    return [[row for row in group if row["cost_usd"]["p50"] <= most] for group in rows]


def sort_key(row: Body) -> tuple[Any, ...]:
    """Sort key of rows: objective, then cost, finish and id."""
    return row["objective"], row["usd"], row["finish_hours"], row["id"]


def select_pareto_front(rows: Sequence[OptionRow]) -> list[OptionRow]:
    """Rows on the Pareto front of cost, finish and carbon."""
    if not rows:
        return []
    columns = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("usd", "finish_hours", "tco2e"))
    front: Flags = pareto_front(*columns)
    return [row for row, is_on_front in zip(rows, front, strict=True) if is_on_front]


def _row(option: Option, sized: SizedWorkload, goal: Goal) -> OptionRow:
    """A feasible option, from its best start."""
    if option.time is None or option.cost_usd is None or option.energy is None or option.throughput is None:
        raise ValueError(f"option {option.id} is feasible but has no time, cost, energy or throughput")
    start, latest = _start(option, goal)
    days = (start - goal.earliest).days
    cost = _cost_at_start(option, goal, days)
    usd = lognormal_quantile(cost, goal.quantile) if goal.objective == "cost_quantile" else lognormal_mean(cost)
    finish = option.time.finish and replace(
        option.time.finish, **{name: getattr(option.time.finish, name) + timedelta(days=days) for name in ("p10", "p50", "p90")}
    )
    finish_hours = days * 24 + goal.queue_hours + option.time.wall_clock_hours.p50
    if option.offer.pricing == OWNED and finish is not None:
        finish_hours = 24.0 * (finish.p50 - goal.earliest).days
    return {
        "id": option.id.removeprefix(f"{option.variant}:"),
        **{name: getattr(option.offer, name) for name in ("provider", "region", "instance_type", "accelerator", "pricing")},
        "usd_per_accelerator_hour": option.offer.usd_per_accelerator_hour,
        "count": option.count,
        "params": sized.params,
        "tokens": sized.tokens,
        "parallelism": option.throughput.parallelism,
        "checkpoint_interval_minutes": sized.checkpoint_interval_minutes,
        "start": start.isoformat(),
        "latest_start": latest and latest.isoformat(),
        "finish": to_builtins(finish),
        "deadline_probability": _deadline_probability(option, goal, start),
        "cost_usd": to_builtins(cost),
        "usd": usd,
        "wall_clock_hours": to_builtins(option.time.wall_clock_hours),
        "accelerator_hours": to_builtins(option.time.accelerator_hours),
        "finish_hours": finish_hours,
        "tco2e": option.energy.tco2e,
        "objective": finish_hours if goal.objective == "time" else usd,
    }


def _start(option: Option, goal: Goal) -> tuple[date, date | None]:
    """The best start, and the last one that meets the deadline; None without a deadline and for owned hardware."""
    if option.offer.pricing == OWNED or option.time is None:
        return goal.earliest, None
    last = None
    if goal.deadline is not None:
        wanted = 0.5 if goal.min_deadline_probability is None else goal.min_deadline_probability
        hours = goal.queue_hours + _hours_quantile(option.time.wall_clock_hours, wanted)
        last = max(goal.earliest, goal.deadline - timedelta(days=math.ceil(hours / 24 - 1e-9) - 1))
    if not goal.waits_for_prices:
        return goal.earliest, last
    return min(goal.latest, last or goal.latest), last


def _deadline_probability(option: Option, goal: Goal, start: date) -> float | None:
    """Probability to meet the deadline from this start; None without a deadline."""
    if goal.deadline is None or option.time is None or option.offer.pricing == OWNED:
        return option.time.deadline_probability if option.time else None
    available = ((goal.deadline - start).days + 1) * 24.0 - goal.queue_hours
    return probability_below(available, option.time.wall_clock_hours)


def _hours_quantile(hours: Range, share: float) -> float:
    """Quantile of the hours; at probabilities 0 and 1 the nearest that a log-normal has."""
    return lognormal_quantile(hours, min(max(share, 1e-6), 1 - 1e-6))


def _cost_at_start(option: Option, goal: Goal, days: int) -> Range:
    """The option's cost [USD] at a start `days` after the earliest: only the price of rented machines changes."""
    cost, time = option.cost_usd, option.time
    if cost is None or time is None or not days:
        return cost or Range.exactly(0.0)
    change = (1 + goal.price_change_per_year) ** (days * 24 / HOURS_PER_YEAR) - 1
    held = time.accelerator_hours.scaled(1 / option.count)
    return Range(*(getattr(cost, name) + change * _machine_usd(option, getattr(held, name), goal) for name in cost.__slots__))


def _machine_usd(option: Option, hours: float, goal: Goal) -> float:
    """Machine cost [USD] as in `comparison.offer_costs`: whole instances and spares, overhead, whole terms of reservations."""
    offer, term = option.offer, option.commitment.term_hours if option.commitment else 0.0
    billed = option.nodes * offer.accelerators_per_instance + option.spare_accelerators
    if term:
        return math.ceil(hours * (1 + goal.overhead_share) / term) * term * billed * offer.usd_per_accelerator_hour
    return hours * offer.usd_per_accelerator_hour * (billed + option.count * goal.overhead_share)

"""Options of a comparison as an optimisation weighs them: by the mean or a quantile of their cost, or by time, from their best start on."""

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
from service.domain.quantities import Range
from service.engine.comparison.ownership import HOURS_PER_YEAR
from service.engine.comparison.pareto import pareto_front
from service.engine.numerics.ranges import probability_below
from service.engine.scenarios.optimisation import lognormal_mean, lognormal_quantile
from service.prices.offer_table import Flags
from service.serialization import plain
from service.usecases.comparison.compare import Comparison, compare

Body = Mapping[str, Any]
OptionRow = dict[str, Any]

MOST_OPTIONS = 1000
OWNED = "owned"


@dataclass(frozen=True, slots=True)
class Goal:
    """What is made least, and within which limits. `around`: work around the run, as a share of it; `queue_hours` before it.

    It may start from `earliest` to `latest`; prices of what is rented change by a share a year in between.
    """

    objective: str
    quantile: float
    earliest: date
    latest: date
    price_change_per_year: float
    deadline: date | None
    min_deadline_probability: float | None
    max_cost_usd: float | None
    around: float
    queue_hours: float

    @property
    def waits_for_prices(self) -> bool:
        """Whether a later start costs less, and that counts."""
        return self.price_change_per_year < 0 and self.objective != "time" and self.latest > self.earliest


@dataclass(frozen=True, slots=True)
class SizedWorkload:
    """A size of the model with what is changed of the workload; None is the base request's own."""

    workload: Body
    params: float | None = None
    tokens: float | None = None
    checkpoint_interval_minutes: float | None = None


def compare_options(
    context: AppContext, asked: Body, aim: Goal, sizes: Sequence[SizedWorkload], candidates: Body, *, owned: bool
) -> Comparison:
    """The comparison of these workloads on these candidates. Raises DomainErrors."""
    constraints = {name: value for name, value in asked["constraints"].items() if name != "max_loss"} | {"start": aim.earliest}
    if aim.deadline is not None:
        constraints["deadline"] = aim.deadline
    if aim.waits_for_prices:
        constraints.pop("max_cost_usd", None)
    first, *others = sizes
    variants = [{"name": str(at), "workload": each.workload} for at, each in enumerate(sizes)] if others else []
    request: dict[str, Any] = {
        "workload": asked["workload"] if others else {**asked["workload"], **first.workload},
        "candidates": candidates,
        "constraints": constraints,
        "on_prem": asked["on_prem"] if owned else [],
        "objective": "time" if aim.objective == "time" else "cost",
        "limit": MOST_OPTIONS,
        "snapshot": asked["snapshot"],
    }
    return compare(context, request | ({"variants": variants} if variants else {}))


def list_rows(found: Comparison, sizes: Sequence[SizedWorkload], aim: Goal) -> list[OptionRow]:
    """The feasible options as rows, the best first."""
    return sorted(itertools.chain.from_iterable(rows_by_size(found, sizes, aim)), key=sort_key)


def rows_by_size(found: Comparison, sizes: Sequence[SizedWorkload], aim: Goal) -> list[list[OptionRow]]:
    """The feasible options of each workload as rows."""
    rows: list[list[OptionRow]] = [[] for _ in sizes]
    for option in found.options:
        if option.feasible:
            at = int(option.variant or 0)
            rows[at].append(_row(option, sizes[at], aim))
    most = math.inf if aim.max_cost_usd is None else aim.max_cost_usd
    return [[row for row in each if row["cost_usd"]["p50"] <= most] for each in rows]


def sort_key(row: Body) -> tuple[Any, ...]:
    """What rows are sorted by: the objective, then money, then time, then their names."""
    return row["objective"], row["usd"], row["finish_hours"], row["id"]


def select_pareto_front(rows: Sequence[OptionRow]) -> list[OptionRow]:
    """Rows that no other beats on money, finish and carbon together."""
    if not rows:
        return []
    columns = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("usd", "finish_hours", "tco2e"))
    front: Flags = pareto_front(*columns)
    return [row for row, stands in zip(rows, front, strict=True) if stands]


def _row(option: Option, sized: SizedWorkload, aim: Goal) -> OptionRow:
    """A feasible option from its best start on."""
    if option.time is None or option.cost_usd is None or option.energy is None or option.throughput is None:
        raise ValueError(f"option {option.id} is feasible and has no figures")
    start, latest = _start(option, aim)
    days = (start - aim.earliest).days
    cost = _at_start(option, aim, days)
    usd = lognormal_quantile(cost, aim.quantile) if aim.objective == "cost_quantile" else lognormal_mean(cost)
    finish = option.time.finish and replace(
        option.time.finish, **{name: getattr(option.time.finish, name) + timedelta(days=days) for name in ("p10", "p50", "p90")}
    )
    finish_hours = days * 24 + aim.queue_hours + option.time.wall_clock_hours.p50
    if option.offer.pricing == OWNED and finish is not None:
        finish_hours = 24.0 * (finish.p50 - aim.earliest).days
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
        "finish": plain(finish),
        "deadline_probability": _in_time(option, aim, start),
        "cost_usd": plain(cost),
        "usd": usd,
        "wall_clock_hours": plain(option.time.wall_clock_hours),
        "accelerator_hours": plain(option.time.accelerator_hours),
        "finish_hours": finish_hours,
        "tco2e": option.energy.tco2e,
        "objective": finish_hours if aim.objective == "time" else usd,
    }


def _start(option: Option, aim: Goal) -> tuple[date, date | None]:
    """The best day to start on, and the last on which the deadline is kept; None without one, and of what is owned."""
    if option.offer.pricing == OWNED or option.time is None:
        return aim.earliest, None
    last = None
    if aim.deadline is not None:
        sure = 0.5 if aim.min_deadline_probability is None else aim.min_deadline_probability
        hours = aim.queue_hours + _hours_at(option.time.wall_clock_hours, sure)
        last = max(aim.earliest, aim.deadline - timedelta(days=math.ceil(hours / 24 - 1e-9) - 1))
    if not aim.waits_for_prices:
        return aim.earliest, last
    return min(aim.latest, last or aim.latest), last


def _in_time(option: Option, aim: Goal, start: date) -> float | None:
    """The probability to keep the deadline from that start on; None without one."""
    if aim.deadline is None or option.time is None or option.offer.pricing == OWNED:
        return option.time.deadline_probability if option.time else None
    available = ((aim.deadline - start).days + 1) * 24.0 - aim.queue_hours
    return probability_below(available, option.time.wall_clock_hours)


def _hours_at(hours: Range, share: float) -> float:
    """What the hours stay below with a probability; with certainty or none, as near to it as a log-normal has an answer."""
    return lognormal_quantile(hours, min(max(share, 1e-6), 1 - 1e-6))


def _at_start(option: Option, aim: Goal, days: int) -> Range:
    """The option's cost where it starts so many days after the earliest: what is paid for rented machines changes, the rest does not."""
    cost, time = option.cost_usd, option.time
    if cost is None or time is None or not days:
        return cost or Range.exactly(0.0)
    change = (1 + aim.price_change_per_year) ** (days * 24 / HOURS_PER_YEAR) - 1
    return Range(
        *(getattr(cost, name) + change * _machine_usd(option, getattr(time.wall_clock_hours, name), aim) for name in cost.__slots__)
    )


def _machine_usd(option: Option, hours: float, aim: Goal) -> float:
    """What is paid for the machine, as in `engine.bill`: whole instances and spares, work around the run, whole terms of reservations."""
    offer, term = option.offer, option.commitment.term_hours if option.commitment else 0.0
    billed = option.nodes * offer.accelerators_per_instance + option.spare_accelerators
    if term:
        return math.ceil(hours * (1 + aim.around) / term) * term * billed * offer.usd_per_accelerator_hour
    return hours * offer.usd_per_accelerator_hour * (billed + option.count * aim.around)

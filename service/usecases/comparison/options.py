"""One option as answers show it: its offer, its figures, and in words what rules it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from providers.offer import TERM_HOURS, Offer
from service.domain.comparison.options import Commitment, Constraints, Option, OptionEnergy, OptionOffer, OptionThroughput, OptionTime
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates
from service.engine.numerics.ranges import probability_below
from service.engine.training.cost import overhead_share, paid_hours, spare_accelerators
from service.engine.training.estimate import date_after, mfu, step_time_s
from service.prices.book import PriceBook
from service.prices.offer_table import Flags
from service.usecases.comparison.option_table import OptionTable, deadline_hours, linked_accelerators
from service.usecases.comparison.timed_configurations import TimedConfiguration, explain_impossible
from service.usecases.resolution.price import find_country
from service.usecases.training.estimate import BEYOND_LIMITS_TEXT


@dataclass(frozen=True, slots=True)
class OptionContext:
    """What options are read from: the book, which of its rows are stale, the constraints, the table, its machines, and what is owned."""

    book: PriceBook
    stale: Flags
    constraints: Constraints
    table: OptionTable
    machines: Sequence[TimedConfiguration]
    owned: Sequence[OptionOffer] = ()
    figures: dict[int, ConfigurationFigures] = field(default_factory=dict)

    def of_machine(self, at: int) -> ConfigurationFigures:
        """Speed and time of the machine of an option, made once for all its options."""
        index = int(self.table.machine[at])
        if index not in self.figures:
            self.figures[index] = _figures(self.machines[index], float(self.table.finish_hours[at]), self.constraints)
        return self.figures[index]

    def offer(self, row: int) -> OptionOffer:
        """The offer of a row of the book; rows below 0 are what is owned, -1 the first."""
        if row < 0:
            return self.owned[-1 - row]
        return make_offer(self.book.offers[row], stale=bool(self.stale[row]))


@dataclass(frozen=True, slots=True)
class ConfigurationFigures:
    """What all options of a machine share: speed and time, or why it cannot run."""

    throughput: OptionThroughput | None
    time: OptionTime | None
    impossible: str = ""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An option that something rules out, for the words about it."""

    machine: TimedConfiguration
    offer: OptionOffer
    country: str
    in_time: float | None
    constraints: Constraints
    cost_usd: float
    finish_hours: float
    tco2e: float
    impossible: str


def make_option(rank: int, at: int, seen: OptionContext, *, on_front: bool) -> Option:
    """The option at a position of the table."""
    table, machine = seen.table, seen.machines[int(seen.table.machine[at])]
    offer, figures, ruled_out = seen.offer(int(table.row[at])), seen.of_machine(at), table.reasons(at)
    return Option(
        rank=rank,
        id=_id(machine, offer),
        variant=machine.workload.name,
        offer=offer,
        count=machine.count,
        nodes=-(-machine.count // offer.accelerators_per_instance),
        spare_accelerators=spare_accelerators(machine.run) if machine.run else 0,
        throughput=figures.throughput,
        time=figures.time,
        cost_usd=_cost(table, at) if figures.time and "beyond_reason" not in ruled_out else None,
        commitment=_commitment(machine, offer),
        energy=OptionEnergy(float(table.mwh[at]), float(table.tco2e[at])) if figures.time else None,
        feasible=not ruled_out,
        reasons=_reasons(at, seen, ruled_out),
        on_pareto_front=on_front,
    )


def _reasons(at: int, seen: OptionContext, ruled_out: Sequence[str]) -> tuple[str, ...]:
    """What rules the option out, in words."""
    if not ruled_out:
        return ()
    table, index, row = seen.table, int(seen.table.machine[at]), int(seen.table.row[at])
    figures = seen.of_machine(at)
    ruling = Exclusion(
        machine=seen.machines[index],
        offer=seen.offer(row),
        country=find_country(seen.book.offers[row]) if row >= 0 else "",
        in_time=figures.time.deadline_probability if figures.time else None,
        constraints=seen.constraints,
        cost_usd=float(table.cost.p50[at]),
        finish_hours=float(table.finish_hours[at]),
        tco2e=float(table.tco2e[at]),
        impossible=figures.impossible,
    )
    return tuple(_WORDS[reason](ruling) for reason in ruled_out)


def _id(machine: TimedConfiguration, offer: OptionOffer) -> str:
    """What tells an option from all others, whatever else is compared."""
    market = () if offer.market == "list" else (offer.market,)
    hardware = f"{offer.accelerators_per_instance}x{offer.accelerator}"
    parts = (offer.provider, offer.region, offer.instance_type, hardware, offer.pricing, *market, str(machine.count))
    return ":".join((machine.workload.name, *parts) if machine.workload.name else parts)


def make_offer(offer: Offer, *, stale: bool) -> OptionOffer:
    """An offer as comparisons show it."""
    return OptionOffer(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        accelerator=offer.accelerator,
        accelerators_per_instance=offer.accelerator_count,
        pricing=offer.pricing,
        usd_per_accelerator_hour=float(offer.usd_per_accelerator_hour),
        market=offer.market,
        availability=offer.availability,
        available_since=offer.available_since,
        observed_at=offer.observed_at,
        source=offer.source,
        stale=stale,
    )


def _figures(machine: TimedConfiguration, finish_hours: float, constraints: Constraints) -> ConfigurationFigures:
    if machine.run is None or machine.timing is None:
        return ConfigurationFigures(None, None, explain_impossible(machine))
    run, timed = machine.run, machine.timing
    hours, reliable, choice = timed.wall_clock_hours, timed.reliable, timed.choice
    waiting, available = finish_hours - hours.p50, deadline_hours(constraints)
    return ConfigurationFigures(
        OptionThroughput(
            tokens_per_s_per_accelerator=timed.speed.tokens_per_s_per_accelerator,
            mfu=mfu(run, timed),
            step_time_s=step_time_s(run, timed),
            effective_tokens_per_s=timed.speed.tokens_per_s_per_accelerator.p50 * machine.count * timed.run_over_wall_clock,
            effective_mfu=mfu(run, timed).p50 * timed.run_over_wall_clock,
            inter_node_gbps=machine.inter_node_gbps,
            bound_by=choice.steps.bound_by(0),
            parallelism=choice.layouts.named(0),
        ),
        OptionTime(
            wall_clock_hours=hours,
            accelerator_hours=hours.scaled(machine.count),
            goodput=reliable.goodput,
            expected_interruptions=hours.p50 / reliable.mttf_hours,
            finish=_finish(constraints, waiting, hours),
            deadline_probability=None if available is None else probability_below(available - waiting, hours),
        ),
    )


def _finish(constraints: Constraints, waiting: float, hours: Range) -> FinishDates | None:
    """The days on which it ends, where there is a day on which it starts."""
    if not constraints.dated:
        return None
    return FinishDates(*(date_after(constraints.start, waiting + each) for each in (hours.p10, hours.p50, hours.p90)))


def _cost(table: OptionTable, at: int) -> Range:
    low, middle, high = (float(column[at]) for column in (table.cost.p10, table.cost.p50, table.cost.p90))
    return Range(min(low, middle), middle, max(middle, high))


def _commitment(machine: TimedConfiguration, offer: OptionOffer) -> Commitment | None:
    """What a reservation pays for, where the option is one and can run."""
    term = TERM_HOURS.get(offer.pricing, 0.0)
    if not term or machine.run is None or machine.timing is None:
        return None
    used = machine.timing.wall_clock_hours.p50 * (1 + overhead_share(machine.run))
    paid = paid_hours(used, term)
    return Commitment(term, paid, used / paid)


def _split(ruling: Exclusion) -> str:
    unit, instance = linked_accelerators(ruling.machine.run) if ruling.machine.run else 0, ruling.offer.accelerators_per_instance
    return f"{ruling.machine.count} accelerators in instances of {instance}: their links are not known, {unit} on a fast one are modelled"


def _days(ruling: Exclusion) -> str:
    return f"takes {_beyond(_run_days(ruling), ruling.constraints.max_wall_clock_days, ' days')}"


def _horizon(ruling: Exclusion) -> str:
    beyond = _beyond(_run_days(ruling), ruling.constraints.horizon_days, " days")
    return f"takes {beyond}: so long a run is none where neither deadline nor max_wall_clock_days is stated"


def _run_days(ruling: Exclusion) -> float:
    return ruling.machine.timing.wall_clock_hours.p50 / 24 if ruling.machine.timing else math.nan


def _beyond(value: float, limit: float | None, unit: str) -> str:
    """A figure, its limit, and by how much it is above."""
    most = math.nan if limit is None else limit
    places = 0 if min(abs(value), abs(value - most)) >= 100 else 1 if abs(value - most) >= 0.05 else 4
    return f"{value:,.{places}f}{unit}, more than {most:,.10g} by {value - most:,.{places}f}"


def _jurisdiction(ruling: Exclusion) -> str:
    return f"{ruling.offer.provider} {ruling.offer.region} is in {ruling.country}, outside the jurisdictions asked for"


def _deadline(ruling: Exclusion) -> str:
    given, days = ruling.constraints, ruling.finish_hours / 24
    least, available = given.min_deadline_probability, deadline_hours(given) or math.nan
    if least is not None:
        return f"ends by the deadline {given.deadline} with probability {ruling.in_time or 0:.0%}, less than {least:.0%}"
    return f"ends {days:,.1f} days after {given.start}, later than the deadline {given.deadline} by {days - available / 24:,.1f}"


_WORDS: dict[str, Callable[[Exclusion], str]] = {
    "cannot_run": lambda ruling: ruling.impossible,
    "beyond_reason": lambda _: BEYOND_LIMITS_TEXT,
    "beyond_horizon": _horizon,
    "splits_nodes": _split,
    "misses_deadline": _deadline,
    "takes_too_long": _days,
    "over_budget": lambda ruling: f"costs {_beyond(ruling.cost_usd, ruling.constraints.max_cost_usd, ' USD')}",
    "too_much_carbon": lambda ruling: f"emits {_beyond(ruling.tco2e, ruling.constraints.max_tco2e, ' tCO2e')}",
    "outside_jurisdictions": _jurisdiction,
    "unknown_jurisdiction": lambda ruling: f"in which country {ruling.offer.provider} {ruling.offer.region} lies is not known",
    "not_available": lambda ruling: f"nobody says that it can be ordered now: its availability is {ruling.offer.availability}",
}

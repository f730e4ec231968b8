"""One option of the answer: its offer, its figures, and the reasons that rule it out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from providers.offer import Offer
from service.domain.comparison.options import Commitment, Constraints, Option, OptionEnergy, OptionOffer, OptionThroughput, OptionTime
from service.domain.prices import commitment_terms
from service.domain.procurement.commitments import COMMITMENT_REASONS
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates
from service.engine.numerics.ranges import probability_below
from service.engine.training.cost import overhead_share, paid_hours, spare_accelerators, with_overhead
from service.engine.training.estimate import date_after, effective_mfu, effective_tokens_per_s, mfu, step_time_s
from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.capacity import capacity_band, describe_capacity
from service.presets.procurement.commitments import holds_capacity, offer_faults
from service.prices.book import PriceBook
from service.prices.offer_table import Flags, Floats
from service.usecases.comparison.capacity import CapacityLimits, rented_accelerators
from service.usecases.comparison.commitments import published_beside
from service.usecases.comparison.option_table import OptionTable, deadline_hours
from service.usecases.comparison.timed_configurations import TimedConfiguration, explain_infeasible
from service.usecases.resolution.limits import BEYOND_LIMITS_TEXT
from service.usecases.resolution.price import find_country


@dataclass(frozen=True, slots=True)
class ComparedOptions:
    """The table of options with all that an option is made from: price book, constraints, configurations, owned hardware."""

    book: PriceBook
    stale: Flags
    constraints: Constraints
    table: OptionTable
    configurations: Sequence[TimedConfiguration]
    limits: CapacityLimits
    today: date
    owned: Sequence[OptionOffer] = ()
    owned_npv_usd: Sequence[float] = ()
    figures: dict[int, ConfigurationFigures] = field(default_factory=dict)

    def figures_at(self, at: int) -> ConfigurationFigures:
        """Speed and time of an option's configuration, computed once for all its options."""
        index = int(self.table.configuration[at])
        if index not in self.figures:
            self.figures[index] = _figures(self.configurations[index], float(self.table.finish_hours[at]), self.constraints)
        return self.figures[index]

    def offer(self, row: int) -> OptionOffer:
        """The offer of a row of the book; rows below 0 are owned hardware, -1 the first."""
        if row < 0:
            return self.owned[-1 - row]
        return make_offer(self.book.offers[row], stale=bool(self.stale[row]))


@dataclass(frozen=True, slots=True)
class ConfigurationFigures:
    """Speed and time shared by all options of a configuration, or the reason why it cannot run."""

    throughput: OptionThroughput | None
    time: OptionTime | None
    infeasible_reason: str = ""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An option that is ruled out, with the figures its reasons name."""

    configuration: TimedConfiguration
    offer: OptionOffer
    country: str
    in_time: float | None
    constraints: Constraints
    cost_usd: float
    finish_hours: float
    tco2e: float
    infeasible_reason: str
    quota: float
    faults: Mapping[str, str]


def make_option(rank: int, at: int, compared: ComparedOptions, *, on_front: bool) -> Option:
    """The option at a position of the table."""
    table, configuration = compared.table, compared.configurations[int(compared.table.configuration[at])]
    row, figures, ruled_out = int(table.row[at]), compared.figures_at(at), table.reasons(at)
    offer, commitment = compared.offer(row), _commitment(configuration, compared.book.offers[row]) if row >= 0 else None
    return Option(
        rank=rank,
        id=_id(configuration, offer),
        variant=configuration.workload.name,
        offer=offer,
        count=configuration.count,
        nodes=-(-configuration.count // offer.accelerators_per_instance),
        spare_accelerators=spare_accelerators(configuration.run) if configuration.run else 0,
        throughput=figures.throughput,
        time=figures.time,
        cost_usd=_cost(table, at) if figures.time and "beyond_reason" not in ruled_out else None,
        commitment=commitment,
        committed_usd=compared.owned_npv_usd[-1 - row] if row < 0 else _committed_usd(configuration, offer, commitment),
        energy=OptionEnergy(float(table.mwh[at]), float(table.tco2e[at])) if figures.time else None,
        feasible=not ruled_out,
        reasons=_reasons(at, compared, ruled_out),
        needs_contract=_contract_text(configuration, offer, compared.limits.uncontracted, int(table.row[at])),
        on_pareto_front=on_front,
    )


def _contract_text(configuration: TimedConfiguration, offer: OptionOffer, uncontracted: Floats, row: int) -> str | None:
    """How many accelerators the provider lets without a contract, where the option takes more."""
    if row < 0 or configuration.count <= uncontracted[row]:
        return None
    return describe_capacity(offer.provider, capacity_band(offer.provider, load_accelerators()[offer.accelerator]))


def _reasons(at: int, compared: ComparedOptions, ruled_out: Sequence[str]) -> tuple[str, ...]:
    """Texts of the reasons that rule the option out."""
    if not ruled_out:
        return ()
    table, index, row = compared.table, int(compared.table.configuration[at]), int(compared.table.row[at])
    figures = compared.figures_at(at)
    exclusion = Exclusion(
        configuration=compared.configurations[index],
        offer=compared.offer(row),
        country=find_country(compared.book.offers[row]) if row >= 0 else "",
        in_time=figures.time.deadline_probability if figures.time else None,
        constraints=compared.constraints,
        cost_usd=float(table.cost.p50[at]),
        finish_hours=float(table.finish_hours[at]),
        tco2e=float(table.tco2e[at]),
        infeasible_reason=figures.infeasible_reason,
        quota=float(compared.limits.quota[row]) if row >= 0 else math.inf,
        faults=_faults(compared, index, row),
    )
    return tuple(_REASON_TEXTS[reason](exclusion) for reason in ruled_out)


def _faults(compared: ComparedOptions, index: int, row: int) -> dict[str, str]:
    """Texts of what the terms of an option's commitment rule out, by reason."""
    if row < 0:
        return {}
    configuration, offer = compared.configurations[index], compared.book.offers[row]
    hours = configuration.timing.wall_clock_hours.p50 if configuration.timing else 0.0
    found = offer_faults(offer, rented_accelerators(configuration), hours, compared.constraints.start, compared.today)
    return {fault.reason: fault.text for fault in found}


def _id(configuration: TimedConfiguration, offer: OptionOffer) -> str:
    """An identifier that is unique whatever else is compared."""
    market = () if offer.market == "list" else (offer.market,)
    hardware = f"{offer.accelerators_per_instance}x{offer.accelerator}"
    terms = (offer.terms.key,) if offer.terms and offer.terms.key else ()
    parts = (offer.provider, offer.region, offer.instance_type, hardware, offer.pricing, *market, *terms, str(configuration.count))
    return ":".join((configuration.workload.name, *parts) if configuration.workload.name else parts)


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
        terms=commitment_terms(offer),
    )


def _figures(configuration: TimedConfiguration, finish_hours: float, constraints: Constraints) -> ConfigurationFigures:
    if configuration.run is None or configuration.timing is None:
        return ConfigurationFigures(None, None, explain_infeasible(configuration))
    run, timing = configuration.run, configuration.timing
    hours, reliability, choice = timing.wall_clock_hours, timing.reliable, timing.choice
    whole = with_overhead(run, hours)
    waiting_hours, available = finish_hours - whole.p50, deadline_hours(constraints)
    return ConfigurationFigures(
        OptionThroughput(
            tokens_per_s_per_accelerator=timing.speed.tokens_per_s_per_accelerator,
            mfu=mfu(run, timing),
            step_time_s=step_time_s(run, timing),
            effective_tokens_per_s=effective_tokens_per_s(run, timing),
            effective_mfu=effective_mfu(run, timing),
            inter_node_gbps=configuration.inter_node_gbps,
            bound_by=choice.steps.bound_by(0),
            parallelism=choice.layouts.named(0),
        ),
        OptionTime(
            wall_clock_hours=hours,
            accelerator_hours=timing.held_hours.scaled(configuration.count),
            goodput=reliability.goodput,
            expected_interruptions=timing.held_hours.p50 / reliability.mttf_hours,
            finish=_finish(constraints, waiting_hours, whole),
            deadline_probability=None if available is None else probability_below(available - waiting_hours, whole),
        ),
    )


def _finish(constraints: Constraints, waiting_hours: float, hours: Range) -> FinishDates | None:
    """Dates on which the run ends, where the start has a date."""
    if not constraints.dated:
        return None
    return FinishDates(*(date_after(constraints.start, waiting_hours + each) for each in (hours.p10, hours.p50, hours.p90)))


def _cost(table: OptionTable, at: int) -> Range:
    low, middle, high = (float(column[at]) for column in (table.cost.p10, table.cost.p50, table.cost.p90))
    return Range(min(low, middle), middle, max(middle, high))


def _commitment(configuration: TimedConfiguration, offer: Offer) -> Commitment | None:
    """Paid and used hours of a reservation, and what it is, where the option is one and can run."""
    term = offer.term_hours
    if not term or configuration.run is None or configuration.timing is None:
        return None
    used_hours = configuration.timing.wall_clock_hours.p50 * (1 + overhead_share(configuration.run))
    paid = paid_hours(used_hours, term)
    return Commitment(term, paid, used_hours / paid, holds_capacity(offer), published_beside(offer))


def _describe_fault(reason: str, exclusion: Exclusion) -> str:
    return exclusion.faults[reason]


def _committed_usd(configuration: TimedConfiguration, offer: OptionOffer, commitment: Commitment | None) -> float | None:
    """Price of the whole terms of a reservation, spares and all [USD]."""
    if commitment is None or configuration.run is None:
        return None
    instance = offer.accelerators_per_instance
    accelerators = -(-configuration.count // instance) * instance + spare_accelerators(configuration.run)
    return commitment.paid_hours * accelerators * offer.usd_per_accelerator_hour


def _describe_split(exclusion: Exclusion) -> str:
    configuration, instance = exclusion.configuration, exclusion.offer.accelerators_per_instance
    linked = configuration.run.cluster.linked_accelerators if configuration.run else 0
    return (
        f"{configuration.count} accelerators in instances of {instance}: the links between instances are not known, and {linked}"
        " accelerators on one fast link are modelled"
    )


def _describe_days(exclusion: Exclusion) -> str:
    return f"takes {_compare_to_limit(_run_days(exclusion), exclusion.constraints.max_wall_clock_days, ' days')}"


def _describe_horizon(exclusion: Exclusion) -> str:
    beyond = _compare_to_limit(_run_days(exclusion), exclusion.constraints.horizon_days, " days")
    return f"takes {beyond}: longer runs are only compared if a deadline or max_wall_clock_days is stated"


def _run_days(exclusion: Exclusion) -> float:
    return exclusion.configuration.timing.wall_clock_hours.p50 / 24 if exclusion.configuration.timing else math.nan


def _compare_to_limit(value: float, limit: float | None, unit: str) -> str:
    """A figure, its limit, and the difference."""
    upper = math.nan if limit is None else limit
    places = 0 if min(abs(value), abs(value - upper)) >= 100 else 1 if abs(value - upper) >= 0.05 else 4
    return f"{value:,.{places}f}{unit}, more than {upper:,.10g} by {value - upper:,.{places}f}"


def _describe_jurisdiction(exclusion: Exclusion) -> str:
    return f"{exclusion.offer.provider} {exclusion.offer.region} is in {exclusion.country}, outside the requested jurisdictions"


def _describe_deadline(exclusion: Exclusion) -> str:
    constraints, days = exclusion.constraints, exclusion.finish_hours / 24
    least, available = constraints.min_deadline_probability, deadline_hours(constraints) or math.nan
    if least is not None:
        return f"ends by the deadline {constraints.deadline} with probability {exclusion.in_time or 0:.0%}, less than {least:.0%}"
    return (
        f"ends {days:,.1f} days after {constraints.start}, later than the deadline {constraints.deadline} by {days - available / 24:,.1f}"
    )


_REASON_TEXTS: dict[str, Callable[[Exclusion], str]] = {
    "cannot_run": lambda exclusion: exclusion.infeasible_reason,
    "beyond_reason": lambda _: BEYOND_LIMITS_TEXT,
    "beyond_horizon": _describe_horizon,
    "splits_nodes": _describe_split,
    "misses_deadline": _describe_deadline,
    "takes_too_long": _describe_days,
    "over_budget": lambda exclusion: f"costs {_compare_to_limit(exclusion.cost_usd, exclusion.constraints.max_cost_usd, ' USD')}",
    "too_much_carbon": lambda exclusion: f"emits {_compare_to_limit(exclusion.tco2e, exclusion.constraints.max_tco2e, ' tCO2e')}",
    "outside_jurisdictions": _describe_jurisdiction,
    "unknown_jurisdiction": lambda exclusion: f"the country of {exclusion.offer.provider} {exclusion.offer.region} is not known",
    "over_quota": lambda exclusion: (
        f"{rented_accelerators(exclusion.configuration):,} accelerators are more than the quota of {exclusion.quota:,.0f} at"
        f" {exclusion.offer.provider} {exclusion.offer.region}"
    ),
    "needs_contract": lambda exclusion: describe_capacity(
        exclusion.offer.provider, capacity_band(exclusion.offer.provider, load_accelerators()[exclusion.offer.accelerator])
    ),
    **{reason: functools.partial(_describe_fault, reason) for reason in COMMITMENT_REASONS},
    "not_available": lambda exclusion: f"no source confirms that it can be ordered now: its availability is {exclusion.offer.availability}",
}

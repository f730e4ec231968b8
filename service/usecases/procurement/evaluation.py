"""All options of a request as rows: their cost at the medians, in the trials and under other inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from service.domain.procurement.answer import CashCurve, OptionKind
from service.engine.procurement.cash_flows import Scenarios, fleet_streams, rent_streams
from service.engine.procurement.options import (
    AS_STATED,
    MOST_MIXES,
    OwnedFleet,
    ProcurementInputs,
    RentedCapacity,
    busiest_utilisation,
    fleet_phases,
    last_month,
    make_scenarios,
    mix_npv,
    option_npvs,
    rent_npvs,
)
from service.engine.procurement.present_value import discount_factors
from service.engine.procurement.price_paths import HOURS_PER_MONTH
from service.engine.procurement.streams import Stream, cumulative_usd, line_flows
from service.engine.procurement.trials import UncertainInput, draw_inputs, probability_best, ranges_around
from service.formats.option_words import rented_words
from service.prices.offer_table import Flags, Floats
from service.usecases.procurement.rented_offers import RentChoice

if TYPE_CHECKING:
    from service.engine.procurement.options import Values


@dataclass(frozen=True)
class Row:
    """One option: an owned fleet, a rented price, or a mix with so many accelerators reserved at a price.

    `npv_usd` is its cost at the medians [USD], `draws` that of each trial, (trials,); `serves` says in which trials it can serve the use.
    """

    name: str
    kind: OptionKind
    npv_usd: float
    draws: Floats
    fleet: OwnedFleet | None = None
    choice: RentChoice | None = None
    reserved_count: float = 0.0
    critical_ratio: float = 0.0
    serves: Flags | None = None

    @property
    def words(self) -> str:
        """The option as people read it."""
        return rented_words(self.name, asdict(self.choice.offer)) if self.choice else self.name

    @property
    def owned(self) -> bool:
        """Whether it is an owned fleet."""
        return self.fleet is not None

    @property
    def eligible(self) -> bool:
        """Whether it takes part in the verdict."""
        return self.choice is None or self.choice.ruled_out is None


@dataclass(frozen=True)
class Evaluation:
    """All rows of a request, the cheapest first, with what they were computed from.

    `mixes` are those of every reserved price, also where all is reserved or nothing, which is no option of its own. `draws`: the inputs of
    the trials by their path, (trials,) each.
    """

    inputs: ProcurementInputs
    rows: tuple[Row, ...]
    mixes: tuple[Row, ...]
    on_demand: RentChoice | None
    draws: Mapping[str, Floats]

    @cached_property
    def eligible(self) -> tuple[Row, ...]:
        """Rows that take part in the verdict."""
        return tuple(row for row in self.rows if row.eligible)

    @cached_property
    def probabilities(self) -> dict[int, float]:
        """Probability that a row costs least, by the row's identity; 0 for those without."""
        draws = (row.draws if row.serves is None else np.where(row.serves, row.draws, np.inf) for row in self.eligible)
        shares = probability_best(np.array(list(draws)))
        return {id(row): float(share) for row, share in zip(self.eligible, shares, strict=True)}

    def best(self, *, owned: bool) -> Row | None:
        """The cheapest eligible owned fleet, or the cheapest eligible rent."""
        return next((row for row in self.eligible if row.owned is owned), None)

    @cached_property
    def discount(self) -> Floats:
        """Value at the start of a dollar at the end of each month."""
        return discount_factors(self.inputs.cost_of_capital, last_month(self.inputs))

    @cached_property
    def hours_by_month(self) -> Floats:
        """Accelerator-hours demanded in each month."""
        return np.asarray(make_scenarios(self.inputs).demand.mean * HOURS_PER_MONTH)

    @property
    def discounted_hours(self) -> float:
        """Accelerator-hours demanded, discounted as costs are."""
        return float(self.hours_by_month @ self.discount[1 : self.inputs.months + 1])

    def flows(self, row: Row) -> dict[str, Floats]:
        """Cash flows of a row by line, at the medians, (months + 1,) each."""
        streams = self._streams(row, make_scenarios(self.inputs), AS_STATED)
        return line_flows(streams, max(self.inputs.months, *(stream.pattern.shape[-1] - 1 for stream in streams)))

    def cash_curve(self, row: Row) -> CashCurve:
        """What a row has cost by each month, at the medians and in the trials."""
        streams = self._streams(row, make_scenarios(self.inputs), AS_STATED)
        discount = self.discount[: max(self.inputs.months + 1, *(stream.pattern.shape[-1] for stream in streams))]
        median = cumulative_usd(streams, discount)
        low, high = ranges_around(median, cumulative_usd(self._streams(row, self._trials, self.draws), discount))
        p10, p50, p90 = (tuple(float(usd) for usd in curve) for curve in (low, median, high))
        return CashCurve(row.name, p10, p50, p90)

    @cached_property
    def _trials(self) -> Scenarios:
        """What the options have in common in the trials."""
        return make_scenarios(self.inputs, self.draws)

    def _streams(self, row: Row, scenarios: Scenarios, values: Values) -> list[Stream]:
        """Payments of a row in scenarios, which the values are of."""
        if row.fleet is not None:
            return fleet_streams(fleet_phases(row.fleet, values), self.inputs.on_demand, scenarios)
        assert row.choice is not None
        terms = replace(row.choice.terms, count=row.reserved_count) if row.kind == "mix" else row.choice.terms
        return rent_streams(terms, row.choice.usd_per_hour, self.inputs.on_demand, scenarios)


def evaluate(
    inputs: ProcurementInputs,
    choices: Sequence[RentChoice],
    on_demand: RentChoice | None,
    uncertain: tuple[UncertainInput, ...],
    trials: tuple[int, int],
) -> Evaluation:
    """All options; `trials` are their number and the seed. Prices of the same terms share what does not depend on the price."""
    draws = draw_inputs(uncertain, *trials)
    mixes = _mix_rows(inputs, choices, draws)
    rows = [*_fleet_rows(inputs, draws), *_rent_rows(inputs, choices, draws), *(row for row in mixes if _is_proper(row))]
    return Evaluation(inputs, _ordered(rows), _ordered(mixes), on_demand, draws)


def _ordered(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: row.npv_usd))


def _is_proper(mix: Row) -> bool:
    """Whether it is neither all on demand nor the reservation of the fleet; of a demand that grows more may be reserved."""
    return mix.choice is not None and mix.reserved_count > 0 and mix.reserved_count != float(mix.choice.terms.count)


def rented_capacity(choices: Sequence[RentChoice]) -> tuple[RentedCapacity, ...]:
    """The cheapest eligible prices of each kind of terms: no other of them can be the best."""
    return tuple(_capacity(each) for each in _cheapest(choices))


def _capacity(choice: RentChoice) -> RentedCapacity:
    instance, most = choice.offer.accelerators_per_instance, choice.most_utilisation
    return RentedCapacity(choice.terms, choice.usd_per_hour, instance, choice.minimum, most)


def _cheapest(choices: Sequence[RentChoice]) -> list[RentChoice]:
    """Of each kind of terms the cheapest, and dearer ones for fewer accelerators: a mix may reserve too few for the first."""
    fewest: dict[tuple[object, ...], int] = {}
    found = []
    for choice in sorted(choices, key=lambda choice: choice.usd_per_hour):
        if choice.ruled_out is None and choice.minimum < fewest.get(choice.group, choice.minimum + 1):
            fewest[choice.group] = choice.minimum
            found.append(choice)
    return found


def _fleet_rows(inputs: ProcurementInputs, draws: dict[str, Floats]) -> list[Row]:
    if not inputs.fleets:
        return []
    owned = replace(inputs, rents=())
    base, drawn = option_npvs(owned)[:, 0], option_npvs(owned, draws)
    return [Row(fleet.name, "own", float(npv), each, fleet=fleet) for fleet, npv, each in zip(inputs.fleets, base, drawn, strict=True)]


def _rent_rows(inputs: ProcurementInputs, choices: Sequence[RentChoice], draws: dict[str, Floats]) -> list[Row]:
    """A row for each price; those of the same terms are proportional."""
    by_terms = {choice.group: choice.terms for choice in choices}
    base = {group: rent_npvs(terms, inputs)[:, 0] for group, terms in by_terms.items()}
    drawn = {group: rent_npvs(terms, inputs, draws) for group, terms in by_terms.items()}
    busiest = busiest_utilisation(inputs, draws)
    return [
        Row(
            choice.name,
            choice.kind,
            float(choice.usd_per_hour * base[choice.group][0] + base[choice.group][1]),
            choice.usd_per_hour * drawn[choice.group][0] + drawn[choice.group][1],
            choice=choice,
            serves=None if math.isinf(choice.most_utilisation) else busiest <= choice.most_utilisation,
        )
        for choice in choices
    ]


def _mix_rows(inputs: ProcurementInputs, choices: Sequence[RentChoice], draws: dict[str, Floats]) -> list[Row]:
    """A mix for each reserved price; its base is decided at the medians."""
    if not inputs.mixes or inputs.on_demand is None:
        return []
    scenarios, discount, rows = make_scenarios(inputs), discount_factors(inputs.cost_of_capital, last_month(inputs)), []
    for choice in [each for each in _cheapest(choices) if each.kind == "reserved"][:MOST_MIXES]:
        count, npv, ratio = (float(each) for each in mix_npv(_capacity(choice), inputs.on_demand, scenarios, discount))
        dollar, free = rent_npvs(replace(choice.terms, count=count), inputs, draws)
        name = f"{choice.name} with peaks on demand"
        rows.append(Row(name, "mix", npv, choice.usd_per_hour * dollar + free, None, choice, count, ratio))
    return rows

"""Owned hardware of a comparison against its rented options, by the sums of buying or renting a fleet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.domain.comparison.options import OWNED, BreakEvenVerdict, InputSensitivity, Option
from service.engine.procurement.break_even import BreakEven, break_even, break_even_price, owned_parts, probability_owning_wins
from service.engine.procurement.cash_flows import FleetPhase, OnDemandPrice, RentTerms
from service.engine.procurement.flips import FlipValue, Variable, find_flips
from service.engine.procurement.options import (
    COST_OF_CAPITAL,
    GROWTH,
    LIST_CHANGE,
    PRICE_FACTOR,
    UTILISATION,
    OwnedFleet,
    ProcurementInputs,
    RentedCapacity,
    option_npvs,
)
from service.engine.procurement.ownership import delivered_share
from service.engine.procurement.price_paths import HOURS_PER_MONTH
from service.engine.procurement.trials import UncertainInput, draw_inputs
from service.presets.comparison.defaults import is_plausible
from service.prices.offer_table import Floats
from service.usecases.comparison.owned_hardware import OwnedHardware
from service.usecases.procurement.uncertainty import tested_variables, uncertain_inputs

DRAWS = 4000
SEED = 20_260_101
"""The draws are the same every time: an answer can be repeated."""
NOT_TESTED = (GROWTH, PRICE_FACTOR)
DECLINE = "cloud_price_decline_per_year"


@dataclass(frozen=True, slots=True)
class _Fleet:
    """Owned hardware as a fleet with a constant demand over its lead time and its life."""

    hardware: OwnedHardware
    inputs: ProcurementInputs
    uncertain: tuple[UncertainInput, ...]
    draws: Mapping[str, Floats]
    drawn_parts: tuple[Floats, Floats]
    used_share: float


@dataclass(frozen=True, slots=True)
class Rival:
    """A rented option: its terms, and its rent for the work of an hour of an owned accelerator [USD], paid used or not if it has a term."""

    option: Option
    terms: RentTerms
    usd_per_hour: float


def compare_break_even(
    owned_hardware: Sequence[OwnedHardware], options: Sequence[Option], rivals: Sequence[Option]
) -> tuple[BreakEvenVerdict, ...]:
    """Every owned cluster among the options against every rival of the same variant, the best first."""
    return tuple(block for hardware in owned_hardware for block in _compare_with_rivals(hardware, options, rivals))


def fleet_inputs(hardware: OwnedHardware) -> ProcurementInputs:
    """Owned hardware as a fleet over its lead time and its life, in whole months, in use as it is stated to be."""
    cluster = hardware.cluster
    months = max(1, round(float(cluster.years) * 12 + float(cluster.lead_time_months)))
    return ProcurementInputs(
        count=cluster.count,
        months=months,
        utilisation=float(delivered_share(cluster)),
        peak_utilisation=0.0,
        growth_per_year=0.0,
        cost_of_capital=float(cluster.cost_of_capital),
        list_change_per_year=hardware.list_change.p50,
        tax_rate=0.0,
        plan=None,
        fleets=(OwnedFleet(cluster.name, (FleetPhase(cluster, 0, months),)),),
        rents=(),
        on_demand=None,
        mixes=False,
    )


def _compare_with_rivals(hardware: OwnedHardware, options: Sequence[Option], rivals: Sequence[Option]) -> Iterator[BreakEvenVerdict]:
    own_hours = {option.variant: paid_hours(option) for option in options if option.offer.provider == hardware.provider and option.time}
    rented = [make_rival(option, hardware, own_hours[option.variant]) for option in rivals if option.time and option.variant in own_hours]
    if not rented:
        return
    inputs = fleet_inputs(hardware)
    uncertain = uncertain_inputs(inputs, hardware.list_change)
    draws = draw_inputs(uncertain, DRAWS, SEED)
    fleet = _Fleet(hardware, inputs, uncertain, draws, owned_parts(inputs, draws), inputs.utilisation)
    bridge = _bridge_usd(rented)
    found = {terms: _against(fleet, terms, [rival for rival in rented if rival.terms == terms], bridge) for terms in _terms(rented)}
    reference = next((rival for rival in rented if rival.option.offer.pricing != "spot"), rented[0])
    for rival in rented:
        verdict = next(found[rival.terms])
        yield replace(verdict, sensitivity=_sensitivity(fleet, rival, bridge)) if rival is reference else verdict


def _terms(rented: Sequence[Rival]) -> dict[RentTerms, None]:
    return dict.fromkeys(rival.terms for rival in rented)


def _against(fleet: _Fleet, terms: RentTerms, rivals: Sequence[Rival], bridge: float | None) -> Iterator[BreakEvenVerdict]:
    """The verdicts against all rivals of the same terms. Rents are told for a used hour: idle hours of a reservation are in them."""
    rents = np.array([rival.usd_per_hour for rival in rivals])
    even: BreakEven = break_even(fleet.inputs, terms, rents, bridge)
    probabilities = probability_owning_wins(break_even_price(fleet.inputs, terms, bridge, fleet.draws, fleet.drawn_parts), rents)
    used_share = fleet.used_share if terms.term_months else 1.0
    availability = float(fleet.hardware.cluster.availability)
    for at, rival in enumerate(rivals):
        yield BreakEvenVerdict(
            on_prem=fleet.hardware.cluster.name,
            variant=rival.option.variant,
            against=rival.option.id,
            pricing=rival.option.offer.pricing,
            utilisation=_finite(even.utilisation[at] / availability),
            months=_finite(even.months[at]),
            usd_per_accelerator_hour=even.usd_per_hour / used_share,
            against_usd_per_accelerator_hour=float(rents[at]) / used_share,
            npv_saved_usd=float(even.npv_saved_usd[at]),
            probability_buying_wins=float(probabilities[at]),
            sensitivity=None,
        )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def make_rival(option: Option, hardware: OwnedHardware, own_hours: float) -> Rival:
    usd = paid_hours(option) * option.offer.usd_per_accelerator_hour / own_hours
    if option.commitment is None:
        return Rival(option, RentTerms(), usd)
    upfront = (option.offer.terms.upfront_share if option.offer.terms else None) or 0.0
    months = max(1, round(option.commitment.term_hours / HOURS_PER_MONTH))
    return Rival(option, RentTerms(months, upfront, count=float(hardware.cluster.count)), usd)


def _bridge_usd(rented: Sequence[Rival]) -> float | None:
    """Rent of the lead time: the lowest on demand; None where there is none."""
    return min((rival.usd_per_hour for rival in rented if rival.option.offer.pricing == "on_demand"), default=None)


def paid_hours(option: Option) -> float:
    """Accelerator-hours of the workload that are paid for: whole instances where it is rented, and spares; not the wait for capacity."""
    hours, instance = option.time.accelerator_hours.p50 / option.count if option.time else np.nan, option.offer.accelerators_per_instance
    accelerators = option.count if option.offer.pricing == OWNED else option.nodes * instance
    return hours * (accelerators + option.spare_accelerators)


def _sensitivity(fleet: _Fleet, rival: Rival, bridge: float | None) -> tuple[InputSensitivity, ...]:
    """Effect of each input against one rent, the largest first; inputs without a plausible flip value and a known range are left out."""
    variables = [each for each in tested_variables(fleet.inputs, fleet.inputs.fleets[0]) if each.path not in NOT_TESTED]
    rented = RentedCapacity(rival.terms, rival.usd_per_hour)
    asked = replace(fleet.inputs, rents=(rented,), on_demand=OnDemandPrice(rival.usd_per_hour if bridge is None else bridge))
    flips = {flip.path: flip for flip in find_flips(variables, np.array([0, 1]), lambda values: option_npvs(asked, values))}
    changes = _price_changes(fleet, rival, bridge)
    found = (_input(fleet, variable, flips.get(variable.path), changes.get(variable.path)) for variable in variables)
    effective = (each for each in found if each.flips_at is not None or each.low_usd_per_hour is not None)
    return tuple(sorted(effective, key=_effect_usd_per_hour, reverse=True))


def _price_changes(fleet: _Fleet, rival: Rival, bridge: float | None) -> dict[str, tuple[float, float]]:
    """Change of the break-even rent of a used hour at the 10th and the 90th percentile of each uncertain input [USD/h]."""
    ends = [(entry, value) for entry in fleet.uncertain for value in (entry.quantity.p10, entry.quantity.p90)]
    values = {
        entry.path: np.array(
            [np.clip(value, entry.low, entry.high) if other is entry else entry.quantity.p50 for other, value in ends], dtype=np.float64
        )
        for entry in fleet.uncertain
    }
    now = break_even_price(fleet.inputs, rival.terms, bridge)[0]
    used_share = fleet.used_share if rival.terms.term_months else 1.0
    changes = (break_even_price(fleet.inputs, rival.terms, bridge, values) - now) / used_share
    return {entry.path: (float(changes[2 * at]), float(changes[2 * at + 1])) for at, entry in enumerate(fleet.uncertain)}


def _input(fleet: _Fleet, variable: Variable, flip: FlipValue | None, change: tuple[float, float] | None) -> InputSensitivity:
    """One input under its name in the entry of on_prem, in its unit."""
    name, factor = variable.path.rpartition(".")[2], 1.0
    if variable.path == UTILISATION:
        factor = 1 / float(fleet.hardware.cluster.availability)
    if variable.path == LIST_CHANGE:
        name, factor = DECLINE, -1.0
        change = None if change is None else (change[1], change[0])
    name = "cost_of_capital" if variable.path == COST_OF_CAPITAL else name
    low, high = (None, None) if change is None else change
    flips_at = None if flip is None else flip.flips_at * factor
    plausible = flips_at is not None and is_plausible(name, flips_at)
    return InputSensitivity(name, variable.value * factor, flips_at if plausible else None, low, high)


def _effect_usd_per_hour(sensitivity: InputSensitivity) -> float:
    """Change of the break-even price over the input's range [USD/h]."""
    return abs(sensitivity.low_usd_per_hour or 0.0) + abs(sensitivity.high_usd_per_hour or 0.0)

"""The verdict on buying or renting: what costs least, how surely, and what would turn it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from service.domain.procurement.answer import ProcurementFlip, ProcurementVerdict, SavingGrid
from service.engine.procurement.flips import FlipValue, find_flips
from service.engine.procurement.options import UTILISATION, ProcurementInputs, option_npvs, rent_npvs
from service.engine.procurement.present_value import payback_months
from service.engine.procurement.trials import range_around
from service.presets.procurement.defaults import plausible_bounds
from service.prices.offer_table import Floats, Ints
from service.usecases.procurement.evaluation import Evaluation, Row
from service.usecases.procurement.uncertainty import tested_variables

# Of a month: less is a rounding error.
ROUNDING = 1e-6
YEARS = "demand.years"
GRID_UTILISATION = np.linspace(0.1, 1.0, 10)
GRID_PRICE_FACTORS = np.linspace(0.4, 2.0, 9)


def make_verdict(evaluation: Evaluation) -> ProcurementVerdict:
    """The verdict over the eligible options."""
    choice, probabilities = evaluation.eligible[0], evaluation.probabilities
    own, rent = evaluation.best(owned=True), evaluation.best(owned=False)
    against = rent if choice.owned else own
    flips = _flips(evaluation)
    return ProcurementVerdict(
        choice=choice.name,
        kind=choice.kind,
        against=against.name if against else None,
        npv_saved_usd=range_around(against.npv_usd - choice.npv_usd, against.draws - choice.draws) if against else None,
        probability_best=probabilities[id(choice)],
        probability_owning_best=float(np.clip(sum(probabilities[id(row)] for row in evaluation.eligible if row.owned), 0.0, 1.0)),
        break_even_utilisation=next((flip.flips_at for flip in flips if flip.path == UTILISATION), None) if own and rent else None,
        break_even_month=fleet_break_even_month(evaluation, own) if own else None,
        flips=tuple(ProcurementFlip(flip.path, flip.value, flip.flips_at) for flip in flips),
        grid=_grid(evaluation, own),
    )


def fleet_break_even_month(evaluation: Evaluation, fleet: Row) -> int | None:
    """Month by which a fleet has cost less than the cheapest rent, for good; None: never, or nothing is rented."""
    rent = evaluation.best(owned=False)
    if rent is None:
        return None
    flows = [np.sum(list(evaluation.flows(row).values()), axis=0) for row in (fleet, rent)]
    months = max(len(flow) for flow in flows)
    own_usd, rent_usd = (np.pad(flow, (0, months - len(flow))) for flow in flows)
    found = float(payback_months(own_usd, rent_usd, evaluation.inputs.cost_of_capital))
    return math.ceil(found - ROUNDING) if math.isfinite(found) else None


def _flips(evaluation: Evaluation) -> tuple[FlipValue, ...]:
    """What turns the side, owned or rented, that costs least; where there is one side alone, the kind of terms."""
    inputs, own = evaluation.inputs, evaluation.best(owned=True)
    sides = _sides(inputs)
    if len(np.unique(sides)) < 2:
        return ()
    variables = tested_variables(inputs, own.fleet if own else None)
    flips = find_flips(variables, sides, lambda values: option_npvs(inputs, values))
    years = _years_flip(inputs, sides)
    return flips if years is None else (*flips, years)


def _sides(inputs: ProcurementInputs) -> Ints:
    """Side of each row of `option_npvs`."""
    fleets, rents = len(inputs.fleets), len(inputs.rents) + len(inputs.reserved)
    if fleets and rents:
        return np.array([0] * fleets + [1] * rents)
    return np.array([*range(fleets), *range(len(inputs.rents)), *(len(inputs.rents) for _ in inputs.reserved)])


def _years_flip(inputs: ProcurementInputs, sides: Ints) -> FlipValue | None:
    """Whole years of the demand, nearest to its own, at which another side costs least.

    Only where each fleet has one generation that loses value by the year: a stated resale share is that of one age.
    """
    phases = [phase for fleet in inputs.fleets for phase in fleet.phases]
    aged = all(phase.cluster.residual_share is None for phase in phases) and len(phases) == len(inputs.fleets)
    if not aged or inputs.plan is not None:
        return None
    base, years = sides[option_npvs(inputs)[:, 0].argmin()], inputs.months / 12
    low, high = plausible_bounds("years")
    for other in sorted(range(int(low), int(high) + 1), key=lambda other: abs(other - years)):
        if sides[option_npvs(_over_years(inputs, other))[:, 0].argmin()] != base:
            return FlipValue(YEARS, years, float(other))
    return None


def _over_years(inputs: ProcurementInputs, years: int) -> ProcurementInputs:
    fleets = tuple(replace(fleet, phases=(replace(fleet.phases[0], sold_month=12 * years),)) for fleet in inputs.fleets)
    return replace(inputs, months=12 * years, fleets=fleets)


def _grid(evaluation: Evaluation, own: Row | None) -> SavingGrid | None:
    """What the best fleet saves against the cheapest price that is no mix, at other utilisations and prices."""
    rent = next((row for row in evaluation.eligible if not row.owned and row.kind != "mix"), None)
    if own is None or own.fleet is None or rent is None or rent.choice is None:
        return None
    inputs, values = evaluation.inputs, {UTILISATION: GRID_UTILISATION}
    fleet: Floats = option_npvs(replace(inputs, fleets=(own.fleet,), rents=()), values)[0]
    dollar, free = rent_npvs(rent.choice.terms, inputs, values)
    prices = rent.choice.offer.usd_per_accelerator_hour * GRID_PRICE_FACTORS
    saved = np.outer(dollar, prices * rent.choice.overhead) + free[:, np.newaxis] - fleet[:, np.newaxis]
    return SavingGrid(
        own=own.name,
        against=rent.name,
        utilisation=tuple(float(each) for each in GRID_UTILISATION.round(3)),
        usd_per_accelerator_hour=tuple(float(each) for each in prices),
        npv_saved_usd=tuple(tuple(float(each) for each in row) for row in saved),
    )

"""Which inputs are uncertain, and between which values the verdict is tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from service.domain.procurement.ownership import BOUNDS
from service.domain.quantities import Range
from service.engine.procurement.flips import Variable
from service.engine.procurement.options import (
    COST_OF_CAPITAL,
    GROWTH,
    LIST_CHANGE,
    PRICE_FACTOR,
    UTILISATION,
    OwnedFleet,
    ProcurementInputs,
)
from service.engine.procurement.trials import UncertainInput
from service.presets.comparison.defaults import plausible_inputs
from service.presets.procurement.defaults import default_list_price_change, plausible_bounds
from service.presets.procurement.ownership import input_ranges, load_input_ranges
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]
# What the demand, the company and the market state for all options.
SHARED = ("years", "utilisation", "cost_of_capital")
# List prices neither vanish nor grow without bound within a year.
LEAST_CHANGE, MOST_CHANGE = -0.9, 3.0


def resolve_list_change(request: Request, notes: AssumptionLog) -> Range:
    """The yearly change of list prices, with its range."""
    stated = request.get("list_price_change_per_year")
    if stated is None:
        usual, source = default_list_price_change()
        notes.assume("list_price_change_per_year", {"p10": usual.p10, "p50": usual.p50, "p90": usual.p90}, source)
        return usual
    return Range(**stated) if isinstance(stated, Mapping) else Range.exactly(float(stated))


def uncertain_inputs(inputs: ProcurementInputs, list_change: Range) -> tuple[UncertainInput, ...]:
    """The inputs that the trials draw, with published ranges."""
    utilisation = load_input_ranges()["utilisation"].factor.scaled(inputs.utilisation)
    return (
        UncertainInput(UTILISATION, utilisation, 0.0, BOUNDS["utilisation"].high),
        UncertainInput(LIST_CHANGE, list_change, LEAST_CHANGE, MOST_CHANGE, shift=1.0),
        *(entry for fleet in inputs.fleets for entry in _fleet_inputs(fleet)),
    )


def _fleet_inputs(fleet: OwnedFleet) -> Iterator[UncertainInput]:
    for name, quantity in input_ranges(fleet.phases[0].cluster).items():
        if name not in SHARED:
            yield UncertainInput(f"own.{fleet.name}.{name}", quantity, BOUNDS[name].low, BOUNDS[name].high)


def tested_variables(inputs: ProcurementInputs, fleet: OwnedFleet | None) -> tuple[Variable, ...]:
    """Inputs that may turn the verdict within plausible bounds: the demand's, the company's, the market's, and those of one fleet."""
    shared = [
        (UTILISATION, inputs.utilisation, "utilisation"),
        (COST_OF_CAPITAL, inputs.cost_of_capital, "cost_of_capital"),
        (LIST_CHANGE, inputs.list_change_per_year, "list_price_change_per_year"),
        (PRICE_FACTOR, 1.0, "price_factor"),
    ]
    if inputs.plan is None:
        shared.insert(1, (GROWTH, inputs.growth_per_year, "growth_per_year"))
    variables = [Variable(path, value, *_bounds(value, plausible_bounds(name))) for path, value, name in shared]
    return (*variables, *(_fleet_variables(fleet) if fleet else ()))


def _fleet_variables(fleet: OwnedFleet) -> Iterator[Variable]:
    """Inputs of a fleet that are set, and those that an owner forgets most."""
    cluster = fleet.phases[0].cluster
    for name, bounds in plausible_inputs().items():
        value = getattr(cluster, name, None)
        if name in SHARED or name == "depreciation_years" or value is None:
            continue
        if name == "price_decline_per_year" and cluster.residual_share is not None:
            continue
        yield Variable(f"own.{fleet.name}.{name}", float(value), *_bounds(float(value), bounds))


def _bounds(value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Plausible bounds, made to hold the value."""
    return min(bounds[0], value), max(bounds[1], value)

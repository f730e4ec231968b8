"""What an answer was computed with, as the answer shows it."""

from __future__ import annotations

from dataclasses import asdict

from service.domain.procurement.ownership import BOUNDS
from service.domain.procurement.resolved_inputs import PeakPrice, ResolvedFleet, ResolvedInputs, ResolvedPhase
from service.engine.procurement.cash_flows import FleetPhase
from service.usecases.procurement.evaluation import Evaluation

# What all options share, or what the engine does not read.
NOT_OF_PHASES = ("years", "utilisation", "cost_of_capital", "cloud_price_decline_per_year", "depreciation_years")
COSTS = tuple(name for name in BOUNDS if name not in NOT_OF_PHASES)


def resolved_inputs(evaluation: Evaluation) -> ResolvedInputs:
    """The inputs of an evaluation."""
    inputs, peak = evaluation.inputs, evaluation.on_demand
    overheads = (row.choice.overhead for row in evaluation.rows if row.choice is not None and row.kind == "spot")
    return ResolvedInputs(
        cost_of_capital=inputs.cost_of_capital,
        list_price_change_per_year=inputs.list_change_per_year,
        tax_rate=inputs.tax_rate,
        growth_per_year=inputs.growth_per_year,
        peak_utilisation=inputs.peak_utilisation,
        plan=None if inputs.plan is None else tuple(float(each) for each in inputs.plan),
        spot_hours_factor=next(overheads, 1.0),
        on_demand=PeakPrice(peak.name, peak.usd_per_hour, inputs.on_demand.fixed) if peak and inputs.on_demand else None,
        fleets=tuple(ResolvedFleet(fleet.name, tuple(map(_phase, fleet.phases))) for fleet in inputs.fleets),
    )


def _phase(phase: FleetPhase) -> ResolvedPhase:
    stated = asdict(phase.cluster)
    return ResolvedPhase(
        accelerator=phase.cluster.accelerator,
        count=phase.cluster.count,
        ordered_month=phase.ordered_month,
        sold_month=phase.sold_month,
        speedup=phase.speedup,
        depreciation=phase.depreciation,
        colo_includes_power=phase.cluster.colo_includes_power,
        costs={name: float(stated[name]) for name in COSTS if stated[name] is not None},
    )

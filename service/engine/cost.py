"""What a run costs, line by line. Lines are exact decimals in cents and add up to the total's p50."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from service.domain.quantity import Range
from service.domain.run import Run

CENT = Decimal("0.01")
HOURS_PER_MONTH = 730.0


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the bill. `per_hour` tells lines that grow with the run's hours from those that do not."""

    line: str
    usd: Decimal
    basis: str
    per_hour: bool


def cents(usd: float) -> Decimal:
    """The amount in whole cents, halves to even."""
    return Decimal(repr(usd)).quantize(CENT, rounding=ROUND_HALF_EVEN)


def cost_lines(run: Run, wall_clock_hours: float, energy_mwh: float, checkpoint_tb: float) -> list[CostLine]:
    """All lines of one run. Zero lines are left out, but for the first, compute."""
    rate = wall_clock_hours * run.usd_per_accelerator_hour
    compute = rate * run.cluster.count
    lines = [
        CostLine("compute", cents(compute), _compute_basis(run, wall_clock_hours), per_hour=True),
        CostLine("spares", cents(rate * _idle_accelerators(run)), _spares_basis(run), per_hour=True),
        _storage(run, wall_clock_hours, checkpoint_tb),
        _network(run),
        _personnel(run),
        _electricity(run, energy_mwh),
        *_overheads(run, compute),
    ]
    return lines[:1] + [line for line in lines[1:] if line.usd]


def total_usd(lines: list[CostLine], wall_clock_hours: Range) -> Range:
    """The lines' sum as p50; p10 and p90 move the lines that grow with hours as the hours' range moves."""
    fixed = float(sum(line.usd for line in lines if not line.per_hour))
    moving = float(sum(line.usd for line in lines if line.per_hour))
    low, high = (moving * hours / wall_clock_hours.p50 for hours in (wall_clock_hours.p10, wall_clock_hours.p90))
    exact = float(sum((line.usd for line in lines), Decimal(0)))
    return Range(min(fixed + low, exact), exact, max(fixed + high, exact))


def _idle_accelerators(run: Run) -> int:
    """Spare accelerators held beside the run, in whole nodes to the nearest, and those of the last instance that the run leaves unused."""
    count, node = run.cluster.count, run.cluster.accelerators_per_node
    spare_nodes = math.floor(run.failures.spare_share * count / node + 0.5) if count > node else 0
    unused = -(-count // run.billed_in) * run.billed_in - count
    return spare_nodes * node + unused


def _compute_basis(run: Run, hours: float) -> str:
    return f"{run.cluster.count:,} accelerators x {hours:,.1f} h x {run.usd_per_accelerator_hour:.4f} USD"


def _spares_basis(run: Run) -> str:
    units = f", and what instances of {run.billed_in} leave unused" if run.cluster.count % run.billed_in else ""
    return f"{_idle_accelerators(run)} accelerators held idle: {run.failures.spare_share:.1%} spares in whole nodes{units}"


def _storage(run: Run, hours: float, checkpoint_tb: float) -> CostLine:
    storage = run.storage
    held_tb = storage.dataset_tb + storage.logs_tb + storage.checkpoints_kept * checkpoint_tb
    months = storage.retention_months + hours / HOURS_PER_MONTH
    basis = (
        f"{held_tb:,.2f} TB ({storage.checkpoints_kept} checkpoints of {checkpoint_tb:.2f} TB) x {months:.1f} months"
        f" x {storage.usd_per_tb_month:g} USD"
    )
    return CostLine("storage", cents(held_tb * months * storage.usd_per_tb_month), basis, per_hour=False)


def _network(run: Run) -> CostLine:
    network = run.network
    basis = _times(network.egress_tb, "TB", network.usd_per_tb)
    return CostLine("network", cents(network.egress_tb * network.usd_per_tb), basis, per_hour=False)


def _overheads(run: Run, compute_usd: float) -> list[CostLine]:
    shares = (("evaluation", run.overhead.evaluation), ("debugging", run.overhead.debugging), ("reruns", run.overhead.reruns))
    return [CostLine(f"overhead: {name}", cents(share * compute_usd), f"{share:.1%} of compute", per_hour=True) for name, share in shares]


def _personnel(run: Run) -> CostLine:
    people = run.personnel
    hours = people.evaluation_hours + people.analysis_hours + people.oncall_hours
    return CostLine("personnel", cents(hours * people.usd_per_hour), _times(hours, "h", people.usd_per_hour), per_hour=False)


def _electricity(run: Run, energy_mwh: float) -> CostLine:
    usd_per_kwh = run.energy.usd_per_kwh or 0.0
    return CostLine("electricity", cents(energy_mwh * 1000 * usd_per_kwh), _times(energy_mwh * 1000, "kWh", usd_per_kwh), per_hour=True)


def _times(amount: float, unit: str, usd: float) -> str:
    return f"{amount:,.1f} {unit} x {usd:g} USD"

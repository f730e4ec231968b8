"""Cost of a run, line by line. Lines are exact decimals in cents and add up to the p50 of the total.

A reservation is paid for whole terms: the part that the run does not use is a line of its own. Work around the run (evaluation, debugging,
re-runs) takes accelerator-hours as the run does, so it uses the term too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from service.domain.quantities import Range
from service.domain.training.estimate import COMPUTE_LINE, LineBlock
from service.domain.training.run import Run
from service.engine.numerics.money import cents
from service.engine.training.reliability import checkpoints_written

HOURS_PER_MONTH = 730.0
SPARES_LINE, COMMITMENT_LINE = "spares", "unused commitment"


Line = tuple[str, "Callable[[Bill], float]", "Callable[[Bill], str]"]


@dataclass(frozen=True, slots=True)
class Bill:
    """What the lines are computed from.

    Attributes
    ----------
    run : Run
        Prices and settings.
    hours : float
        Hours in which the run holds its accelerators [h].
    energy_mwh : float
        Electricity [MWh].
    checkpoint_tb : float
        Size of one checkpoint [TB].
    checkpoint_interval_hours : float
        Time between checkpoints [h].
    waited_hours : float
        Hours in which the machine waits for the run's evaluation [h].
    """

    run: Run
    hours: float
    energy_mwh: float
    checkpoint_tb: float
    checkpoint_interval_hours: float
    waited_hours: float = 0.0

    @property
    def compute_usd(self) -> float:
        """Accelerator-hours of the run itself [USD]."""
        return self.hours * self.run.billing.counted_usd_per_hour * self.run.cluster.count


def cost_lines(run: Run, held_hours: float, energy_mwh: float, checkpoint_tb: float, checkpoint_interval_hours: float) -> list[LineBlock]:
    """All lines of one run's cost, without those of 0 but compute; without a price those that need none.

    Parameters
    ----------
    run : Run
        Prices and settings.
    held_hours : float
        Hours in which the run holds its accelerators [h].
    energy_mwh : float
        Electricity of these hours [MWh].
    checkpoint_tb : float
        Size of one checkpoint [TB].
    checkpoint_interval_hours : float
        Time between checkpoints [h].

    Returns
    -------
    list of LineBlock
        Amounts in whole cents [USD].
    """
    bill = Bill(run, held_hours, energy_mwh, checkpoint_tb, checkpoint_interval_hours)
    amounts = [(line, cents(usd(bill)), basis) for line, usd, basis in LINES]
    shown = COMPUTE_LINE if run.billing.usd_per_accelerator_hour is not None else ""
    return [LineBlock(line, usd, basis(bill)) for line, usd, basis in amounts if usd or line == shown]


def total_usd(run: Run, held_hours: Range, energy_mwh: float, checkpoint_tb: float, checkpoint_interval_hours: float) -> Range:
    """Sum of the lines at the p10, p50 and p90 of hours; without a price of those that need none.

    Parameters
    ----------
    run : Run
        Prices and settings.
    held_hours : Range
        Hours in which the run holds its accelerators [h].
    energy_mwh : float
        Electricity at the p50 of hours [MWh].
    checkpoint_tb : float
        Size of one checkpoint [TB].
    checkpoint_interval_hours : float
        Time between checkpoints [h].

    Returns
    -------
    Range
        [USD].
    """

    def total(hours: float) -> float:
        bill = Bill(run, hours, energy_mwh * hours / held_hours.p50, checkpoint_tb, checkpoint_interval_hours)
        return float(sum((cents(usd(bill)) for _, usd, _ in LINES), Decimal(0)))

    low, middle, high = (total(hours) for hours in (held_hours.p10, held_hours.p50, held_hours.p90))
    return Range(min(low, middle), middle, max(middle, high))


def unused_commitment(run: Run, held_hours: float, waited_hours: float = 0.0) -> LineBlock | None:
    """The line of a reservation's unused rest; None where nothing is unused.

    Parameters
    ----------
    run : Run
        Prices and settings.
    held_hours : float
        Hours in which the run holds its machine [h].
    waited_hours : float
        Further hours in which the machine waits for the run's evaluation [h].

    Returns
    -------
    LineBlock or None
        In whole cents [USD].
    """
    bill = Bill(run, held_hours, 0.0, 0.0, 0.0, waited_hours)
    usd = cents(_commitment_usd(bill))
    return LineBlock(COMMITMENT_LINE, usd, _commitment_basis(bill)) if usd else None


def paid_hours(used_hours: float, term_hours: float) -> float:
    """Hours of an accelerator that are paid for: whole terms, or those used where there is no term.

    Parameters
    ----------
    used_hours : float
        Hours in use [h].
    term_hours : float
        Length of a reservation's term [h]; 0: none.

    Returns
    -------
    float
        [h].
    """
    return math.ceil(used_hours / term_hours) * term_hours if term_hours else used_hours


def spare_accelerators(run: Run) -> int:
    """Spare accelerators held to replace failed ones, in whole nodes to the nearest [1]."""
    count, node = run.cluster.count, run.cluster.accelerators_per_node
    spare_nodes = math.floor(run.failures.spare_share * count / node + 0.5) if count > node else 0
    return spare_nodes * node


def idle_accelerators(run: Run) -> int:
    """Spares, and the accelerators of the last instance that the run does not use [1]."""
    count = run.cluster.count
    return spare_accelerators(run) + -(-count // run.billing.instance_size) * run.billing.instance_size - count


def overhead_share(run: Run) -> float:
    """Evaluation, debugging and re-runs, over the run's own compute [1]."""
    return run.overhead.evaluation + run.overhead.debugging + run.overhead.reruns


def with_overhead(run: Run, hours: Range) -> Range:
    """Hours of the run and of the work around it, which takes the same machine after it [h]."""
    return hours.scaled(1 + overhead_share(run))


def _compute_basis(bill: Bill) -> str:
    run = bill.run
    return f"{run.cluster.count:,} accelerators x {bill.hours:,.1f} h x {run.billing.counted_usd_per_hour:.4f} USD"


def _spares_usd(bill: Bill) -> float:
    return bill.hours * bill.run.billing.counted_usd_per_hour * idle_accelerators(bill.run)


def _spares_basis(bill: Bill) -> str:
    run = bill.run
    units = f", and what instances of {run.billing.instance_size} leave unused" if run.cluster.count % run.billing.instance_size else ""
    return f"{idle_accelerators(run)} accelerators held idle: {run.failures.spare_share:.1%} spares in whole nodes{units}"


def _kept(bill: Bill) -> int:
    """Stored checkpoints: the requested number, and no more than the run writes."""
    most = bill.run.storage.checkpoints_kept
    return min(most, int(checkpoints_written(bill.hours, bill.checkpoint_interval_hours))) if most else 0


def _held_tb(bill: Bill, kept: int) -> float:
    return bill.run.storage.dataset_tb + bill.run.storage.logs_tb + kept * bill.checkpoint_tb


def _months(bill: Bill) -> float:
    return bill.run.storage.retention_months + bill.hours / HOURS_PER_MONTH


def _storage_usd(bill: Bill) -> float:
    return _held_tb(bill, _kept(bill)) * _months(bill) * bill.run.storage.usd_per_tb_month


def _storage_basis(bill: Bill) -> str:
    storage, kept = bill.run.storage, _kept(bill)
    all_there_are = ", all that the run writes" if kept < storage.checkpoints_kept else ""
    return (
        f"{_held_tb(bill, kept):,.2f} TB ({kept} checkpoints of {bill.checkpoint_tb:.2f} TB{all_there_are}) x {_months(bill):.1f} months"
        f" x {storage.usd_per_tb_month:g} USD"
    )


def _network_usd(bill: Bill) -> float:
    return bill.run.network.egress_tb * bill.run.network.usd_per_tb


def _network_basis(bill: Bill) -> str:
    return _times(bill.run.network.egress_tb, "TB", bill.run.network.usd_per_tb)


def _staff_hours(bill: Bill) -> float:
    people = bill.run.personnel
    return people.evaluation_hours + people.analysis_hours + people.oncall_hours


def _personnel_usd(bill: Bill) -> float:
    return _staff_hours(bill) * bill.run.personnel.usd_per_hour


def _personnel_basis(bill: Bill) -> str:
    return _times(_staff_hours(bill), "h", bill.run.personnel.usd_per_hour)


def _electricity_usd(bill: Bill) -> float:
    return bill.energy_mwh * 1000 * (bill.run.energy.usd_per_kwh or 0.0)


def _electricity_basis(bill: Bill) -> str:
    return _times(bill.energy_mwh * 1000, "kWh", bill.run.energy.usd_per_kwh or 0.0)


def _overhead(name: str) -> Line:
    return (
        f"overhead: {name}",
        lambda bill: getattr(bill.run.overhead, name) * bill.compute_usd,
        lambda bill: f"{getattr(bill.run.overhead, name):.1%} of compute",
    )


def _used_hours(bill: Bill) -> float:
    """Hours of the machine that the run and the work around it take [h]."""
    return bill.hours * (1 + overhead_share(bill.run)) + bill.waited_hours


def _commitment_usd(bill: Bill) -> float:
    """The unused rest of a reservation's last term [USD]."""
    run = bill.run
    if not run.billing.term_hours:
        return 0.0
    used = _used_hours(bill)
    paid = paid_hours(used, run.billing.term_hours)
    unused = run.cluster.count * (paid - used) + idle_accelerators(run) * (paid - bill.hours)
    return unused * run.billing.counted_usd_per_hour


def _commitment_basis(bill: Bill) -> str:
    term, used = bill.run.billing.term_hours, _used_hours(bill)
    return f"{paid_hours(used, term):,.0f} h are paid in terms of {term:,.0f} h, of which the run and the work around it use {used:,.0f} h"


def _times(amount: float, unit: str, usd: float) -> str:
    return f"{amount:,.1f} {unit} x {usd:g} USD"


# What each line costs [USD], and the words for it, which only lines that are shown need.
LINES: tuple[Line, ...] = (
    (COMPUTE_LINE, lambda bill: bill.compute_usd, _compute_basis),
    (SPARES_LINE, _spares_usd, _spares_basis),
    ("storage", _storage_usd, _storage_basis),
    ("network", _network_usd, _network_basis),
    ("personnel", _personnel_usd, _personnel_basis),
    ("electricity", _electricity_usd, _electricity_basis),
    _overhead("evaluation"),
    _overhead("debugging"),
    _overhead("reruns"),
    (COMMITMENT_LINE, _commitment_usd, _commitment_basis),
)

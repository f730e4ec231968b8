"""What is compared and what comes of it: the names are the contract's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates

Objective = Literal["cost", "time", "carbon"]
OBJECTIVES: tuple[Objective, ...] = ("cost", "time", "carbon")


@dataclass(frozen=True, slots=True)
class Constraints:
    """What an option must keep to; None where it need not. `countries` are ISO 3166-1 alpha-3.

    `dated`: the start is the caller's, or today under a deadline of theirs. A deadline is kept by the p50, or with
    `min_deadline_probability`. `horizon_days` stands where neither a deadline nor a number of days is stated.
    """

    start: date
    dated: bool
    deadline: date | None
    min_deadline_probability: float | None
    max_cost_usd: float | None
    max_wall_clock_days: float | None
    max_tco2e: float | None
    countries: frozenset[str] | None
    require_available: bool
    horizon_days: float | None


@dataclass(frozen=True, slots=True)
class OptionOffer:
    """What is rented, or owned: then `pricing` is owned and nothing was observed."""

    provider: str
    region: str
    instance_type: str
    accelerator: str
    accelerators_per_instance: int
    pricing: str
    usd_per_accelerator_hour: float
    market: str
    availability: str
    available_since: datetime | None
    observed_at: datetime | None
    source: str
    stale: bool


@dataclass(frozen=True, slots=True)
class OptionThroughput:
    """How fast the option's machine is; `inter_node_gbps` is what joins its nodes, None where it is one node."""

    tokens_per_s_per_accelerator: Range
    mfu: Range
    step_time_s: float
    sustained_share: float
    inter_node_gbps: float | None
    bound_by: str
    parallelism: dict[str, int | str]


@dataclass(frozen=True, slots=True)
class OptionTime:
    """How long it takes; `finish` where there is a start, `deadline_probability` where there is a deadline."""

    wall_clock_hours: Range
    accelerator_hours: Range
    goodput: float
    expected_interruptions: float
    finish: FinishDates | None
    deadline_probability: float | None


@dataclass(frozen=True, slots=True)
class OptionEnergy:
    """Energy at the meter and carbon."""

    mwh: float
    tco2e: float


@dataclass(frozen=True, slots=True)
class Commitment:
    """A reservation's bill: what is paid in whole terms, and which share of it the run and the work around it use."""

    term_hours: float
    paid_hours: float
    used_share: float


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run the workload. Figures are None where it cannot run. `spare_accelerators` are paid for beside the `nodes`."""

    rank: int
    id: str
    variant: str | None
    offer: OptionOffer
    count: int
    nodes: int
    spare_accelerators: int
    throughput: OptionThroughput | None
    time: OptionTime | None
    cost_usd: Range | None
    commitment: Commitment | None
    energy: OptionEnergy | None
    feasible: bool
    reasons: tuple[str, ...]
    on_pareto_front: bool


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """The best option of a variant, its p50 figures, how many of its options are feasible, and a reason where none is."""

    name: str
    best: str | None
    cost_usd: float | None
    wall_clock_hours: float | None
    feasible: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class InputSensitivity:
    """What one input of owned hardware does to the verdict.

    `flips_at` is the value at which it flips, None where no plausible one does; the others are by how much the input's 10th and 90th
    percentile change the rent at which both cost the same.
    """

    input: str
    value: float
    flips_at: float | None
    low_usd_per_hour: float | None
    high_usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class BreakEvenVerdict:
    """Owned hardware against one rented option, both for the same work.

    `usd_per_accelerator_hour` is the rent at which both cost the same, `against_usd_per_accelerator_hour` what the option asks for the
    work of one owned accelerator-hour, of a reservation as if all of its term were used. None: never. `sensitivity` stands against the
    best option on demand or reserved, against spot only where there is nothing else.
    """

    on_prem: str
    variant: str | None
    against: str
    pricing: str
    utilisation: float | None
    months: float | None
    usd_per_accelerator_hour: float
    against_usd_per_accelerator_hour: float
    npv_saved_usd: float
    probability_buying_wins: float
    sensitivity: tuple[InputSensitivity, ...] | None


@dataclass(frozen=True, slots=True)
class OwnedClusterCost:
    """What owned hardware costs, by year and by three kinds of hour: a calendar hour of an accelerator and of a node, a used hour."""

    name: str
    accelerator: str
    count: int
    capex_usd: float
    residual_usd: float
    annual_usd: float
    lines_usd_per_year: dict[str, float]
    npv_usd: float
    usd_per_accelerator_hour: float
    usd_per_node_hour: float
    usd_per_delivered_accelerator_hour: float
    fixed_usd_per_accelerator_hour: float
    variable_usd_per_delivered_accelerator_hour: float
    bridge_usd: float | None

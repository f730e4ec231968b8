"""From a request to what its trials are made of: the same runs, lines, gates and network that the estimate and the plan are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from service.context import AppContext
from service.domain.programs.program import Program
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Assumption, Range
from service.domain.scenarios import ProgramModel, Regimes, RiskModel, RunModel, Targets, TierModel
from service.domain.training.run import Run
from service.engine.numerics.ranges import inverse, product
from service.engine.programs.budget import relative_duration, run_equivalents
from service.engine.scenarios.run import DIRECT_FIELDS
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import HOURS_PER_DAY
from service.engine.scheduling.critical_path import deadline_hours, forward_pass, median_durations, network_end
from service.engine.training.energy import energy_mwh
from service.engine.training.estimate import checkpoint_tb
from service.engine.training.reliability import checkpoint_interval_hours
from service.engine.training.run_time import RunTime, plan_error, predict_run_time
from service.presets.training.utilisation import plan_calibration
from service.usecases.programs import lines
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.network import activity_name
from service.usecases.programs.resolve import ResolvedProgram, resolve_program
from service.usecases.programs.runs import PROGRAM_SECTIONS, EstimatedRun, collect_run_warnings
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.resolve import resolve as resolve_run
from service.usecases.scenarios.registry import Shape
from service.usecases.training import estimate as single

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrialModel:
    """A model, when it starts (None: not stated), what it is held against, what is planned, and what was said on the way."""

    model: RunModel | ProgramModel
    start: date | None
    targets: Targets
    planned: Mapping[str, float]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


def build_trial_model(context: AppContext, shape: Shape, base: Given, own: Sequence[str], regimes: Mapping[str, Regimes]) -> TrialModel:
    """The model of a base request. `own`: paths of fields that trials have values of their own for; `regimes`: of prices, by path.

    Raises DomainErrors, with pointers into the base request.
    """
    return _of_run(context, base, own, regimes) if shape == "estimate" else _of_program(context, base, own, regimes)


def has_trial_values(shape: Shape, base: Given, path: str) -> bool:
    """Whether trials can have values of their own for a field: others change the estimate itself, or the plan."""
    if shape == "estimate":
        return path in DIRECT_FIELDS
    parts = path.split(".")
    match parts:
        case ["defaults", *rest]:
            return ".".join(rest) in DIRECT_FIELDS and not _of_the_whole(base, rest[0])
        case ["tiers", _, "runs", _, "estimate", *rest]:
            return ".".join(rest) in DIRECT_FIELDS and not _of_the_whole(base, rest[0])
        case ["tiers", _, "gate", "pass_probability"] | ["risks", _, "probability"]:
            return True
        case ["overhead", _]:
            return True
    return False


def count_runs(shape: Shape, base: Given) -> int:
    """How many runs a request has."""
    return 1 if shape == "estimate" else sum(len(tier["runs"]) for tier in base["tiers"])


def _of_run(context: AppContext, base: Given, own: Sequence[str], regimes: Mapping[str, Regimes]) -> TrialModel:
    notes = AssumptionLog()
    found = single.estimate(context, base)
    run, timed = _timed(context, base, notes)
    schedule = run.schedule
    deadline = None
    if schedule.start is not None and schedule.deadline is not None:
        deadline = ((schedule.deadline - schedule.start).days + 1) * HOURS_PER_DAY
    made = build_run_model("run", run, timed, RunRepetition())
    return TrialModel(
        replace(made, field_paths={path: path for path in own}, regimes=regimes.get("price.usd_per_accelerator_hour")),
        schedule.start,
        Targets(deadline),
        _planned(
            found.estimate.cost.total_usd.p50,
            found.estimate.time.accelerator_hours.p50,
            schedule.queue_hours + found.estimate.time.wall_clock_hours.p50,
        ),
        found.assumptions,
        found.warnings,
    )


def build_run_model(name: str, run: Run, timed: RunTime, repetition: RunRepetition, queue_hours: Range | None = None) -> RunModel:
    """A run as trials take it: what the estimate multiplies into one range stands apart here."""
    rate = timed.speed.tokens_per_s_per_accelerator
    work = run_equivalents(repetition)
    return RunModel(
        name=name,
        run=run,
        useful_hours=run.data.trained_tokens / (rate.p50 * timed.run_over_step_speed * run.cluster.count) / 3600,
        slowdown=product(1.0, (inverse(rate), plan_error(run, plan_calibration()))),
        queue_hours=Range.exactly(run.schedule.queue_hours) if queue_hours is None else queue_hours,
        interval_hours=checkpoint_interval_hours(run),
        checkpoint_tb=checkpoint_tb(run),
        energy_mwh_per_hour=energy_mwh(run.cluster.count, run.energy),
        run_equivalents=work,
        concurrency=work / relative_duration(repetition),
    )


def _timed(context: AppContext, request: Given, notes: AssumptionLog) -> tuple[Run, RunTime]:
    resolved = resolve_run(context, request, notes)
    return resolved.run, predict_run_time(resolved.run, resolved.utilisation, plan_calibration())


def _of_program(context: AppContext, base: Given, own: Sequence[str], regimes: Mapping[str, Regimes]) -> TrialModel:
    notes = AssumptionLog()
    found = resolve_program(EstimateCache(context), base, context.clock().date(), notes)
    network, deadline, plan = found.network, base.get("deadline"), found.plan
    net = order_network(network)
    planned_hours = float(network_end(forward_pass(net, median_durations(net)))[0])
    fixed, per_month = _accruing(base, found, planned_hours)
    model = ProgramModel(
        tiers=tuple(_tiers(context, base, found, own, regimes)),
        network=network,
        correlation=found.program.correlation,
        reserve_share=found.program.reserves.evaluation_and_debugging,
        accruing_usd=fixed,
        accruing_usd_per_month=per_month,
        risks=tuple(_risks(found.program, own)),
    )
    return TrialModel(
        model,
        network.start,
        Targets(None if deadline is None else deadline_hours(network.start, deadline), plan.total_usd.p50),
        _planned(plan.total_usd.p50, sum(tier.use.accelerator_hours.p50 for tier in plan.tiers), planned_hours),
        notes.assumptions,
        (*plan.warnings, *notes.warnings, *collect_run_warnings(found.runs.values())),
    )


def _planned(usd: float, accelerator_hours: float, hours: float) -> dict[str, float]:
    return {"cost_usd": usd, "completed_cost_usd": usd, "accelerator_hours": accelerator_hours, "wall_clock_hours": hours}


def _tiers(
    context: AppContext, base: Given, found: ResolvedProgram, own: Sequence[str], regimes: Mapping[str, Regimes]
) -> Iterator[TierModel]:
    program, blocks = found.program, found.plan.tiers
    whole = float(sum((tier.cost_usd for tier in blocks), Decimal(0)))
    weights = [float(tier.cost_usd + tier.overhead_usd) for tier in blocks]
    for at, (tier, block) in enumerate(zip(program.tiers, blocks, strict=True)):
        over = [one for one in program.overheads if one.tier in {None, tier.tier}]
        varied = tuple(f"overhead.{one.line}" for one in over if f"overhead.{one.line}" in own)
        gate = f"tiers.{at}.gate.pass_probability"
        yield TierModel(
            runs=tuple(_tier_runs(context, base, found, at, own, regimes)),
            activities=tuple(activity_name(tier.tier, run.name) for run in tier.runs),
            overhead_share=sum(one.share or 0.0 for one in over if f"overhead.{one.line}" not in varied),
            overhead_usd=sum(
                float(one.usd) * (1.0 if one.tier is not None or not whole else float(block.cost_usd) / whole)
                for one in over
                if one.usd is not None
            ),
            other_lines_usd=float(sum((line.usd for line in program.other_lines if line.tier == tier.tier), Decimal(0))),
            accruing_share=weights[at] / sum(weights) if sum(weights) else 1 / len(weights),
            pass_probability=1.0 if tier.gate is None else tier.gate.pass_probability,
            gate_field_path=gate if gate in own else None,
            overhead_field_paths=varied,
        )


def _tier_runs(
    context: AppContext, base: Given, found: ResolvedProgram, at: int, own: Sequence[str], regimes: Mapping[str, Regimes]
) -> Iterator[RunModel]:
    tier, schedule = found.program.tiers[at], base.get("schedule", {})
    queue = schedule["queue_days"].scaled(HOURS_PER_DAY) if "queue_days" in schedule else None
    for place, planned in enumerate(tier.runs):
        one: EstimatedRun = found.runs[tier.tier, planned.name]
        run, timed = _timed(context, one.request, AssumptionLog())
        paths = dict(_paths(base, at, place, own))
        if queue is not None:
            paths.pop("schedule.queue_hours", None)
        price = dict(_paths(base, at, place, tuple(regimes))).get("price.usd_per_accelerator_hour")
        made = build_run_model(planned.name, run, timed, planned.repetition, queue)
        yield replace(made, field_paths=paths, regimes=None if price is None else regimes[price])


def _paths(base: Given, at: int, place: int, own: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of the paths stand for which field of a run: its own before the defaults', and these where it states nothing."""
    stated = base["tiers"][at]["runs"][place]["estimate"]
    prefix = f"tiers.{at}.runs.{place}.estimate."
    for field in DIRECT_FIELDS:
        section, name = field.split(".")
        if prefix + field in own:
            yield field, prefix + field
        elif f"defaults.{field}" in own and stated.get(section, {}).get(name) is None:
            yield field, f"defaults.{field}"


def _of_the_whole(base: Given, section: str) -> bool:
    """Whether the program states a section as a whole, which is then left out of its runs."""
    return section in PROGRAM_SECTIONS and section in base


def _accruing(base: Given, found: ResolvedProgram, planned_hours: float) -> tuple[float, float]:
    """USD of lines that belong to no tier: the part that does not depend on how long the program takes, and what a month more adds."""
    months, runs = lines.hours_to_months(planned_hours), tuple(found.runs.values())

    def usd(lasting: float) -> float:
        made = lines.build_other_lines(base, runs, found.program.tiers, lasting, AssumptionLog())
        return float(sum((line.usd for line in made if line.tier is None), Decimal(0)))

    planned = usd(months)
    # A hundred months, so that whole cents do not show in what one of them adds.
    per_month = (usd(months + 100) - planned) / 100
    return planned - per_month * months, per_month


def _risks(program: Program, own: Sequence[str]) -> Iterator[RiskModel]:
    names = [tier.tier for tier in program.tiers]
    for at, risk in enumerate(program.risks):
        path = f"risks.{at}.probability"
        tier = None if risk.tier is None else names.index(risk.tier)
        yield RiskModel(risk.probability, risk.cost_share_of_tier, float(risk.cost_usd), tier, path if path in own else None)

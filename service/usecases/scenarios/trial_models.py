"""Trial models of a request, from the same runs, cost lines, gates and network as the estimate and the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from service.context import AppContext
from service.domain.programs.program import MAX_REPEATS_ON_FAIL, Program
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Assumption, Range
from service.domain.scenarios import (
    DrawnOverhead,
    ProgramModel,
    Regimes,
    RepeatModel,
    RiskModel,
    RunModel,
    Targets,
    TierModel,
)
from service.engine.numerics.money import sum_usd
from service.engine.programs.gates import tier_repeats
from service.engine.programs.risk_register import correlation_matrix, mixing_matrix
from service.engine.programs.risks import planned_risk
from service.engine.scenarios.program import OrderedProgram, order_program
from service.engine.scenarios.run import DIRECT_FIELDS
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import HOURS_PER_DAY, finish_day
from service.engine.scheduling.critical_path import deadline_hours, forward_pass, median_durations, network_end
from service.engine.scheduling.repetition import repeat_name
from service.engine.training.cost import HOURS_PER_MONTH, with_overhead
from service.usecases.evaluation.plan import elapsed_hours
from service.usecases.programs import lines
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.network import decision_name, gate_name
from service.usecases.programs.pivots import gate_pivots, pivots_ahead
from service.usecases.programs.resolve import ResolvedProgram, resolve_program
from service.usecases.programs.runs import PROGRAM_SECTIONS, collect_run_warnings
from service.usecases.programs.timed_work import activity_name, overhead_name, plan_timed_work, risk_name
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.resolve import resolve
from service.usecases.scenarios.registry import Body, Shape
from service.usecases.scenarios.run_models import PRICE_FIELD, build_run_model, with_trial_values
from service.usecases.training.estimate import estimate_run


@dataclass(frozen=True, slots=True)
class TrialModel:
    """A model with its start (None: not stated), targets, planned values, assumptions and warnings."""

    model: RunModel | OrderedProgram
    start: date | None
    targets: Targets
    planned: Mapping[str, float]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


def build_trial_model(
    context: AppContext, shape: Shape, base: Body, trial_paths: Sequence[str], regimes: Mapping[str, Regimes]
) -> TrialModel:
    """The model of a base request. `trial_paths`: fields with a value per trial; `regimes`: of prices, by path.

    Raises DomainErrors, with pointers into the base request.
    """
    build = _run_trial_model if shape == "estimate" else _program_trial_model
    return build(context, base, trial_paths, regimes)


def has_trial_values(shape: Shape, base: Body, path: str) -> bool:
    """Whether a field can have a value per trial; other fields change the estimate or the plan itself."""
    if shape == "estimate":
        return path in DIRECT_FIELDS
    match path.split("."):
        case ["defaults", *field] | ["tiers", _, "runs", _, "estimate", *field]:
            # A section that the program states for all its runs replaces their own.
            return ".".join(field) in DIRECT_FIELDS and not (field[0] in PROGRAM_SECTIONS and field[0] in base)
        case ["tiers", _, "gate", "pass_probability"] | ["risks", _, "probability"] | ["overhead", _]:
            return True
    return False


def count_runs(shape: Shape, base: Body) -> int:
    """Number of runs in a request."""
    return 1 if shape == "estimate" else sum(len(tier["runs"]) for tier in base["tiers"])


def _run_trial_model(context: AppContext, base: Body, trial_paths: Sequence[str], regimes: Mapping[str, Regimes]) -> TrialModel:
    notes = AssumptionLog()
    resolved = resolve(context, base, notes)
    answer = estimate_run(resolved, notes)
    schedule, time = resolved.run.schedule, answer.estimate.time
    deadline = None
    if schedule.start is not None and schedule.deadline is not None:
        deadline = ((schedule.deadline - schedule.start).days + 1) * HOURS_PER_DAY
    model = build_run_model("run", resolved, RunRepetition(), answer)
    paths = {path: path for path in trial_paths}
    return TrialModel(
        with_trial_values(model, resolved, paths, regimes.get(PRICE_FIELD)),
        schedule.start,
        Targets(deadline),
        _planned(
            answer.estimate.cost.total_usd,
            time.accelerator_hours.p50,
            schedule.queue_hours + with_overhead(resolved.run, time.wall_clock_hours).p50 + elapsed_hours(answer.evaluation).p50,
        ),
        answer.assumptions,
        answer.warnings,
    )


def _program_trial_model(context: AppContext, base: Body, trial_paths: Sequence[str], regimes: Mapping[str, Regimes]) -> TrialModel:
    notes = AssumptionLog()
    estimates = EstimateCache(context)
    resolved = resolve_program(estimates, base, context.clock().date(), notes)
    network, deadline, plan = resolved.network, base.get("deadline"), resolved.plan
    net = order_network(network)
    times = forward_pass(net, median_durations(net))
    planned_hours = float(network_end(times)[0])
    finishes = {activity.name: float(hours) for activity, hours in zip(net.activities, times.finishes[:, 0], strict=True)}
    fixed_usd, usd_per_month = _accruing_usd(resolved, planned_hours)
    model = ProgramModel(
        tiers=tuple(_with_pivots(estimates, resolved, finishes, _tier_models(context, resolved, trial_paths, regimes))),
        network=network,
        correlation=resolved.program.correlation,
        reserve_share=resolved.program.reserves.evaluation_and_debugging,
        accruing_usd=fixed_usd,
        accruing_usd_per_month=usd_per_month,
        risks=tuple(_risk_models(resolved.program, trial_paths)),
        risk_mixing=_risk_mixing(resolved.program),
        repeats=tuple(_repeat_models(resolved)),
    )
    return TrialModel(
        order_program(model),
        network.start,
        Targets(None if deadline is None else deadline_hours(network.start, deadline), plan.total_usd.p50 if plan.priced else None),
        _planned(plan.total_usd if plan.priced else None, sum(tier.use.accelerator_hours.p50 for tier in plan.tiers), planned_hours),
        notes.assumptions,
        (*plan.warnings, *notes.warnings, *collect_run_warnings(resolved.runs)),
    )


def _with_pivots(
    estimates: EstimateCache, resolved: ResolvedProgram, finishes: Mapping[str, float], models: Iterator[TierModel]
) -> Iterator[TierModel]:
    """The tiers with the expected cost of the pivots of their gates, which begin where these are decided by medians [h]."""
    tiers, start = resolved.program.tiers, resolved.network.start
    days = {tier.tier: finish_day(start, finishes[decision_name(tier)]) for tier in tiers if tier.gate is not None}
    pivots = pivots_ahead(gate_pivots(estimates, resolved, days))
    for tier, model in zip(tiers, models, strict=True):
        yield replace(model, pivot_usd=float(pivots[tier.tier].expected_usd)) if tier.tier in pivots else model


def _planned(usd: Range | None, accelerator_hours: float, hours: float) -> dict[str, float]:
    """Planned values; without a price those of no cost, and the trials count none."""
    costs = {} if usd is None else {"cost_usd": usd.p50, "completed_cost_usd": usd.p50}
    return costs | {"accelerator_hours": accelerator_hours, "wall_clock_hours": hours}


def _repeat_models(resolved: ResolvedProgram) -> Iterator[RepeatModel]:
    """The activities that take place where a gate is failed at first."""
    places = {repeat_name(gate_name(tier.tier), 1): index for index, tier in enumerate(resolved.program.tiers)}
    for activity in resolved.network.activities:
        if activity.repeats:
            number = next(number for number in range(1, MAX_REPEATS_ON_FAIL + 1) if activity.name == repeat_name(activity.repeats, number))
            yield RepeatModel(activity.name, activity.repeats, places[activity.occurs_with[0][0]], number)


def _tier_models(
    context: AppContext, resolved: ResolvedProgram, trial_paths: Sequence[str], regimes: Mapping[str, Regimes]
) -> Iterator[TierModel]:
    program, blocks = resolved.program, resolved.plan.tiers
    runs_usd = float(sum_usd(tier.cost_usd for tier in blocks))
    weights = [float(tier.loaded_usd) for tier in blocks]
    repeats = tier_repeats(program, blocks)
    for index, (tier, block, again) in enumerate(zip(program.tiers, blocks, repeats, strict=True)):
        overheads = [overhead for overhead in program.overheads if overhead.tier in {None, tier.tier}]
        drawn = tuple(path for overhead in overheads if (path := f"overhead.{overhead.line}") in trial_paths)
        gate = f"tiers.{index}.gate.pass_probability"
        yield TierModel(
            runs=tuple(_tier_run_models(context, resolved, index, trial_paths, regimes)),
            activities=tuple(activity_name(tier.tier, run.name) for run in tier.runs),
            overhead_share=sum(overhead.share or 0.0 for overhead in overheads if f"overhead.{overhead.line}" not in drawn),
            overhead_usd=sum(
                float(overhead.usd) * (1.0 if overhead.tier is not None or not runs_usd else float(block.cost_usd) / runs_usd)
                for overhead in overheads
                if overhead.usd is not None
            ),
            other_lines_usd=float(sum_usd(line.usd for line in program.other_lines if line.tier == tier.tier)),
            accruing_share=weights[index] / sum(weights) if sum(weights) else 1 / len(weights),
            pass_probability=1.0 if tier.gate is None else tier.gate.pass_probability,
            repeats=len(again.probabilities),
            repeat_usd=float(again.once_usd - block.loaded_usd) if again.probabilities else 0.0,
            gate_field_path=gate if gate in trial_paths else None,
            overhead_field_paths=drawn,
            drawn_overheads=tuple(
                DrawnOverhead(overhead_name(tier.tier, overhead.line), overhead.share, path)
                for overhead in overheads
                if overhead.share and overhead.blocking and (path := f"overhead.{overhead.line}") in drawn
            ),
        )


def _tier_run_models(
    context: AppContext, resolved: ResolvedProgram, tier_index: int, trial_paths: Sequence[str], regimes: Mapping[str, Regimes]
) -> Iterator[RunModel]:
    base, tier = resolved.request, resolved.program.tiers[tier_index]
    schedule = base.get("schedule", {})
    queue = schedule["queue_days"].scaled(HOURS_PER_DAY) if "queue_days" in schedule else None
    for run_index, planned in enumerate(tier.runs):
        estimated = resolved.runs[tier.tier, planned.name]
        run = resolve(context, estimated.request, AssumptionLog())
        paths = dict(_field_paths(base, tier_index, run_index, trial_paths))
        if queue is not None:
            paths.pop("schedule.queue_hours", None)
        price = dict(_field_paths(base, tier_index, run_index, tuple(regimes))).get(PRICE_FIELD)
        model = build_run_model(planned.name, run, planned.repetition, estimated.answer, queue)
        yield with_trial_values(model, run, paths, None if price is None else regimes[price])


def _field_paths(base: Body, tier_index: int, run_index: int, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of the paths apply to which field of a run: its own first, and the defaults' where the run states nothing."""
    stated = base["tiers"][tier_index]["runs"][run_index]["estimate"]
    prefix = f"tiers.{tier_index}.runs.{run_index}.estimate."
    for field in DIRECT_FIELDS:
        section, name = field.split(".")
        if prefix + field in paths:
            yield field, prefix + field
        elif f"defaults.{field}" in paths and stated.get(section, {}).get(name) is None:
            yield field, f"defaults.{field}"


def _accruing_usd(resolved: ResolvedProgram, planned_hours: float) -> tuple[float, float]:
    """Cost of lines of no tier [USD]: the part that does not depend on the program's duration, and the cost of a further month."""
    months, runs = planned_hours / HOURS_PER_MONTH, tuple(resolved.runs.values())

    def usd(duration_months: float) -> float:
        built = lines.build_other_lines(resolved.request, runs, resolved.program, duration_months, AssumptionLog())
        return float(sum_usd(line.usd for line in built if line.tier is None))

    planned = usd(months)
    # The difference over a hundred months hides the rounding to whole cents.
    per_month = (usd(months + 100) - planned) / 100
    return planned - per_month * months, per_month


def _risk_mixing(program: Program) -> tuple[tuple[float, ...], ...]:
    """Rows of the matrix that correlates the risks' scores; empty where they do not depend on each other."""
    if not program.risk_correlation:
        return ()
    return tuple(map(tuple, mixing_matrix(correlation_matrix([risk.name for risk in program.risks], program.risk_correlation)).tolist()))


def _risk_models(program: Program, trial_paths: Sequence[str]) -> Iterator[RiskModel]:
    names = [tier.tier for tier in program.tiers]
    timed = {work.name for work in plan_timed_work(program)}
    for index, risk in enumerate(map(planned_risk, program.risks)):
        path, activity = f"risks.{index}.probability", risk_name(risk.name)
        yield RiskModel(
            probability=risk.probability,
            cost_share=risk.cost_share_of_tier,
            usd=float(risk.cost_usd),
            tier=None if risk.tier is None else names.index(risk.tier),
            field_path=path if path in trial_paths else None,
            activity=activity if activity in timed else None,
        )

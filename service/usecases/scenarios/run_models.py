"""Trial models of runs: of one layout, or of phases that follow each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.domain.programs.evaluation import EvaluationPlan
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Range
from service.domain.scenarios import EvaluationLoad, Regimes, RunModel, SharedTerm
from service.domain.training.run import Billing, Cluster, Run
from service.domain.training.utilisation import Utilisation
from service.engine.numerics.money import sum_usd
from service.engine.numerics.ranges import inverse, product
from service.engine.programs.budget import relative_duration, run_equivalents
from service.engine.training.energy import energy_mwh
from service.engine.training.estimate import checkpoint_tb
from service.engine.training.phases import bill_phases
from service.engine.training.reliability import checkpoint_interval_hours
from service.engine.training.run_time import loss_spread, predict_run_time
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.utilisation import plan_calibration
from service.usecases.evaluation.plan import elapsed_hours, evaluation_lines, suites_usd, waited_hours
from service.usecases.resolution.resolve import ResolvedRun
from service.usecases.training.estimate import EstimateAnswer

PRICE_FIELD = "price.usd_per_accelerator_hour"


def build_run_model(
    name: str, resolved: ResolvedRun, repetition: RunRepetition, answer: EstimateAnswer, queue_hours: Range | None = None
) -> RunModel:
    """A run as trials simulate it; ranges that the estimate multiplies into one are separate here."""
    equivalents = run_equivalents(repetition)
    concurrency = equivalents / relative_duration(repetition)
    if resolved.phases:
        model = _phased_model(name, resolved, equivalents, concurrency)
    else:
        model = _layout_model(name, resolved.run, resolved.utilisation)
    return replace(
        model,
        queue_hours=Range.exactly(resolved.run.schedule.queue_hours) if queue_hours is None else queue_hours,
        run_equivalents=equivalents,
        concurrency=concurrency,
        evaluation=_evaluation_load(answer.evaluation),
    )


def with_trial_values(model: RunModel, resolved: ResolvedRun, paths: Mapping[str, str], regimes: Regimes | None) -> RunModel:
    """The model with values of some fields per trial, and price regimes; a phase with another accelerator or price keeps its price."""
    drawn = replace(model, field_paths=paths, regimes=regimes)
    if not model.phases:
        return drawn
    others = {field: path for field, path in paths.items() if field != PRICE_FIELD}
    priced = [_has_the_runs_price(resolved.request, place) for place in range(len(model.phases))]
    phases = (
        replace(phase, field_paths=paths if shared else others, regimes=regimes if shared else None)
        for phase, shared in zip(model.phases, priced, strict=True)
    )
    return replace(drawn, phases=tuple(phases), field_paths=paths if priced[_longest(resolved)] else others)


def _layout_model(name: str, run: Run, utilisation: Utilisation) -> RunModel:
    """A run, or a phase of one, in one layout, made once."""
    calibration = plan_calibration()
    run_time = predict_run_time(run, utilisation, calibration)
    rate = run_time.speed.tokens_per_s_per_accelerator
    return RunModel(
        name=name,
        run=run,
        useful_hours=run.data.trained_tokens / (rate.p50 * run_time.run_over_step_speed * run.cluster.count) / 3600,
        slowdown=product(1.0, (inverse(rate), loss_spread(run, calibration))),
        queue_hours=Range.exactly(0.0),
        interval_hours=checkpoint_interval_hours(run),
        checkpoint_tb=checkpoint_tb(run),
        energy_mwh_per_hour=energy_mwh(run.cluster.count, run.energy),
    )


def _phased_model(name: str, resolved: ResolvedRun, equivalents: float, concurrency: float) -> RunModel:
    """A run in phases, billed as its estimate is; one in a single phase is that phase."""
    runs = [phase.resolved.run for phase in resolved.phases]
    billed = zip(bill_phases(runs), resolved.phases, strict=True)
    phases = [_layout_model(name, run, phase.resolved.utilisation) for run, phase in billed]
    if len(phases) == 1:
        return phases[0]
    tokens = resolved.run.data.effective_tokens
    repeated = (replace(phase, run_equivalents=equivalents, concurrency=concurrency, planned_tokens=tokens) for phase in phases)
    return replace(
        phases[_longest(resolved)],
        run=resolved.run,
        useful_hours=sum(phase.useful_hours for phase in phases),
        phases=tuple(repeated),
        shared_terms=_shared_terms(runs),
    )


def _longest(resolved: ResolvedRun) -> int:
    """Place of the phase with most tokens, whose machine the run has."""
    return max(range(len(resolved.phases)), key=lambda place: resolved.phases[place].resolved.run.data.trained_tokens)


def _shared_terms(runs: Sequence[Run]) -> tuple[SharedTerm, ...]:
    """Machines whose terms are paid for all phases on them."""
    places: dict[tuple[Cluster, Billing], list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run.billing.term_hours:
            places[run.cluster, run.billing].append(place)
    return tuple(SharedTerm(runs[members[0]], tuple(members)) for members in places.values())


def _has_the_runs_price(request: Mapping[str, Any], place: int) -> bool:
    """Whether a phase has the price of the whole run: neither one of its own nor another accelerator."""
    phase = request["training"]["phases"][place]
    names = [each["hardware"]["accelerator"] for each in (request, phase) if "hardware" in each]
    return "price" not in phase and len({find_accelerator(name).accelerator.name for name in names}) == 1


def _evaluation_load(plan: EvaluationPlan | None) -> EvaluationLoad:
    """A run's own evaluation at its medians."""
    if plan is None:
        return EvaluationLoad()
    usd = float(sum_usd(line.usd for line in evaluation_lines(plan)))
    return EvaluationLoad(waited_hours(plan).p50, elapsed_hours(plan).p50, plan.accelerator_hours, usd - suites_usd(plan).p50)

"""Evaluation of a program or a run: its suites on the runs' own machines, checks, sign-offs, and what the suites can detect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from service.domain.errors import InvalidRequest
from service.domain.programs.evaluation import CheckCost, EvaluationPlan, SignOff, SuiteCost
from service.domain.programs.outcome import Outcome
from service.domain.programs.program import OtherLine
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.engine.numerics.money import CENT, ZERO, cents, sum_usd
from service.engine.numerics.ranges import comonotone_sum
from service.engine.programs.budget import completed_runs, run_equivalents
from service.engine.scheduling.calendar import HOURS_PER_DAY
from service.engine.training.parameters import total_parameters
from service.presets.defaults import default
from service.usecases.evaluation.detection import Significance, detect
from service.usecases.evaluation.evaluated_runs import EvaluatedRun, EvaluatedTier
from service.usecases.evaluation.suites import (
    Request,
    Suite,
    SuiteOnRun,
    resolve_suites,
    resolve_surroundings,
    time_suites,
)
from service.usecases.programs.defaults import take_or_default
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.limits import MAX_ACCELERATOR_HOURS

WEIGHT_BYTES = 2
"""Weights are evaluated and kept in 16 bit."""


@dataclass(frozen=True, slots=True)
class _Load:
    """A suite on one planned run: evaluations over all its repeats, and what one of them takes."""

    evaluations: float
    one: SuiteOnRun
    usd_per_accelerator_hour: float | None


def plan_evaluation(
    request: Request, tiers: Sequence[EvaluatedTier], outcome: Outcome | None, notes: AssumptionLog
) -> EvaluationPlan | None:
    """The evaluation of these tiers, or of one run of no tier; None where the request states no suite and no check.

    Raises InvalidRequest and DoesNotFit, with pointers into the request.
    """
    section = request.get("evaluation", {})
    if not (section.get("suites") or section.get("checks")):
        return None
    suites = resolve_suites(request, tiers, notes)
    asked = Significance(*(take_or_default(section, f"evaluation.{name}", notes) for name in ("power", "significance")))
    notes.warn(*_too_long(suites, tiers))
    loads = _loads(request, suites, tiers, notes)
    costs = tuple(_suite_cost(suite, tier, loads[tier.tier, suite.index]) for tier in tiers for suite in suites if suite.judges(tier.tier))
    people = section.get("checks") or any(suite.sign_off for suite in suites)
    people_usd = _price(request, "personnel.usd_per_hour", notes) if people else 0.0
    checks, sign_offs = tuple(_checks(section, people_usd)), tuple(_sign_offs(section, suites, tiers, people_usd, notes))
    checkpoint_tb = sum(_checkpoint_tb(request, tier, suites) for tier in tiers)
    checkpoints_usd = _checkpoints_usd(request, checkpoint_tb, notes) if checkpoint_tb else ZERO
    amounts = [cost.usd for cost in costs]
    around = sum_usd([*(check.usd for check in checks), *(sign_off.usd for sign_off in sign_offs), checkpoints_usd])
    return EvaluationPlan(
        suites=costs,
        checks=checks,
        sign_offs=sign_offs,
        detection=tuple(detect(request, suites, tiers, outcome, asked, notes)),
        checkpoint_tb=checkpoint_tb,
        checkpoints_usd=checkpoints_usd,
        accelerator_hours=sum(cost.accelerator_hours.p50 for cost in costs),
        usd=None if None in amounts else around + sum_usd(usd for usd in amounts if usd is not None),
        power=asked.power,
        significance=asked.significance,
    )


def evaluation_lines(plan: EvaluationPlan | None) -> Iterator[OtherLine]:
    """Lines of the cost: a suite in each of its tiers, checks, sign-offs and stored weights; none of a price that is not known."""
    if plan is None:
        return
    tiers_of = [cost.suite for cost in plan.suites]
    for cost in plan.suites:
        named = f"evaluation: {cost.suite}" + (f", {cost.tier}" if tiers_of.count(cost.suite) > 1 else "")
        basis = f"{cost.evaluations:,.0f} x {cost.samples:,} samples, {cost.accelerator_hours.p50:,.1f} accelerator-hours"
        yield OtherLine(named, cost.usd or ZERO, basis, cost.tier)
    for check in plan.checks:
        yield OtherLine(f"evaluation: {check.name}", check.usd, f"{check.kind}, {check.basis}", check.tier)
    for sign_off in plan.sign_offs:
        named = f"evaluation: sign-off by {sign_off.name}" + (f", {sign_off.tier}" if sign_off.tier else "")
        yield OtherLine(named, sign_off.usd, f"{sign_off.days:g} working days", sign_off.tier)
    yield OtherLine("storage: evaluated checkpoints", plan.checkpoints_usd, f"{plan.checkpoint_tb:,.2f} TB of weights")


def waited_hours(plan: EvaluationPlan | None) -> Range:
    """Time in which the machine waits for suites, one after another [h]."""
    return comonotone_sum(cost.hours for cost in plan.suites) if plan is not None else Range.exactly(0.0)


def elapsed_hours(plan: EvaluationPlan | None) -> Range:
    """Time from the end of a run to that of its evaluation: the machine waits for suites, then people approve side by side [h]."""
    days = max((sign_off.days for sign_off in plan.sign_offs), default=0.0) if plan is not None else 0.0
    return comonotone_sum((waited_hours(plan), Range.exactly(days * HOURS_PER_DAY)))


def suites_usd(plan: EvaluationPlan) -> Range:
    """Cost of all suites whose price is known, spread as their hours are [USD]."""
    return comonotone_sum(cost.accelerator_hours.scaled(float(cost.usd) / cost.accelerator_hours.p50) for cost in plan.suites if cost.usd)


def _loads(
    request: Request, suites: Sequence[Suite], tiers: Sequence[EvaluatedTier], notes: AssumptionLog
) -> Mapping[tuple[TierName | None, int], list[_Load]]:
    """Each suite on the runs of each tier that it judges, by tier and the suite's place."""
    around = resolve_surroundings(request["evaluation"], notes) if suites else None
    if around is None:
        return {}
    judged = [(tier.tier, suite, run) for tier in tiers for suite in suites if suite.judges(tier.tier) for run in tier.runs]
    timed = time_suites([(suite, run) for _, suite, run in judged], around)
    loads: dict[tuple[TierName | None, int], list[_Load]] = {}
    for (tier, suite, run), one in zip(judged, timed, strict=True):
        evaluations = _evaluations(suite, run, _kept(request, run))
        loads.setdefault((tier, suite.index), []).append(_Load(evaluations, one, run.trained.billing.usd_per_accelerator_hour))
    return loads


def _suite_cost(suite: Suite, tier: EvaluatedTier, loads: Sequence[_Load]) -> SuiteCost:
    """A suite on all runs of a tier. A tier's runs share its machine, as its overheads do."""
    hours = [load.one.hours.scaled(load.evaluations * load.one.accelerators) for load in loads]
    whole = Range(*(sum(getattr(one, name) for one in hours) for name in ("p10", "p50", "p90")))
    if whole.p90 > MAX_ACCELERATOR_HOURS:
        raise InvalidRequest(
            f"the suite would take {whole.p90:.3g} accelerator-hours, more than {MAX_ACCELERATOR_HOURS:g}: check its samples and how often",
            f"/evaluation/suites/{suite.index}",
        )
    machine = max(run.occupied for run in tier.runs)
    evaluations = sum(load.evaluations for load in loads)
    return SuiteCost(
        suite=suite.name,
        tier=tier.tier,
        generated=suite.generated,
        blocking=suite.blocking,
        evaluations=evaluations,
        samples=suite.samples,
        tokens=evaluations * suite.samples * suite.sample_tokens,
        flops=sum(load.evaluations * load.one.flops for load in loads),
        accelerator_hours=whole,
        hours=whole.scaled(1 / machine) if suite.blocking else Range.exactly(0.0),
        usd=_usd(loads),
        index=suite.index,
    )


def _usd(loads: Sequence[_Load]) -> Decimal | None:
    """Cost of a suite's accelerator-hours at each run's price; None where one is not known."""
    amounts = []
    for load in loads:
        if load.usd_per_accelerator_hour is None:
            return None
        amounts.append(cents(load.evaluations * load.one.hours.p50 * load.one.accelerators * load.usd_per_accelerator_hour))
    return sum_usd(amounts)


def _too_long(suites: Sequence[Suite], tiers: Sequence[EvaluatedTier]) -> Iterator[str]:
    """A warning of each suite whose samples are longer than what a run is trained on."""
    for suite in suites:
        lengths = {run.name: run.trained.training.seq_len for tier in tiers if suite.judges(tier.tier) for run in tier.runs}
        shortest = min(lengths, key=lambda name: lengths[name])
        if suite.sample_tokens > lengths[shortest]:
            yield (
                f"a sample of {suite.name} has {suite.sample_tokens:,} tokens, {shortest} is trained on sequences of"
                f" {lengths[shortest]:,}: what it does beyond them is not learnt there"
            )


def _evaluations(suite: Suite, run: EvaluatedRun, kept: float) -> float:
    """Checkpoints of a run's repeats that are evaluated: by its tokens, those kept, or once for each run that reaches its end."""
    if suite.every_tokens is not None:
        return math.floor(run.found.tokens.trained / suite.every_tokens) * run_equivalents(run.repetition)
    return kept * run_equivalents(run.repetition) if suite.at == "checkpoints" else float(completed_runs(run.repetition))


def _kept(request: Request, run: EvaluatedRun) -> float:
    """Checkpoints of one run that are stored anyway."""
    section = request.get("storage")
    if section is None:
        return float(run.trained.storage.checkpoints_kept)
    every: float | None = section.get("checkpoint_every_hours")
    if every:
        return max(1.0, float(math.floor(run.found.time.wall_clock_hours.p50 / every)))
    return float(section.get("checkpoints_kept", default("storage.checkpoints_kept").value))


def _checkpoint_tb(request: Request, tier: EvaluatedTier, suites: Sequence[Suite]) -> float:
    """Weights of a tier's checkpoints that are evaluated and not stored anyway [TB]; a checkpoint for several suites is kept once."""
    total = 0.0
    for run in tier.runs:
        frequent = [suite.every_tokens for suite in suites if suite.judges(tier.tier) and suite.every_tokens is not None]
        evaluated = max((math.floor(run.found.tokens.trained / tokens) for tokens in frequent), default=0)
        beyond = max(0.0, evaluated - _kept(request, run)) * run_equivalents(run.repetition)
        total += beyond * total_parameters(run.trained.model) * WEIGHT_BYTES / 1e12
    return total


def _checkpoints_usd(request: Request, checkpoint_tb: float, notes: AssumptionLog) -> Decimal:
    months = take_or_default(request["evaluation"], "evaluation.checkpoint_months", notes)
    return cents(checkpoint_tb * months * _price(request, "storage.usd_per_tb_month", notes))


def _price(request: Request, path: str, notes: AssumptionLog) -> float:
    """A price of people or storage; where the program has that section, its own line records what is assumed."""
    section, _, name = path.partition(".")
    known = request.get(section)
    return float(notes.choose({}, path) if known is None else known.get(name, default(path).value))


def _checks(section: Request, usd_per_hour: float) -> Iterator[CheckCost]:
    """Holdouts and contamination checks with their cost. Raises InvalidRequest for one without any."""
    for index, check in enumerate(section.get("checks", ())):
        usd, hours = check.get("usd", ZERO), check.get("hours", 0.0)
        if not usd and not hours:
            raise InvalidRequest("a check has a cost: state usd, hours of people, or both", f"/evaluation/checks/{index}")
        parts = [f"{usd:,.2f} USD"] * bool(usd) + [f"{hours:,.1f} h x {usd_per_hour:g} USD"] * bool(hours)
        yield CheckCost(
            check["name"], check["kind"], check.get("tier"), usd.quantize(CENT) + cents(hours * usd_per_hour), " and ".join(parts)
        )


def _sign_offs(
    section: Request, suites: Sequence[Suite], tiers: Sequence[EvaluatedTier], usd_per_hour: float, notes: AssumptionLog
) -> Iterator[SignOff]:
    """Each person's days at each tier, over all suites. Raises InvalidRequest where the tier's gate has days for it too."""
    if not any(suite.sign_off for suite in suites):
        return
    usd_per_day = usd_per_hour * take_or_default(section, "evaluation.sign_off_hours_per_day", notes)
    for tier in tiers:
        days: dict[str, float] = {}
        for suite in suites:
            if suite.sign_off is None or not suite.judges(tier.tier):
                continue
            if tier.has_sign_off_days:
                raise InvalidRequest(
                    f"the gate of {tier.tier} states sign_off_days: state those or who signs off, which are the same days",
                    f"/evaluation/suites/{suite.index}/sign_off",
                )
            name, own = suite.sign_off
            days[name] = days.get(name, 0.0) + own
        for name, own in days.items():
            yield SignOff(tier.tier, name, own, cents(own * usd_per_day))

"""Checks of a program: contradictions, with pointers into the request, and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from service.domain.errors import InvalidRequest
from service.domain.programs.program import GateCriteria, Program
from service.domain.programs.runs import Rung
from service.domain.programs.tiers import TIERS


def check_program(program: Program) -> None:
    """Check that a program does not contradict itself.

    Raises
    ------
    InvalidRequest
        For tiers without runs or out of order, equal names, shares out of 0 to 1, tiers that are not planned, and an outcome without
        improvement; with a pointer into the request.
    """
    _check_tiers(program)
    planned = [tier.tier for tier in program.tiers]
    for pointer, share in _shares(program):
        if share is not None and not 0 <= share <= 1:
            raise InvalidRequest(f"{share:.0%} is not a valid share: state a number from 0 to 1", pointer)
    for pointer, tier in _named_tiers(program):
        if tier is not None and tier not in planned:
            raise InvalidRequest(f"no tier {tier!r} is planned; there are {', '.join(planned)}", pointer)
    if program.reserves.confidence < 0.5 or program.reserves.confidence == 1:
        raise InvalidRequest("the confidence of a contingency is a probability from 0.5 to below 1", "/reserves/confidence")
    _check_outcome(program)


def plan_warnings(program: Program, contingency: Decimal) -> tuple[str, ...]:
    """Warnings about what a defensible plan has and this one lacks; `contingency` in USD."""
    texts = []
    if program.midpoint_gate is None:
        texts.append("no midpoint_gate is stated: agree now which results justify spending the second half of the budget")
    if program.midpoint_gate is not None and program.midpoint_gate.continue_if == GateCriteria():
        texts.append("midpoint_gate.continue_if is empty: agree now which results justify spending the second half of the budget")
    texts += [f"tier {tier.tier} has no gate, so its results decide nothing: state one" for tier in program.tiers if tier.gate is None]
    if not program.risks:
        texts.append("no risks are listed, so the contingency covers only the spread of the estimates: state risks")
    if not contingency and all(run.priced for tier in program.tiers for run in tier.runs):
        held = "" if program.reserves.evaluation_and_debugging else "no reserve and "
        texts.append(f"{held}no contingency: any surprise exceeds the budget; state risks or reserves")
    if not program.overheads:
        texts.append("no overhead is stated: real programs also pay for sweeps, data iteration, evaluation, debugging and re-runs")
    if sum(overhead.share or 0.0 for overhead in program.overheads if overhead.tier is None) > 1:
        texts.append("overheads add up to more than the cost of the runs: check their shares")
    return (*texts, *_absences(program))


def _absences(program: Program) -> Iterator[str]:
    """What the plan says nothing of, a sentence each."""
    work = [*(overhead.line for overhead in program.overheads), *(line.line for line in program.other_lines)]
    of_runs = [line.line for tier in program.tiers for run in tier.runs for line in run.lines]
    if program.outcome is None:
        yield "no outcome is stated, so costs cannot be compared with a benefit: state the metric, its target and what a point is worth"
    if program.evaluation is None and not any("evaluation" in name for name in (*work, *of_runs)):
        yield "no evaluation is planned, so gates have no results: state evaluation, overhead.evaluation or outcome.evaluation_usd"
    if not any(name.startswith("personnel") for name in work):
        yield "no people are in the budget: state personnel"


def _check_tiers(program: Program) -> None:
    if not program.tiers:
        raise InvalidRequest("a program needs at least one tier", "/tiers")
    for index, (before, tier) in enumerate(pairwise(program.tiers), start=1):
        if TIERS.index(tier.tier) <= TIERS.index(before.tier):
            raise InvalidRequest(
                f"{tier.tier} cannot follow {before.tier}: each tier is stated once, in the order {', '.join(TIERS)}",
                f"/tiers/{index}/tier",
            )
    for index, tier in enumerate(program.tiers):
        if not tier.runs:
            raise InvalidRequest(f"tier {tier.tier} has no runs", f"/tiers/{index}/runs")
        names = [run.name for run in tier.runs]
        for run_index, run in enumerate(tier.runs):
            if names.index(run.name) < run_index:
                raise InvalidRequest(f"two runs of tier {tier.tier} are called {run.name!r}", f"/tiers/{index}/runs/{run_index}/name")
            _check_rungs(run.repetition.rungs, f"/tiers/{index}/runs/{run_index}/early_stopping")


def _check_rungs(rungs: tuple[Rung, ...], pointer: str) -> None:
    if any(later.at <= earlier.at for earlier, later in pairwise(rungs)):
        raise InvalidRequest("state the rungs in order, with rising shares of the run", pointer)
    if any(not (0 < rung.at < 1 and 0 < rung.keep <= 1) for rung in rungs):
        raise InvalidRequest("a rung needs `at` between 0 and 1 and `keep` above 0 and at most 1", pointer)


def _check_outcome(program: Program) -> None:
    outcome = program.outcome
    if outcome is None:
        return
    improved = outcome.target != outcome.baseline or any(metric.target != metric.baseline for metric in outcome.metrics)
    if not improved and outcome.saving is None:
        raise InvalidRequest(f"target and baseline are both {outcome.target:g}, so nothing improves or is saved", "/outcome/target")
    if outcome.value_curve and outcome.value_usd_per_point is not None:
        raise InvalidRequest("state either value_usd_per_point or value_curve", "/outcome/value_curve")
    for index, (one, other) in enumerate(pairwise(outcome.value_curve), start=1):
        if other.value <= one.value:
            raise InvalidRequest(
                "the values of the metric must rise from point to point of the curve", f"/outcome/value_curve/{index}/value"
            )
    names = [outcome.metric, *(metric.metric for metric in outcome.metrics)]
    for index, name in enumerate(names[1:]):
        if name in names[: index + 1]:
            raise InvalidRequest(f"two metrics are called {name!r}", f"/outcome/metrics/{index}/metric")


def _shares(program: Program) -> Iterator[tuple[str, float | None]]:
    for index, tier in enumerate(program.tiers):
        yield f"/tiers/{index}/gate/pass_probability", None if tier.gate is None else tier.gate.pass_probability
    for overhead in program.overheads:
        yield f"/overhead/{overhead.line}", overhead.share
    for index, risk in enumerate(program.risks):
        yield f"/risks/{index}/probability", risk.probability
        yield f"/risks/{index}/cost_share_of_tier", risk.cost_share_of_tier
        if risk.mitigation is not None:
            yield f"/risks/{index}/mitigation/probability_after", risk.mitigation.probability_after
            yield f"/risks/{index}/mitigation/cost_share_after", risk.mitigation.cost_share_after
    yield "/reserves/evaluation_and_debugging", program.reserves.evaluation_and_debugging
    yield "/reserves/contingency", program.reserves.contingency
    yield "/midpoint_gate/at_spend_share", None if program.midpoint_gate is None else program.midpoint_gate.at_spend_share


def _named_tiers(program: Program) -> Iterator[tuple[str, str | None]]:
    for index, risk in enumerate(program.risks):
        yield f"/risks/{index}/tier", risk.tier
    for overhead in program.overheads:
        yield f"/overhead/{overhead.line}/tier", overhead.tier
    for line in program.other_lines:
        yield f"/{line.line}/tier", line.tier

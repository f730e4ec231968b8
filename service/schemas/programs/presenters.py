"""A program's answer as its JSON object: the same over HTTP, on the command line and in documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.programs.branches import MIDPOINT
from service.domain.programs.plan import GateBlock, MidpointBlock, RunBlock, TierBlock
from service.schemas.programs.unpriced import without_budget
from service.serialization import to_builtins
from service.usecases.programs.plan import ProgramAnswer
from service.usecases.training.estimate import EstimateAnswer

Body = dict[str, Any]


def present_program(answer: ProgramAnswer) -> Body:
    """The answer as JSON; without its budget where the price of a run is not known."""
    body = _present(answer)
    return body if answer.plan.priced else without_budget(body)


def _present(answer: ProgramAnswer) -> Body:
    plan = answer.plan
    # Equal runs share their estimate, which is converted once.
    estimates = _present_estimates({id(estimate): estimate for estimate in answer.estimates.values()})
    return {
        **_fields(answer, "summary"),
        "name": plan.name,
        "outcome": _outcome(answer),
        **_fields(plan, "total_usd", "without_contingency_usd", "expected_usd", "completion_probability", "envelope"),
        "tiers": [_tier(tier, answer, estimates) for tier in plan.tiers],
        **_fields(plan, "overhead", "reserves", "lines"),
        **_fields(plan, "risks", "endings"),
        "midpoint_gate": None if plan.midpoint is None else _midpoint(plan.midpoint, answer),
        **_fields(answer, "schedule", "burn_plan", "months", "reporting", "risk_register", "tokens", "evaluation", "spend_choices"),
        **(_fields(answer, "serving") if answer.serving is not None else {}),
        **_fields(answer, "price_snapshot", "lessons", "engine_version", "assumptions", "warnings"),
    }


def _fields(block: object, *names: str) -> Body:
    return {name: to_builtins(getattr(block, name)) for name in names}


def _present_estimates(answers: Mapping[int, EstimateAnswer]) -> dict[int, Body]:
    """The estimates by identity; an assumption that several of them share is converted once."""
    assumptions = {id(assumption): assumption for answer in answers.values() for assumption in answer.assumptions}
    bodies = {key: to_builtins(assumption) for key, assumption in assumptions.items()}
    estimates = {key: to_builtins(replace(answer, assumptions=())) for key, answer in answers.items()}
    for key, answer in answers.items():
        estimates[key]["assumptions"] = [bodies[id(assumption)] for assumption in answer.assumptions]
    return estimates


def _outcome(answer: ProgramAnswer) -> Body | None:
    if answer.plan.outcome is None:
        return None
    evaluation_usd = answer.request["outcome"].get("evaluation_usd")
    return {**to_builtins(answer.plan.outcome), "evaluation_usd": to_builtins(evaluation_usd)}


def _tier(tier: TierBlock, answer: ProgramAnswer, estimates: Mapping[int, Body]) -> Body:
    return {
        **_fields(tier, "tier", "cost_usd", "overhead_usd"),
        **to_builtins(tier.use),
        "runs": [_run(block, estimates[id(answer.estimates[tier.tier, block.run.name])]) for block in tier.runs],
        "failures": to_builtins(tier.failures),
        "gate": None if tier.gate is None else _gate(tier.gate, tier.tier, answer),
    }


def _gate(gate: GateBlock, tier: str, answer: ProgramAnswer) -> Body:
    return {**to_builtins(gate), **to_builtins(answer.gates[tier]), "decision": to_builtins(answer.decisions.get(tier))}


def _midpoint(midpoint: MidpointBlock, answer: ProgramAnswer) -> Body:
    decision = to_builtins(answer.decisions.get(MIDPOINT))
    return {**to_builtins(midpoint.gate), **to_builtins(answer.midpoint), "decision": decision}


def _run(block: RunBlock, estimate: Body) -> Body:
    return {
        "name": block.run.name,
        **_fields(block.run.repetition, "repeat", "runs"),
        "run_equivalents": block.run_equivalents,
        "concurrency": block.run.repetition.concurrency,
        "cost_usd": to_builtins(block.cost_usd),
        **to_builtins(block.use),
        "estimate": estimate,
    }

"""A program's answer as its JSON object, the same over HTTP, on the command line and for exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.programs.program import GateBlock, RunBlock, TierBlock
from service.serialization import plain
from service.usecases.programs.plan import ProgramAnswer, ProgramComparison
from service.usecases.training.estimate import EstimateAnswer

Body = dict[str, Any]
RANGE_FIELDS = ("usd", "accelerator_hours", "wall_clock_hours", "flops", "tokens", "tco2e")
TOTAL_FIELDS = ("total_usd", "expected_usd", "completion_probability", "envelope")
LINE_FIELDS = ("overhead", "reserves", "lines")
ANSWER_FIELDS = (
    "schedule",
    "burn_plan",
    "reporting",
    "tokens",
    "spend_choices",
    "price_snapshot",
    "engine_version",
    "assumptions",
    "warnings",
)


def present_program(answer: ProgramAnswer) -> Body:
    """The whole answer."""
    plan = answer.plan
    # Runs that ask the same have the same estimate: it is written once.
    written = _present_estimates({id(one): one for one in answer.estimates.values()})
    return {
        "name": plan.name,
        "outcome": _outcome(answer),
        **{name: plain(getattr(plan, name)) for name in TOTAL_FIELDS},
        "tiers": [_tier(tier, answer, written) for tier in plan.tiers],
        **{name: plain(getattr(plan, name)) for name in LINE_FIELDS},
        "risks": [_risk(plain(block)) for block in plan.risks],
        "endings": plain(plan.endings),
        "midpoint_gate": _midpoint(answer),
        **{name: plain(getattr(answer, name)) for name in ANSWER_FIELDS},
    }


def present_difference(found: ProgramComparison) -> Body:
    """Why the later program costs more."""
    body: Body = plain(found)
    causes = body.pop("difference")
    return {**causes, **body}


def _present_estimates(answers: Mapping[int, EstimateAnswer]) -> dict[int, Body]:
    """The estimates; what several of them assume alike is written once as well."""
    assumed = {id(one): one for answer in answers.values() for one in answer.assumptions}
    said = {key: plain(one) for key, one in assumed.items()}
    written = {key: plain(replace(answer, assumptions=())) for key, answer in answers.items()}
    for key, answer in answers.items():
        written[key]["assumptions"] = [said[id(one)] for one in answer.assumptions]
    return written


def _outcome(answer: ProgramAnswer) -> Body | None:
    if answer.plan.outcome is None:
        return None
    given = answer.request["outcome"]
    stated = {name: plain(given.get(name)) for name in ("metric", "baseline", "target", "decision", "evaluation_usd")}
    return {**stated, **plain(answer.plan.outcome)}


def _tier(tier: TierBlock, answer: ProgramAnswer, written: Mapping[int, Body]) -> Body:
    gate = None if tier.gate is None else _gate(tier.gate) | plain(answer.gates[tier.tier])
    return {
        "tier": tier.tier,
        "cost_usd": plain(tier.cost_usd),
        "overhead_usd": plain(tier.overhead_usd),
        **{name: plain(getattr(tier, name)) for name in RANGE_FIELDS},
        "runs": [_run(block, answer.estimates[tier.tier, block.run.name], written) for block in tier.runs],
        "failures": plain(tier.failures),
        "gate": gate,
    }


def _run(block: RunBlock, estimate: EstimateAnswer, written: Mapping[int, Body]) -> Body:
    repetition = block.run.repetition
    return {
        "name": block.run.name,
        "repeat": repetition.repeat,
        "runs": repetition.runs,
        "equivalents": block.equivalents,
        "at_once": repetition.at_once,
        "cost_usd": plain(block.cost_usd),
        **{name: plain(getattr(block, name)) for name in RANGE_FIELDS},
        "estimate": written[id(estimate)],
    }


def _gate(block: GateBlock) -> Body:
    body: Body = plain(block)
    return {**body.pop("gate"), **body}


def _risk(body: Body) -> Body:
    return {**body.pop("risk"), **body}


def _midpoint(answer: ProgramAnswer) -> Body | None:
    gate = answer.plan.midpoint
    return None if gate is None else {**plain(gate.gate), **plain(answer.midpoint)}

"""Answers of POST /v1/estimate/program for documents to be made of: the engine's own figures under the contract's names."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from service.domain.programs.outcome import Outcome
from service.domain.programs.plan import RunBlock, TierBlock
from service.domain.programs.program import (
    GateCriteria,
    MidpointGate,
    OtherLine,
    Program,
    ProgramOverhead,
    Reserves,
    Risk,
    Tier,
    TierGate,
)
from service.domain.programs.runs import Rung, RunRepetition
from service.domain.schedule import PlannedSpending
from service.engine.programs.budget import plan_budget
from service.engine.programs.gates import spending_by_tier
from service.engine.scheduling.burn_plan import burn_plan
from service.serialization import to_builtins
from tests.unit.engine.program_builders import planned, program

START = date(2027, 1, 4)
TIER_WEEKS = 3
FIGURES = ("accelerator_hours", "wall_clock_hours", "usd")
HOSTILE = '=HYPERLINK("http://evil") <script>alert(1)</script> | *x* \'é'


def complete() -> Program:
    """Three tiers with a sweep that is stopped early, overheads of every kind, two risks, and a name that means harm."""
    sweep = RunRepetition(repeat=3, grid=(3, 3), seeds=2, rungs=(Rung(0.25, 0.5), Rung(0.5, 0.5)), concurrency=4)
    return program(
        Tier("prototype", (planned(HOSTILE, 50.37, 2.11, 13.37, repetition=sweep),), TierGate("data mixture", 0.6, "+3 points", 3)),
        Tier("validation", (planned("scale check", 1250.5, repetition=RunRepetition(repeat=2)),), TierGate("go to production", 0.7)),
        Tier("production", (planned("main", 10_000.25, 1.99),)),
        name=HOSTILE,
        reserves=Reserves(0.05, 0.8),
        correlation=0.5,
        outcome=Outcome("helpdesk-eval", 0.61, 0.7, 0.01, "replace the vendor model"),
        midpoint_gate=MidpointGate(0.5, GateCriteria(0.65, 0.9), GateCriteria(cpi_below=0.7), "validation winner"),
        overheads=(
            ProgramOverhead("sweeps", "stated", 0.1),
            ProgramOverhead("evaluation", "stated", usd=Decimal("777.77")),
            ProgramOverhead("reruns", "stated", 0.0733, tier="production"),
        ),
        other_lines=(
            OtherLine("storage: dataset", Decimal("6252.69"), "40 TB"),
            OtherLine("labelling", Decimal(500), "stated", "prototype"),
        ),
        risks=(Risk(HOSTILE, 0.3, "production", 0.1), Risk("leak", 0.25, None, 0.01, Decimal("20000.10"))),
    )


def answer_of(asked: Program, **changes: Any) -> dict[str, Any]:
    """The program's answer: each tier lasts three weeks, from 4 January 2027 on."""
    found = plan_budget(asked)
    body = {
        **{name: to_builtins(getattr(found, name)) for name in ("name", "total_usd", "expected_usd", "completion_probability", "envelope")},
        **{name: to_builtins(getattr(found, name)) for name in ("overhead", "reserves", "lines", "endings", "warnings")},
        "summary": {"text": f"{found.name}: about $1M and done by 1 Mar 2027."},
        "outcome": _outcome(asked, to_builtins(found.outcome)),
        "tiers": [_tier(block, at) for at, block in enumerate(found.tiers)],
        "risks": to_builtins(found.risks),
        "midpoint_gate": None if found.midpoint is None else _midpoint(to_builtins(found.midpoint)),
        "schedule": _schedule(asked),
        "burn_plan": to_builtins(burn_plan(START, _spendings(asked))),
        "reporting": {"every_days": 7, "first": "2027-01-11", "reports": 9},
        "risk_register": None,
        "evaluation": None,
        "tokens": None,
        "spend_choices": None,
        "price_snapshot": "snapshot-2026-09-20",
        "engine_version": "0.1.0",
        "assumptions": [{"field": "correlation", "value": 0.5, "source": "judgement"}],
    }
    return body | changes


def _outcome(asked: Program, block: Any) -> dict[str, Any] | None:
    if asked.outcome is None:
        return None
    return {**to_builtins(asked.outcome), **block, "evaluation_usd": None}


def _midpoint(block: dict[str, Any]) -> dict[str, Any]:
    return {**block.pop("gate"), **block, "date": "2027-02-01", "tier": "validation"}


def _tier(tier: TierBlock, at: int) -> dict[str, Any]:
    block = to_builtins(tier)
    gate = block["gate"]
    dated = None if gate is None else {**gate, "earliest": _day(at + 1, -9), "date": _dates(at)}
    return {**block, "gate": dated, "runs": [_run(run) for run in tier.runs]}


def _run(block: RunBlock) -> dict[str, Any]:
    run = to_builtins(block.run)
    use = run["use"]
    hours, compute = use["accelerator_hours"]["p50"], run["lines"][0]["usd"]
    estimate = {
        "price": {"usd_per_accelerator_hour": compute / hours, "source": "caller", "provider": None, "region": None, "pricing": None},
        "time": {name: use[name] for name in FIGURES[:2]},
        "cost": {"total_usd": use["usd"], "lines": [{**line, "basis": "as stated"} for line in run["lines"]]},
    }
    repetition = run["repetition"]
    return {
        **to_builtins(block),
        "name": run["name"],
        "repeat": repetition["repeat"],
        "runs": 1,
        "concurrency": repetition["concurrency"],
        "estimate": estimate,
    }


def _schedule(asked: Program) -> dict[str, Any]:
    entries = [_entry(f"{tier.tier}: {run.name}", "run", at, tier) for at, tier in enumerate(asked.tiers) for run in tier.runs]
    entries += [_entry(f"gate: {tier.tier}", "gate", at, tier) for at, tier in enumerate(asked.tiers) if tier.gate]
    bought = {
        "lever": "accelerators",
        "change": "twice as many",
        "probability": 0.9,
        "probability_gain": 0.2,
        "price_usd": 12.5,
        "reaches_target": True,
    }
    return {
        "start": str(START),
        "deadline": "2027-03-20",
        "critical_path": [entries[0]["what"]],
        "calendar": entries,
        "pools": [],
        "finish": _dates(len(asked.tiers) - 1),
        "deadline_probability": 0.7,
        "target_probability": 0.8,
        "latest_start": {"start": None, "probability": 0.0, "best_probability": 0.5},
        "deadline_options": [bought | {"usd_per_point": 0.625}],
    }


def _entry(what: str, kind: str, at: int, tier: Tier) -> dict[str, Any]:
    dates = _dates(at)
    spans = {"start": _day(at), "finish": dates["p50"], "finish_range": dates}
    return {"what": what, "kind": kind, "tier": tier.tier, "float_hours": 0.0, "criticality": 1.0} | spans


def _dates(at: int) -> dict[str, str]:
    return {"p10": _day(at + 1, -8), "p50": _day(at + 1, -1), "p90": _day(at + 1, 9)}


def _day(tiers: int, days: int = 0) -> str:
    return str(START + timedelta(weeks=TIER_WEEKS * tiers, days=days))


def _spendings(asked: Program) -> list[PlannedSpending]:
    found = plan_budget(asked)
    lasts = TIER_WEEKS * 7 * 24.0
    spent = [stage.usd + stage.reserve_usd for stage in spending_by_tier(asked, found.tiers, found.envelope.reserve_usd)]
    return [
        PlannedSpending(at * lasts, (at + 1) * lasts, usd, tier.use.accelerator_hours.p50, round(tier.use.tokens), 10)
        for at, (usd, tier) in enumerate(zip(spent, found.tiers, strict=True))
    ]

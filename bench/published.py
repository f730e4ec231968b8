"""Fills docs/explanation/published-program.md, a published program against its plan: `python -m bench.published` writes it.

Reported: DeepSeek-V3 Technical Report (arXiv 2412.19437v2), table 1: 2,664K H800-hours of pre-training, 119K of context extension, 5K of
post-training, 2,788K and 5.576M USD at 2 USD an hour; section 1: 180K hours a trillion tokens, without earlier research and ablations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.harness import offline_context
from bench.readme import put
from service.context import AppContext
from service.domain.quantities import Range
from service.engine.programs.contingency import combine_ranges
from service.engine.training.search.layout_search import choose_layout
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.programs.plan import plan_program
from service.usecases.programs.runs import merge_requests
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.resolve import resolve

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "published-program.md"
REQUEST: dict[str, Any] = json.loads((ROOT / "examples" / "published-deepseek-v3.json").read_text(encoding="utf-8"))
STAGES = {
    "pre-training": (2_664e3, ("pre-training",)),
    "context extension": (119e3, ("context to 32K", "context to 128K")),
    "post-training": (5e3, ("supervised fine-tuning",)),
}
PRETRAINING = STAGES["pre-training"][0]
REPORTED_HOURS, REPORTED_USD = 2_788e3, 5_576e3
HOURS_PER_TRILLION = 180e3
RATE = {"tokens_per_s_per_accelerator": 1e12 / HOURS_PER_TRILLION / 3600}
# Sections 3.2 and 4.2: 16-way pipeline, 64-way experts, ZeRO-1, no tensor parallelism.
LAYOUT = {"parallelism": {"tensor": 1, "pipeline": 16, "context": 1, "expert": 64}, "zero_stage": 1}


def filled(text: str, context: AppContext) -> str:
    """The page's text with its tables as they should be."""
    answer = answered(context, REQUEST)
    tables = {"stages": stage_rows(answer), "causes": cause_rows(context, answer), "budget": budget_rows(answer)}
    for name, rows in tables.items():
        text = put(text, name, "".join(f"{row}\n" for row in rows))
    return text


def answered(context: AppContext, request: dict[str, Any]) -> dict[str, Any]:
    """What POST /v1/estimate/program answers."""
    return present_program(plan_program(context, ProgramRequestSchema().load(request)))


def stage_hours(answer: dict[str, Any], name: str) -> Range:
    """Accelerator-hours planned for a stage of the report."""
    runs = {run["name"]: Range(**run["accelerator_hours"]) for tier in answer["tiers"] for run in tier["runs"]}
    return combine_ranges([runs[each] for each in STAGES[name][1]], 0.5)


def pretraining_hours(context: AppContext, **changes: Any) -> Range:
    """Accelerator-hours of the pre-training, asked for with sections laid over its estimate."""
    run = {"name": "pre-training", "estimate": _pretraining(changes)}
    body = answered(context, {"name": "alone", "tiers": [{"tier": "production", "runs": [run]}]})
    return Range(**body["tiers"][0]["accelerator_hours"])


def computing_share(context: AppContext, **changes: Any) -> float:
    """What is left of the pre-training's step without its exchanges and its pipeline's bubble."""
    request, notes = EstimateRequestSchema().load(_pretraining(changes)), AssumptionLog()
    resolved = resolve(context, request, notes)
    run = resolved.run
    steps = choose_layout(run.model, run.training, run.cluster, resolved.utilisation).steps
    return 1 - float((steps.network[0] + steps.pipeline[0]) / steps.total[0])


def pretraining_ways(context: AppContext, answer: dict[str, Any]) -> dict[str, float]:
    """Accelerator-hours of the pre-training by what they are planned from."""
    estimate = answer["tiers"][1]["runs"][0]["estimate"]
    throughput = estimate["throughput"]
    sustained = throughput["effective_mfu"] / (throughput["mfu"]["p50"] * estimate["reliability"]["goodput"])
    typical = throughput["tokens_per_s_per_accelerator"]["p50"] / throughput["best_tokens_per_s_per_accelerator"]
    goal, laid_out = stage_hours(answer, "pre-training").p50, pretraining_hours(context, training=LAYOUT).p50
    return {
        "the goal alone": goal,
        "the goal alone, all exchanges hidden": goal * computing_share(context),
        "the same, and nothing lost between nodes": goal * computing_share(context) * sustained * typical,
        "the report's layout": laid_out,
        "the report's layout, exchanges and bubble hidden, nothing lost": laid_out * computing_share(context, training=LAYOUT) * sustained,
        "the report's rate": pretraining_hours(context, efficiency=RATE).p50,
    }


def stage_rows(answer: dict[str, Any]) -> list[str]:
    """Each stage and the whole: reported, planned, their ratio, and whether the range holds what was reported."""
    production = answer["tiers"][1]
    return [
        "| stage | reported | planned | planned / reported | reported in range |",
        "| --- | ---: | ---: | ---: | --- |",
        *(_stage_row(name, hours, stage_hours(answer, name)) for name, (hours, _) in STAGES.items()),
        _stage_row("**training**", REPORTED_HOURS, Range(**production["accelerator_hours"])),
        _stage_row("cost, thousand USD", REPORTED_USD, Range(**production["usd"])),
    ]


def cause_rows(context: AppContext, answer: dict[str, Any]) -> list[str]:
    """The pre-training asked for in other ways."""
    rows = [f"| {name} | {hours / 1e3:,.0f} | {hours / PRETRAINING:.2f} |" for name, hours in pretraining_ways(context, answer).items()]
    return ["| planned from | thousand hours | planned / reported |", "| --- | ---: | ---: |", *rows]


def budget_rows(answer: dict[str, Any]) -> list[str]:
    """What a plan made before has beside the training that is reported."""
    ablations, training = answer["tiers"]
    lines = [
        ("training, as above", training["accelerator_hours"]["p50"], training["cost_usd"]),
        ("the ablations that the report describes", ablations["accelerator_hours"]["p50"], ablations["cost_usd"]),
        ("contingency", None, answer["envelope"]["reserve_usd"]),
        ("**budget**", None, answer["total_usd"]["p50"]),
    ]
    rows = [
        f"| {name} | {'' if hours is None else f'{hours / 1e3:,.0f}'} | {usd / 1e6:.2f} | {usd / REPORTED_USD:.2f} |"
        for name, hours, usd in lines
    ]
    return ["| planned | thousand hours | million USD | of the reported cost |", "| --- | ---: | ---: | ---: |", *rows]


def _pretraining(changes: dict[str, Any]) -> dict[str, Any]:
    run = REQUEST["tiers"][1]["runs"][0]
    return merge_requests(merge_requests(REQUEST["defaults"], run["estimate"]), changes)


def _stage_row(name: str, reported: float, planned: Range) -> str:
    middle, low, high = (_thousands(value) for value in (planned.p50, planned.p10, planned.p90))
    within = "yes" if planned.p10 <= reported <= planned.p90 else "no"
    return f"| {name} | {_thousands(reported)} | {middle} ({low} to {high}) | {planned.p50 / reported:.2f} | {within} |"


def _thousands(value: float) -> str:
    return f"{value / 1e3:,.0f}" if value >= 1e4 else f"{value / 1e3:.1f}"


if __name__ == "__main__":
    with offline_context() as shipped:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), shipped), encoding="utf-8")

"""A program's answer where the price of a run is not known: what is in dollars is null, everything else is answered."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]
UNKNOWN: Body = {
    "total_usd": None,
    "without_contingency_usd": None,
    "expected_usd": None,
    "envelope": None,
    "endings": [],
    "burn_plan": [],
    "overhead": [],
    "lines": [],
}


def without_budget(answer: Body) -> Body:
    """The answer without its budget; runs with a price keep their cost."""
    schedule, outcome, midpoint = (answer[name] for name in ("schedule", "outcome", "midpoint_gate"))
    options = [{**option, "price_usd": None, "usd_per_point": None} for option in schedule["deadline_options"]]
    return {
        **answer,
        **UNKNOWN,
        "outcome": outcome and {**outcome, "usd_per_point": None, "expected_net_usd": None},
        "tiers": [_tier(tier) for tier in answer["tiers"]],
        "risks": [{**risk, "loss_usd": None, "expected_loss_usd": None, "effect": None} for risk in answer["risks"]],
        "midpoint_gate": midpoint and {**midpoint, "date": None, "at_usd": None, "tier": None},
        "schedule": {**schedule, "deadline_options": options},
    }


def _tier(tier: Body) -> Body:
    gate = tier["gate"]
    return {
        **tier,
        "cost_usd": None,
        "overhead_usd": None,
        "usd": None,
        "runs": [run if run["estimate"]["price"] else {**run, "cost_usd": None, "usd": None} for run in tier["runs"]],
        "failures": {**tier["failures"], "rollback_allowance_usd": None},
        "gate": gate
        and {
            **gate,
            "cost_to_decide_usd": None,
            "spent_usd": None,
            "information": None,
            "statement": f"what it costs to decide is not known ({gate['decides']})",
        },
    }

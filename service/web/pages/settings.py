"""/settings: who is signed in, the team's keys, what it uses of its budgets, its alert rules and its Slack channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from flask import Response

from service.api.http import budgets
from service.api.http.auth import app_context, principal
from service.api.resources.tracking.alerts import rule_body
from service.domain.budgets import BudgetStatus
from service.domain.teams import Key
from service.usecases.keys import list_team_keys
from service.usecases.slack.channels import list_channels
from service.usecases.storage import storage_budgets
from service.usecases.tracking.alerts import list_rules
from service.usecases.tracking.programs import list_programs
from service.web.blueprint import blueprint
from service.web.rendering import page

MOST_PROGRAMS, MOST_RULES = 50, 100
OPEN = "open"
NEARLY = 0.8
"""Share of a budget from which it is said to be nearly used up [1]."""
Body = dict[str, Any]


@blueprint.get("/settings")
@budgets.unbudgeted
def show_settings() -> Response:
    """The key's team and scopes, the team's keys for administrators, budgets, alert rules and Slack channels"""
    context, who = app_context(), principal()
    uses = (*budgets.standing(context, who), *storage_budgets(context, who.team))
    programs = list_programs(context, who, OPEN, 0, MOST_PROGRAMS)
    rules = [(program.body["name"], _rule(rule_body(row))) for program in programs for row in list_rules(context, program, 0, MOST_RULES)]
    content: Body = {
        "team": who.team_name or who.team,
        "key_name": who.key_name,
        "scopes": who.scopes,
        "has_keys": who.key is not None,
        "keys": [_key(key, context.clock()) for key in list_team_keys(context, who)] if who.may("admin") and who.key else None,
        "uses": [_use(use) for use in uses],
        "used_up": [use.name for use in uses if use.used >= use.limit],
        "programs": programs,
        "rules": rules,
        "channels": [channel for channel in list_channels(context) if channel.team == who.team],
    }
    return page("settings/page.html", **content)


def _key(key: Key, now: datetime) -> Body:
    """A key as it is listed, with its state in words."""
    reason = key.invalid_reason(now)
    return {"key": key, "shape": "bad" if reason else "good", "state": reason or "good"}


def _use(use: BudgetStatus) -> Body:
    share = use.used / use.limit if use.limit else 1.0
    shape = "bad" if share >= 1 else "warning" if share >= NEARLY else "good"
    words = {"bad": "used up", "warning": "nearly used up", "good": "enough is left"}[shape]
    return {"use": use, "name": use.name.replace("-", " "), "shape": shape, "words": words}


def _rule(rule: Mapping[str, Any]) -> Body:
    targets = [f"{target['kind']} {target['host']}" for target in rule["targets"]]
    return {"kind": rule["kind"].replace("_", " "), "limits": list(_limits(rule)), "targets": targets}


def _limits(rule: Mapping[str, Any]) -> Iterator[str]:
    """What the rule waits for, in words."""
    if rule["shares"]:
        yield "at " + ", ".join(f"{share:.0%}" for share in rule["shares"]) + " of the budget"
    if rule["percentile"]:
        yield f"by {rule['percentile']} of the forecast"
    if rule["hours"] is not None:
        yield f"after {rule['hours']:g} h without an event"
    if rule["days"] is not None:
        yield f"{rule['days']:g} days after the gate was due"
    if rule["team_usd"] is not None:
        yield f"above {rule['team_usd']:,.0f} USD of all programs"

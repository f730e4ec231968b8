"""What /settings shows, also after a form of it that was refused: keys, budgets, alert rules, Slack channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from flask import Response, request

from service.api.http import budgets
from service.api.http.auth import app_context, principal
from service.api.resources.tracking.alerts import rule_body
from service.domain.budgets import BudgetStatus
from service.domain.errors import InvalidRequest
from service.domain.teams import PERSON_PREFIX, SCOPES, Key
from service.domain.tracking.records import ProgramRecord
from service.usecases.keys import list_team_keys
from service.usecases.slack.channels import list_team_channels
from service.usecases.storage import storage_budgets
from service.usecases.tracking.alerts import list_rules
from service.usecases.tracking.programs import list_programs
from service.web.alert_rule_form import KIND_WORDS, LIMIT_FIELDS, TARGET_FIELDS, tested_words
from service.web.forms import Fields, FormField, refusal_errors
from service.web.rendering import page

MOST_PROGRAMS, MOST_RULES = 50, 100
OPEN = "open"
NEARLY = 0.8
"""Share of a budget from which it is said to be nearly used up [1]."""
KEY_FIELDS = (FormField("name", "Name", "ci or laptop-ada"), FormField("expires", "Ends after", "90d, 12h or never"))
EXPIRES, OVERLAP = "365d", "24h"
"""What the forms of keys begin with: the defaults of `outlay keys`."""
SCOPE_WORDS = {"read": "look and calculate", "write": "change what the team tracks and keeps", "admin": "keys, channels, prices"}
CHANNEL_FIELDS = (
    FormField("workspace", "Workspace", "T0123ABCD"),
    FormField("channel", "Channel", "C0123ABCD", unit="blank: all others"),
    FormField("webhook", "Incoming webhook", "https://hooks.slack.com/services/…", unit="for alerts, optional"),
)
CHANNEL_SCOPES = {"read": "ask", "read,write": "ask, keep answers and make alerts"}
Body = dict[str, Any]


def settings_page(given: Fields | None = None, errors: Mapping[str, str] | None = None, secret: Body | None = None) -> Response:
    """The page. `given` and `errors`: a form that was refused; `secret`: what was made and is shown this once."""
    context, who = app_context(), principal()
    uses = (*budgets.standing(context, who), *storage_budgets(context, who.team))
    programs = list_programs(context, who, OPEN, 0, MOST_PROGRAMS)
    content: Body = {
        "team": who.team_name or who.team,
        "key_name": who.key_name,
        "scopes": who.scopes,
        "is_person": (who.key or "").startswith(PERSON_PREFIX),
        "has_keys": who.key is not None,
        "keys": [_key(key, context.clock()) for key in list_team_keys(context, who)] if who.may("admin") and who.key else None,
        "scope_words": {scope: SCOPE_WORDS[scope] for scope in SCOPES if who.may(scope)},
        "uses": [_use(use) for use in uses],
        "used_up": [use.name for use in uses if use.used >= use.limit],
        "programs": programs,
        "rules": [rule for program in programs for rule in _rules(program)],
        "tested": tested_words(programs, request.args.get("tested", "")),
        "kinds": KIND_WORDS,
        "channels": list_team_channels(context, who),
        "channel_scopes": CHANNEL_SCOPES,
        "forms": {"key": KEY_FIELDS, "limits": LIMIT_FIELDS, "targets": TARGET_FIELDS, "channel": CHANNEL_FIELDS},
        "given": {"expires": EXPIRES, "overlap": OVERLAP, "scopes.read": "yes"} if given is None else given,
        "errors": errors or {},
        "secret": secret,
        "may_write": who.may("write"),
        "may_admin": who.may("admin"),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.CREATED if secret else HTTPStatus.OK
    response = page("settings/page.html", status, **content)
    if secret:
        response.headers["Cache-Control"] = "no-store"
    return response


def refused(error: InvalidRequest, given: Fields) -> Response:
    """The page with what is wrong with a form beside its field, or above all where it is of none."""
    return settings_page(given, refusal_errors(error))


def _key(key: Key, now: datetime) -> Body:
    """A key as it is listed, with its state in words."""
    reason = key.invalid_reason(now)
    replaced = key.successor is not None and not reason
    return {
        "key": key,
        "shape": "bad" if reason else "warning" if replaced else "good",
        "state": reason or ("replaced" if replaced else "good"),
        "is_good": not reason,
        "is_person": key.is_person,
        "may_rotate": not reason and not replaced and not key.is_person and all(map(principal().may, key.scopes)),
        "is_own": key.id == principal().key,
    }


def _use(use: BudgetStatus) -> Body:
    share = use.used / use.limit if use.limit else 1.0
    shape = "bad" if share >= 1 else "warning" if share >= NEARLY else "good"
    words = {"bad": "used up", "warning": "nearly used up", "good": "enough is left"}[shape]
    return {"use": use, "name": use.name.replace("-", " "), "shape": shape, "words": words}


def _rules(program: ProgramRecord) -> Iterator[Body]:
    """The rules in force of a program."""
    for row in list_rules(app_context(), program, 0, MOST_RULES):
        rule = rule_body(row)
        targets = [f"{target['kind']} {target['host']}" for target in rule["targets"]]
        named = {"id": row.id, "program": program.body["name"], "kind": KIND_WORDS[rule["kind"]]}
        yield named | {"limits": list(_limits(rule)), "targets": targets}


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

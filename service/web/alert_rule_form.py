"""The form of an alert rule: its fields by the API's names, the request that they say, and how a test message fares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from marshmallow import ValidationError

from service.api.http.auth import app_context
from service.domain.errors import InvalidRequest
from service.domain.tracking.alerts import LIMITS, AlertKind
from service.domain.tracking.records import AlertRuleRecord, ProgramRecord
from service.schemas.tracking.alerts import NewAlertRuleSchema
from service.usecases.delivery.targets import address_host
from service.usecases.tracking.alerts import list_alerts
from service.web.forms import Fields, FormField, field_errors, fields_of, joined_lists, refusal_errors, request_of, split_lists

SCHEMA = NewAlertRuleSchema()
KIND_WORDS: Mapping[str, str] = {kind: kind.replace("_", " ") for kind in get_args(AlertKind)}
LIMIT_FIELDS = (
    FormField("shares", "Shares of the budget", "0.5, 0.8, 1", unit="for: budget"),
    FormField("percentile", "Percentile of the forecast", unit="for: forecast over …", choices=("p50", "p90")),
    FormField("hours", "Hours without an event", "6", unit="for: stalled"),
    FormField("days", "Days since the gate was due", "3", unit="for: gate missed"),
    FormField("team_usd", "USD of all programs", "1,000,000", unit="for: cap, optional"),
)
WEBHOOK, SLACK = "targets.0.webhook", "targets.1.slack"
TARGET_FIELDS = (
    FormField(WEBHOOK, "Webhook", "https://example.com/alerts"),
    FormField(SLACK, "Slack incoming webhook", "https://hooks.slack.com/services/…"),
)
LISTS = ("shares",)
STATE_WORDS = {"pending": "is on its way to", "sent": "has reached", "failed": "has not reached"}
Body = dict[str, Any]


def read_rule(fields: Fields, *, keeps_targets: bool) -> Body:
    """The request that the form says, as the API loads it. `keeps_targets`: it may state none, as the rule has some.

    Raises ValidationError.
    """
    stated = {name: value for name, value in fields.items() if name in ("kind", *LIMITS)}
    targets = [{name.rpartition(".")[2]: fields[name]} for name in (WEBHOOK, SLACK) if name in fields]
    body = request_of(split_lists(stated, LISTS)) | ({"targets": targets} if targets else {})
    loaded: Body = SCHEMA.load(body, partial=("targets",) if keeps_targets else None)
    return loaded


def rule_errors(error: ValidationError | InvalidRequest) -> dict[str, str]:
    """What is wrong, by the field of the form."""
    found = refusal_errors(error) if isinstance(error, InvalidRequest) else field_errors(error.messages, SCHEMA)
    return {_field_of(name): message for name, message in found.items()}


def _field_of(name: str) -> str:
    if not name.startswith("targets"):
        return name.partition(".")[0]
    return SLACK if name.endswith("slack") else WEBHOOK


def rule_fields(rule: AlertRuleRecord) -> dict[str, str]:
    """The form of a rule as it is. Where its alerts go is a secret, and not in it."""
    return joined_lists(fields_of({name: rule.body[name] for name in ("kind", *LIMITS)}), LISTS)


def made_secrets(rule: AlertRuleRecord) -> list[tuple[str, str]]:
    """Host and signing secret of each webhook of a new rule."""
    return [(address_host(target["url"]), target["secret"]) for target in rule.body["targets"] if target["secret"] is not None]


def tested_words(programs: Sequence[ProgramRecord], tested: str) -> list[tuple[str, str]]:
    """How the deliveries of a test fare: class and words. `tested`: id of the program and number of the alert, with a point between."""
    program_id, _, number = tested.partition(".")
    program = next((program for program in programs if program.id == program_id), None)
    if program is None or not (number.isascii() and number.isdigit() and 0 < len(number) < 10):
        return []
    return [
        (
            {"sent": "good", "failed": "bad"}.get(delivery.state, "warning"),
            f"The test message {STATE_WORDS[delivery.state]} {address_host(rule.body['targets'][delivery.target]['url'])}"
            + (f": {delivery.last_error}" if delivery.last_error else "."),
        )
        for alert, rule, deliveries in list_alerts(app_context(), program, int(number) - 1, 1)
        if alert.number == int(number)
        for delivery in deliveries
    ]

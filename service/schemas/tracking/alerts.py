"""Alert rules and alerts: JSON <-> domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from marshmallow import ValidationError, validates_schema

from service.domain.tracking.alerts import LIMITS, MAX_URL_CHARACTERS, RULE_FIELDS, AlertKind, DeliveryState, Percentile, TargetKind
from service.schemas.fields import Choice, Count, FreeObject, Items, Moment, NotNegative, Number, Part, Positive, Schema, Text

KINDS = get_args(AlertKind)
MAX_TARGETS = 10
MAX_SHARES = 20
MAX_HOURS = 8760.0
MAX_DAYS = 365.0
MAX_USD = 1e12


class NewAlertTargetSchema(Schema):
    """A target of alerts: a webhook, or a Slack incoming webhook."""

    webhook = Text(max_length=MAX_URL_CHARACTERS, description="https address that alerts are POSTed to, signed as in Standard Webhooks")
    secret = Text(description="webhook: `whsec_` and the base64 of 24 to 64 random bytes; left out: generated, and shown once")
    slack = Text(max_length=MAX_URL_CHARACTERS, description="Address of a Slack incoming webhook, https://hooks.slack.com/services/…")

    @validates_schema(skip_on_field_errors=True)
    def _one_of_both(self, data: Mapping[str, Any], **_: Any) -> None:
        if ("webhook" in data) == ("slack" in data):
            raise ValidationError("needs one of webhook and slack")
        if "secret" in data and "slack" in data:
            raise ValidationError("Slack's messages are not signed", "secret")


class NewAlertRuleSchema(Schema):
    """A rule: condition, limits and targets."""

    kind = Choice(KINDS, required=True, description="What is watched")
    shares = Items(Number(above=0.0, maximum=10.0), min_items=1, max_items=MAX_SHARES, description="budget: of the budget, such as 0.8")
    percentile = Choice(get_args(Percentile), description="forecast_over_…: p90 alerts at a probability of 10 %, p50 at 50 %")
    hours = Positive(maximum=MAX_HOURS, description="stalled: hours without an event of an unfinished run")
    days = NotNegative(maximum=MAX_DAYS, description="gate_missed: days since the half-spend gate was due")
    team_usd = Positive(maximum=MAX_USD, description="cap: of all programs of the team together; the others are the program's `caps`")
    targets = Items(Part(NewAlertTargetSchema), min_items=1, max_items=MAX_TARGETS, required=True, description="Where alerts are sent")

    @validates_schema(skip_on_field_errors=True)
    def _limits_of_its_kind(self, data: Mapping[str, Any], **_: Any) -> None:
        fields = RULE_FIELDS[data["kind"]]
        for name in LIMITS:
            if name in fields.required and name not in data:
                raise ValidationError(f"a rule of kind {data['kind']} needs it", name)
            if name in data and name not in (*fields.required, *fields.optional):
                raise ValidationError(f"not taken by a rule of kind {data['kind']}", name)


class AlertTargetSchema(Schema):
    """A target of alerts. Addresses often contain a secret: only the host is shown."""

    kind = Choice(get_args(TargetKind), required=True, description="Kind of target")
    host = Text(required=True, max_length=MAX_URL_CHARACTERS, description="Host of its address")
    secret = Text(description="Signing secret of a webhook; in the answer that creates the rule only")


class AlertRuleSchema(Schema):
    """An active alert rule."""

    id = Text(required=True, description="Id of the rule")
    program = Text(required=True, description="Id of the program")
    kind = Choice(KINDS, required=True, description="What is watched")
    shares = Items(Number(), required=True, max_items=MAX_SHARES, description="Parts of the budget that are watched; empty: none [1]")
    percentile = Choice(
        get_args(Percentile), required=True, allow_none=True, description="Percentile of the forecast that is watched; null: none"
    )
    hours = Number(required=True, allow_none=True, description="Time without an event; null: none [h]")
    days = Number(required=True, allow_none=True, description="Time that the half-spend gate has been due; null: none [days]")
    team_usd = Number(required=True, allow_none=True, description="Cap on all programs of the team; null: none [USD]")
    targets = Items(Part(AlertTargetSchema), required=True, max_items=MAX_TARGETS, description="Where alerts are sent")
    created_at = Moment(required=True, description="When it was made")


class DeliverySchema(Schema):
    """Delivery of an alert to one target. `failed`: given up, after eight attempts in 28 hours or because the rule has ended."""

    id = Text(required=True, description="The webhook-id of its messages, the same at every attempt")
    target = Count(required=True, minimum=0, suffixes=False, description="Its place among the rule's targets")
    kind = Choice(get_args(TargetKind), required=True, description="Kind of target")
    host = Text(required=True, max_length=MAX_URL_CHARACTERS, description="Host of its address")
    state = Choice(get_args(DeliveryState), required=True, description="Whether it has arrived")
    attempts = Count(required=True, minimum=0, suffixes=False, description="Attempts so far")
    due_at = Moment(required=True, allow_none=True, description="When the next attempt is made")
    sent_at = Moment(required=True, allow_none=True, description="When the receiver accepted it")
    last_error = Text(required=True, allow_none=True, max_length=2000, description="Why the last attempt failed; null: none failed")


class AlertSchema(Schema):
    """An alert, sent once for as long as its finding lasts."""

    id = Text(required=True, description="Id of the alert")
    program = Text(required=True, description="Id of the program")
    rule = Text(required=True, description="Id of the rule")
    kind = Choice((*KINDS, "test"), required=True, description="What was watched")
    title = Text(required=True, description="What happened, in a few words")
    text = Text(required=True, max_length=10_000, description="Explanation in one line")
    figures = FreeObject(required=True, description="Figures of the finding, by name")
    at = Moment(required=True, description="When it was found")
    ended_at = Moment(required=True, allow_none=True, description="End of the finding; null while it lasts")
    deliveries = Items(Part(DeliverySchema), required=True, max_items=MAX_TARGETS, description="Its way to each target")


class TestAlertSchema(Schema):
    """A test alert, queued for all targets of a rule."""

    alert = Text(required=True, description="Its id in the program's alerts, which show its deliveries")
    program = Text(required=True, description="Id of the program")

"""Alert rules and alerts: JSON <-> domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from marshmallow import ValidationError, validates_schema

from service.domain.deliveries import MAX_URL_CHARACTERS, DeliveryRecord
from service.domain.tracking.alerts import (
    LIMITS,
    RULE_FIELDS,
    TEST,
    AlertFinding,
    AlertKind,
    AlertRule,
    AlertTargetKind,
    Percentile,
)
from service.domain.tracking.records import AlertRecord, AlertRuleRecord
from service.schemas.base import make_schema
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Moment, NotNegative, Number, Positive, Schema, Text

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
    shares = Items(
        Number(above=0.0, maximum=10.0), min_items=1, max_items=MAX_SHARES, description="budget: shares of the budget, such as 0.8"
    )
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


TARGET = {
    "kind": Choice(get_args(AlertTargetKind), required=True, description="Kind of target"),
    "host": Text(required=True, max_length=MAX_URL_CHARACTERS, description="Host of its address"),
}
AlertTargetSchema = make_schema(
    "AlertTarget",
    TARGET | {"secret": Text(description="Signing secret of a webhook; in the answer that creates the rule only")},
)
"""A target of alerts. Addresses often contain a secret: only the host is shown."""
AlertRuleSchema = derive(
    AlertRuleRecord,
    "AlertRule",
    more=AlertRule,
    limits={"shares": {"max_items": MAX_SHARES}, "targets": {"max_items": MAX_TARGETS}},
    parts={"targets": AlertTargetSchema},
)
DeliverySchema = derive(
    DeliveryRecord,
    "Delivery",
    extra=TARGET | {"due_at": Moment(required=True, allow_none=True, description="When the next attempt is made")},
)
AlertSchema = derive(
    AlertRecord,
    "Alert",
    more=AlertFinding,
    extra={
        "kind": Choice((*KINDS, TEST), required=True, description="What was watched"),
        "deliveries": Items(Part(DeliverySchema), required=True, max_items=MAX_TARGETS, description="Its way to each target"),
    },
)


class TestAlertSchema(Schema):
    """A test alert, queued for all targets of a rule."""

    alert = Text(required=True, description="Its id in the program's alerts, which show its deliveries")
    program = Text(required=True, description="Id of the program")
